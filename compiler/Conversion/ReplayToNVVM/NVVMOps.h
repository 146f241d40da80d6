//===- NVVMOps.h - The hardware's operations --------------------*- C++ -*-===//
//
// What the conversion makes of the NVVM dialect, beside the methods of
// ThreadBuilder. The dialect's header takes longer to compile than most files
// that would use it: only NVVMOps.cpp, StagedPatterns.cpp and HostLowering.cpp
// include it.
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_COMPILER_CONVERSION_NVVMOPS_H
#define REPLAYJIT_COMPILER_CONVERSION_NVVMOPS_H

#include "mlir/IR/Builders.h"

namespace replayjit::internal::nvvm {

/// What TableGen would write for a dependent dialect of a pass.
void addDialect(mlir::DialectRegistry &registry);

/// All warps, or the lanes of one, meet.
bool isBarrier(mlir::Operation *op);
bool isShuffle(mlir::Operation *op);
/// A thread's word that it has read a stage: of kernels with roles.
bool isMbarrierArrival(mlir::Operation *op);

/// 1 / `value`, off by an ulp or two; subnormals count as 0.
mlir::Value approximateReciprocal(mlir::OpBuilder &b, mlir::Location loc,
                                  mlir::Value value);

/// Makes `function` an entry point of blocks of `threads` threads, each of at
/// most `maxRegisters` registers if that is given.
void markKernel(mlir::Operation *function, int threads,
                mlir::Attribute maxRegisters);

/// Of a programmatic launch: until the kernel before has ended.
void awaitPredecessor(mlir::OpBuilder &b, mlir::Location loc);
/// The kernel behind may start.
void launchDependents(mlir::OpBuilder &b, mlir::Location loc);

/// What the assembler moves no load across.
void fenceLoads(mlir::OpBuilder &b, mlir::Location loc);

} // namespace replayjit::internal::nvvm

#endif
