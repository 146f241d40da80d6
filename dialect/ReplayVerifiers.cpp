//===- ReplayVerifiers.cpp - The numbered constraints ---------------------===//
//
// Every message ends in the number that ReplayOps.td gives the constraint.
//
//===----------------------------------------------------------------------===//

#include "dialect/ReplayDialect.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace replayjit::internal::replay;

static RankedTensorType tile(Value value) {
  return dyn_cast<RankedTensorType>(value.getType());
}

static bool isF32Tile(Value value, ArrayRef<int64_t> shape) {
  RankedTensorType type = tile(value);
  return type && type.getElementType().isF32() && type.getShape() == shape;
}

//===----------------------------------------------------------------------===//
// Kernel
//===----------------------------------------------------------------------===//

LogicalResult KernelOp::verify() {
  if (getNumWarps() > 32 || !llvm::isPowerOf2_32(getNumWarps()))
    return emitOpError() << "num_warps is " << getNumWarps()
                         << "; allowed are powers of two from 1 to 32 (K1)";
  if (!getBody().hasOneBlock() ||
      !isa_and_present<ReturnOp>(
          getBody().front().empty() ? nullptr : &getBody().front().back()))
    return emitOpError(
        "body must be one block that ends in replay.return (K2)");
  for (Type type : getArgumentTypes())
    if (!isa<PtrType>(type) && !type.isSignlessIntOrFloat())
      return emitOpError() << "argument type " << type
                           << " must be a pointer or a scalar (K3)";
  for (auto [i, type] : llvm::enumerate(getArgumentTypes())) {
    for (StringRef name : {kArgReadOnly, kArgNoAlias, kArgDependent})
      if (getArgAttr(i, name) && !isa<PtrType>(type))
        return emitOpError()
               << "argument " << i << " of type " << type << " cannot be "
               << name << "; only pointers are (K4)";
    if (getArgAttr(i, kArgReadOnly) && getArgAttr(i, kArgDependent))
      return emitOpError() << "argument " << i << " cannot be " << kArgReadOnly
                           << " and " << kArgDependent << " (K6)";
  }
  if (auto lanes = (*this)->getAttrOfType<IntegerAttr>(kLanesPerRow))
    if (lanes.getInt() < 1 || lanes.getInt() > 32 ||
        !llvm::isPowerOf2_64(lanes.getInt()))
      return emitOpError() << kLanesPerRow << " is " << lanes.getInt()
                           << "; allowed are powers of two from 1 to 32 (K5)";
  return success();
}

//===----------------------------------------------------------------------===//
// Replay level
//===----------------------------------------------------------------------===//

LogicalResult ReconstructOp::verify() {
  auto floatView = [](Value view, int64_t rank) { // 0: any rank
    auto type = cast<ViewType>(view.getType());
    return (rank == 0 || type.getRank() == rank) &&
           isa<FloatType>(type.getElementType());
  };
  bool ring = getCount() != nullptr;
  bool decays = getGates() || getTotal();
  if (ring != (getD() != nullptr) || ring != (getK() != nullptr) ||
      ring != decays || (getBase() && !ring))
    return emitOpError("ring operands must be all there or all absent (R3)");
  if (!floatView(getCheckpoint(), 2) ||
      (ring && (!floatView(getD(), 2) || !floatView(getK(), 2))) ||
      (getGates() && !floatView(getGates(), 0)))
    return emitOpError(
        "views must have float elements and rank 2, gates rank 1 "
        "or 2 (R1)");
  if (getTotal() &&
      (!isF32Tile(getTotal(), {getType().getColumns()}) ||
       (getGates() && getGates().getType().getRank() != 2)))
    return emitOpError() << "needs a total of tensor<" << getType().getColumns()
                         << "xf32> and gates of rank 2 (R4)";
  if (getBase()) {
    int64_t size = getD().getType().getShape()[0];
    auto differs = [&](Value view) {
      return cast<ViewType>(view.getType()).getShape()[0] != size;
    };
    if (ShapedType::isDynamic(size) || size > getDepth() || differs(getK()) ||
        (getGates() && differs(getGates())))
      return emitOpError("a wrapped ring needs one static number of rows, at "
                         "most its depth (R5)");
  }
  if (!llvm::isPowerOf2_32(getDepth()))
    return emitOpError() << "depth is " << getDepth()
                         << "; it must be a power of two (R2)";
  if (getType().isFormed())
    return emitOpError() << "gives a " << getType()
                         << ", which is formed; replay.form gives that (R6)";
  return success();
}

