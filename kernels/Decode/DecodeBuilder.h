//===- DecodeBuilder.h - The decode step as a tile program ------*- C++ -*-===//
#ifndef REPLAYJIT_KERNELS_DECODE_DECODEBUILDER_H
#define REPLAYJIT_KERNELS_DECODE_DECODEBUILDER_H

#include "compiler/Compiler.h"
#include "kernels/Decode/DecodeSpec.h"

namespace replayjit::internal {

/// The replay-level program of `spec`: what the operator contract says. How the
/// state is read is an attribute of each use. `spec` and `tuning` must be
/// valid.
mlir::OwningOpRef<mlir::ModuleOp> buildDecode(mlir::MLIRContext &context,
                                              const DecodeSpec &spec,
                                              const DecodeTuning &tuning);

/// The same for Family::Materialize; buildDecode calls it.
mlir::OwningOpRef<mlir::ModuleOp> buildMaterialize(mlir::MLIRContext &context,
                                                   const DecodeSpec &spec,
                                                   const DecodeTuning &tuning);

/// Validates, builds and compiles. With `forHost` the result holds a host
/// program instead of PTX and cubin.
Result<CompiledKernel> compileDecode(Compiler &compiler, const DecodeSpec &spec,
                                     const DecodeTuning &tuning,
                                     const Target &target,
                                     CompileOptions options,
                                     bool forHost = false);

} // namespace replayjit::internal

#endif
