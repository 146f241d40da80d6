//===- Pipeline.h - The way from a tile program to LLVM ---------*- C++ -*-===//
#ifndef REPLAYJIT_COMPILER_PIPELINE_H
#define REPLAYJIT_COMPILER_PIPELINE_H

#include "mlir/Pass/PassManager.h"

namespace replayjit::internal {

/// Replay level to tiles with layouts.
void buildTilePipeline(mlir::OpPassManager &pm);
/// Tiles with layouts to the program of one thread (scf, arith, NVVM).
void buildThreadPipeline(mlir::OpPassManager &pm);
/// The thread program to the LLVM and NVVM dialects, for a GPU.
void buildGPUPipeline(mlir::OpPassManager &pm);
/// The thread program to the LLVM dialect, for emulation on the host.
void buildHostPipeline(mlir::OpPassManager &pm);

/// Registers the four as replay-{tile,thread,gpu,host}-pipeline.
void registerPipelines();

} // namespace replayjit::internal

#endif