/// Constraints on how a use reads a state; `tag` is the number of each.
static LogicalResult verifyBlock(Operation *op, std::optional<int32_t> blockK,
                                 StateType state, StringRef tag) {
  if (blockK && (*blockK < 1 || state.getColumns() % *blockK != 0))
    return op->emitOpError()
           << "block_k " << *blockK << " does not divide the "
           << state.getColumns() << " columns of the state (" << tag << ")";
  return success();
}

static bool isSplit(std::optional<Precision> split) {
  return !split || *split == Precision::Bf16 || *split == Precision::Tf32;
}

static LogicalResult verifyForming(Operation *op, std::optional<int32_t> rows,
                                   Precision precision,
                                   std::optional<Precision> split,
                                   StringRef tag, StringRef splitTag) {
  if (!isSplit(split) || (split && (rows || precision != Precision::Ieee)))
    return op->emitOpError("split is bf16 or tf32, with neither rows nor a "
                           "precision beside it (")
           << splitTag << ")";
  bool isDot = precision != Precision::Ieee;
  if (rows && (*rows < (isDot ? 16 : 1) || !llvm::isPowerOf2_32(*rows)))
    return op->emitOpError()
           << "rows is " << *rows << "; precision "
           << stringifyPrecision(precision) << " allows powers of two from "
           << (isDot ? 16 : 1) << " (" << tag << ")";
  return success();
}

/// True if decay, d and k, where they are there, fit the state.
static bool isUpdateOf(StateType state, Value decay, Value d, Value k) {
  return (d != nullptr) == (k != nullptr) &&
         (!d || (isF32Tile(d, {state.getRows()}) &&
                 isF32Tile(k, {state.getColumns()}))) &&
         (!decay || decay.getType().isF32() ||
          isF32Tile(decay, {state.getColumns()}));
}

LogicalResult FormOp::verify() {
  StateType from = getState().getType(), to = getType();
  if (from.isFormed() || !to.isFormed() || from.getRows() != to.getRows() ||
      from.getColumns() != to.getColumns())
    return emitOpError() << "cannot make a " << to << " of a " << from
                         << ": needs a state that is not formed, and gives the "
                            "same with tiles (J1)";
  return verifyForming(*this, getRows(), getPrecision(), getSplit(), "J2",
                       "J3");
}

LogicalResult UpdateOp::verify() {
  StateType state = getState().getType();
  if (!state.isFormed())
    return emitOpError() << "updates a " << state
                         << ", which is not formed; replay.form forms it (U1)";
  if ((!getDecay() && !getD()) ||
      !isUpdateOf(state, getDecay(), getD(), getK()))
    return emitOpError() << "needs a decay of f32 or k's type, or d of tensor<"
                         << state.getRows() << "xf32> and k of tensor<"
                         << state.getColumns() << "xf32>, or all three (U2)";
  return success();
}

LogicalResult ContractOp::verify() {
  StateType state = getState().getType();
  if (getVectors().size() != getResults().size() || getVectors().empty())
    return emitOpError() << "has " << getVectors().size() << " vectors and "
                         << getResults().size()
                         << " results; as many are needed (C2)";
  for (Value vector : getVectors())
    if (!isF32Tile(vector, {state.getColumns()}))
      return emitOpError() << "vector must be tensor<" << state.getColumns()
                           << "xf32> (C1)";
  for (Value result : getResults())
    if (!isF32Tile(result, {state.getRows()}))
      return emitOpError() << "result must be tensor<" << state.getRows()
                           << "xf32> (C1)";
  if (state.isFormed() && (getBlockK() || getRebuild() || getSplit()))
    return emitOpError("reads a formed state as it is; block_k, rebuild and "
                       "split are for others (C4)");
  if (!isSplit(getSplit()) || (getSplit() && (getBlockK() || getRebuild())))
    return emitOpError(
        "split is bf16 or tf32, with neither block_k nor rebuild "
        "beside it (C5)");
  return verifyBlock(*this, getBlockK(), state, "C3");
}

