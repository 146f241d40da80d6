//===- ToyArgs.cpp - The arguments of a toy -------------------------------===//

#include "tests/family/Toy/ToyArgs.h"

#include "kernels/Decode/DecodeArguments.h"

#include <cstddef>

namespace replayjit::internal {

using namespace arguments;

#define MEMBER(name) #name, offsetof(ToyArgs, name)
static constexpr auto table = linked(std::to_array<Argument>({
    pointer(MEMBER(state), arguments::state, {perSlot, HV, V, K}, Updated,
            Wide),
    stride(MEMBER(statePitch), "state"),
    pointer(MEMBER(src), i32, {perRow}),
    pointer(MEMBER(dst), i32, {perRow}),
    count(MEMBER(batch)),
    count(MEMBER(slots)),
}));
#undef MEMBER
static_assert(covers(table, sizeof(ToyArgs)));

ArgumentTable toyArguments() { return table; }

Status validateArgs(const LaunchRules &rules, const ToyArgs &args) {
  const ArgumentValues values{rules.tables[0], &args};
  for (const Status &status : {checkCounts(values), checkPointers(values),
                               checkStrides(values, args.batch > 1)})
    if (!status)
      return status;
  return Status::ok();
}

std::vector<NamedAddress> addressesOf(const LaunchRules &rules,
                                      const ToyArgs &args) {
  std::vector<NamedAddress> all;
  appendAddresses({rules.tables[0], &args}, all);
  return all;
}

} // namespace replayjit::internal
