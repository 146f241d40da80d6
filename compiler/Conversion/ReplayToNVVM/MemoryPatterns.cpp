//===- MemoryPatterns.cpp - Views, loads and stores -----------------------===//
//
// A view becomes its base address, its run-time sizes and its run-time strides.
// An access moves as many neighbours at once as layout, alignment and bounds
// allow, at most 16 bytes.
//
//===----------------------------------------------------------------------===//

#include "compiler/Conversion/ReplayToNVVM/ThreadProgram.h"
#include "compiler/Transforms/Memory.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <numeric>

using namespace mlir;
using namespace replayjit::internal;
using namespace replayjit::internal::replay;

namespace {

/// A view's run-time values, as the type converter orders them.
struct LoweredView {
  ViewType type;
  Value address;
  SmallVector<Value> sizes, strides; ///< Null where the type is static.

  LoweredView(ViewType type, ValueRange values) : type(type) {
    address = values.front();
    values = values.drop_front();
    auto take = [&](ArrayRef<int64_t> list, SmallVector<Value> &out) {
      for (int64_t entry : list) {
        out.push_back(ShapedType::isDynamic(entry) ? values.front() : Value());
        if (out.back())
          values = values.drop_front();
      }
    };
    take(type.getShape(), sizes);
    take(type.getStrides(), strides);
  }
};

/// One tile access: thread-dependent base, then constants per register.
class TileAccess {
public:
  TileAccess(ThreadBuilder &b, LoweredView view, ValueRange offsets,
             LinearLayout layout)
      : b(b), view(std::move(view)), offsets(offsets),
        layout(std::move(layout)), element(this->view.type.getElementType()) {
    for (int dim = 0; dim < this->layout.rank(); ++dim)
      checked.push_back(needsCheck(dim));
    vector = vectorWidth();
    for (int dim = 0; dim < this->layout.rank(); ++dim) {
      Value coordinate = b.threadCoordinate(this->layout, dim);
      std::optional<int64_t> offset = constantOf(offsets[dim]);
      if (!coordinate)
        coordinate = offsets[dim];
      else if (offset != 0)
        coordinate = b.add(coordinate, offsets[dim]);
      coordinates.push_back(coordinate);
      base = addTerm(base, scaled(dim, coordinate));
    }
    base = b.addressOf(this->view.address, base, element);
  }

  int vectorSize() const { return vector; }

  Value address(int reg) {
    SmallVector<int64_t> at = layout.registerOffset(reg);
    int64_t constant = 0;
    Value dynamic;
    for (int dim = 0; dim < layout.rank(); ++dim) {
      if (at[dim] == 0)
        continue;
      if (view.strides[dim])
        dynamic = addTerm(dynamic, b.mul(view.strides[dim], b.i64(at[dim])));
      else
        constant += at[dim] * view.type.getStrides()[dim];
    }
    return b.addressOf(b.addressOf(base, dynamic, element), constant, element);
  }

  /// True where the registers from `reg` lie within the view; null if always.
  Value inBounds(int reg) {
    SmallVector<int64_t> at = layout.registerOffset(reg);
    Value result;
    for (int dim = 0; dim < layout.rank(); ++dim)
      if (checked[dim])
        result = b.both(result, inBounds(dim, at[dim]));
    return result;
  }

private:
  ThreadBuilder &b;
  LoweredView view;
  ValueRange offsets;
  LinearLayout layout;
  Type element;
  int vector = 1;
  Value base;
  SmallVector<Value> coordinates;
  SmallVector<bool> checked;
  DenseMap<std::pair<int, int64_t>, Value> inside;

  bool needsCheck(int dim) {
    int64_t size = view.type.getShape()[dim];
    std::optional<int64_t> offset = constantOf(offsets[dim]);
    return ShapedType::isDynamic(size) || !offset || *offset < 0 ||
           *offset + layout.shape[dim] > size;
  }

  int contiguousDim() {
    for (int dim = layout.rank() - 1; dim >= 0; --dim)
      if (view.type.getStrides()[dim] == 1)
        return dim;
    return -1;
  }

  int vectorWidth() {
    int dim = contiguousDim();
    if (dim < 0)
      return 1;
    int64_t bytes = elementBytes(element);
    int64_t width = std::min<int64_t>(
        layout.contiguous(dim),
        std::min<int64_t>(16, view.type.getAlignment()) / bytes);
    auto halveUntilDivides = [&](std::optional<int64_t> value) {
      while (width > 1 && (!value || *value % width != 0))
        width /= 2;
    };
    halveUntilDivides(constantOf(offsets[dim]));
    int64_t size = view.type.getShape()[dim];
    if (checked[dim])
      halveUntilDivides(ShapedType::isDynamic(size) ? std::nullopt
                                                    : std::optional(size));
    return std::max<int64_t>(width, 1);
  }

  Value addTerm(Value sum, Value term) {
    if (!sum || !term)
      return sum ? sum : term;
    return b.add(sum, term);
  }

  /// coordinate * stride as i64; null if 0.
  Value scaled(int dim, Value coordinate) {
    if (constantOf(coordinate) == 0)
      return {};
    if (view.strides[dim])
      return b.mul(b.extend(coordinate), view.strides[dim]);
    // Coordinates are below 2^10 or so, so that most products fit 32 bits.
    int64_t stride = view.type.getStrides()[dim];
    if (std::abs(stride) >= 1 << 20)
      return b.mul(b.extend(coordinate), b.i64(stride));
    return b.extend(b.mul(coordinate, b.i32(stride)));
  }

