//===- KernelBuilder.cpp - Typed helpers to write tile programs -----------===//

#include "kernels/KernelBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace replayjit::internal;
using namespace replayjit::internal::replay;

std::vector<ArgumentSpec>
replayjit::internal::declarations(const DecodeSpec &spec,
                                  bool addressesAreNumbers) {
  std::vector<ArgumentSpec> all;
  for (const Parameter &parameter : parametersOf(spec)) {
    const Argument &argument = *parameter.argument;
    const bool isAddress = argument.kind == Argument::Kind::Pointer;
    all.push_back({parameter.name,
                   isAddress && addressesAreNumbers ? DataType::I64
                                                    : argument.type.of(spec),
                   isAddress && !addressesAreNumbers,
                   argument.access == Argument::Access::Input});
  }
  return all;
}

KernelBuilder::KernelBuilder(MLIRContext &context, const std::string &name,
                             const std::vector<ArgumentSpec> &arguments,
                             int numWarps, int blocksPerRow)
    : ImplicitLocOpBuilder(NameLoc::get(StringAttr::get(&context, name)),
                           &context),
      module(ModuleOp::create(getLoc())), arguments(arguments) {
  SmallVector<Type> types;
  SmallVector<DictionaryAttr> attributes;
  for (const ArgumentSpec &argument : arguments) {
    Type element = elementType(argument.type);
    types.push_back(argument.isPointer ? PtrType::get(&context, element)
                                       : element);
    SmallVector<NamedAttribute> list = {
        getNamedAttr(kArgName, getStringAttr(argument.name))};
    if (argument.isReadOnly)
      list.push_back(getNamedAttr(kArgReadOnly, getUnitAttr()));
    attributes.push_back(getDictionaryAttr(list));
  }
  setInsertionPointToEnd(module->getBody());
  kernel = KernelOp::create(*this, name, getFunctionType(types, {}), numWarps,
                            blocksPerRow, attributes);
  Block *body = &kernel.getBody().emplaceBlock();
  for (Type type : types)
    body->addArgument(type, getLoc());
  setInsertionPointToStart(body);
}

OwningOpRef<ModuleOp> KernelBuilder::take() {
  ReturnOp::create(*this);
  return std::move(module);
}

Value KernelBuilder::argument(const std::string &name) {
  if (Value value = replacements.lookup(name))
    return value;
  for (auto [i, argument] : llvm::enumerate(arguments))
    if (argument.name == name)
      return kernel.getBody().getArgument(i);
  llvm_unreachable("a builder asked for an argument that it did not declare");
}

void KernelBuilder::limitRegisters(int count) {
  kernel->setAttr(kMaxRegisters, getI32IntegerAttr(count));
}

void KernelBuilder::allowProgrammaticLaunch() {
  kernel->setAttr(kProgrammaticLaunch, getUnitAttr());
}

void KernelBuilder::describe(const std::string &what) {
  setLoc(NameLoc::get(getStringAttr(what)));
}

Type KernelBuilder::elementType(DataType type) {
  switch (type) {
  case DataType::F32:
    return getF32Type();
  case DataType::BF16:
    return getBF16Type();
  case DataType::F16:
    return getF16Type();
  case DataType::I32:
    return getI32Type();
  case DataType::I64:
    return getI64Type();
  }
  llvm_unreachable("all types are handled");
}

RankedTensorType KernelBuilder::tileType(ArrayRef<int64_t> shape,
                                         Type element) {
  return RankedTensorType::get(shape, element ? element : getF32Type());
}

//===----------------------------------------------------------------------===//
// Scalars
//===----------------------------------------------------------------------===//

Value KernelBuilder::i32(int32_t value) {
  return arith::ConstantOp::create(*this, getI32IntegerAttr(value));
}
Value KernelBuilder::i64(int64_t value) {
  return arith::ConstantOp::create(*this, getI64IntegerAttr(value));
}
Value KernelBuilder::f32(double value) {
  return arith::ConstantOp::create(*this, getF32FloatAttr(value));
}
Value KernelBuilder::toI64(Value value) {
  return value.getType().isInteger(64)
             ? value
             : createOrFold<arith::ExtSIOp>(getI64Type(), value);
}
Value KernelBuilder::addI(Value a, Value b) {
  return createOrFold<arith::AddIOp>(a, b);
}
Value KernelBuilder::subI(Value a, Value b) {
  return createOrFold<arith::SubIOp>(a, b);
}
Value KernelBuilder::mulI(Value a, Value b) {
  return createOrFold<arith::MulIOp>(a, b);
}
Value KernelBuilder::divI(Value a, int32_t b) {
  return createOrFold<arith::DivUIOp>(a, i32(b));
}
Value KernelBuilder::remI(Value a, int32_t b) {
  return createOrFold<arith::RemUIOp>(a, i32(b));
}
Value KernelBuilder::divI(Value a, Value b) {
  return createOrFold<arith::DivUIOp>(a, b);
}
Value KernelBuilder::remI(Value a, Value b) {
  return createOrFold<arith::RemUIOp>(a, b);
}
Value KernelBuilder::select(Value condition, Value a, Value b) {
  return createOrFold<arith::SelectOp>(condition, a, b);
}
Value KernelBuilder::minI(Value a, Value b) {
  return arith::MinSIOp::create(*this, a, b);
}
Value KernelBuilder::isLess(Value a, Value b) {
  return arith::CmpIOp::create(*this, arith::CmpIPredicate::slt, a, b);
}
Value KernelBuilder::isEqual(Value a, Value b) {
  return arith::CmpIOp::create(*this, arith::CmpIPredicate::eq, a, b);
}
Value KernelBuilder::allOf(Value a, Value b) {
  return arith::AndIOp::create(*this, a, b);
}
Value KernelBuilder::anyOf(Value a, Value b) {
  return arith::OrIOp::create(*this, a, b);
}

