//===- ReplayDialect.h - Dialect, attributes, types, operations -*- C++ -*-===//
#ifndef REPLAYJIT_DIALECT_REPLAYDIALECT_H
#define REPLAYJIT_DIALECT_REPLAYDIALECT_H

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

namespace replayjit::internal::replay {

/// True for ranked tensors of rank 1 or 2 whose dimensions are powers of two.
bool isTileType(mlir::Type type);

/// True for `!llvm.ptr` in any address space.
bool isThreadPointer(mlir::Type type);

/// Bytes of one element of a scalar type (i1 counts as 1).
int64_t elementBytes(mlir::Type type);

/// Names of the argument attributes that the lowering reads.
inline constexpr llvm::StringLiteral kArgName = "replay.name";
inline constexpr llvm::StringLiteral kArgReadOnly = "replay.readonly";
/// The kernel attribute that caps a thread's registers.
inline constexpr llvm::StringLiteral kMaxRegisters = "replay.max_registers";
/// The kernel attribute of one that may start before its predecessor's end.
inline constexpr llvm::StringLiteral kProgrammaticLaunch =
    "replay.programmatic_launch";

} // namespace replayjit::internal::replay

#define GET_OP_CLASSES
#include "dialect/ReplayOps.h.inc"

#endif
