//===- TileBuilder.h - The words of tile programs ------------- -*- C++ -*-===//
//
// Kernels and rewrites build tile programs with the same words. Scalars are i32
// unless a name says otherwise; arithmetic on floats is f32. Integer operations
// on constants fold where they are built.
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_DIALECT_TILEBUILDER_H
#define REPLAYJIT_DIALECT_TILEBUILDER_H

#include "dialect/ReplayDialect.h"

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace replayjit::internal {

/// One dimension of a view: its size (a constant, or an i32 value) and its
/// stride in elements (a constant, or an i64 value).
struct Dim {
  int64_t size = 0; ///< With a dynamic size the most it can be, 0: not known.
  int64_t stride = 1;
  mlir::Value dynamicSize = {};
  mlir::Value dynamicStride = {};
};

class TileBuilder : public mlir::ImplicitLocOpBuilder {
public:
  using ImplicitLocOpBuilder::ImplicitLocOpBuilder;
  using Value = mlir::Value;
  using Shape = llvm::ArrayRef<int64_t>;

  /// A tile of `element`; of f32 if that is null.
  mlir::RankedTensorType tileType(Shape shape, mlir::Type element = {});

  //===--- Integers, scalar or tile ------------------------------------------//
  Value i32(int32_t value);
  Value i64(int64_t value);
  Value toI64(Value value);
  Value addI(Value a, Value b);
  Value subI(Value a, Value b);
  Value mulI(Value a, Value b);
  Value divI(Value a, int32_t b); ///< Unsigned.
  Value remI(Value a, int32_t b); ///< Unsigned.
  Value divI(Value a, Value b);   ///< Unsigned.
  Value remI(Value a, Value b);   ///< Unsigned.
  Value minI(Value a, Value b);   ///< Signed.
  Value select(Value condition, Value a, Value b);
  Value isLess(Value a, Value b);  ///< Signed.
  Value isBelow(Value a, Value b); ///< Unsigned.
  Value isEqual(Value a, Value b);
  Value allOf(Value a, Value b);
  Value anyOf(Value a, Value b);

  //===--- Floats, scalar or tile --------------------------------------------//
  Value f32(double value);
  Value add(Value a, Value b);
  Value sub(Value a, Value b);
  Value mul(Value a, Value b);
  Value fma(Value a, Value b, Value c); ///< a b + c, rounded once.
  Value neg(Value a);
  Value abs(Value a);
  Value max(Value a, Value b);
  Value min(Value a, Value b);
  Value exp(Value a);
  Value log1p(Value a);
  Value rsqrt(Value a);     ///< 1 / sqrt(a), nearly.
  Value sigmoid(Value a);   ///< 1 / (1 + exp(-a))
  Value softplus(Value a);  ///< log(1 + exp(a)), for any a
  Value widen(Value value); ///< A float of any type as f32.
  Value narrow(Value value, mlir::Type element); ///< f32 as another float.
  /// A number, or a scalar, as a tile like `like`; itself if `like` is none.
  Value constant(double value, Value like);
  Value splat(Value scalar, Value like);

  //===--- Tiles -------------------------------------------------------------//
  Value iota(int64_t size); ///< 0, 1, 2, .. of i32.
  Value splat(Value scalar, Shape shape);
  /// The neutral element of a sum: -0, so that adding to it folds away.
  Value zeros(Shape shape);
  /// A rank-1 tile repeated along a new dimension `axis` of size `size`.
  Value spread(Value tile, int axis, int64_t size);
  Value slice(Value tile, Value offset, int64_t size);
  /// A tile of `rows` rows, the first of which are the vectors.
  Value stack(mlir::ValueRange vectors, int64_t rows);
  Value transpose(Value tile);
  Value reduce(Value tile, int axis);
  Value sum(Value tile); ///< Of a rank-1 tile.
  Value dot(Value a, Value b, Value c, replay::Precision precision);

  //===--- Memory ------------------------------------------------------------//
  /// A view `offset` (i64) elements after `pointer`. `alignment` is 0 (that of
  /// the element) or what divides address and strides, in bytes.
  Value view(Value pointer, Value offset, llvm::ArrayRef<Dim> dims,
             int64_t alignment = 0);
  /// A tile of a view from `offsets`, floats as f32; zero where `mask`, if
  /// there is one, is false.
  Value load(Value view, mlir::ValueRange offsets, Shape shape,
             Value mask = {});
  /// The same from the start of the view.
  Value loadTile(Value view, Shape shape);
  /// Rounds to the view's element type and stores.
  void store(Value tile, Value view, mlir::ValueRange offsets);
  void storeTile(Value tile, Value view);
  /// The element `offset` (i64) after `pointer`.
  Value loadScalar(Value pointer, Value offset);
  /// The same where `isWanted`; else zero, and the pointer may be anything.
  Value loadScalarIf(Value isWanted, Value pointer, Value offset);
  /// Writes the element `offset` (i64) after `pointer` where `isWanted`.
  void storeScalarIf(Value isWanted, Value value, Value pointer, Value offset);

  //===--- Control -----------------------------------------------------------//
  /// `then` and `otherwise` build the branches.
  template <typename Then> void when(Value condition, Then then) {
    branch(condition, then, nullptr);
  }
  void branch(Value condition, llvm::function_ref<void()> then,
              llvm::function_ref<void()> otherwise);
};

} // namespace replayjit::internal

#endif
