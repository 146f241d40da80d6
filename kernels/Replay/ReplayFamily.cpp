//===- ReplayFamily.cpp - What is said of replay --------------------------===//

#include "kernels/Decode/DecodeArgs.h"
#include "kernels/Families.h"

namespace replayjit::internal {

static Status checkOwn(const DecodeSpec &spec) {
  if (spec.ringDepth == 1 && spec.hasRingIndices)
    return mustBeFalse("hasRingIndices", "ringDepth = 1, which has no ring");
  return Status::ok();
}

static Status checkAll(const DecodeSpec &spec, const DecodeTuning &tuning,
                       const Target &target) {
  return validatePool(spec, tuning, target, checkOwn);
}

static std::vector<DecodeSpec> bundle(const DecodeSpec &decode) {
  std::vector<DecodeSpec> specs(2, decode);
  specs[0].family = specs[1].family = Family::Replay;
  specs[0].hasForceFlush = true;
  specs[1].hasForceFlush = false;
  return specs;
}

const FamilyDescriptor replayFamily = {
    .part = "decode",
    .traits = {.states = true,
               .tokens = true,
               .rings = true,
               .forcedFlush = true,
               .triton = true},
    .draws = 5,
    .args = &structOf<DecodeArgs>,
    .parameters = decodeParameters,
    .validate = checkAll,
    .chooseTuning = choosePoolTuning,
    .bundle = bundle,
};

} // namespace replayjit::internal