LogicalResult FlushOp::verify() {
  StateType state = getState().getType();
  bool isUpdate = getDecay() != nullptr;
  if (isUpdate != (getD() != nullptr) ||
      !isUpdateOf(state, getDecay(), getD(), getK()))
    return emitOpError() << "needs d of tensor<" << state.getRows()
                         << "xf32>, k of tensor<" << state.getColumns()
                         << "xf32> and a decay of f32 or k's type (F1)";
  if (getDsts().empty() || llvm::any_of(getDsts(), [](Value dst) {
        return cast<ViewType>(dst.getType()).getRank() != 2;
      }))
    return emitOpError("destinations must be there and have rank 2 (F2)");
  if (state.isFormed() && (getBlockK() || getRows() || getSplit() ||
                           getPrecision() != Precision::Ieee))
    return emitOpError("stores a formed state as it is; block_k, rows, "
                       "precision and split are for others (F4)");
  if (failed(verifyBlock(*this, getBlockK(), state, "F3")))
    return failure();
  return verifyForming(*this, getRows(), getPrecision(), getSplit(), "F3",
                       "F3");
}

//===----------------------------------------------------------------------===//
// Tile level: memory
//===----------------------------------------------------------------------===//

LogicalResult ViewOp::verify() {
  ViewType type = getType();
  if (getPtr().getType().getElementType() != type.getElementType() ||
      type.getShared())
    return emitOpError() << "makes a " << type << " of a " << getPtr().getType()
                         << ": needs its element type and global memory (W1)";
  auto dynamic = [](ArrayRef<int64_t> list) {
    return (size_t)llvm::count_if(list, ShapedType::isDynamic);
  };
  if (dynamic(type.getShape()) != getSizes().size() ||
      dynamic(type.getStrides()) != getStrides().size())
    return emitOpError() << "needs " << dynamic(type.getShape())
                         << " sizes and " << dynamic(type.getStrides())
                         << " strides, has " << getSizes().size() << " and "
                         << getStrides().size() << " (W2)";
  if (getMost() &&
      (*getMost() == 0 || !ShapedType::isDynamic(type.getShape()[0])))
    return emitOpError("needs a positive at_most, and a first size known only "
                       "at run time beside it (W3)");
  return success();
}

/// Constraints that loads and stores share; `tags` are their numbers.
static LogicalResult verifyAccess(Operation *op, ViewType view, size_t offsets,
                                  Type value, StringRef offsetTag,
                                  StringRef typeTag) {
  if ((int64_t)offsets != view.getRank())
    return op->emitOpError()
           << "has " << offsets << " offsets for a view of "
           << "rank " << view.getRank() << " (" << offsetTag << ")";
  auto tensor = dyn_cast<RankedTensorType>(value);
  Type element = tensor ? tensor.getElementType() : value;
  if (element != view.getElementType() ||
      (tensor && tensor.getRank() != view.getRank()))
    return op->emitOpError()
           << "moves " << value << " through " << view
           << ": rank and element type must agree (" << typeTag << ")";
  return success();
}

LogicalResult LoadOp::verify() {
  if (failed(verifyAccess(*this, getView().getType(), getOffsets().size(),
                          getType(), "D1", "D2")))
    return failure();
  if (Value mask = getMask()) {
    RankedTensorType type = tile(mask), result = tile(getResult());
    if (!result || type.getShape() != result.getShape() ||
        !type.getElementType().isInteger(1))
      return emitOpError(
          "mask must be a tile of i1 with the result's shape (D3)");
  }
  return success();
}

LogicalResult StoreOp::verify() {
  if (getView().getType().getShared())
    return emitOpError("must store to global memory (S3)");
  return verifyAccess(*this, getView().getType(), getOffsets().size(),
                      getValue().getType(), "S1", "S2");
}

LogicalResult OnOverflowOp::verify() {
  auto kernel = (*this)->getParentOfType<KernelOp>();
  WalkResult others = kernel.walk([&](OnOverflowOp other) {
    return other == *this ? WalkResult::advance() : WalkResult::interrupt();
  });
  if (others.wasInterrupted())
    return emitOpError("must be the only one of its kernel (V1)");
  return success();
}

//===----------------------------------------------------------------------===//
// Tile level: shape and layout
//===----------------------------------------------------------------------===//

LogicalResult IotaOp::verify() {
  RankedTensorType type = tile(getResult());
  if (type.getRank() != 1 || !type.getElementType().isInteger(32))
    return emitOpError("result must be a rank-1 tile of i32 (I1)");
  return success();
}

LogicalResult SplatOp::verify() {
  if (tile(getResult()).getElementType() != getValue().getType())
    return emitOpError() << "spreads " << getValue().getType() << " over "
                         << getType() << ": element types must agree (P1)";
  return success();
}

