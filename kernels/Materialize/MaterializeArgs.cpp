//===- MaterializeArgs.cpp - The arguments of materialize -----------------===//

#include "kernels/Materialize/MaterializeArgs.h"

#include "kernels/Decode/DecodeArguments.h"

#include <cstddef>

namespace replayjit::internal {

using namespace arguments;

static constexpr Presence ifMask{[](Spec spec) { return spec.hasMask; },
                                 "if has_mask"};
static constexpr Extent layers{"num_layers"};
static constexpr Extent words{
    "8", [](Spec) -> int64_t { return sizeof(ReplayLayer) / sizeof(int64_t); }};

#define MEMBER(name) #name, offsetof(MaterializeArgs, name)
static constexpr auto table = linked(std::to_array<Argument>({
    pointer(MEMBER(layers), i64, {layers, words}).says("replayjit_layer_t"),
    pointer(MEMBER(srcIndices), index, {perRow})
        .says("of states and, unless has_ring_indices, rings"),
    pointer(MEMBER(dstIndices), index, {perRow}),
    pointer(MEMBER(ringIndices), index, {perRow})
        .only(ifRingIndices)
        .says("any where write_pos is 0"),
    pointer(MEMBER(writePos), i32, {perRow}).says("the source's cursor"),
    pointer(MEMBER(ringBase), i32, {perRow}).only(ifCircular),
    pointer(MEMBER(mask), i32, {perRow}).only(ifMask).says("0 skips the row"),
    pointer(MEMBER(errorWord), i32, {}, Updated, Eight)
        .orNull()
        .says("a replayjit_error_word_t"),
    stride(MEMBER(srcIndexStride), "srcIndices"),
    stride(MEMBER(dstIndexStride), "dstIndices"),
    stride(MEMBER(ringIndexStride), "ringIndices"),
    count(MEMBER(batch)).says("B"),
    count(MEMBER(numLayers)),
    count(MEMBER(slots)),
    count(MEMBER(ringSlots)).only(ifRingIndices),
}));
#undef MEMBER
static_assert(covers(table, sizeof(MaterializeArgs)));

ArgumentTable materializeArguments() { return table; }

Status validateArgs(const LaunchRules &rules, const MaterializeArgs &args) {
  const ArgumentValues values{rules.tables[0], &args};
  if (Status status = checkCounts(values); !status)
    return status;
  if (args.batch == 0 || args.numLayers == 0)
    return Status::ok();
  if (Status status = checkPointers(values); !status)
    return status;
  if (Status status = checkStrides(values, args.batch > 1); !status)
    return status;
  // Several rows may have one source.
  return checkOwnSlots(args.batch, {{"dstIndexStride", args.dstIndexStride}});
}

std::vector<NamedAddress> addressesOf(const LaunchRules &rules,
                                      const MaterializeArgs &args) {
  std::vector<NamedAddress> all;
  if (args.batch > 0 && args.numLayers > 0)
    appendAddresses({rules.tables[0], &args}, all);
  return all;
}

} // namespace replayjit::internal
