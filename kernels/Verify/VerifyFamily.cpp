//===- VerifyFamily.cpp - What is said of verify --------------------------===//

#include "kernels/Decode/DecodeArgs.h"
#include "kernels/Families.h"

#include <fmt/format.h>

namespace replayjit::internal {

static Status checkOwn(const DecodeSpec &spec) {
  if (!spec.isCircular)
    return Status::invalid("isCircular: false is not allowed for the verify "
                           "family, whose rings wrap; it must be true");
  if (spec.ringDepth < spec.numTokens)
    return Status::invalid(fmt::format(
        "ringDepth: {} is not allowed for the verify family with numTokens = "
        "{}, which a ring must hold; it must be {} to {}",
        spec.ringDepth, spec.numTokens, spec.numTokens, maxRingDepth));
  if (spec.hasTrackIndices)
    return mustBeFalse("hasTrackIndices", "the verify family, which does not "
                                          "know the tokens that hold");
  return Status::ok();
}

static Status checkAll(const DecodeSpec &spec, const DecodeTuning &tuning,
                       const Target &target) {
  // A fold in place does not wait for the bulk copies of a rebuilt state.
  if (spec.readout == Readout::Rebuild && tuning.stageBytes > 0)
    return Status::invalid(
        fmt::format("stageBytes: {} is not allowed for the verify family with "
                    "the rebuild readout; it must be 0",
                    tuning.stageBytes));
  return validatePool(spec, tuning, target, checkOwn);
}

/// With force_flush and without, if the model's facts have drafts.
static std::vector<DecodeSpec> bundle(const DecodeSpec &decode) {
  if (decode.numTokens <= 1)
    return {};
  std::vector<DecodeSpec> specs(2, decode);
  for (DecodeSpec &spec : specs) {
    spec.family = Family::Verify;
    spec.isCircular = true;
  }
  specs[0].hasForceFlush = true;
  specs[1].hasForceFlush = false;
  return specs;
}

const FamilyDescriptor verifyFamily = {
    .part = "verify",
    .traits = {.states = true,
               .tokens = true,
               .drafts = true,
               .rings = true,
               .forcedFlush = true},
    .draws = 2,
    .args = &structOf<DecodeArgs>,
    .parameters = decodeParameters,
    .validate = checkAll,
    .chooseTuning = choosePoolTuning,
    .bundle = bundle,
};

} // namespace replayjit::internal
