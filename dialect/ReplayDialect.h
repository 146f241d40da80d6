//===- ReplayDialect.h - Dialect, attributes, types, operations -*- C++ -*-===//
#ifndef REPLAYJIT_DIALECT_REPLAYDIALECT_H
#define REPLAYJIT_DIALECT_REPLAYDIALECT_H

#include "dialect/LayoutRules.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/IR/TensorEncoding.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialect/ReplayDialect.h.inc"
#include "dialect/ReplayEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialect/ReplayAttrs.h.inc"

#define GET_TYPEDEF_CLASSES
#include "dialect/ReplayTypes.h.inc"

#include "dialect/ReplayInterfaces.h.inc"

namespace replayjit::internal::replay {

/// The shared memory of a block.
struct SharedMemoryResource
    : mlir::SideEffects::Resource::Base<SharedMemoryResource> {
  llvm::StringRef getName() final { return "SharedMemory"; }
};

/// The order in which loads are issued: what a `replay.load_fence` writes.
struct LoadOrderResource
    : mlir::SideEffects::Resource::Base<LoadOrderResource> {
  llvm::StringRef getName() final { return "LoadOrder"; }
};

/// What is reported of numbers that do not fit.
struct ReportsResource : mlir::SideEffects::Resource::Base<ReportsResource> {
  llvm::StringRef getName() final { return "Reports"; }
};

/// Which kernels of a stream run when.
struct KernelOrderResource
    : mlir::SideEffects::Resource::Base<KernelOrderResource> {
  llvm::StringRef getName() final { return "KernelOrder"; }
};

/// True for ranked tensors of rank 1 or 2 whose dimensions are powers of two.
bool isTileType(mlir::Type type);

/// True for `!llvm.ptr` in any address space.
bool isThreadPointer(mlir::Type type);

/// Bytes of one element of a scalar type (i1 counts as 1).
int64_t elementBytes(mlir::Type type);

/// Attributes of a kernel's arguments; KernelOp documents them.
inline constexpr llvm::StringLiteral kArgName = "replay.name";
inline constexpr llvm::StringLiteral kArgReadOnly = "replay.readonly";
inline constexpr llvm::StringLiteral kArgNoAlias = "replay.noalias";
inline constexpr llvm::StringLiteral kArgDependent = "replay.dependent";
/// Attributes of a kernel that its tuning decides; KernelOp documents them.
inline constexpr llvm::StringLiteral kMaxRegisters = "replay.max_registers";
inline constexpr llvm::StringLiteral kLanesPerRow = "replay.lanes_per_row";
inline constexpr llvm::StringLiteral kReuseRegisters = "replay.reuse_registers";
inline constexpr llvm::StringLiteral kHoistRegisters = "replay.hoist_registers";
inline constexpr llvm::StringLiteral kFenceRegisters = "replay.fence_registers";
inline constexpr llvm::StringLiteral kStageBytes = "replay.stage_bytes";

} // namespace replayjit::internal::replay

#define GET_OP_CLASSES
#include "dialect/ReplayOps.h.inc"

#endif
