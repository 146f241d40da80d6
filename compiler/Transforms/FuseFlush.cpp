//===- FuseFlush.cpp - Keep the tile that the readout loaded --------------===//

#include "compiler/Transforms/Passes.h"
#include "compiler/Transforms/Views.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Dominance.h"
#include "mlir/Interfaces/LoopLikeInterface.h"

namespace replayjit::internal {
#define GEN_PASS_DEF_FUSEFLUSHPASS
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

/// True unless the two look through different arguments, or at constant pieces
/// of one view (or of two equal ones) that do not meet.
bool mayTouch(StoreOp store, LoadOp load) {
  Value stored = pointerOf(store.getView()), loaded = pointerOf(load.getView());
  if (!stored || !loaded)
    return true;
  if (stored != loaded)
    return false;
  auto tile = dyn_cast<RankedTensorType>(store.getValue().getType());
  if (store.getView() != load.getView() || !tile)
    return true;
  auto read = cast<RankedTensorType>(load.getType());
  for (auto [dim, offsets] :
       llvm::enumerate(llvm::zip(store.getOffsets(), load.getOffsets()))) {
    auto a = constantOf(std::get<0>(offsets));
    auto b = constantOf(std::get<1>(offsets));
    if (a && b &&
        (*a + tile.getDimSize(dim) <= *b || *b + read.getDimSize(dim) <= *a))
      return false;
  }
  return true;
}

struct FuseFlushPass
    : replayjit::internal::impl::FuseFlushPassBase<FuseFlushPass> {
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
    if (elements / (32 * (int64_t)kernel.getNumWarps()) > maxRegisters)
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
    if (!later || !isa<RankedTensorType>(later.getType()))
      return {};
    for (size_t i = index; i-- > 0;) {
      if (auto store = dyn_cast<StoreOp>(accesses[i])) {
        if (mayTouch(store, later) && !areExclusive(store, later))
          return {};
      } else if (auto earlier = cast<LoadOp>(accesses[i]);
                 isSameAccess(earlier, later) &&
                 dominance.properlyDominates(earlier.getOperation(),
                                             later.getOperation())) {
        return isStoredInLoop(earlier, later) ? LoadOp() : earlier;
      }
    }
    return {};
  }

  static bool isInThen(scf::IfOp branch, Operation *op) {
    return branch.getThenRegion().findAncestorOpInRegion(*op) != nullptr;
  }

  /// True if the two stand in different branches of one scf.if.
  static bool areExclusive(Operation *a, Operation *b) {
    for (auto branch = a->getParentOfType<scf::IfOp>(); branch;
         branch = branch->getParentOfType<scf::IfOp>())
      if (branch->isAncestor(b))
        return isInThen(branch, a) != isInThen(branch, b);
    return false;
  }

  /// True if a loop around `later`, but not `earlier`, stores what they read:
  /// the next iteration would see it.
  static bool isStoredInLoop(LoadOp earlier, LoadOp later) {
    for (Operation *parent = later->getParentOp();
         parent && !parent->isAncestor(earlier);
         parent = parent->getParentOp()) {
      if (!isa<LoopLikeOpInterface>(parent))
        continue;
      WalkResult result = parent->walk([&](StoreOp store) {
        return mayTouch(store, later) ? WalkResult::interrupt()
                                      : WalkResult::advance();
      });
      if (result.wasInterrupted())
        return true;
    }
    return false;
  }
};

} // namespace
