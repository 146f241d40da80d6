//===- TileBuilder.cpp - The words of tile programs -----------------------===//

#include "dialect/TileBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace replayjit::internal;
using namespace replayjit::internal::replay;

RankedTensorType TileBuilder::tileType(ArrayRef<int64_t> shape, Type element) {
  return RankedTensorType::get(shape, element ? element : getF32Type());
}

//===----------------------------------------------------------------------===//
// Integers
//===----------------------------------------------------------------------===//

Value TileBuilder::i32(int32_t value) {
  return arith::ConstantOp::create(*this, getI32IntegerAttr(value));
}
Value TileBuilder::i64(int64_t value) {
  return arith::ConstantOp::create(*this, getI64IntegerAttr(value));
}
Value TileBuilder::toI64(Value value) {
  return value.getType().isInteger(64)
             ? value
             : createOrFold<arith::ExtSIOp>(getI64Type(), value);
}
Value TileBuilder::addI(Value a, Value b) {
  return createOrFold<arith::AddIOp>(a, b);
}
Value TileBuilder::subI(Value a, Value b) {
  return createOrFold<arith::SubIOp>(a, b);
}
Value TileBuilder::mulI(Value a, Value b) {
  return createOrFold<arith::MulIOp>(a, b);
}
Value TileBuilder::divI(Value a, int32_t b) {
  return createOrFold<arith::DivUIOp>(a, i32(b));
}
Value TileBuilder::remI(Value a, int32_t b) {
  return createOrFold<arith::RemUIOp>(a, i32(b));
}
Value TileBuilder::divI(Value a, Value b) {
  return createOrFold<arith::DivUIOp>(a, b);
}
Value TileBuilder::remI(Value a, Value b) {
  return createOrFold<arith::RemUIOp>(a, b);
}
Value TileBuilder::select(Value condition, Value a, Value b) {
  return createOrFold<arith::SelectOp>(condition, a, b);
}
Value TileBuilder::minI(Value a, Value b) {
  return arith::MinSIOp::create(*this, a, b);
}
Value TileBuilder::isLess(Value a, Value b) {
  return arith::CmpIOp::create(*this, arith::CmpIPredicate::slt, a, b);
}
Value TileBuilder::isBelow(Value a, Value b) {
  return arith::CmpIOp::create(*this, arith::CmpIPredicate::ult, a, b);
}
Value TileBuilder::isEqual(Value a, Value b) {
  return arith::CmpIOp::create(*this, arith::CmpIPredicate::eq, a, b);
}
Value TileBuilder::allOf(Value a, Value b) {
  return arith::AndIOp::create(*this, a, b);
}
Value TileBuilder::anyOf(Value a, Value b) {
  return arith::OrIOp::create(*this, a, b);
}

//===----------------------------------------------------------------------===//
// Floats
//===----------------------------------------------------------------------===//

Value TileBuilder::f32(double value) {
  return arith::ConstantOp::create(*this, getF32FloatAttr(value));
}
Value TileBuilder::add(Value a, Value b) {
  return arith::AddFOp::create(*this, a, b);
}
Value TileBuilder::sub(Value a, Value b) {
  return arith::SubFOp::create(*this, a, b);
}
Value TileBuilder::mul(Value a, Value b) {
  return arith::MulFOp::create(*this, a, b);
}
Value TileBuilder::fma(Value a, Value b, Value c) {
  return math::FmaOp::create(*this, a, b, c);
}
Value TileBuilder::neg(Value a) { return arith::NegFOp::create(*this, a); }
Value TileBuilder::abs(Value a) { return math::AbsFOp::create(*this, a); }
Value TileBuilder::max(Value a, Value b) {
  return arith::MaximumFOp::create(*this, a, b);
}
Value TileBuilder::min(Value a, Value b) {
  return arith::MinimumFOp::create(*this, a, b);
}
Value TileBuilder::exp(Value a) { return math::ExpOp::create(*this, a); }
Value TileBuilder::log1p(Value a) { return math::Log1pOp::create(*this, a); }
Value TileBuilder::rsqrt(Value a) {
  return math::RsqrtOp::create(*this, a, arith::FastMathFlags::afn);
}

