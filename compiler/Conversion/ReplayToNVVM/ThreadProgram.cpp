//===- ThreadProgram.cpp - Scalar code of one thread ----------------------===//

#include "compiler/Conversion/ReplayToNVVM/ThreadProgram.h"
#include "compiler/Conversion/ReplayToNVVM/ReplayToNVVM.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace replayjit::internal;
using namespace replayjit::internal::replay;

Value ThreadBuilder::i32(int32_t value) {
  return arith::ConstantOp::create(*this, getI32IntegerAttr(value));
}
Value ThreadBuilder::i64(int64_t value) {
  return arith::ConstantOp::create(*this, getI64IntegerAttr(value));
}
Value ThreadBuilder::f32(float value) {
  return arith::ConstantOp::create(*this, getF32FloatAttr(value));
}
Value ThreadBuilder::add(Value a, Value b) {
  return createOrFold<arith::AddIOp>(a, b);
}
Value ThreadBuilder::mul(Value a, Value b) {
  return createOrFold<arith::MulIOp>(a, b);
}
Value ThreadBuilder::extend(Value value) {
  return createOrFold<arith::ExtSIOp>(getI64Type(), value);
}
Value ThreadBuilder::both(Value a, Value b) {
  if (!a || !b)
    return a ? a : b;
  return createOrFold<arith::AndIOp>(a, b);
}

Value ThreadBuilder::lane() {
  return arith::AndIOp::create(*this, threadId(), i32(31));
}
Value ThreadBuilder::warp() {
  return arith::ShRUIOp::create(*this, threadId(), i32(5));
}

Value ThreadBuilder::isOwner(const LinearLayout &layout) {
  auto zeroIn = [&](int mask, Value number) -> Value {
    if (!mask)
      return {};
    Value bits = arith::AndIOp::create(*this, number, i32(mask));
    return arith::CmpIOp::create(*this, arith::CmpIPredicate::eq, bits, i32(0));
  };
  Value laneOk = zeroIn(layout.replicatedLanes(), lane());
  Value warpOk = zeroIn(layout.replicatedWarps(), warp());
  return both(laneOk, warpOk);
}

Value ThreadBuilder::threadCoordinate(const LinearLayout &layout, int dim) {
  // Bits that move by the same shift are taken together.
  auto part = [&](ArrayRef<Basis> bases, auto number) -> Value {
    llvm::SmallMapVector<int, int32_t, 4> masks; // shift left -> result bits
    for (auto [bit, basis] : llvm::enumerate(bases))
      if (basis.move && basis.dim == dim)
        masks[(int)llvm::Log2_32(basis.move) - (int)bit] |= basis.move;
    Value sum;
    for (auto [shift, mask] : masks) {
      Value value = number();
      if (shift > 0)
        value = arith::ShLIOp::create(*this, value, i32(shift));
      else if (shift < 0)
        value = arith::ShRUIOp::create(*this, value, i32(-shift));
      value = arith::AndIOp::create(*this, value, i32(mask));
      sum = sum ? Value(arith::OrIOp::create(*this, sum, value)) : value;
    }
    return sum;
  };
  Value lanePart = part(layout.lanes, [&] { return lane(); });
  Value warpPart = part(layout.warps, [&] { return warp(); });
  if (lanePart && warpPart)
    return arith::OrIOp::create(*this, lanePart, warpPart);
  return lanePart ? lanePart : warpPart;
}

Value ThreadBuilder::accumulate(Value sum, Value term) {
  if (auto product = term.getDefiningOp<arith::MulFOp>())
    return math::FmaOp::create(*this, product.getLhs(), product.getRhs(), sum);
  return arith::AddFOp::create(*this, sum, term);
}

void ThreadBuilder::report(Value isReporter, Value kind, Value row, Value layer,
                           Value value, Value word, bool trap) {
  OpBuilder::InsertionGuard guard(*this);
  Value address = LLVM::PtrToIntOp::create(*this, getI64Type(), word);
  auto compare = [&](arith::CmpIPredicate predicate, Value a, Value c) {
    return arith::CmpIOp::create(*this, predicate, a, c);
  };
  if (!isReporter)
    isReporter = compare(arith::CmpIPredicate::eq, threadId(), i32(0));
  Value isWanted = compare(arith::CmpIPredicate::ne, address, i64(0));
  auto outer = scf::IfOp::create(*this, both(isReporter, isWanted));
  setInsertionPointToStart(outer.thenBlock());
  auto atomic = [&](LLVM::AtomicBinOp kind, Value address, Value value,
                    LLVM::AtomicOrdering ordering) {
    return LLVM::AtomicRMWOp::create(*this, kind, address, value, ordering,
                                     /*syncscope=*/StringRef(),
                                     /*alignment=*/4);
  };
  Value before = atomic(LLVM::AtomicBinOp::add, word, i32(1),
                        LLVM::AtomicOrdering::monotonic);
  auto inner = scf::IfOp::create(
      *this, compare(arith::CmpIPredicate::eq, before, i32(0)));
  setInsertionPointToStart(inner.thenBlock());
  auto field = [&](int64_t bytes) {
    return addressOf(word, bytes, getI8Type());
  };
  store(row, field(8));
  store(layer, field(12));
  store(value, field(16));
  // A reader that sees the kind sees the rest.
  atomic(LLVM::AtomicBinOp::xchg, field(4), kind,
         LLVM::AtomicOrdering::release);
  if (!trap)
    return;
  setInsertionPointAfter(inner);
  // The report is there before the launch ends.
  LLVM::FenceOp::create(*this, LLVM::AtomicOrdering::seq_cst,
                        /*syncscope=*/StringRef());
  LLVM::Trap::create(*this);
}

