//===- MmaPatterns.cpp - Dots ---------------------------------------------===//
//
// Matrix-unit dots become mma.sync m16n8k8 (tf32) or m16n8k16 (16-bit); ieee
// dots become fused multiply-adds on registers. Fragments are registers of the
// layouts LinearLayout::mma*, found by their coordinates.
//
//===----------------------------------------------------------------------===//

#include "compiler/Conversion/ReplayToNVVM/ThreadProgram.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace replayjit::internal;
using namespace replayjit::internal::replay;

namespace {

/// A tile's registers by coordinate.
struct Fragment {
  LinearLayout layout;
  ValueRange values;
  Value at(int64_t row, int64_t column) const {
    return values[layout.registerAt({row, column})];
  }
};

/// As Triton's dots and the matrix unit itself take an fp32 operand: the bits
/// that tf32 has not are cut off.
Value cutToTf32(ThreadBuilder &b, Value value) {
  Value bits = arith::BitcastOp::create(b, b.getI32Type(), value);
  return arith::AndIOp::create(b, bits, b.i32(~0x1fff));
}

/// Two values rounded to a 16-bit type, the first in the low half.
Value pack(ThreadBuilder &b, Value low, Value high, Type half) {
  auto type = VectorType::get({2}, half);
  Value vector = LLVM::PoisonOp::create(b, type);
  for (auto [i, value] : llvm::enumerate(std::array{low, high}))
    vector = LLVM::InsertElementOp::create(
        b, vector, b.createOrFold<arith::TruncFOp>(half, value), b.i32(i));
  if (half.isBF16())
    return LLVM::BitcastOp::create(b, b.getI32Type(), vector);
  return vector;
}

struct DotPattern : ReplayPattern<DotOp> {
  using ReplayPattern::ReplayPattern;

  LogicalResult
  matchAndRewrite(DotOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ThreadBuilder b(op.getLoc(), rewriter, kernel);
    Fragment a{*LinearLayout::of(op.getA().getType()), adaptor.getA()};
    Fragment bs{*LinearLayout::of(op.getB().getType()), adaptor.getB()};
    LinearLayout layout = *LinearLayout::of(op.getType());
    SmallVector<Value> sums(adaptor.getC());
    switch (op.getPrecision()) {
    case Precision::Ieee:
      for (int64_t k = 0; k < a.layout.shape[1]; ++k)
        for (int reg = 0; reg < layout.numRegisters(); ++reg) {
          SmallVector<int64_t> at = layout.registerOffset(reg);
          sums[reg] = math::FmaOp::create(b, a.at(at[0], k), bs.at(k, at[1]),
                                          sums[reg]);
        }
      break;
    case Precision::Tf32:
      forEachTile(layout, sums, [&](int64_t m, int64_t n, auto &c) {
        forEachOf<2>(a.layout, [&](auto k) { tf32(b, a, bs, m, n, k, c); });
      });
      break;
    case Precision::Bf16:
    case Precision::F16: {
      bool bf16 = op.getPrecision() == Precision::Bf16;
      Type half = bf16 ? Type(b.getBF16Type()) : Type(b.getF16Type());
      forEachTile(layout, sums, [&](int64_t m, int64_t n, auto &c) {
        forEachOf<4>(a.layout, [&](auto k) {
          auto ofA = [&](int64_t row, int i) {
            return pack(b, a.at(row, k[i]), a.at(row, k[i + 1]), half);
          };
          auto ofB = [&](int i) {
            return pack(b, bs.at(k[i], n), bs.at(k[i + 1], n), half);
          };
          c = b.mma({ofA(m, 0), ofA(m + 8, 0), ofA(m, 2), ofA(m + 8, 2)},
                    {ofB(0), ofB(2)}, c, half);
        });
      });
      break;
    }
    }
    rewriter.replaceOpWithMultiple(op, {sums});
    return success();
  }

  /// Calls `body` with the four accumulators of each 16x8 tile, and its first
  /// row and column.
  template <typename Body>
  static void forEachTile(const LinearLayout &layout, SmallVector<Value> &sums,
                          Body body) {
    // Lane bit 0 is column 2 of a fragment.
    const int64_t column = layout.lanes[0].move / 2;
    for (int reg = 0; reg < layout.numRegisters(); ++reg) {
      SmallVector<int64_t> at = layout.registerOffset(reg);
      if ((at[0] & 8) || (at[1] & column))
        continue;
      SmallVector<int, 4> regs;
      SmallVector<Value> c;
      for (int64_t row : {0, 8})
        for (int64_t next : {int64_t(0), column}) {
          regs.push_back(layout.registerAt({at[0] + row, at[1] + next}));
          c.push_back(sums[regs.back()]);
        }
      body(at[0], at[1], c);
      for (auto [reg, value] : llvm::zip(regs, c))
        sums[reg] = value;
    }
  }

  /// Calls `body` with each `Count` columns that a lane holds of a row of A,
  /// which are its part of one instruction.
  template <int Count, typename Body>
  static void forEachOf(const LinearLayout &a, Body body) {
    SmallVector<int64_t> columns;
    for (int reg = 0; reg < a.numRegisters(); ++reg)
      if (SmallVector<int64_t> at = a.registerOffset(reg); at[0] == 0)
        columns.push_back(at[1]);
    llvm::sort(columns);
    for (size_t i = 0; i < columns.size(); i += Count)
      body(ArrayRef(columns).slice(i, Count));
  }

  static void tf32(ThreadBuilder &b, const Fragment &a, const Fragment &bs,
                   int64_t m, int64_t n, ArrayRef<int64_t> k,
                   SmallVector<Value> &c) {
    SmallVector<Value> as = {a.at(m, k[0]), a.at(m + 8, k[0]), a.at(m, k[1]),
                             a.at(m + 8, k[1])};
    SmallVector<Value> bv = {bs.at(k[0], n), bs.at(k[1], n)};
    auto cut = [&](ArrayRef<Value> values) {
      return llvm::map_to_vector(
          values, [&](Value value) { return cutToTf32(b, value); });
    };
    c = b.mma(cut(as), cut(bv), c, b.getF32Type());
  }
};

} // namespace

void replayjit::internal::populateMmaPatterns(Patterns &patterns,
                                              const TypeConverter &converter,
                                              KernelContext &kernel) {
  patterns.add<DotPattern>(converter, patterns.getContext(), kernel);
}
