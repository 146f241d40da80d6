//===- ToyFamily.cpp - What is said of toys -------------------------------===//

#include "kernels/Families.h"
#include "tests/family/Toy/ToyArgs.h"

#include <fmt/format.h>

namespace replayjit::internal {

extern const FamilyDescriptor toyFamily;

static std::vector<Parameter> parameters(const DecodeSpec &) {
  std::vector<Parameter> all;
  appendParameters(all, toyArguments());
  return all;
}

static Status checkOwn(const DecodeSpec &spec) {
  if (spec.ringDepth != 1)
    return Status::invalid(
        fmt::format("ringDepth: {} is not allowed for a toy; it must be 1",
                    spec.ringDepth));
  return Status::ok();
}

static Status checkAll(const DecodeSpec &spec, const DecodeTuning &tuning,
                       const Target &target) {
  return validatePool(spec, tuning, target, checkOwn);
}

const FamilyDescriptor toyFamily = {
    .part = "toy",
    .traits = {.states = true},
    .args = &structOf<ToyArgs>,
    .parameters = parameters,
    .validate = checkAll,
    .chooseTuning = choosePoolTuning,
    .bundle = [](const DecodeSpec &) { return std::vector<DecodeSpec>(); },
};

} // namespace replayjit::internal
