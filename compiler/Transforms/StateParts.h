//===- StateParts.h - A state in memory, and how it is formed ---*- C++ -*-===//
#ifndef REPLAYJIT_COMPILER_TRANSFORMS_STATEPARTS_H
#define REPLAYJIT_COMPILER_TRANSFORMS_STATEPARTS_H

#include "dialect/TileBuilder.h"

namespace replayjit::internal {

/// What every use of one `replay.reconstruct` shares: its parts, and the decays
/// of the checkpoint (A) and of the ring's rows (W), computed once where it
/// stands. Gates of a column each (KDA) make A a vector over K and W a tile, or
/// A again where k comes decayed; else A is a number and W a vector over the
/// rows.
struct StateParts {
  using Value = mlir::Value;

  mutable replay::ReconstructOp op;
  int64_t rows, columns, depth;
  Value decay;   ///< A, f32 or tensor<columns>; null without a ring.
  Value weights; ///< W, tensor<depth[xcolumns]>; null without gates.

  explicit StateParts(replay::ReconstructOp op);

  bool hasRing() const { return op.getCount() != nullptr; }
  bool isPerColumn() const {
    return decay && llvm::isa<mlir::RankedTensorType>(decay.getType());
  }

  /// `width` columns of the checkpoint from `column`.
  Value checkpoint(TileBuilder &b, Value column, int64_t width) const;
  /// `count` rows of the ring's d and k from `row`; of a ring that wraps, those
  /// that are there and `wanted`, if that is given.
  Value loadD(TileBuilder &b, Value row, int64_t count,
              Value wanted = {}) const;
  Value loadK(TileBuilder &b, Value row, int64_t count, Value column,
              int64_t width, Value wanted = {}) const;
  /// Rows of k times weights: one a row, one each, or (null) A's.
  Value weighted(TileBuilder &b, Value kRows, Value own, Value column) const;

  /// `width` columns of S from `column`: S0 A + (W d)^T k, or with a decay a
  /// column S0 A + d^T (W k), by one dot over all rows.
  Value formAtOnce(TileBuilder &b, Value column, int64_t width,
                   replay::Precision precision) const;
  /// The same by a loop that adds `chunk` rows a step to S0 A.
  Value formInSteps(TileBuilder &b, Value column, int64_t width, int64_t chunk,
                    replay::Precision precision) const;

  /// The same by exact products of what the ring stores, which the precision
  /// holds, on the matrix unit.
  Value formExactly(TileBuilder &b, Value column, int64_t width,
                    replay::Precision precision) const;

  /// True if the products of vectors with the rows of k are those of stored
  /// numbers that `precision` holds, and enough for the matrix unit.
  bool hasExactK(replay::Precision precision) const;

private:
  /// Rows of d and k at once, one of them times the weights; at least 16, which
  /// the matrix unit wants: those past the ring read as zero.
  struct WeightedRows {
    Value d, k;
  };
  WeightedRows weightedRows(TileBuilder &b, Value column, int64_t width,
                            int64_t taken) const;
  /// True if the weight of a row needs the gates of the rows before it.
  bool isScanned() const { return hasRing() && !op.getTotal(); }
  /// Rows of the views of a ring that wraps.
  int32_t ringSize() const { return op.getD().getType().getShape()[0]; }
  Value loadRows(TileBuilder &b, Value view, Value row, int64_t count,
                 Value column, int64_t width, Value wanted) const;
  Value loadGates(TileBuilder &b, Value row, int64_t count, Value column,
                  int64_t width, Value wanted) const;
  Value isThere(TileBuilder &b, Value row, int64_t count) const;
  Value afterNewest(TileBuilder &b) const;
  Value exponents(TileBuilder &b, Value gates, Value column) const;
  Value scanWrapped(TileBuilder &b, Value gates) const;

  /// What one step of `formInSteps` adds: rows from `row`, of them those
  /// `wanted` (null: all).
  struct Step {
    Value row, wanted;
  };
  Value lastStep(TileBuilder &b, int64_t chunk) const;
  Step stepAt(TileBuilder &b, Value index, int64_t chunk) const;
};

/// A tile times `decay`: a number, or one a column, of which the tile's start
/// at `column`.
mlir::Value decayed(TileBuilder &b, mlir::Value tile, mlir::Value decay,
                    mlir::Value column);

} // namespace replayjit::internal

#endif
