//===- Parameters.cpp - What a kernel takes, by name ----------------------===//

#include "kernels/Parameters.h"

#include "kernels/Decode/TritonArgs.h"
#include "kernels/Plan/PlanArgs.h"

#include <cstddef>

namespace replayjit::internal {

static void append(std::vector<Parameter> &all, ArgumentTable table,
                   const std::string &where = "", size_t offset = 0) {
  for (const Argument &argument : table)
    all.push_back({where + argument.name, uint32_t(offset + argument.offset),
                   table, &argument});
}

std::vector<Parameter> parametersOf(const DecodeSpec &spec) {
  std::vector<Parameter> all;
  switch (spec.family) {
  case Family::Replay:
  case Family::Packed:
    append(all, spec.abi == LaunchAbi::Triton ? tritonArguments()
                                              : decodeArguments());
    break;
  case Family::Materialize:
    append(all, materializeArguments());
    break;
  case Family::PlanBegin:
  case Family::PlanCommit:
    append(all, planArguments());
    for (int g = 0; g < maxPlanGroups; ++g)
      append(all, planGroupArguments(), inPlanGroup(g),
             offsetof(PlanArgs, groups) + g * sizeof(PlanGroup));
    break;
  }
  return all;
}

} // namespace replayjit::internal
