//===- ModelKernels.cpp - All kernels that serve a model ------------------===//

#include "runtime/aot/ModelKernels.h"

#include "kernels/Families.h"

#include <algorithm>

namespace replayjit::internal {

std::vector<DecodeSpec> specsOfModel(const DecodeSpec &model) {
  std::vector<DecodeSpec> specs;
  auto add = [&](const FamilyDescriptor &family, const DecodeSpec &decode) {
    for (const DecodeSpec &spec : family.bundle(decode))
      if (std::find(specs.begin(), specs.end(), spec) == specs.end())
        specs.push_back(spec);
  };
  const bool isTriton = model.abi == LaunchAbi::Triton;
  for (const FamilyDescriptor *family : allFamilies())
    if (family->traits.tokens && (!isTriton || family->traits.triton))
      add(*family, model);
  if (isTriton)
    return specs;
  const std::vector<DecodeSpec> ofTokens = specs;
  for (const DecodeSpec &decode : ofTokens) {
    // A ring of one row is never used: the pool is that of packed decode.
    if (traitsOf(decode).rings && decode.ringDepth == 1)
      continue;
    for (const FamilyDescriptor *family : allFamilies())
      if (!family->traits.tokens)
        add(*family, decode);
  }
  return specs;
}

std::vector<KernelRequest> requestsOfModel(const DecodeSpec &model, int maxRows,
                                           const Target &target,
                                           int multiprocessors,
                                           const TuningTable *measured) {
  std::vector<KernelRequest> requests;
  for (const DecodeSpec &spec : specsOfModel(model)) {
    std::vector<DecodeTuning> seen;
    auto add = [&](int rows) {
      const DecodeTuning tuning =
          chooseTuning(spec, rows, target, multiprocessors, measured);
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
               const std::vector<int> &multiprocessors, Pointers pointers,
               const TuningTable *measured) {
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
           requestsOfModel(one, maxRows, target, count, measured))
        add(request.spec,
            chooseTuning(request.spec, request.rows, target, count, measured));
  return kernels;
}

} // namespace replayjit::internal
