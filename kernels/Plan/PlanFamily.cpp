//===- PlanFamily.cpp - The two families of plans -------------------------===//

#include "kernels/Families.h"
#include "kernels/Plan/PlanArgs.h"

#include <cstddef>

namespace replayjit::internal {

DecodeSpec planSpec(const DecodeSpec &pool, Family family) {
  DecodeSpec spec = pool;
  spec.family = family;
  return canonical(spec);
}

static std::vector<Parameter> parameters(const DecodeSpec &) {
  std::vector<Parameter> all;
  appendParameters(all, planArguments());
  for (int g = 0; g < maxPlanGroups; ++g)
    appendParameters(all, planGroupArguments(), inPlanGroup(g),
                     offsetof(PlanArgs, groups) + g * sizeof(PlanGroup));
  return all;
}

static Status checkAll(const DecodeSpec &spec, const DecodeTuning &,
                       const Target &) {
  return checkCircularDepth(spec);
}

template <Family family>
static std::vector<DecodeSpec> bundle(const DecodeSpec &decode) {
  return {planSpec(decode, family)};
}

const FamilyDescriptor planBeginFamily = {
    .part = "plan_begin",
    .traits = {.isPublic = false}, // StepPlan's own
    .args = &structOf<PlanArgs>,
    .parameters = parameters,
    .validate = checkAll,
    .bundle = bundle<Family::PlanBegin>,
};

const FamilyDescriptor planCommitFamily = {
    .part = "plan_commit",
    .traits = {.isPublic = false},
    .args = &structOf<PlanArgs>,
    .parameters = parameters,
    .validate = checkAll,
    .bundle = bundle<Family::PlanCommit>,
};

} // namespace replayjit::internal
