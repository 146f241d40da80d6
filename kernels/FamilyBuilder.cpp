//===- FamilyBuilder.cpp - The program of any kernel ----------------------===//

#include "kernels/FamilyBuilder.h"

#define REPLAYJIT_REGISTRY

using namespace mlir;
using namespace replayjit::internal;

namespace replayjit::internal {
#define REPLAYJIT_FAMILY(Name, word)                                           \
  OwningOpRef<ModuleOp> build##Name(MLIRContext &, const DecodeSpec &,         \
                                    const DecodeTuning &);
#include "kernels/Families.def"
} // namespace replayjit::internal

using BuildFn = OwningOpRef<ModuleOp> (*)(MLIRContext &, const DecodeSpec &,
                                          const DecodeTuning &);
static constexpr BuildFn builders[] = {
#define REPLAYJIT_FAMILY(Name, word) build##Name,
#include "kernels/Families.def"
};

OwningOpRef<ModuleOp>
replayjit::internal::buildKernel(MLIRContext &context, const DecodeSpec &spec,
                                 const DecodeTuning &tuning) {
  return builders[size_t(spec.family)](context, spec, tuning);
}

Result<CompiledKernel> replayjit::internal::compileKernel(
    Compiler &compiler, const DecodeSpec &spec, const DecodeTuning &tuning,
    const Target &target, CompileOptions options, bool forHost) {
  if (Status status = validate(spec, tuning, target); !status)
    return status;
  auto build = [&](MLIRContext &context) {
    return buildKernel(context, spec, tuning);
  };
  return forHost ? compiler.compileForHost(build, target, options)
                 : compiler.compile(build, target, options);
}
