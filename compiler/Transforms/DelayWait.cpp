//===- DelayWait.cpp - Wait for the kernel before as late as possible -----===//

#include "compiler/Transforms/Memory.h"
#include "compiler/Transforms/Passes.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace replayjit::internal {
#define GEN_PASS_DEF_DELAYWAITPASS
#include "compiler/Transforms/Passes.h.inc"
} // namespace replayjit::internal

using namespace mlir;
using namespace replayjit::internal;
using namespace replayjit::internal::replay;

namespace {

struct DelayWaitPass
    : replayjit::internal::impl::DelayWaitPassBase<DelayWaitPass> {
  void runOnOperation() override {
    SmallVector<AwaitPredecessorOp> waits;
    getOperation()->walk([&](AwaitPredecessorOp op) { waits.push_back(op); });
    for (AwaitPredecessorOp wait : waits)
      delay(wait);
  }

  void delay(AwaitPredecessorOp wait) {
    Operation *next = wait->getNextNode();
    while (!next->hasTrait<OpTrait::IsTerminator>() && !needs(next, wait))
      next = next->getNextNode();
    auto branch = dyn_cast<scf::IfOp>(next);
    if (!branch)
      return wait->moveBefore(next);
    OpBuilder b(branch);
    scf::IfOp::ensureTerminator(branch.getElseRegion(), b, wait.getLoc());
    for (Block *block : {branch.thenBlock(), branch.elseBlock()}) {
      b.setInsertionPointToStart(block);
      delay(cast<AwaitPredecessorOp>(b.clone(*wait)));
    }
    wait->erase();
  }

  /// True if `op`, or what stands in its regions, may write global memory or
  /// read what the wait stands for.
  static bool needs(Operation *op, AwaitPredecessorOp wait) {
    bool writes = false;
    forEachWrite(op, [&](Value) { writes = true; });
    return writes || mayRead(op, wait);
  }
};

} // namespace