Value TileBuilder::constant(double value, Value like) {
  auto type = dyn_cast<RankedTensorType>(like.getType());
  if (!type)
    return f32(value);
  return arith::ConstantOp::create(
      *this, DenseElementsAttr::get(tileType(type.getShape()),
                                    getF32FloatAttr(value)));
}

Value TileBuilder::sigmoid(Value a) {
  Value one = constant(1, a);
  return arith::DivFOp::create(*this, one, add(one, exp(neg(a))),
                               arith::FastMathFlags::arcp);
}

Value TileBuilder::softplus(Value a) {
  // max(a, 0) + log1p(exp(-|a|)): no overflow, and no digits lost where the
  // reference switches to a itself (a > 20).
  return add(max(a, constant(0, a)), log1p(exp(neg(abs(a)))));
}

Value TileBuilder::splat(Value scalar, Value like) {
  auto type = dyn_cast<RankedTensorType>(like.getType());
  return type ? splat(scalar, type.getShape()) : scalar;
}

Value TileBuilder::widen(Value value) {
  Type type = value.getType();
  if (getElementTypeOrSelf(type).isF32())
    return value;
  Type wide = getF32Type();
  if (auto tile = dyn_cast<RankedTensorType>(type))
    wide = tileType(tile.getShape());
  return arith::ExtFOp::create(*this, wide, value);
}

