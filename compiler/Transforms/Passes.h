//===- Passes.h - Rewrites of tile programs ---------------------*- C++ -*-===//
//
// replay -> replay, one pass a file; Passes.td says what each does.
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_COMPILER_TRANSFORMS_PASSES_H
#define REPLAYJIT_COMPILER_TRANSFORMS_PASSES_H

#include "dialect/ReplayDialect.h"

#include "mlir/Pass/Pass.h"

namespace replayjit::internal {

/// The loop attribute that `replay-unroll-tiles` looks for.
inline constexpr llvm::StringLiteral kTileLoop = "replay.tiles";

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "compiler/Transforms/Passes.h.inc"

} // namespace replayjit::internal

#endif
