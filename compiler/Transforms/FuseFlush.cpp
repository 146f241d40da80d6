//===- FuseFlush.cpp - Keep the tile that the readout loaded --------------===//

#include "compiler/Transforms/Passes.h"

#include "mlir/IR/Dominance.h"

namespace replayjit {
#define GEN_PASS_DEF_FUSEFLUSHPASS
#include "compiler/Transforms/Passes.h.inc"
} // namespace replayjit

using namespace mlir;
using namespace replayjit;
using namespace replayjit::replay;

namespace {

/// The kernel argument that a view looks through, or null.
Value pointerOf(Value view) {
  auto op = view.getDefiningOp<ViewOp>();
  return op ? Value(op.getPtr()) : Value();
}

bool isSameAccess(LoadOp a, LoadOp b) {
  return a.getView() == b.getView() && a.getOffsets() == b.getOffsets() &&
         a.getMask() == b.getMask() && a.getType() == b.getType();
}

struct FuseFlushPass : replayjit::impl::FuseFlushPassBase<FuseFlushPass> {
  using FuseFlushPassBase::FuseFlushPassBase;

  void runOnOperation() override {
    KernelOp kernel = getOperation();
    DominanceInfo dominance(kernel);
    SmallVector<Operation *> accesses; // In program order.
    kernel->walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (isa<LoadOp, StoreOp>(op))
        accesses.push_back(op);
    });

    // What the loads to keep cost, in registers a thread.
    SmallVector<std::pair<LoadOp, LoadOp>> pairs;
    int64_t elements = 0;
    for (size_t later = 0; later < accesses.size(); ++later)
      if (LoadOp earlier = findEarlier(accesses, later, dominance)) {
        pairs.push_back({earlier, cast<LoadOp>(accesses[later])});
        accesses[later] = earlier; // Nothing may be replaced by it.
        auto type = cast<RankedTensorType>(earlier.getType());
        elements += type.getNumElements() * type.getElementTypeBitWidth() / 32;
      }
    if (elements / (32 * (int64_t)kernel.getNumWarps()) > maxRegisters)
      return;
    for (auto [earlier, later] : pairs) {
      later.replaceAllUsesWith(earlier.getResult());
      later.erase();
    }
  }

  /// A load of the same tile that dominates `accesses[index]`, with no store
  /// through that pointer in between.
  LoadOp findEarlier(ArrayRef<Operation *> accesses, size_t index,
                     DominanceInfo &dominance) {
    auto later = dyn_cast<LoadOp>(accesses[index]);
    if (!later || !isa<RankedTensorType>(later.getType()))
      return {};
    Value pointer = pointerOf(later.getView());
    for (size_t i = index; i-- > 0;) {
      if (auto store = dyn_cast<StoreOp>(accesses[i])) {
        Value stored = pointerOf(store.getView());
        // A store in a sibling branch is not in between, but looking at it as
        // if it were costs nothing here: the flush stores after it loads.
        if (!pointer || !stored || stored == pointer)
          return {};
      } else if (auto earlier = cast<LoadOp>(accesses[i]);
                 isSameAccess(earlier, later) &&
                 dominance.properlyDominates(earlier.getOperation(),
                                             later.getOperation())) {
        return earlier;
      }
    }
    return {};
  }
};

} // namespace
