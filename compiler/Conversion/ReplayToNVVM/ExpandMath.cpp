//===- ExpandMath.cpp - exp and log1p in fused multiply-adds --------------===//

#include "compiler/Conversion/ReplayToNVVM/ReplayToNVVM.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

#include <cmath>

namespace replayjit::internal {
#define GEN_PASS_DEF_EXPANDMATHPASS
#include "compiler/Conversion/ReplayToNVVM/Passes.h.inc"
} // namespace replayjit::internal

using namespace mlir;
using namespace replayjit::internal;

namespace {

struct ScalarBuilder : ImplicitLocOpBuilder {
  using ImplicitLocOpBuilder::ImplicitLocOpBuilder;
  Value f(double value) {
    return arith::ConstantOp::create(*this, getF32FloatAttr((float)value));
  }
  Value i(int32_t value) {
    return arith::ConstantOp::create(*this, getI32IntegerAttr(value));
  }
  Value fma(Value a, Value b, Value c) {
    return math::FmaOp::create(*this, a, b, c);
  }
  Value mul(Value a, Value b) { return arith::MulFOp::create(*this, a, b); }
  Value add(Value a, Value b) { return arith::AddFOp::create(*this, a, b); }
  Value sub(Value a, Value b) { return arith::SubFOp::create(*this, a, b); }
  Value neg(Value a) { return arith::NegFOp::create(*this, a); }
  Value min(Value a, Value b) { return arith::MinimumFOp::create(*this, a, b); }
  Value max(Value a, Value b) { return arith::MaximumFOp::create(*this, a, b); }
  /// Within a unit in the last place.
  Value reciprocal(Value a) {
    return arith::DivFOp::create(*this, f(1.0), a, arith::FastMathFlags::arcp);
  }
  Value isub(Value a, Value b) { return arith::SubIOp::create(*this, a, b); }
  Value select(Value c, Value a, Value b) {
    return arith::SelectOp::create(*this, c, a, b);
  }
  Value bits(Value a) {
    return arith::BitcastOp::create(*this, getI32Type(), a);
  }
  Value fromBits(Value a) {
    return arith::BitcastOp::create(*this, getF32Type(), a);
  }
};

// ln 2 in two parts: n * kLn2High is exact for |n| < 2^10.
constexpr double kLn2 = 0.693147180559945309417232;
constexpr double kLn2High = 0.693145751953125; // 0x3f317200

/// c0 + c1 x + c2 x^2 + .. by Horner's rule. The coefficients below are
/// minimax fits (Remez), so that a polynomial of the same error is shorter than
/// Taylor's.
Value polynomial(ScalarBuilder &b, Value x, ArrayRef<double> coefficients) {
  Value p = b.f(coefficients.back());
  for (double c : llvm::reverse(coefficients.drop_back()))
    p = b.fma(p, x, b.f(c));
  return p;
}

/// True for -|y|.
bool isNeverPositive(Value x) {
  auto minus = x.getDefiningOp<arith::NegFOp>();
  return minus && minus.getOperand().getDefiningOp<math::AbsFOp>();
}

/// exp(x) = 2^n exp(f), n = round(x / ln 2), |f| <= ln 2 / 2. The approximate
/// 2^x of a GPU would be shorter, but its error is the same in every step of a
/// gate near 1 and adds up.
Value expandExp(ScalarBuilder &b, Value x) {
  // n = -127 and 128, where the power of two is 0 and infinite.
  if (!isNeverPositive(x))
    x = b.min(b.f(88.7), x);
  x = b.max(b.f(-88.0), x);
  // Adding 1.5 * 2^23 + 127 leaves the exponent of 2^n in the low bits.
  Value magic = b.f(12583039.0);
  Value shifted = b.fma(x, b.f(1.0 / kLn2), magic);
  Value n = b.sub(shifted, magic);
  Value f = b.fma(n, b.f(-kLn2High), x);
  f = b.fma(n, b.f(-(kLn2 - kLn2High)), f);
  // The first two terms are Taylor's, so that a small f loses nothing; the
  // error is below 4e-9.
  Value p = polynomial(b, f,
                       {1, 1, 0.500000009373, 0.166665195466, 0.041666208822,
                        0.00836882434323, 0.00139503410022});
  Value power = arith::ShLIOp::create(b, b.bits(shifted), b.i(23));
  return b.mul(p, b.fromBits(power));
}

/// log1p(m) = 2 atanh(t) = 2 t (1 + t^2 p(t^2)), t = m / (2 + m).
Value atanhForm(ScalarBuilder &b, Value m, ArrayRef<double> p) {
  Value divisor = b.add(m, b.f(2.0)), inverse = b.reciprocal(divisor);
  Value t = b.mul(m, inverse);
  t = b.fma(b.fma(b.neg(t), divisor, m), inverse, t);
  Value square = b.mul(t, t);
  // The leading term 2 t as m - t m, which t's own rounding hardly touches.
  Value lead = b.fma(b.neg(t), m, m);
  return b.fma(b.mul(square, polynomial(b, square, p)), b.add(t, t), lead);
}

/// For 0 <= u <= 1, where t^2 <= 1/9. The error of p is below 5e-9.
Value expandLog1pOfUnit(ScalarBuilder &b, Value u) {
  return atanhForm(
      b, u, {0.33333207165, 0.200108228308, 0.139999300083, 0.140107234734});
}

/// log1p(u) = e ln 2 + log1p(m), 1 + u = 2^e (1 + m), -1/4 <= m <= 1/2.
Value expandLog1p(ScalarBuilder &b, Value u) {
  Value biased = b.isub(b.bits(b.add(u, b.f(1.0))), b.i(0x3F400000));
  Value exponent = arith::AndIOp::create(b, biased, b.i(0xFF800000));
  Value e = arith::SIToFPOp::create(
      b, b.getF32Type(), Value(arith::ShRSIOp::create(b, exponent, b.i(23))));
  Value scale = b.fromBits(b.isub(b.i(0x3F800000), exponent)); // 2^-e
  Value m = b.fma(u, scale, b.sub(scale, b.f(1.0)));
  // t^2 <= 1/25, where the error of p is below 3e-9.
  Value log = atanhForm(b, m, {0.333334726408, 0.19978985623, 0.15179087749});
  log = b.fma(e, b.f(kLn2 - kLn2High), log);
  log = b.fma(e, b.f(kLn2High), log);
  // u = inf gives NaN above, and is its own logarithm.
  Value infinite =
      arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, u, b.f(INFINITY));
  return b.select(infinite, u, log);
}

Value expand(ScalarBuilder &b, Operation *op) {
  Value x = op->getOperand(0);
  if (isa<math::ExpOp>(op))
    return expandExp(b, x);
  auto power = x.getDefiningOp<math::ExpOp>();
  return power && isNeverPositive(power.getOperand()) ? expandLog1pOfUnit(b, x)
                                                      : expandLog1p(b, x);
}

struct ExpandMathPass
    : replayjit::internal::impl::ExpandMathPassBase<ExpandMathPass> {
  void runOnOperation() override {
    SmallVector<Operation *> ops;
    getOperation()->walk([&](Operation *op) {
      if (isa<math::ExpOp, math::Log1pOp>(op) &&
          op->getResult(0).getType().isF32())
        ops.push_back(op);
    });
    // Users first: they look at what gives their operand.
    for (Operation *op : llvm::reverse(ops)) {
      ScalarBuilder b(op->getLoc(), op);
      op->replaceAllUsesWith(ValueRange{expand(b, op)});
      op->erase();
    }
  }
};

} // namespace
