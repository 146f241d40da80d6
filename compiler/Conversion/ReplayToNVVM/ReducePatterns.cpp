//===- ReducePatterns.cpp - Sums, scans and changes of layout -------------===//

#include "compiler/Conversion/ReplayToNVVM/ThreadProgram.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace replayjit::internal;
using namespace replayjit::internal::replay;

namespace {

/// Sums in three steps: over a thread's registers, over lanes, over warps.
struct ReducePattern : ReplayPattern<ReduceOp> {
  using ReplayPattern::ReplayPattern;

  LogicalResult
  matchAndRewrite(ReduceOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ThreadBuilder b(op.getLoc(), rewriter, kernel);
    LinearLayout layout = *LinearLayout::of(op.getValue().getType());
    int axis = op.getAxis();
    LinearLayout partial = layout; // What registers hold, step by step.
    SmallVector<Value> sums =
        sumRegisters(b, adaptor.getValue(), partial, axis);
    for (auto [bit, basis] : llvm::enumerate(layout.lanes))
      if (basis.move && basis.dim == axis)
        sums = sumLanes(b, sums, partial, axis, 1 << bit);
    bool acrossWarps = llvm::any_of(layout.warps, [&](const Basis &basis) {
      return basis.move && basis.dim == axis;
    });
    if (acrossWarps)
      sums = sumWarps(b, op, sums, layout, axis);
    rewriter.replaceOpWithMultiple(op, {sums});
    return success();
  }

  /// Adds the registers along `axis`; products add as fused multiply-adds.
  SmallVector<Value> sumRegisters(ThreadBuilder &b, ValueRange values,
                                  LinearLayout &layout, int axis) const {
    LinearLayout kept = layout;
    llvm::erase_if(kept.registers,
                   [&](const Basis &basis) { return basis.dim == axis; });
    SmallVector<Value> sums(kept.numRegisters());
    for (int reg = 0; reg < layout.numRegisters(); ++reg) {
      SmallVector<int64_t> at = layout.registerOffset(reg);
      at[axis] = 0;
      Value &sum = sums[kept.registerAt(at)];
      sum = sum ? b.accumulate(sum, values[reg]) : values[reg];
    }
    layout = kept;
    return sums;
  }

  /// Adds the two lanes that differ in `bit`. With registers left along the
  /// other dimension each lane keeps half of them (LinearLayout::reduced);
  /// otherwise both end with the sum.
  SmallVector<Value> sumLanes(ThreadBuilder &b, SmallVector<Value> sums,
                              LinearLayout &layout, int axis, int bit) const {
    SmallVector<Value> result;
    if (layout.registers.empty() || layout.rank() == 1) {
      for (Value sum : sums)
        result.push_back(arith::AddFOp::create(b, sum, b.shuffleXor(sum, bit)));
      return result;
    }
    Value bits = arith::AndIOp::create(b, b.lane(), b.i32(bit));
    Value high =
        arith::CmpIOp::create(b, arith::CmpIPredicate::ne, bits, b.i32(0));
    // The lowest register bit goes first, as in LinearLayout::reduced.
    for (size_t reg = 0; reg < sums.size(); reg += 2) {
      Value keep = arith::SelectOp::create(b, high, sums[reg + 1], sums[reg]);
      Value send = arith::SelectOp::create(b, high, sums[reg], sums[reg + 1]);
      result.push_back(arith::AddFOp::create(b, keep, b.shuffleXor(send, bit)));
    }
    layout.registers.erase(layout.registers.begin());
    return result;
  }

