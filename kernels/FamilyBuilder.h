//===- FamilyBuilder.h - The program of any kernel --------------*- C++ -*-===//
#ifndef REPLAYJIT_KERNELS_FAMILYBUILDER_H
#define REPLAYJIT_KERNELS_FAMILYBUILDER_H

#include "compiler/Compiler.h"
#include "kernels/Decode/DecodeSpec.h"

namespace replayjit::internal {

// Each family's own, which its folder defines.
#define REPLAYJIT_FAMILY(Name, word)                                           \
  mlir::OwningOpRef<mlir::ModuleOp> build##Name(mlir::MLIRContext &context,    \
                                                const DecodeSpec &spec,        \
                                                const DecodeTuning &tuning);
#include "kernels/Families.def"

/// The replay-level program of `spec`, by its family: what the operator
/// contract says. How the state is read is an attribute of each use. `spec` and
/// `tuning` must be valid.
mlir::OwningOpRef<mlir::ModuleOp> buildKernel(mlir::MLIRContext &context,
                                              const DecodeSpec &spec,
                                              const DecodeTuning &tuning);

/// Validates, builds and compiles. With `forHost` the result holds a host
/// program instead of PTX and cubin.
Result<CompiledKernel> compileKernel(Compiler &compiler, const DecodeSpec &spec,
                                     const DecodeTuning &tuning,
                                     const Target &target,
                                     CompileOptions options,
                                     bool forHost = false);

} // namespace replayjit::internal

#endif
