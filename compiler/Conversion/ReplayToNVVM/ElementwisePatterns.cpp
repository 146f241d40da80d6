//===- ElementwisePatterns.cpp - Operations without an exchange -----------===//
//
// What needs no other thread: elementwise work, constants, shape changes. A
// layout tells which register of the result is which register of the operand.
//
//===----------------------------------------------------------------------===//

#include "compiler/Conversion/ReplayToNVVM/ThreadProgram.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace replayjit::internal;
using namespace replayjit::internal::replay;

namespace {

LinearLayout layoutOf(Value value) {
  return *LinearLayout::of(value.getType());
}

/// Any elementwise operation on tiles: the same operation on each register.
struct ElementwisePattern : ConversionPattern {
  ElementwisePattern(const TypeConverter &converter, MLIRContext *context)
      : ConversionPattern(converter, MatchAnyOpTypeTag(), /*benefit=*/1,
                          context) {}

  LogicalResult
  matchAndRewrite(Operation *op, ArrayRef<ValueRange> operands,
                  ConversionPatternRewriter &rewriter) const override {
    if (!op->hasTrait<OpTrait::Elementwise>() || op->getNumResults() != 1)
      return rewriter.notifyMatchFailure(op, "not elementwise");
    auto type = dyn_cast<RankedTensorType>(op->getResult(0).getType());
    if (!type)
      return rewriter.notifyMatchFailure(op, "not on tiles");
    int count = layoutOf(op->getResult(0)).numRegisters();
    SmallVector<Value> results;
    for (int reg = 0; reg < count; ++reg) {
      OperationState state(op->getLoc(), op->getName());
      for (ValueRange operand : operands) // A scalar (select's) stays one.
        state.operands.push_back(operand.size() == 1 ? operand[0]
                                                     : operand[reg]);
      state.addTypes(type.getElementType());
      state.addAttributes(op->getAttrs());
      results.push_back(rewriter.create(state)->getResult(0));
    }
    rewriter.replaceOpWithMultiple(op, {results});
    return success();
  }
};

struct ConstantPattern : ReplayPattern<arith::ConstantOp> {
  using ReplayPattern::ReplayPattern;
  LogicalResult
  matchAndRewrite(arith::ConstantOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto splat = dyn_cast<SplatElementsAttr>(op.getValue());
    if (!splat)
      return rewriter.notifyMatchFailure(op, "not a splat");
    auto value = cast<TypedAttr>(splat.getSplatValue<Attribute>());
    Value scalar = arith::ConstantOp::create(rewriter, op.getLoc(), value);
    SmallVector<Value> copies(layoutOf(op).numRegisters(), scalar);
    rewriter.replaceOpWithMultiple(op, {copies});
    return success();
  }
};

struct SplatPattern : ReplayPattern<SplatOp> {
  using ReplayPattern::ReplayPattern;
  LogicalResult
  matchAndRewrite(SplatOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    SmallVector<Value> copies(layoutOf(op).numRegisters(),
                              adaptor.getValue()[0]);
    rewriter.replaceOpWithMultiple(op, {copies});
    return success();
  }
};

struct IotaPattern : ReplayPattern<IotaOp> {
  using ReplayPattern::ReplayPattern;
  LogicalResult
  matchAndRewrite(IotaOp op, OneToNOpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ThreadBuilder b(op.getLoc(), rewriter, kernel);
    LinearLayout layout = layoutOf(op);
    Value thread = b.threadCoordinate(layout, 0);
    SmallVector<Value> values;
    for (int reg = 0; reg < layout.numRegisters(); ++reg) {
      Value offset = b.i32(layout.registerOffset(reg)[0]);
      values.push_back(thread ? b.add(thread, offset) : offset);
    }
    rewriter.replaceOpWithMultiple(op, {values});
    return success();
  }
};

/// The operand's register at the result's coordinate, for operations whose
/// operand layout is the result's with dimensions removed, cut or swapped.
template <typename Op, typename Map>
LogicalResult pickRegisters(Op op, ValueRange operand, Map map,
                            ConversionPatternRewriter &rewriter) {
  LinearLayout from = layoutOf(op.getValue()), to = layoutOf(op.getResult());
  SmallVector<Value> picked;
  for (int reg = 0; reg < to.numRegisters(); ++reg)
    picked.push_back(operand[from.registerAt(map(to.registerOffset(reg)))]);
  rewriter.replaceOpWithMultiple(op, {picked});
  return success();
}

using Offset = SmallVector<int64_t>;

struct ExpandPattern : ReplayPattern<ExpandOp> {
  using ReplayPattern::ReplayPattern;
  LogicalResult
  matchAndRewrite(ExpandOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    int kept = 1 - op.getAxis();
    return pickRegisters(
        op, adaptor.getValue(), [&](Offset at) { return Offset{at[kept]}; },
        rewriter);
  }
};

struct BroadcastPattern : ReplayPattern<BroadcastOp> {
  using ReplayPattern::ReplayPattern;
  LogicalResult
  matchAndRewrite(BroadcastOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    // Coordinates along repeated dimensions find no register bit and drop out.
    return pickRegisters(
        op, adaptor.getValue(), [](Offset at) { return at; }, rewriter);
  }
};

struct TransposePattern : ReplayPattern<TransposeOp> {
  using ReplayPattern::ReplayPattern;
  LogicalResult
  matchAndRewrite(TransposeOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    return pickRegisters(
        op, adaptor.getValue(),
        [](Offset at) {
          return Offset{at[1], at[0]};
        },
        rewriter);
  }
};

struct SlicePattern : ReplayPattern<SliceOp> {
  using ReplayPattern::ReplayPattern;
  LogicalResult
  matchAndRewrite(SliceOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    APInt offset;
    if (!matchPattern(op.getOffset(), m_ConstantInt(&offset)))
      return rewriter.notifyMatchFailure(op, "offset is no constant");
    int64_t start = offset.getSExtValue();
    return pickRegisters(
        op, adaptor.getValue(),
        [&](Offset at) { return Offset{at[0] + start}; }, rewriter);
  }
};

struct StackPattern : ReplayPattern<StackOp> {
  using ReplayPattern::ReplayPattern;
  LogicalResult
  matchAndRewrite(StackOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    LinearLayout from = layoutOf(op.getVectors()[0]), to = layoutOf(op);
    Value zero = arith::ConstantOp::create(
        rewriter, op.getLoc(),
        rewriter.getZeroAttr(op.getType().getElementType()));
    SmallVector<Value> picked;
    for (int reg = 0; reg < to.numRegisters(); ++reg) {
      Offset at = to.registerOffset(reg);
      picked.push_back(at[0] < (int64_t)adaptor.getVectors().size()
                           ? adaptor.getVectors()[at[0]][from.registerAt(at[1])]
                           : zero);
    }
    rewriter.replaceOpWithMultiple(op, {picked});
    return success();
  }
};

/// A number of the grid, by its axis.
template <typename Op, Value (ThreadBuilder::*read)(Axis)>
struct GridPattern : ReplayPattern<Op> {
  using ReplayPattern<Op>::ReplayPattern;
  LogicalResult
  matchAndRewrite(Op op, typename Op::Adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ThreadBuilder b(op.getLoc(), rewriter, this->kernel);
    rewriter.replaceOp(op, (b.*read)(op.getAxis()));
    return success();
  }
};
using ProgramIdPattern = GridPattern<ProgramIdOp, &ThreadBuilder::programId>;
using NumProgramsPattern =
    GridPattern<NumProgramsOp, &ThreadBuilder::numPrograms>;

} // namespace

void replayjit::internal::populateElementwisePatterns(
    Patterns &patterns, const TypeConverter &converter, KernelContext &kernel) {
  patterns.add<ElementwisePattern>(converter, patterns.getContext());
  patterns.add<ConstantPattern, SplatPattern, IotaPattern, ExpandPattern,
               BroadcastPattern, TransposePattern, SlicePattern, StackPattern,
               ProgramIdPattern, NumProgramsPattern>(
      converter, patterns.getContext(), kernel);
}