  /// Every warp leaves its sums in shared memory and adds those of the warps
  /// that hold the same rows.
  SmallVector<Value> sumWarps(ThreadBuilder &b, Operation *op,
                              SmallVector<Value> sums, LinearLayout layout,
                              int axis) const {
    // View the partial sums as a tile [warps along axis] x [result].
    LinearLayout partial;
    LinearLayout result = layout.rank() == 1
                              ? LinearLayout::inRegisters({1}, kernel.numWarps)
                              : layout.reduced(axis);
    partial = result.expand(0);
    int32_t parts = 1;
    for (auto [bit, basis] : llvm::enumerate(layout.warps))
      if (basis.move && basis.dim == axis) {
        partial.warps[bit] = {0, parts};
        parts *= 2;
      }
    partial.shape[0] = parts;
    LinearLayout all = result.expand(0).widenInRegisters(0, parts);

    int64_t offset = kernel.reserveShared(4 * parts * partial.shape[1]);
    Value base = b.sharedAddress(offset);
    b.barrierInLoop(op);
    b.storeShared(sums, partial, b.getF32Type(), base);
    b.barrier();
    SmallVector<Value> values = b.loadShared(all, b.getF32Type(), base);
    LinearLayout rows = all;
    return sumRegisters(b, values, rows, 0);
  }
};

/// A scan along an axis that lies in registers.
struct CumsumPattern : ReplayPattern<CumsumOp> {
  using ReplayPattern::ReplayPattern;
  LogicalResult
  matchAndRewrite(CumsumOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ThreadBuilder b(op.getLoc(), rewriter, kernel);
    LinearLayout layout = *LinearLayout::of(op.getType());
    int axis = op.getAxis();
    int64_t length = layout.shape[axis];
    SmallVector<Value> results(layout.numRegisters());
    for (int reg = 0; reg < layout.numRegisters(); ++reg) {
      SmallVector<int64_t> at = layout.registerOffset(reg);
      if (at[axis] != 0)
        continue; // One scan for each register at the axis' origin.
      Value sum;
      for (int64_t step = 0; step < length; ++step) {
        at[axis] = op.getReverse() ? length - 1 - step : step;
        int index = layout.registerAt(at);
        if (op.getExclusive())
          results[index] = sum ? sum : b.f32(0);
        Value value = adaptor.getValue()[index];
        sum = sum ? Value(arith::AddFOp::create(b, sum, value)) : value;
        if (!op.getExclusive())
          results[index] = sum;
      }
    }
    rewriter.replaceOpWithMultiple(op, {results});
    return success();
  }
};

struct ConvertLayoutPattern : ReplayPattern<ConvertLayoutOp> {
  using ReplayPattern::ReplayPattern;
  LogicalResult
  matchAndRewrite(ConvertLayoutOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ThreadBuilder b(op.getLoc(), rewriter, kernel);
    LinearLayout from = *LinearLayout::of(op.getValue().getType());
    LinearLayout to = *LinearLayout::of(op.getType());
    Type element = op.getType().getElementType();
    SmallVector<Value> values(adaptor.getValue());
    SmallVector<Value> result;
    if (holdsAllItNeeds(from, to)) {
      result = select(b, values, from, to);
    } else {
      int64_t elements = 1;
      for (int64_t size : from.shape)
        elements *= size;
      Value base = b.sharedAddress(
          kernel.reserveShared(elements * elementBytes(element)));
      b.barrierInLoop(op);
      b.storeShared(values, from, element, base);
      b.barrier();
      result = b.loadShared(to, element, base);
    }
    rewriter.replaceOpWithMultiple(op, {result});
    return success();
  }

  /// True if what a lane or warp bit of `from` moves, the same bit of `to`
  /// moves: then every thread already holds the elements it needs.
  static bool holdsAllItNeeds(const LinearLayout &from,
                              const LinearLayout &to) {
    auto kept = [](ArrayRef<Basis> before, ArrayRef<Basis> after) {
      return llvm::all_of(llvm::zip(before, after), [](auto pair) {
        auto [a, b] = pair;
        return a.move == 0 || a == b;
      });
    };
    return kept(from.lanes, to.lanes) && kept(from.warps, to.warps);
  }

  /// Picks registers, by the bits of lane and warp where `to` spreads what
  /// `from` repeats.
  static SmallVector<Value> select(ThreadBuilder &b, SmallVector<Value> values,
                                   LinearLayout from, const LinearLayout &to) {
    auto spread = [&](ArrayRef<Basis> before, ArrayRef<Basis> after,
                      auto number) {
      for (auto [bit, pair] : llvm::enumerate(llvm::zip(before, after))) {
        auto [old, now] = pair;
        if (old == now)
          continue;
        Value bits = arith::AndIOp::create(b, number(), b.i32(1 << bit));
        Value isSet =
            arith::CmpIOp::create(b, arith::CmpIPredicate::ne, bits, b.i32(0));
        LinearLayout next = from;
        llvm::erase_if(next.registers,
                       [&](const Basis &basis) { return basis == now; });
        SmallVector<Value> halved;
        for (int reg = 0; reg < next.numRegisters(); ++reg) {
          SmallVector<int64_t> at = next.registerOffset(reg);
          Value low = values[from.registerAt(at)];
          at[now.dim] += now.move;
          Value high = values[from.registerAt(at)];
          halved.push_back(arith::SelectOp::create(b, isSet, high, low));
        }
        from = next;
        values = halved;
      }
    };
    spread(from.lanes, to.lanes, [&] { return b.lane(); });
    spread(from.warps, to.warps, [&] { return b.warp(); });
    SmallVector<Value> picked;
    for (int reg = 0; reg < to.numRegisters(); ++reg)
      picked.push_back(values[from.registerAt(to.registerOffset(reg))]);
    return picked;
  }
};

} // namespace

void replayjit::internal::populateReducePatterns(Patterns &patterns,
                                                 const TypeConverter &converter,
                                                 KernelContext &kernel) {
  patterns.add<ReducePattern, CumsumPattern, ConvertLayoutPattern>(
      converter, patterns.getContext(), kernel);
}
