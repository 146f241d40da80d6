//===- Memory.h - What passes ask about memory ------------------*- C++ -*-===//
//
// Which operations write, and whether a load may see it: from the effects that
// operations declare and the attributes of a kernel's arguments.
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_COMPILER_TRANSFORMS_MEMORY_H
#define REPLAYJIT_COMPILER_TRANSFORMS_MEMORY_H

#include "dialect/ReplayDialect.h"

#include "mlir/IR/Matchers.h"

#include <optional>

namespace replayjit::internal {

/// The pointer that a view looks through, or the pointer itself; null if it is
/// not known.
mlir::Value pointerOf(mlir::Value memory);

/// True if `op` itself, not what stands in its regions, may write global
/// memory.
bool writesMemory(mlir::Operation *op);

/// Calls `visit` for each such write of `op` and of what stands in its regions,
/// with the pointer it goes through; null if that is not known.
void forEachWrite(mlir::Operation *op,
                  llvm::function_ref<void(mlir::Value pointer)> visit);

/// True if a load through `loaded` may read what was written through `written`;
/// either may be null, which is not known.
bool mayAlias(mlir::Value written, mlir::Value loaded);

/// True if `load` may read what `writer` writes: as above, but constant pieces
/// of one view that do not meet are told apart.
bool mayTouch(mlir::Operation *writer, replay::LoadOp load);

/// True if `op`, or what stands in its regions, may read what `writer` itself
/// writes.
bool mayRead(mlir::Operation *op, mlir::Operation *writer);

/// True if the two stand in different branches of one scf.if.
bool areExclusive(mlir::Operation *a, mlir::Operation *b);

/// The value of an integer constant.
inline std::optional<int64_t> constantOf(mlir::Value value) {
  llvm::APInt constant;
  if (mlir::matchPattern(value, mlir::m_ConstantInt(&constant)))
    return constant.getSExtValue();
  return std::nullopt;
}

/// A kernel's attribute that a tuning may set.
inline std::optional<int64_t> tuningOf(replay::KernelOp kernel,
                                       llvm::StringRef name) {
  if (auto value = kernel->getAttrOfType<mlir::IntegerAttr>(name))
    return value.getInt();
  return std::nullopt;
}

} // namespace replayjit::internal

#endif
