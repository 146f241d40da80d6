//===- ReuseLoads.cpp - Keep a tile that is loaded again ------------------===//

#include "compiler/Transforms/Memory.h"
#include "compiler/Transforms/Passes.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Dominance.h"
#include "mlir/Interfaces/LoopLikeInterface.h"

namespace replayjit::internal {
#define GEN_PASS_DEF_REUSELOADSPASS
#include "compiler/Transforms/Passes.h.inc"
} // namespace replayjit::internal

using namespace mlir;
using namespace replayjit::internal;
using namespace replayjit::internal::replay;

namespace {

bool isSameAccess(LoadOp a, LoadOp b) {
  return a.getView() == b.getView() && a.getOffsets() == b.getOffsets() &&
         a.getMask() == b.getMask() && a.getType() == b.getType();
}

struct ReuseLoadsPass
    : replayjit::internal::impl::ReuseLoadsPassBase<ReuseLoadsPass> {
  void runOnOperation() override {
    KernelOp kernel = getOperation();
    DominanceInfo dominance(kernel);
    SmallVector<Operation *> accesses; // In program order.
    kernel->walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (isa<LoadOp>(op) || writesMemory(op))
        accesses.push_back(op);
    });

    // What the loads to keep cost, in registers a thread.
    SmallVector<std::pair<LoadOp, LoadOp>> pairs;
    llvm::DenseSet<Operation *> kept;
    int64_t elements = 0;
    for (size_t later = 0; later < accesses.size(); ++later)
      if (LoadOp earlier = findEarlier(accesses, later, dominance)) {
        pairs.push_back({earlier, cast<LoadOp>(accesses[later])});
        accesses[later] = earlier; // Nothing may be replaced by it.
        auto type = cast<RankedTensorType>(earlier.getType());
        if (!kept.insert(earlier).second)
          continue;
        elements += type.getNumElements() * type.getElementTypeBitWidth() / 32;
      }
    auto limit = tuningOf(kernel, kReuseRegisters);
    if (limit && elements / (32 * (int64_t)kernel.getNumWarps()) > *limit)
      return;
    for (auto [earlier, later] : pairs) {
      later.replaceAllUsesWith(earlier.getResult());
      later.erase();
    }
  }

  /// A load of the same tile that dominates `accesses[index]`, with no store
  /// to it in between.
  LoadOp findEarlier(ArrayRef<Operation *> accesses, size_t index,
                     DominanceInfo &dominance) {
    auto later = dyn_cast<LoadOp>(accesses[index]);
    // What is in shared memory costs less to read again than to keep.
    if (!later || !isa<RankedTensorType>(later.getType()) ||
        later.getView().getType().getShared())
      return {};
    for (size_t i = index; i-- > 0;) {
      auto earlier = dyn_cast<LoadOp>(accesses[i]);
      if (!earlier) {
        if (mayTouch(accesses[i], later) && !areExclusive(accesses[i], later))
          return {};
      } else if (isSameAccess(earlier, later) &&
                 dominance.properlyDominates(earlier.getOperation(),
                                             later.getOperation())) {
        return isStoredInLoop(earlier, later) ? LoadOp() : earlier;
      }
    }
    return {};
  }

  /// True if a loop around `later`, but not `earlier`, stores what they read:
  /// the next iteration would see it.
  static bool isStoredInLoop(LoadOp earlier, LoadOp later) {
    for (Operation *parent = later->getParentOp();
         parent && !parent->isAncestor(earlier);
         parent = parent->getParentOp()) {
      if (!isa<LoopLikeOpInterface>(parent))
        continue;
      WalkResult result = parent->walk([&](Operation *op) {
        return mayTouch(op, later) ? WalkResult::interrupt()
                                   : WalkResult::advance();
      });
      if (result.wasInterrupted())
        return true;
    }
    return false;
  }
};

} // namespace