  Value inBounds(int dim, int64_t at) {
    Value &result = inside[{dim, at}];
    if (result)
      return result;
    Value size =
        view.sizes[dim] ? view.sizes[dim] : b.i32(view.type.getShape()[dim]);
    Value coordinate =
        at == 0 ? coordinates[dim] : b.add(coordinates[dim], b.i32(at));
    // Unsigned: a negative coordinate is outside as well.
    result = b.createOrFold<arith::CmpIOp>(arith::CmpIPredicate::ult,
                                           coordinate, size);
    return result;
  }
};

/// A scalar access is the access to a tile of one element in every thread.
LinearLayout layoutFor(Type type, int rank, int numWarps) {
  if (auto layout = LinearLayout::of(type))
    return *layout;
  return LinearLayout::inRegisters(SmallVector<int64_t>(rank, 1), numWarps);
}

SmallVector<Value> single(ArrayRef<ValueRange> ranges) {
  SmallVector<Value> values;
  for (ValueRange range : ranges)
    values.push_back(range[0]);
  return values;
}

struct ViewPattern : ReplayPattern<ViewOp> {
  using ReplayPattern::ReplayPattern;
  LogicalResult
  matchAndRewrite(ViewOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ThreadBuilder b(op.getLoc(), rewriter, kernel);
    SmallVector<Value> values = {b.addressOf(adaptor.getPtr()[0],
                                             adaptor.getOffset()[0],
                                             op.getType().getElementType())};
    llvm::append_range(values, single(adaptor.getSizes()));
    llvm::append_range(values, single(adaptor.getStrides()));
    rewriter.replaceOpWithMultiple(op, {values});
    return success();
  }
};

/// The largest power of two so that each run of as many registers of a mask is
/// one value, such as a row's.
int equalRun(ValueRange mask) {
  int run = 1;
  auto isUniform = [&](int length) {
    for (size_t reg = 0; reg < mask.size(); ++reg)
      if (mask[reg] != mask[reg - reg % length])
        return false;
    return true;
  };
  while (2 * run <= (int)mask.size() && isUniform(2 * run))
    run *= 2;
  return run;
}

struct LoadPattern : ReplayPattern<LoadOp> {
  using ReplayPattern::ReplayPattern;
  LogicalResult
  matchAndRewrite(LoadOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ThreadBuilder b(op.getLoc(), rewriter, kernel);
    ViewType view = op.getView().getType();
    LinearLayout layout =
        layoutFor(op.getType(), view.getRank(), kernel.numWarps);
    SmallVector<Value> offsets = single(adaptor.getOffsets());
    TileAccess access(b, LoweredView(view, adaptor.getView()), offsets, layout);
    int vector = access.vectorSize();
    if (op.getMask())
      vector = std::gcd(vector, equalRun(adaptor.getMask()));
    SmallVector<Value> registers;
    for (int reg = 0; reg < layout.numRegisters(); reg += vector) {
      Value predicate = access.inBounds(reg);
      if (op.getMask())
        predicate = b.both(predicate, adaptor.getMask()[reg]);
      llvm::append_range(registers,
                         b.load(access.address(reg), view.getElementType(),
                                vector, predicate, op));
    }
    rewriter.replaceOpWithMultiple(op, {registers});
    return success();
  }
};

struct StorePattern : ReplayPattern<StoreOp> {
  using ReplayPattern::ReplayPattern;
  LogicalResult
  matchAndRewrite(StoreOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ThreadBuilder b(op.getLoc(), rewriter, kernel);
    ViewType view = op.getView().getType();
    LinearLayout layout =
        layoutFor(op.getValue().getType(), view.getRank(), kernel.numWarps);
    SmallVector<Value> offsets = single(adaptor.getOffsets());
    TileAccess access(b, LoweredView(view, adaptor.getView()), offsets, layout);
    SmallVector<Value> values(adaptor.getValue());
    Value owner = b.isOwner(layout);
    int vector = access.vectorSize();
    for (int reg = 0; reg < layout.numRegisters(); reg += vector)
      b.store(ArrayRef(values).slice(reg, vector), access.address(reg),
              b.both(owner, access.inBounds(reg)));
    rewriter.eraseOp(op);
    return success();
  }
};

struct PointerPattern : ReplayPattern<PointerOp> {
  using ReplayPattern::ReplayPattern;
  LogicalResult
  matchAndRewrite(PointerOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto type = LLVM::LLVMPointerType::get(op.getContext(), kGlobalSpace);
    rewriter.replaceOpWithNewOp<LLVM::IntToPtrOp>(op, type,
                                                  adaptor.getAddress()[0]);
    return success();
  }
};

struct ReportPattern : ReplayPattern<ReportOp> {
  using ReplayPattern::ReplayPattern;
  LogicalResult
  matchAndRewrite(ReportOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ThreadBuilder b(op.getLoc(), rewriter, kernel);
    b.report(/*isReporter=*/Value(), adaptor.getKind()[0], adaptor.getRow()[0],
             adaptor.getLayer()[0], adaptor.getValue()[0], adaptor.getWord()[0],
             op.getTrap());
    rewriter.eraseOp(op);
    return success();
  }
};

} // namespace

void replayjit::internal::populateMemoryPatterns(Patterns &patterns,
                                                 const TypeConverter &converter,
                                                 KernelContext &kernel) {
  patterns.add<ViewPattern, PointerPattern, LoadPattern, StorePattern,
               ReportPattern>(converter, patterns.getContext(), kernel);
}
