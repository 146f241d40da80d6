//===- PlanArguments.cpp - The arguments of begin and commit --------------===//

#include "kernels/Decode/DecodeArguments.h"
#include "kernels/Plan/PlanArgs.h"

#include <cstddef>

namespace replayjit::internal {

using namespace arguments;

static constexpr Presence ifBegin{
    [](Spec spec) { return spec.family == Family::PlanBegin; }, "begin only"};
static constexpr Presence ifCommit{
    [](Spec spec) { return spec.family == Family::PlanCommit; }, "commit only"};
static constexpr Extent keys{"num_keys"};

#define MEMBER(name) #name, offsetof(PlanArgs, name)
static constexpr auto table = linked(std::to_array<Argument>({
    pointer(MEMBER(keys), index, {perLiveRow})
        .only(ifBegin)
        .orNull()
        .says("needed where a row may be live; negative: padding"),
    stride(MEMBER(keyStride), "keys"),
    pointer(MEMBER(cursors), i32, {keys}, Updated)
        .says("write_pos of each key"),
    pointer(MEMBER(bases), i32, {keys}, Updated).only(ifCircular),
    pointer(MEMBER(header), i64, {}, Read, Eight)
        .orNull()
        .says("a PlanHeader to use instead of step and live"),
    number(MEMBER(step), i64).says("its id, positive; 0: begin only looks"),
    number(MEMBER(live), i32)
        .only(ifBegin)
        .says("rows that have a token, 0..batch"),
    count(MEMBER(batch)).says("B: rows of the buffers that are filled"),
    count(MEMBER(numKeys)).only(ifBegin),
    number(MEMBER(numGroups), i32).only(ifBegin),
    number(MEMBER(forceAll), i32)
        .only(ifBegin)
        .says("not 0: rings are folded, no token is fed"),
    number(MEMBER(requireFlushed), i32)
        .only(ifBegin)
        .says("not 0: a cursor other than 0 is an error"),

    pointer(MEMBER(flushMask), i32, {perLiveRow})
        .only(ifBegin)
        .orNull()
        .says("not 0: the row is forced to flush"),
    pointer(MEMBER(fresh), i32, {perLiveRow})
        .only(ifBegin)
        .orNull()
        .says("not 0: the row's cursor counts as 0"),
    pointer(MEMBER(seqLen), i32, {perLiveRow})
        .only(ifBegin)
        .orNull()
        .says("tokens fed to the row, this step's included"),
    pointer(MEMBER(noFlushPast), i32, {perLiveRow})
        .only(ifBegin)
        .orNull()
        .says("the most tokens to fold; negative: any number"),
    pointer(MEMBER(dropNewest), i32, {perLiveRow})
        .only(ifBegin)
        .orNull()
        .says("ring rows not to count, from the newest"),
    pointer(MEMBER(advanceBy), i32, {perRow})
        .only(ifCommit)
        .orNull()
        .says("ring rows that count; else 1"),

    pointer(MEMBER(writePos), i32, {perRow}, Updated),
    pointer(MEMBER(ringBase), i32, {perRow}, Updated).only(ifCircular),
    pointer(MEMBER(forceFlush), i32, {perRow}, Updated),
    pointer(MEMBER(rowKeys), i32, {perRow}, Updated),
    pointer(MEMBER(pending), i64, {perRow}, Updated)
        .says("the step to commit, 0 in padding rows"),
    pointer(MEMBER(errorWord), i32, {}, Updated, Eight)
        .orNull()
        .says("a replayjit_error_word_t"),
}));
#undef MEMBER
static_assert(covers(table, offsetof(PlanArgs, groups)));
static_assert(sizeof(PlanArgs) ==
              offsetof(PlanArgs, groups) + maxPlanGroups * sizeof(PlanGroup));

ArgumentTable planArguments() { return table; }

#define MEMBER(name) #name, offsetof(PlanGroup, name)
#define INDICES(kind)                                                          \
  pointer(MEMBER(kind.in), index, {perLiveRow}).only(ifBegin).orNull(),        \
      stride(MEMBER(kind.stride), #kind ".in"),                                \
      pointer(MEMBER(kind.out), index, {perRow}, Written)                      \
          .only(ifBegin)                                                       \
          .orNull()
static constexpr auto groupTable = linked(std::to_array<Argument>({
    INDICES(state),
    INDICES(ring),
    INDICES(dst),
    INDICES(track),
    count(MEMBER(slots)).only(ifBegin),
    count(MEMBER(ringSlots)).only(ifBegin),
}));
#undef INDICES
#undef MEMBER
static_assert(covers(groupTable, sizeof(PlanGroup)));

ArgumentTable planGroupArguments() { return groupTable; }

std::string inPlanGroup(int group) {
  return "groups[" + std::to_string(group) + "].";
}

} // namespace replayjit::internal
