//===- LayoutRules.h - How layouts depend on each other ---------*- C++ -*-===//
//
// The words in which an operation says what it wants of layouts
// (LayoutOpInterface), and the rules of upstream operations.
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_DIALECT_LAYOUTRULES_H
#define REPLAYJIT_DIALECT_LAYOUTRULES_H

#include "dialect/LinearLayout.h"

#include "mlir/IR/Operation.h"

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace replayjit::internal {

/// When a suggestion may decide. A tile takes the layout of its operands and
/// users (Flow). A vector repeated along new rows spreads them over idle lanes
/// (SpreadRows), so that a contraction with it uses all lanes. A sum over rows
/// keeps them in registers, or in lanes that would else hold the same (Sum), so
/// that it needs no exchange but theirs. Last, new columns are spread
/// (SpreadColumns).
enum class LayoutStrength { Flow, SpreadRows, Sum, SpreadColumns };

/// Hears the rules of one operation. Values that are no tiles do not count.
class LayoutRules {
public:
  using Derivation = llvm::function_ref<LinearLayout(const LinearLayout &)>;

  virtual ~LayoutRules() = default;

  /// Whichever of `values` is known first gives the others its layout.
  virtual void equal(mlir::ValueRange values) = 0;
  /// The operation takes `operand` in the layout that `derive` makes of that of
  /// `from`, and in no other.
  virtual void demand(mlir::OpOperand &operand, mlir::Value from,
                      Derivation derive) = 0;
  /// The operation leaves `result` in the layout that `derive` makes of that of
  /// `from`, and in no other.
  virtual void produce(mlir::Value result, mlir::Value from,
                       Derivation derive) = 0;
  /// `to` may have any layout; where no stronger rule decides, that which
  /// `derive` makes of that of `from`.
  virtual void suggest(mlir::Value to, mlir::Value from,
                       LayoutStrength strength, Derivation derive) = 0;

  /// A demand, or a suggestion, of the same layout.
  void demandSame(mlir::OpOperand &operand, mlir::Value from);
  void suggestSame(mlir::Value to, mlir::Value from);
};

/// The threads that share a tile.
struct ThreadGrid {
  int numWarps = 1;
  int lanesPerRow = 8; ///< Of a wide access to a tile of rank 2.

  /// For a wide access: 16 bytes a thread along `contiguousDim`, less where a
  /// thread holds less.
  LinearLayout wide(mlir::RankedTensorType type, int contiguousDim) const;
  /// Every thread has its own elements: those of a vector, or the columns of a
  /// tile, whose `axis` lies in registers. Neighbours stay together if there is
  /// more than one for each thread.
  LinearLayout spreadOut(mlir::RankedTensorType type, int axis) const;
};

/// A layout from which others follow.
struct LayoutAnchor {
  enum Kind {
    Only,   ///< The operation knows no other: fragments of the matrix unit.
    Access, ///< Makes the most of an access to memory.
    Own,    ///< The work costs more than an exchange, so that it is done once.
  };
  Kind kind;
  LinearLayout layout;
};

namespace replay {

/// The rules of any operation: those of its interface or, of an elementwise
/// one, that all tiles have one layout. Others have none.
void visitLayoutRules(mlir::Operation *op, LayoutRules &rules);

/// Attaches LayoutOpInterface to the operations of arith, math and scf that
/// need more than the rule for elementwise ones.
void registerLayoutModels(mlir::DialectRegistry &registry);

} // namespace replay
} // namespace replayjit::internal

#endif