LogicalResult ExpandOp::verify() {
  RankedTensorType from = tile(getValue()), to = tile(getResult());
  if (from.getRank() == 1 && getAxis() <= 1 && to.getRank() == 2 &&
      to.getElementType() == from.getElementType() &&
      to.getDimSize(getAxis()) == 1 &&
      to.getDimSize(1 - getAxis()) == from.getDimSize(0))
    return success();
  return emitOpError() << "expands " << from << " at axis " << getAxis()
                       << " to " << to
                       << ": needs rank 1, axis 0 or 1 and a 1 there (E1)";
}

LogicalResult BroadcastOp::verify() {
  RankedTensorType from = tile(getValue()), to = tile(getResult());
  bool legal = from.getRank() == to.getRank() &&
               from.getElementType() == to.getElementType();
  for (int64_t dim = 0; legal && dim < from.getRank(); ++dim)
    legal =
        from.getDimSize(dim) == 1 || from.getDimSize(dim) == to.getDimSize(dim);
  if (!legal)
    return emitOpError() << "cannot repeat " << from << " to " << to
                         << ": only dimensions of size 1 repeat (B1)";
  return success();
}

LogicalResult TransposeOp::verify() {
  RankedTensorType from = tile(getValue()), to = tile(getResult());
  if (from.getRank() != 2 || to.getRank() != 2 ||
      from.getElementType() != to.getElementType() ||
      from.getDimSize(0) != to.getDimSize(1) ||
      from.getDimSize(1) != to.getDimSize(0))
    return emitOpError() << "cannot transpose " << from << " to " << to
                         << " (Q1)";
  return success();
}

LogicalResult SliceOp::verify() {
  RankedTensorType from = tile(getValue()), to = tile(getResult());
  if (from.getRank() != 1 || to.getRank() != 1 ||
      from.getElementType() != to.getElementType() ||
      to.getDimSize(0) > from.getDimSize(0))
    return emitOpError() << "cannot cut " << to << " out of " << from
                         << " (Z1)";
  APInt offset;
  int64_t size = to.getDimSize(0);
  if (matchPattern(getOffset(), m_ConstantInt(&offset)) &&
      (offset.getSExtValue() % size != 0 || offset.isNegative() ||
       offset.getSExtValue() + size > from.getDimSize(0)))
    return emitOpError() << "cannot cut " << to << " out of " << from
                         << " at offset " << offset.getSExtValue() << " (Z2)";
  return success();
}

LogicalResult StackOp::verify() {
  RankedTensorType to = tile(getResult());
  auto fits = [&](Value vector) {
    RankedTensorType from = tile(vector);
    return from == tile(getVectors().front()) && from.getRank() == 1 &&
           from.getElementType() == to.getElementType() &&
           from.getDimSize(0) == to.getDimSize(1);
  };
  if (getVectors().empty() || to.getRank() != 2 ||
      (int64_t)getVectors().size() > to.getDimSize(0) ||
      !llvm::all_of(getVectors(), fits))
    return emitOpError() << "cannot make " << to << " of "
                         << getVectors().size()
                         << " vectors: they are rows of it, of its element "
                            "type (ST1)";
  return success();
}

LogicalResult ConvertLayoutOp::verify() {
  RankedTensorType from = tile(getValue()), to = tile(getResult());
  if (from.getShape() != to.getShape() ||
      from.getElementType() != to.getElementType())
    return emitOpError("may change nothing but the layout (T1)");
  return success();
}

//===----------------------------------------------------------------------===//
// Tile level: arithmetic
//===----------------------------------------------------------------------===//

LogicalResult ReduceOp::verify() {
  RankedTensorType from = tile(getValue()), to = tile(getResult());
  bool legal = from.getElementType().isF32() && getAxis() < from.getRank();
  if (legal && from.getRank() == 1)
    legal = getType().isF32();
  else if (legal)
    legal = to && to.getRank() == 1 && to.getElementType().isF32() &&
            to.getDimSize(0) == from.getDimSize(1 - getAxis());
  if (!legal)
    return emitOpError() << "cannot reduce " << from << " along axis "
                         << getAxis() << " to " << getType() << " (N1)";
  return success();
}

LogicalResult CumsumOp::verify() {
  if (getAxis() >= tile(getValue()).getRank() ||
      !tile(getValue()).getElementType().isF32())
    return emitOpError() << "needs f32 elements and an axis below the rank, "
                            "not axis "
                         << getAxis() << " of " << getType() << " (M1)";
  return success();
}

