//===- MaterializeFamily.cpp - What is said of materialize ----------------===//

#include "kernels/Families.h"
#include "kernels/Materialize/MaterializeArgs.h"
#include "kernels/Materialize/MaterializeSpec.h"

namespace replayjit::internal {

static std::vector<Parameter> parameters(const DecodeSpec &) {
  std::vector<Parameter> all;
  appendParameters(all, materializeArguments());
  return all;
}

static Status checkOwn(const DecodeSpec &spec) {
  if (spec.hasDstIndices)
    return mustBeFalse("hasDstIndices", "the materialize family, which always "
                                        "has destinations");
  if (spec.hasTrackIndices)
    return mustBeFalse("hasTrackIndices", "the materialize family");
  // A decode behind it would read states that it has yet to write.
  if (spec.programmaticLaunch == ProgrammaticLaunch::Early)
    return Status::invalid("programmaticLaunch: early is not allowed for the "
                           "materialize family; it must be none or late");
  return Status::ok();
}

static Status checkAll(const DecodeSpec &spec, const DecodeTuning &tuning,
                       const Target &target) {
  return validatePool(spec, tuning, target, checkOwn);
}

/// Without a mask, as a StatePool asks for it, and with one.
static std::vector<DecodeSpec> bundle(const DecodeSpec &decode) {
  std::vector<DecodeSpec> specs(2, materializeSpec(decode));
  specs[1].hasMask = true;
  return specs;
}

const FamilyDescriptor materializeFamily = {
    .part = "materialize",
    .traits = {.states = true, .rings = true, .mask = true},
    .draws = 1,
    .args = &structOf<MaterializeArgs>,
    .parameters = parameters,
    .validate = checkAll,
    .chooseTuning = choosePoolTuning,
    .bundle = bundle,
};

} // namespace replayjit::internal
