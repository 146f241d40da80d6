//===- ExactProducts.h - fp32 products on the matrix unit -------*- C++ -*-===//
//
// The matrix unit multiplies numbers of few digits exactly and adds in fp32. A
// factor of fp32 is the sum of three such numbers; where the other factor is
// stored in so few digits, three products give what fp32 would. This holds for
// finite numbers whose rounding to the precision is finite.
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_COMPILER_TRANSFORMS_EXACTPRODUCTS_H
#define REPLAYJIT_COMPILER_TRANSFORMS_EXACTPRODUCTS_H

#include "dialect/TileBuilder.h"

namespace replayjit::internal {

/// True if the precision, bf16 or tf32, holds every finite number of `type`.
bool holds(replay::Precision precision, mlir::Type type);

/// `sum` plus `a` times `b` of f32, where the elements of one factor come from
/// a type that the precision holds and the other, `split`, is any.
mlir::Value exactDot(TileBuilder &b, mlir::Value left, mlir::Value right,
                     mlir::Value sum, mlir::Value split,
                     replay::Precision precision);

/// Some vectors, ready for the products with the rows of tiles.
class SplitVectors {
public:
  SplitVectors(TileBuilder &b, mlir::ValueRange vectors,
               replay::Precision precision);

  /// The products of the rows of `tile`, of a type that the precision holds,
  /// with each vector.
  llvm::SmallVector<mlir::Value> products(TileBuilder &b,
                                          mlir::Value tile) const;

private:
  int64_t count;   ///< Vectors.
  int64_t padded;  ///< The same, a power of two.
  int64_t columns; ///< Of a tile of fragments: whole groups of `padded`.
  replay::Precision precision;
  /// Column p * padded + i of the n-th is part n * columns / padded + p of
  /// vector i.
  llvm::SmallVector<mlir::Value> fragments;
};

} // namespace replayjit::internal

#endif
