//===- ReplayToNVVM.h - Tile programs to thread programs --------*- C++ -*-===//
#ifndef REPLAYJIT_COMPILER_CONVERSION_REPLAYTONVVM_H
#define REPLAYJIT_COMPILER_CONVERSION_REPLAYTONVVM_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace replayjit::internal {

/// The symbol of a block's dynamic shared memory.
inline constexpr llvm::StringLiteral kSharedSymbol = "global_smem";
/// Function attributes of a thread program.
inline constexpr llvm::StringLiteral kSharedBytes = "replay.shared_bytes";
inline constexpr llvm::StringLiteral kThreads = "replay.threads";
inline constexpr llvm::StringLiteral kArgNames = "replay.arg_names";
inline constexpr llvm::StringLiteral kBlocksPerRow = "replay.blocks_per_row";

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "compiler/Conversion/ReplayToNVVM/Passes.h.inc"

} // namespace replayjit::internal

#endif
