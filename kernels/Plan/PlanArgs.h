//===- PlanArgs.h - Before and after the launches of one step ---*- C++ -*-===//
//
// A step is a transaction. Begin looks up the cursor of every row of a batch,
// judges its indices and fills the buffers that the kernels of all layers read;
// commit moves the cursors. Both are one small launch, or plain C++ on the host
// (PlanReference.h, which has the rules). Plain C++.
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_KERNELS_PLAN_PLANARGS_H
#define REPLAYJIT_KERNELS_PLAN_PLANARGS_H

#include "kernels/Decode/DecodeArgs.h"

#include <optional>

namespace replayjit::internal {

/// The most groups of layers, each with index arrays of its own, in one plan.
inline constexpr int maxPlanGroups = 8;

/// One kind of index of one group: what the engine says and where it goes.
struct PlanIndices {
  uint64_t in = 0;    ///< 0: the default
  int64_t stride = 1; ///< Elements from one row's index to the next.
  uint64_t out = 0;   ///< Dense; 0: not wanted
};

/// The indices of the layers of one group. The defaults: ring and dst are the
/// state index, track is none. `state.in` is needed. Ring: see also B8.
struct PlanGroup {
  PlanIndices state, ring, dst, track;
  int32_t slots = 0;
  int32_t ringSlots = 0; ///< Rings; as many as slots where there are no others.
};

/// What a captured begin or commit reads in place of an argument, so that a
/// graph serves every step. In device memory.
struct PlanHeader {
  int64_t step = 0; ///< Zero: no row is live.
  int32_t live = 0;
  int32_t reserved = 0;
};

/// The spec of a plan, Family::PlanBegin or PlanCommit, for the kernels of
/// `pool`.
DecodeSpec planSpec(const DecodeSpec &pool, Family family);

/// The arguments of Family::PlanBegin and PlanCommit, byte for byte the
/// kernel's parameter buffer; planArguments() says what each member is and
/// which of the two looks at it. Pointers are device addresses, or host
/// addresses for PlanReference; those of rows are dense arrays.
struct PlanArgs {
  static constexpr const char *structName = "PlanArgs";
  static std::vector<ArgumentTable> tables(); ///< And that of a group.

  uint64_t keys = 0;
  int64_t keyStride = 1;
  uint64_t cursors = 0, bases = 0;
  uint64_t header = 0; ///< PlanHeader to use instead of step and live, or 0
  int64_t step = 0;    ///< The step's id, positive; 0: begin only looks
  int32_t live = 0;    ///< Rows that have a token, 0..batch
  int32_t batch = 0;
  int32_t numKeys = 0, numGroups = 0;
  int32_t forceAll = 0, requireFlushed = 0; ///< Truths

  // One for each live row, or 0: not given.
  uint64_t flushMask = 0, fresh = 0;
  uint64_t seqLen = 0, noFlushPast = 0; ///< Both or none
  uint64_t dropNewest = 0, advanceBy = 0;

  // What begin fills in for each row of the batch, and commit needs.
  uint64_t writePos = 0, ringBase = 0, forceFlush = 0, rowKeys = 0, pending = 0;
  uint64_t errorWord = 0; ///< An ErrorWord, or 0

  PlanGroup groups[maxPlanGroups];
};

/// What each member is but for `groups`, and each of a group; see Arguments.h.
ArgumentTable planArguments();
ArgumentTable planGroupArguments();
inline std::vector<ArgumentTable> PlanArgs::tables() {
  return {planArguments(), planGroupArguments()};
}
/// What precedes the names of a group's members: "groups[3].".
std::string inPlanGroup(int group);

/// What an index array of a padding row holds.
constexpr int64_t nullSlotOf(const DecodeSpec &spec) {
  return spec.nullSlot == NullSlot::Negative ? -1 : 0;
}

/// The cursor after a step that used `cursor` and of whose ring rows
/// `advanceBy` count: 1 for one token, 0 where the token is taken back, more
/// where drafts were accepted. What a flush has folded cannot be taken back.
/// None if advanceBy is negative, or above 1 for a row that flushes or has not
/// so many ring rows left.
inline std::optional<RingCursor> advance(const DecodeSpec &spec,
                                         RingCursor cursor, bool forced,
                                         int32_t advanceBy) {
  if (advanceBy < 0)
    return std::nullopt;
  if (!flushes(spec, cursor, forced)) {
    if (advanceBy > spec.ringDepth - 1 - cursor.writePos)
      return std::nullopt;
    return RingCursor{cursor.writePos + advanceBy, cursor.base};
  }
  if (advanceBy > 1)
    return std::nullopt;
  RingCursor next = nextCursor(spec, cursor, forced);
  // Of a circular ring that was full the token is the one row of the new ring.
  if (advanceBy == 0)
    next.writePos = 0;
  return next;
}

/// Says in one sentence what is wrong with arguments that the host can see.
/// The rules are of a spec of family PlanBegin or PlanCommit.
Status validateArgs(const LaunchRules &rules, const PlanArgs &args);

/// The pointers that a launch of them follows; see DecodeArgs.h.
std::vector<NamedAddress> addressesOf(const LaunchRules &rules,
                                      const PlanArgs &args);
inline int64_t rowsOf(const PlanArgs &args) { return args.batch; }

} // namespace replayjit::internal

#endif
