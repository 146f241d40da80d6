//===- ModelKernels.cpp - All kernels that serve a model ------------------===//

#include "runtime/aot/ModelKernels.h"

#include "kernels/Materialize/MaterializeSpec.h"

#include <algorithm>

namespace replayjit::internal {

/// Materialize, without a mask as a StatePool over `decode` asks for it and
/// with one, and the plans of its steps.
static void addPool(const DecodeSpec &decode, std::vector<DecodeSpec> &specs) {
  DecodeSpec materialize = materializeSpec(decode);
  for (bool hasMask : {false, true}) {
    materialize.hasMask = hasMask;
    specs.push_back(materialize);
  }
  for (Family plan : {Family::PlanBegin, Family::PlanCommit})
    specs.push_back(planSpec(decode, plan));
}

std::vector<DecodeSpec> specsOfModel(const DecodeSpec &model) {
  std::vector<DecodeSpec> specs;
  DecodeSpec decode = model;
  decode.family = Family::Replay;
  for (bool hasForceFlush : {true, false}) {
    decode.hasForceFlush = hasForceFlush;
    specs.push_back(decode);
  }
  if (model.abi == LaunchAbi::Triton)
    return specs;

  DecodeSpec packed = model;
  packed.family = Family::Packed;
  packed.ringDepth = 1;
  packed.ringFormat = RingFormat::Raw;
  packed.isCircular = packed.hasRingIndices = false;
  specs.push_back(canonical(packed));
  addPool(packed, specs); // There, materialize is a copy.
  if (model.ringDepth > 1)
    addPool(model, specs);
  return specs;
}

std::vector<KernelRequest> requestsOfModel(const DecodeSpec &model, int maxRows,
                                           const Target &target,
                                           int multiprocessors) {
  std::vector<KernelRequest> requests;
  for (const DecodeSpec &spec : specsOfModel(model)) {
    std::vector<DecodeTuning> seen;
    auto add = [&](int rows) {
      const DecodeTuning tuning =
          chooseTuning(spec, rows, target, multiprocessors);
      if (std::find(seen.begin(), seen.end(), tuning) != seen.end())
        return;
      seen.push_back(tuning);
      requests.push_back({spec, rows});
    };
    for (int rows = 1; rows <= maxRows; ++rows)
      add(rows);
    add(0);
  }
  return requests;
}

std::vector<CompileRequest>
kernelsOfModel(const DecodeSpec &model, int maxRows, const Target &target,
               const std::vector<int> &multiprocessors, Pointers pointers) {
  std::vector<DecodeSpec> models = {model};
  if (pointers == Pointers::Any && model.abi == LaunchAbi::Native) {
    models.push_back(model);
    models.back().alignment = 0;
  }
  std::vector<CompileRequest> kernels;
  auto add = [&](const DecodeSpec &spec, const DecodeTuning &tuning) {
    auto isSame = [&](const CompileRequest &other) {
      return other.spec == spec && other.tuning == tuning;
    };
    if (std::none_of(kernels.begin(), kernels.end(), isSame))
      kernels.push_back({spec, tuning, target});
  };
  for (const DecodeSpec &one : models)
    for (int count : multiprocessors)
      for (const KernelRequest &request :
           requestsOfModel(one, maxRows, target, count))
        add(request.spec,
            chooseTuning(request.spec, request.rows, target, count));
  return kernels;
}

} // namespace replayjit::internal
