//===- TileBuilder.h - Tile arithmetic for rewrites -------------*- C++ -*-===//
#ifndef REPLAYJIT_COMPILER_TRANSFORMS_TILEBUILDER_H
#define REPLAYJIT_COMPILER_TRANSFORMS_TILEBUILDER_H

#include "compiler/Transforms/Passes.h"
#include "dialect/ReplayDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace replayjit::internal {

/// Tile arithmetic in f32 at one insertion point.
struct TileBuilder : mlir::ImplicitLocOpBuilder {
  using ImplicitLocOpBuilder::ImplicitLocOpBuilder;

  mlir::RankedTensorType tileType(llvm::ArrayRef<int64_t> shape,
                                  mlir::Type element = {}) {
    return mlir::RankedTensorType::get(shape, element ? element : getF32Type());
  }
  mlir::Value index(int32_t value) {
    return mlir::arith::ConstantOp::create(*this, getI32IntegerAttr(value));
  }
  /// The neutral element of a sum; -0, so that adding to it folds away.
  mlir::Value zeros(llvm::ArrayRef<int64_t> shape) {
    return mlir::arith::ConstantOp::create(
        *this,
        mlir::DenseElementsAttr::get(tileType(shape), getF32FloatAttr(-0.0)));
  }
  mlir::Value zero() {
    return mlir::arith::ConstantOp::create(*this, getF32FloatAttr(-0.0));
  }
  /// A tile of `view` as f32; zero where `mask`, if there is one, is false.
  mlir::Value load(mlir::Value view, llvm::ArrayRef<mlir::Value> offsets,
                   llvm::ArrayRef<int64_t> shape, mlir::Value mask = {}) {
    mlir::Type element =
        llvm::cast<replay::ViewType>(view.getType()).getElementType();
    mlir::Value tile = replay::LoadOp::create(*this, tileType(shape, element),
                                              view, offsets, mask);
    return element.isF32()
               ? tile
               : mlir::arith::ExtFOp::create(*this, tileType(shape), tile);
  }
  void store(mlir::Value tile, mlir::Value view,
             llvm::ArrayRef<mlir::Value> offsets) {
    auto type = llvm::cast<mlir::RankedTensorType>(tile.getType());
    mlir::Type element =
        llvm::cast<replay::ViewType>(view.getType()).getElementType();
    if (!element.isF32())
      tile = mlir::arith::TruncFOp::create(
          *this, tileType(type.getShape(), element), tile);
    replay::StoreOp::create(*this, tile, view, offsets);
  }
  mlir::Value iota(int64_t size) {
    return replay::IotaOp::create(*this, tileType({size}, getI32Type()));
  }
  mlir::Value addI(mlir::Value a, mlir::Value b) {
    return mlir::arith::AddIOp::create(*this, a, b);
  }
  mlir::Value subI(mlir::Value a, mlir::Value b) {
    return mlir::arith::SubIOp::create(*this, a, b);
  }
  mlir::Value remI(mlir::Value a, mlir::Value b) { ///< Unsigned.
    return mlir::arith::RemUIOp::create(*this, a, b);
  }
  mlir::Value isLess(mlir::Value a, mlir::Value b) { ///< Unsigned.
    return mlir::arith::CmpIOp::create(*this, mlir::arith::CmpIPredicate::ult,
                                       a, b);
  }
  mlir::Value sub(mlir::Value a, mlir::Value b) {
    return mlir::arith::SubFOp::create(*this, a, b);
  }
  mlir::Value add(mlir::Value a, mlir::Value b) {
    return mlir::arith::AddFOp::create(*this, a, b);
  }
  mlir::Value mul(mlir::Value a, mlir::Value b) {
    return mlir::arith::MulFOp::create(*this, a, b);
  }
  mlir::Value fma(mlir::Value a, mlir::Value b, mlir::Value c) {
    return mlir::math::FmaOp::create(*this, a, b, c);
  }
  mlir::Value exp(mlir::Value a) { return mlir::math::ExpOp::create(*this, a); }
  mlir::Value reduce(mlir::Value tile, int axis) {
    auto type = llvm::cast<mlir::RankedTensorType>(tile.getType());
    mlir::Type result = getF32Type();
    if (type.getRank() == 2)
      result = tileType({type.getDimSize(1 - axis)});
    return replay::ReduceOp::create(*this, result, tile, axis);
  }
  mlir::Value splat(mlir::Value scalar, llvm::ArrayRef<int64_t> shape) {
    return replay::SplatOp::create(*this, tileType(shape, scalar.getType()),
                                   scalar);
  }
  /// A rank-1 tile repeated along a new dimension `axis` of size `size`.
  mlir::Value spread(mlir::Value tile, int axis, int64_t size) {
    auto type = llvm::cast<mlir::RankedTensorType>(tile.getType());
    int64_t length = type.getDimSize(0);
    mlir::Type element = type.getElementType();
    llvm::SmallVector<int64_t> thin = {length, length}, full = {length, length};
    thin[axis] = 1;
    full[axis] = size;
    mlir::Value expanded =
        replay::ExpandOp::create(*this, tileType(thin, element), tile, axis);
    if (size == 1)
      return expanded;
    return replay::BroadcastOp::create(*this, tileType(full, element), expanded);
  }
  mlir::Value slice(mlir::Value tile, mlir::Value offset, int64_t size) {
    return createOrFold<replay::SliceOp>(tileType({size}), tile, offset);
  }
  mlir::Value transpose(mlir::Value tile) {
    auto type = llvm::cast<mlir::RankedTensorType>(tile.getType());
    return replay::TransposeOp::create(
        *this, tileType({type.getDimSize(1), type.getDimSize(0)}), tile);
  }
  /// Of each row, the sum of the gates of the rows before it: the newer ones.
  mlir::Value newerSums(mlir::Value gates) {
    return replay::CumsumOp::create(*this, gates.getType(), gates, /*axis=*/0,
                                    /*reverse=*/false, /*exclusive=*/true);
  }
  /// `tile` times `decay`, a number or one a column.
  mlir::Value decayed(mlir::Value tile, mlir::Value decay) {
    auto type = llvm::cast<mlir::RankedTensorType>(tile.getType());
    bool perColumn = llvm::isa<mlir::RankedTensorType>(decay.getType());
    return mul(tile, perColumn ? spread(decay, 0, type.getDimSize(0))
                               : splat(decay, type.getShape()));
  }
  mlir::Value dot(mlir::Value a, mlir::Value b, mlir::Value c,
                  replay::Precision precision) {
    return replay::DotOp::create(*this, c.getType(), a, b, c, precision);
  }
  /// A loop over the K tiles, to be unrolled.
  mlir::scf::ForOp tileLoop(int64_t size, int64_t step, mlir::ValueRange init) {
    auto loop = mlir::scf::ForOp::create(*this, index(0), index(size),
                                         index(step), init);
    loop->setAttr(kTileLoop, getUnitAttr());
    return loop;
  }
};

} // namespace replayjit::internal

#endif
