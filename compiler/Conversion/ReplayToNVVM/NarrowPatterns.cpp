//===- NarrowPatterns.cpp - Rounding to fp16 without infinities -----------===//
//
// fp16 ends at 65504. A finite number beyond it that became infinite would be
// NaN a few steps later and take a whole state with it, so it becomes the
// largest number instead, and is reported where the kernel says. The usual case
// costs a maximum a value, one vote and one branch a tile.
//
//===----------------------------------------------------------------------===//

#include "compiler/Conversion/ReplayToNVVM/ThreadProgram.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

#include <limits>

using namespace mlir;
using namespace replayjit::internal;
using namespace replayjit::internal::replay;

namespace {

/// From here on numbers round to infinity: halfway to what would be next.
constexpr float firstTooLarge = 65520, largest = 65504;

/// Keeps for NarrowPattern what converts it; later patterns see it.
struct OnOverflowPattern : ReplayPattern<OnOverflowOp> {
  using ReplayPattern::ReplayPattern;
  LogicalResult
  matchAndRewrite(OnOverflowOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    kernel.onOverflow = {adaptor.getKind()[0], adaptor.getRow()[0],
                         adaptor.getLayer()[0], adaptor.getWord()[0],
                         op.getTrap()};
    rewriter.eraseOp(op);
    return success();
  }
};

/// Goes before the pattern of any elementwise operation.
struct NarrowPattern : OpConversionPattern<arith::TruncFOp> {
  KernelContext &kernel;
  NarrowPattern(const TypeConverter &converter, MLIRContext *context,
                KernelContext &kernel)
      : OpConversionPattern(converter, context, /*benefit=*/2), kernel(kernel) {
  }

  LogicalResult
  matchAndRewrite(arith::TruncFOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto type = dyn_cast<RankedTensorType>(op.getType());
    if (!type || !type.getElementType().isF16())
      return rewriter.notifyMatchFailure(op, "not a tile of f16");
    ValueRange values = adaptor.getIn();
    if (llvm::all_of(values,
                     [](Value v) { return matchPattern(v, m_Constant()); }))
      return rewriter.notifyMatchFailure(op, "constants fit");
    ThreadBuilder b(op.getLoc(), rewriter, kernel);
    Value peak; // NaN does not count.
    for (Value value : values) {
      Value size = math::AbsFOp::create(b, value);
      peak = peak ? Value(arith::MaxNumFOp::create(b, peak, size)) : size;
    }
    Value isRare = b.anyLane(isTooLarge(b, peak));
    auto branch = scf::IfOp::create(b, TypeRange(values), isRare,
                                    /*withElseRegion=*/true);
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(branch.thenBlock());
      scf::YieldOp::create(b, saturated(b, values));
      b.setInsertionPointToStart(branch.elseBlock());
      scf::YieldOp::create(b, values);
    }
    SmallVector<Value> results;
    for (Value value : branch.getResults())
      results.push_back(
          arith::TruncFOp::create(b, type.getElementType(), value));
    rewriter.replaceOpWithMultiple(op, {results});
    return success();
  }

private:
  static Value isTooLarge(ThreadBuilder &b, Value size) {
    return arith::CmpFOp::create(b, arith::CmpFPredicate::OGE, size,
                                 b.f32(firstTooLarge));
  }

  /// Infinities and NaN stay. All lanes of the warp come here together.
  SmallVector<Value> saturated(ThreadBuilder &b, ValueRange values) const {
    Value infinity = b.f32(std::numeric_limits<float>::infinity());
    Value peak = b.f32(0); // Of those that do not stay.
    SmallVector<Value> results;
    for (Value value : values) {
      Value size = math::AbsFOp::create(b, value);
      Value isFinite =
          arith::CmpFOp::create(b, arith::CmpFPredicate::OLT, size, infinity);
      Value isOver = b.both(isTooLarge(b, size), isFinite);
      Value bound = math::CopySignOp::create(b, b.f32(largest), value);
      results.push_back(arith::SelectOp::create(b, isOver, bound, value));
      peak = arith::SelectOp::create(
          b, isOver, Value(arith::MaxNumFOp::create(b, peak, size)), peak);
    }
    if (kernel.onOverflow)
      report(b, peak);
    return results;
  }

  /// The first lane that has one reports.
  void report(ThreadBuilder &b, Value peak) const {
    Value isOver = isTooLarge(b, peak);
    Value lanes = b.lanesWhere(isOver);
    Value own = arith::ShLIOp::create(b, b.i32(1), b.lane());
    Value before = arith::AndIOp::create(
        b, lanes, Value(arith::SubIOp::create(b, own, b.i32(1))));
    Value isFirst =
        arith::CmpIOp::create(b, arith::CmpIPredicate::eq, before, b.i32(0));
    // What an i64 holds; fp32 goes further.
    Value bounded = arith::MinNumFOp::create(b, peak, b.f32(0x1p62f));
    Value whole = arith::FPToSIOp::create(b, b.getI64Type(), bounded);
    const KernelContext::OnOverflow &to = *kernel.onOverflow;
    b.report(b.both(isOver, isFirst), to.kind, to.row, to.layer, whole, to.word,
             to.trap);
  }
};

} // namespace

void replayjit::internal::populateNarrowPatterns(Patterns &patterns,
                                                 const TypeConverter &converter,
                                                 KernelContext &kernel) {
  patterns.add<OnOverflowPattern, NarrowPattern>(converter,
                                                 patterns.getContext(), kernel);
}
