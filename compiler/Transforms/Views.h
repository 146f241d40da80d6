//===- Views.h - What passes ask about views --------------------*- C++ -*-===//
#ifndef REPLAYJIT_COMPILER_TRANSFORMS_VIEWS_H
#define REPLAYJIT_COMPILER_TRANSFORMS_VIEWS_H

#include "dialect/ReplayDialect.h"

#include "mlir/IR/Matchers.h"

#include <optional>

namespace replayjit::internal {

/// The kernel argument that a view looks through; null if it is not known.
inline mlir::Value pointerOf(mlir::Value view) {
  auto op = view.getDefiningOp<replay::ViewOp>();
  return op ? mlir::Value(op.getPtr()) : mlir::Value();
}

/// The value of an integer constant.
inline std::optional<int64_t> constantOf(mlir::Value value) {
  llvm::APInt constant;
  if (mlir::matchPattern(value, mlir::m_ConstantInt(&constant)))
    return constant.getSExtValue();
  return std::nullopt;
}

} // namespace replayjit::internal

#endif