Value TileBuilder::narrow(Value value, Type element) {
  Type type = value.getType();
  if (getElementTypeOrSelf(type) == element)
    return value;
  Type result = element;
  if (auto tile = dyn_cast<RankedTensorType>(type))
    result = tileType(tile.getShape(), element);
  return arith::TruncFOp::create(*this, result, value);
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

Value TileBuilder::iota(int64_t size) {
  return IotaOp::create(*this, tileType({size}, getI32Type()));
}

Value TileBuilder::splat(Value scalar, Shape shape) {
  return SplatOp::create(*this, tileType(shape, scalar.getType()), scalar);
}

Value TileBuilder::zeros(Shape shape) {
  return arith::ConstantOp::create(
      *this, DenseElementsAttr::get(tileType(shape), getF32FloatAttr(-0.0)));
}

Value TileBuilder::spread(Value tile, int axis, int64_t size) {
  auto type = cast<RankedTensorType>(tile.getType());
  int64_t length = type.getDimSize(0);
  SmallVector<int64_t> thin = {length, length}, full = {length, length};
  thin[axis] = 1;
  full[axis] = size;
  Type element = type.getElementType();
  Value expanded = ExpandOp::create(*this, tileType(thin, element), tile, axis);
  if (size == 1)
    return expanded;
  return BroadcastOp::create(*this, tileType(full, element), expanded);
}

Value TileBuilder::slice(Value tile, Value offset, int64_t size) {
  return createOrFold<SliceOp>(tileType({size}), tile, offset);
}

Value TileBuilder::stack(ValueRange vectors, int64_t rows) {
  auto type = cast<RankedTensorType>(vectors[0].getType());
  return StackOp::create(
      *this, tileType({rows, type.getDimSize(0)}, type.getElementType()),
      vectors);
}

Value TileBuilder::transpose(Value tile) {
  auto type = cast<RankedTensorType>(tile.getType());
  return TransposeOp::create(
      *this, tileType({type.getDimSize(1), type.getDimSize(0)}), tile);
}

Value TileBuilder::reduce(Value tile, int axis) {
  auto type = cast<RankedTensorType>(tile.getType());
  Type result = getF32Type();
  if (type.getRank() == 2)
    result = tileType({type.getDimSize(1 - axis)});
  return ReduceOp::create(*this, result, tile, axis);
}

Value TileBuilder::sum(Value tile) { return reduce(tile, /*axis=*/0); }

Value TileBuilder::dot(Value a, Value b, Value c, Precision precision) {
  return DotOp::create(*this, c.getType(), a, b, c, precision);
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

Value TileBuilder::view(Value pointer, Value offset, ArrayRef<Dim> dims,
                        int64_t alignment) {
  SmallVector<int64_t> sizes, strides;
  SmallVector<Value> dynamicSizes, dynamicStrides;
  for (const Dim &dim : dims) {
    sizes.push_back(dim.dynamicSize ? ShapedType::kDynamic : dim.size);
    strides.push_back(dim.dynamicStride ? ShapedType::kDynamic : dim.stride);
    if (dim.dynamicSize)
      dynamicSizes.push_back(dim.dynamicSize);
    if (dim.dynamicStride)
      dynamicStrides.push_back(dim.dynamicStride);
  }
  Type element = cast<PtrType>(pointer.getType()).getElementType();
  alignment = std::max(alignment, elementBytes(element));
  auto type = ViewType::get(getContext(), sizes, element, strides, alignment);
  const Dim &first = dims.front();
  return ViewOp::create(
      *this, type, pointer, offset, dynamicSizes, dynamicStrides,
      first.dynamicSize && first.size ? getI32IntegerAttr(first.size)
                                      : IntegerAttr());
}

static Value loadOne(TileBuilder &b, Value one) {
  return LoadOp::create(b, cast<ViewType>(one.getType()).getElementType(), one,
                        ValueRange{b.i32(0)}, /*mask=*/Value());
}

Value TileBuilder::loadScalar(Value pointer, Value offset) {
  return loadOne(*this, view(pointer, offset, {Dim{1, 1}}));
}

/// One element if `isWanted`, else none.
static Dim oneIf(TileBuilder &b, Value isWanted) {
  Dim dim = {0, 1};
  dim.dynamicSize = b.select(isWanted, b.i32(1), b.i32(0));
  return dim;
}

Value TileBuilder::loadScalarIf(Value isWanted, Value pointer, Value offset) {
  return loadOne(*this, view(pointer, offset, {oneIf(*this, isWanted)}));
}

void TileBuilder::storeScalarIf(Value isWanted, Value value, Value pointer,
                                Value offset) {
  Value one = view(pointer, offset, {oneIf(*this, isWanted)});
  StoreOp::create(*this, value, one, ValueRange{i32(0)});
}

Value TileBuilder::load(Value view, ValueRange offsets, Shape shape,
                        Value mask) {
  Type element = cast<ViewType>(view.getType()).getElementType();
  Value tile =
      LoadOp::create(*this, tileType(shape, element), view, offsets, mask);
  return isa<FloatType>(element) ? widen(tile) : tile;
}

Value TileBuilder::loadTile(Value view, Shape shape) {
  return load(view, SmallVector<Value>(shape.size(), i32(0)), shape);
}

void TileBuilder::store(Value tile, Value view, ValueRange offsets) {
  Type element = cast<ViewType>(view.getType()).getElementType();
  StoreOp::create(*this, narrow(tile, element), view, offsets);
}

void TileBuilder::storeTile(Value tile, Value view) {
  auto type = cast<RankedTensorType>(tile.getType());
  store(tile, view, SmallVector<Value>(type.getRank(), i32(0)));
}

//===----------------------------------------------------------------------===//
// Control
//===----------------------------------------------------------------------===//

void TileBuilder::branch(Value condition, function_ref<void()> then,
                         function_ref<void()> otherwise) {
  auto op = scf::IfOp::create(*this, condition, otherwise != nullptr);
  OpBuilder::InsertionGuard guard(*this);
  setInsertionPointToStart(op.thenBlock());
  then();
  if (otherwise) {
    setInsertionPointToStart(op.elseBlock());
    otherwise();
  }
}
