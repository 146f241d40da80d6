//===- LowerMathForGPU.cpp - Approximate instructions where allowed -------===//

#include "compiler/Conversion/ReplayToNVVM/NVVMOps.h"
#include "compiler/Conversion/ReplayToNVVM/ReplayToNVVM.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Matchers.h"

namespace replayjit::internal {
#define GEN_PASS_DEF_LOWERMATHFORGPUPASS
#include "compiler/Conversion/ReplayToNVVM/Passes.h.inc"
} // namespace replayjit::internal

using namespace mlir;
using namespace replayjit::internal;

namespace {

bool allows(arith::ArithFastMathInterface op, arith::FastMathFlags flag) {
  return op->getResult(0).getType().isF32() &&
         arith::bitEnumContainsAll(op.getFastMathFlagsAttr().getValue(), flag);
}

/// What stands for `op`; null if it stays.
Value lowered(OpBuilder &b, Operation *op) {
  using arith::FastMathFlags;
  if (auto root = dyn_cast<math::RsqrtOp>(op)) {
    if (!allows(root, FastMathFlags::afn))
      return Value();
    return nvvm::approximateRsqrt(b, op->getLoc(), root.getOperand());
  }
  auto quotient = dyn_cast<arith::DivFOp>(op);
  if (!quotient || !allows(quotient, FastMathFlags::arcp))
    return Value();
  Value inverse =
      nvvm::approximateReciprocal(b, op->getLoc(), quotient.getRhs());
  if (matchPattern(quotient.getLhs(), m_OneFloat()))
    return inverse;
  return arith::MulFOp::create(b, op->getLoc(), quotient.getLhs(), inverse);
}

struct LowerMathForGPUPass
    : replayjit::internal::impl::LowerMathForGPUPassBase<LowerMathForGPUPass> {
  void getDependentDialects(DialectRegistry &registry) const override {
    LowerMathForGPUPassBase::getDependentDialects(registry);
    nvvm::addDialect(registry);
  }

  void runOnOperation() override {
    getOperation()->walk([](Operation *op) {
      OpBuilder b(op);
      if (Value value = lowered(b, op)) {
        op->getResult(0).replaceAllUsesWith(value);
        op->erase();
      }
    });
  }
};

} // namespace
