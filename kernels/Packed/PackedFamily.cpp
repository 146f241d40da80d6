//===- PackedFamily.cpp - What is said of packed decode -------------------===//

#include "kernels/Decode/DecodeArgs.h"
#include "kernels/Families.h"

#include <fmt/format.h>

namespace replayjit::internal {

static Status checkOwn(const DecodeSpec &spec) {
  if (spec.ringDepth != 1)
    return Status::invalid(
        fmt::format("ringDepth: {} is not allowed for the packed family, "
                    "which has no ring; it must be 1",
                    spec.ringDepth));
  const char *why = "the packed family, which has no ring";
  if (spec.isCircular)
    return mustBeFalse("isCircular", why);
  if (spec.hasRingIndices)
    return mustBeFalse("hasRingIndices", why);
  if (spec.ringFormat != RingFormat::Raw)
    return Status::invalid(
        fmt::format("ringFormat: {} is not allowed for {}; it must be raw",
                    wordOf(spec.ringFormat), why));
  return Status::ok();
}

static Status checkAll(const DecodeSpec &spec, const DecodeTuning &tuning,
                       const Target &target) {
  return validatePool(spec, tuning, target, checkOwn);
}

static std::vector<DecodeSpec> bundle(const DecodeSpec &decode) {
  DecodeSpec packed = decode;
  packed.family = Family::Packed;
  packed.ringDepth = 1;
  packed.ringFormat = RingFormat::Raw;
  packed.isCircular = packed.hasRingIndices = false;
  return {canonical(packed)};
}

const FamilyDescriptor packedFamily = {
    .part = "packed",
    .traits = {.states = true, .tokens = true},
    .draws = 1,
    .args = &structOf<DecodeArgs>,
    .parameters = decodeParameters,
    .validate = checkAll,
    .chooseTuning = choosePoolTuning,
    .bundle = bundle,
};

} // namespace replayjit::internal