LogicalResult DotOp::verify() {
  RankedTensorType a = tile(getA()), b = tile(getB()), c = tile(getC());
  if (a.getRank() != 2 || b.getRank() != 2 || c.getRank() != 2)
    return emitOpError("operands must have rank 2 (O1)");
  int64_t m = a.getDimSize(0), k = a.getDimSize(1), n = b.getDimSize(1);
  if (!isF32Tile(getA(), {m, k}) || !isF32Tile(getB(), {k, n}) ||
      !isF32Tile(getC(), {m, n}) || !isF32Tile(getResult(), {m, n}))
    return emitOpError() << "multiplies " << a << " and " << b << " into " << c
                         << ": shapes must chain and elements be f32 (O1)";
  if (getPrecision() != Precision::Ieee && (m < 16 || k < 16 || n < 8))
    return emitOpError() << "precision " << stringifyPrecision(getPrecision())
                         << " needs M >= 16, K >= 16 and N >= 8, not " << m
                         << ", " << k << " and " << n << " (O2)";
  if (getPrecision() == Precision::Ieee && getWide())
    return emitOpError("has no fragments that could be wide at precision ieee "
                       "(O3)");
  return success();
}

//===----------------------------------------------------------------------===//
// Staged level
//===----------------------------------------------------------------------===//

LogicalResult AllocOp::verify() {
  if (!isa<KernelOp>((*this)->getParentOp()))
    return emitOpError("must stand directly in a kernel's body (A1)");
  return success();
}

/// True if view and buffer have one element type and equal sizes, but for a
/// first size that is known only at run time.
static bool fits(ViewType view, BufferType buffer) {
  return view.getElementType() == buffer.getElementType() &&
         view.getRank() == (int64_t)buffer.getShape().size() &&
         llvm::all_of(llvm::enumerate(view.getShape()), [&](auto size) {
           return size.value() == buffer.getShape()[size.index()] ||
                  (size.index() == 0 && ShapedType::isDynamic(size.value()));
         });
}

/// True if the rows of a view, or elements of one of rank 1, are adjacent.
static bool isAdjacent(ViewType view) {
  ArrayRef<int64_t> strides = view.getStrides();
  return strides.back() == 1 &&
         (view.getRank() == 1 || strides[0] == view.getShape()[1] ||
          strides[0] == -view.getShape()[1]);
}

LogicalResult StageOp::verify() {
  ViewType view = getType();
  if (!view.getShared() || !fits(view, getBuffer().getType()) ||
      ShapedType::isDynamic(view.getShape()[0]) != (getSize() != nullptr))
    return emitOpError() << "makes a " << view << " of a "
                         << getBuffer().getType()
                         << ": element type and sizes must agree, and the "
                            "memory be shared (X1)";
  if (!isAdjacent(view))
    return emitOpError("needs adjacent rows (X2)");
  return success();
}

LogicalResult AsyncCopyOp::verify() {
  ViewType view = getView().getType();
  BufferType buffer = getBuffer().getType();
  if (view.getShared() || !fits(view, buffer))
    return emitOpError() << "copies " << view << " to " << buffer
                         << ": sizes and element type must agree, and the "
                            "view's memory be global (Y1)";
  int64_t rowBytes = elementBytes(buffer.getElementType());
  if (buffer.getShape().size() == 2)
    rowBytes *= buffer.getShape()[1];
  else if (!ShapedType::isDynamic(view.getShape()[0]))
    rowBytes *= buffer.getShape()[0];
  if (!isAdjacent(view) || rowBytes % 16 != 0 || view.getAlignment() % 16 != 0)
    return emitOpError("needs adjacent rows whose bytes and alignment are "
                       "multiples of 16 (Y2)");
  return success();
}

//===----------------------------------------------------------------------===//
// Thread level
//===----------------------------------------------------------------------===//

static LogicalResult verifyThreadAccess(Operation *op, TypeRange types,
                                        StringRef tag) {
  int64_t bytes = types.empty() ? 0 : types.size() * elementBytes(types[0]);
  if (!llvm::all_equal(types) || !llvm::is_contained({2, 4, 8, 16}, bytes))
    return op->emitOpError()
           << "moves " << types.size() << " values of " << bytes
           << " bytes; allowed are values of one type with 2, "
              "4, 8 or 16 bytes ("
           << tag << ")";
  return success();
}

LogicalResult LdOp::verify() {
  return verifyThreadAccess(*this, getResultTypes(), "H1");
}

LogicalResult StOp::verify() {
  return verifyThreadAccess(*this, getValues().getTypes(), "H2");
}
