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
        b, vector, Value(arith::TruncFOp::create(b, half, value)), b.i32(i));
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
    int64_t depth = a.layout.shape[1];
    switch (op.getPrecision()) {
    case Precision::Ieee:
      for (int64_t k = 0; k < depth; ++k)
        for (int reg = 0; reg < layout.numRegisters(); ++reg) {
          SmallVector<int64_t> at = layout.registerOffset(reg);
          sums[reg] = math::FmaOp::create(b, a.at(at[0], k), bs.at(k, at[1]),
                                          sums[reg]);
        }
      break;
    case Precision::Tf32:
      forEachTile(layout, sums, [&](int64_t m, int64_t n, auto &c) {
        for (int64_t k = 0; k < depth; k += 8)
          tf32(b, a, bs, m, n, k, c);
      });
      break;
    case Precision::Bf16:
    case Precision::F16: {
      bool bf16 = op.getPrecision() == Precision::Bf16;
      Type half = bf16 ? Type(b.getBF16Type()) : Type(b.getF16Type());
      auto pair = [&](const Fragment &tile, int64_t r, int64_t c, int dim) {
        return pack(b, tile.at(r, c),
                    dim ? tile.at(r, c + 1) : tile.at(r + 1, c), half);
      };
      forEachTile(layout, sums, [&](int64_t m, int64_t n, auto &c) {
        for (int64_t k = 0; k < depth; k += 16)
          c = b.mma({pair(a, m, k, 1), pair(a, m + 8, k, 1),
                     pair(a, m, k + 8, 1), pair(a, m + 8, k + 8, 1)},
                    {pair(bs, k, n, 0), pair(bs, k + 8, n, 0)}, c, half);
      });
      break;
    }
    }
    rewriter.replaceOpWithMultiple(op, {sums});
    return success();
  }

  /// Calls `body` with the four accumulators of each 16x8 tile.
  template <typename Body>
  static void forEachTile(const LinearLayout &layout, SmallVector<Value> &sums,
                          Body body) {
    for (int reg = 0; reg < layout.numRegisters(); reg += 4) {
      // Register bits 0 and 1 are column 1 and row 8 of the fragment.
      SmallVector<int64_t> at = layout.registerOffset(reg);
      SmallVector<Value> c(sums.begin() + reg, sums.begin() + reg + 4);
      body(at[0], at[1], c);
      llvm::copy(c, sums.begin() + reg);
    }
  }

  static void tf32(ThreadBuilder &b, const Fragment &a, const Fragment &bs,
                   int64_t m, int64_t n, int64_t k, SmallVector<Value> &c) {
    SmallVector<Value> as = {a.at(m, k), a.at(m + 8, k), a.at(m, k + 4),
                             a.at(m + 8, k + 4)};
    SmallVector<Value> bv = {bs.at(k, n), bs.at(k + 4, n)};
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