void ThreadBuilder::barrierInLoop(Operation *op) {
  if (op->getParentOfType<scf::ForOp>())
    barrier();
}

Value ThreadBuilder::sharedAddress(int64_t bytes) {
  auto type = LLVM::LLVMPointerType::get(getContext(), kSharedSpace);
  Value base = LLVM::AddressOfOp::create(*this, type, kSharedSymbol);
  return addressOf(base, bytes, getI8Type());
}

Value ThreadBuilder::addressOf(Value base, Value elements, Type elementType) {
  if (!elements)
    return base;
  return LLVM::GEPOp::create(*this, base.getType(), elementType, base,
                             ValueRange{elements});
}

Value ThreadBuilder::addressOf(Value base, int64_t elements, Type elementType) {
  if (elements == 0)
    return base;
  if (elements != (int32_t)elements)
    return addressOf(base, i64(elements), elementType);
  return LLVM::GEPOp::create(*this, base.getType(), elementType, base,
                             ArrayRef<LLVM::GEPArg>{(int32_t)elements});
}

SmallVector<Value> ThreadBuilder::load(Value address, Type type, int count,
                                       Value predicate, LoadOp whole) {
  SmallVector<Type> types(count, type);
  auto op = LdOp::create(*this, types, address, predicate,
                         whole && whole->hasAttr(kArgReadOnly),
                         whole ? whole.getCache() : CachePolicy::Normal,
                         whole && whole->hasAttr(kArgDependent));
  return llvm::to_vector_of<Value>(op.getResults());
}

void ThreadBuilder::store(ValueRange values, Value address, Value predicate) {
  StOp::create(*this, values, address, predicate);
}

//===----------------------------------------------------------------------===//
// Tiles in shared memory
//===----------------------------------------------------------------------===//

static int64_t rowMajor(const LinearLayout &layout, ArrayRef<int64_t> offset) {
  int64_t linear = 0;
  for (auto [size, coordinate] : llvm::zip(layout.shape, offset))
    linear = linear * size + coordinate;
  return linear;
}

Value ThreadBuilder::rowMajorOffset(const LinearLayout &layout) {
  Value linear;
  int64_t stride = 1;
  for (int dim = layout.rank() - 1; dim >= 0; --dim) {
    if (Value coordinate = threadCoordinate(layout, dim)) {
      Value term = mul(coordinate, i32(stride));
      linear = linear ? add(linear, term) : term;
    }
    stride *= layout.shape[dim];
  }
  return linear;
}

/// How many neighbours one access to shared memory may move.
static int sharedVector(const LinearLayout &layout, Type elementType) {
  return std::min<int>(layout.contiguous(layout.rank() - 1),
                       16 / elementBytes(elementType));
}

void ThreadBuilder::storeShared(ArrayRef<Value> registers,
                                const LinearLayout &layout, Type elementType,
                                Value base) {
  Value owner = isOwner(layout);
  Value thread = addressOf(base, rowMajorOffset(layout), elementType);
  int vector = sharedVector(layout, elementType);
  for (int reg = 0; reg < layout.numRegisters(); reg += vector)
    store(registers.slice(reg, vector),
          addressOf(thread, rowMajor(layout, layout.registerOffset(reg)),
                    elementType),
          owner);
}

SmallVector<Value> ThreadBuilder::loadShared(const LinearLayout &layout,
                                             Type elementType, Value base) {
  Value thread = addressOf(base, rowMajorOffset(layout), elementType);
  int vector = sharedVector(layout, elementType);
  SmallVector<Value> registers;
  for (int reg = 0; reg < layout.numRegisters(); reg += vector)
    llvm::append_range(
        registers,
        load(addressOf(thread, rowMajor(layout, layout.registerOffset(reg)),
                       elementType),
             elementType, vector));
  return registers;
}