//===----------------------------------------------------------------------===//
// Floats
//===----------------------------------------------------------------------===//

Value KernelBuilder::add(Value a, Value b) {
  return arith::AddFOp::create(*this, a, b);
}
Value KernelBuilder::sub(Value a, Value b) {
  return arith::SubFOp::create(*this, a, b);
}
Value KernelBuilder::mul(Value a, Value b) {
  return arith::MulFOp::create(*this, a, b);
}
Value KernelBuilder::fma(Value a, Value b, Value c) {
  return math::FmaOp::create(*this, a, b, c);
}
Value KernelBuilder::neg(Value a) { return arith::NegFOp::create(*this, a); }
Value KernelBuilder::abs(Value a) { return math::AbsFOp::create(*this, a); }
Value KernelBuilder::max(Value a, Value b) {
  return arith::MaximumFOp::create(*this, a, b);
}
Value KernelBuilder::min(Value a, Value b) {
  return arith::MinimumFOp::create(*this, a, b);
}
Value KernelBuilder::exp(Value a) { return math::ExpOp::create(*this, a); }
Value KernelBuilder::log1p(Value a) { return math::Log1pOp::create(*this, a); }
Value KernelBuilder::rsqrt(Value a) {
  return math::RsqrtOp::create(*this, a, arith::FastMathFlags::afn);
}

Value KernelBuilder::constant(double value, Value like) {
  auto type = dyn_cast<RankedTensorType>(like.getType());
  if (!type)
    return f32(value);
  return arith::ConstantOp::create(
      *this, DenseElementsAttr::get(tileType(type.getShape()),
                                    getF32FloatAttr(value)));
}

Value KernelBuilder::sigmoid(Value a) {
  Value one = constant(1, a);
  return arith::DivFOp::create(*this, one, add(one, exp(neg(a))),
                               arith::FastMathFlags::arcp);
}

Value KernelBuilder::roundedTo(Value a, DataType type) {
  if (type == DataType::F32)
    return a;
  return widen(arith::TruncFOp::create(*this, elementType(type), a));
}

Value KernelBuilder::softplus(Value a) {
  // max(a, 0) + log1p(exp(-|a|)): no overflow, and no digits lost where the
  // reference switches to a itself (a > 20).
  return add(max(a, constant(0, a)), log1p(exp(neg(abs(a)))));
}

Value KernelBuilder::splat(Value scalar, Value like) {
  auto type = dyn_cast<RankedTensorType>(like.getType());
  if (!type)
    return scalar;
  return SplatOp::create(*this, tileType(type.getShape(), scalar.getType()),
                         scalar);
}

Value KernelBuilder::sum(Value tile) {
  return ReduceOp::create(*this, getF32Type(), tile, /*axis=*/0);
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

Value KernelBuilder::view(Value pointer, Value offset, ArrayRef<Dim> dims,
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
  return ViewOp::create(*this, type, pointer, offset, dynamicSizes,
                        dynamicStrides);
}

static Value loadOne(KernelBuilder &b, Value one) {
  return LoadOp::create(b, cast<ViewType>(one.getType()).getElementType(), one,
                        ValueRange{b.i32(0)}, /*mask=*/Value());
}

Value KernelBuilder::loadScalar(Value pointer, Value offset) {
  return loadOne(*this, view(pointer, offset, {Dim{1, 1}}));
}

/// One element if `isWanted`, else none.
static Dim oneIf(KernelBuilder &b, Value isWanted) {
  Dim dim = {0, 1};
  dim.dynamicSize = b.select(isWanted, b.i32(1), b.i32(0));
  return dim;
}

Value KernelBuilder::loadScalarIf(Value isWanted, Value pointer, Value offset) {
  return loadOne(*this, view(pointer, offset, {oneIf(*this, isWanted)}));
}

void KernelBuilder::storeScalarIf(Value isWanted, Value value, Value pointer,
                                  Value offset) {
  Value one = view(pointer, offset, {oneIf(*this, isWanted)});
  StoreOp::create(*this, value, one, ValueRange{i32(0)});
}

Value KernelBuilder::widen(Value value) {
  Type type = value.getType();
  if (getElementTypeOrSelf(type).isF32())
    return value;
  Type wide = getF32Type();
  if (auto tile = dyn_cast<RankedTensorType>(type))
    wide = tileType(tile.getShape());
  return arith::ExtFOp::create(*this, wide, value);
}

Value KernelBuilder::loadTile(Value view, ArrayRef<int64_t> shape) {
  Type element = cast<ViewType>(view.getType()).getElementType();
  SmallVector<Value> offsets(shape.size(), i32(0));
  Value tile = LoadOp::create(*this, tileType(shape, element), view, offsets,
                              /*mask=*/Value());
  return isa<FloatType>(element) ? widen(tile) : tile;
}

void KernelBuilder::storeTile(Value tile, Value view) {
  Type element = cast<ViewType>(view.getType()).getElementType();
  auto type = cast<RankedTensorType>(tile.getType());
  if (!element.isF32())
    tile = arith::TruncFOp::create(*this, tileType(type.getShape(), element),
                                   tile);
  SmallVector<Value> offsets(type.getRank(), i32(0));
  StoreOp::create(*this, tile, view, offsets);
}

void KernelBuilder::branch(Value condition, function_ref<void()> then,
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
