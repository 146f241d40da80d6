//===- HoistLoads.cpp - Issue a block's loads before its arithmetic -------===//

#include "compiler/Transforms/Memory.h"
#include "compiler/Transforms/Passes.h"

#include "llvm/ADT/SetVector.h"

namespace replayjit::internal {
#define GEN_PASS_DEF_HOISTLOADSPASS
#include "compiler/Transforms/Passes.h.inc"
} // namespace replayjit::internal

using namespace mlir;
using namespace replayjit::internal;
using namespace replayjit::internal::replay;

namespace {

int64_t elementsOf(LoadOp load) {
  auto type = dyn_cast<RankedTensorType>(load.getType());
  return type ? type.getNumElements() : 1;
}

struct HoistLoadsPass
    : replayjit::internal::impl::HoistLoadsPassBase<HoistLoadsPass> {
  void runOnOperation() override {
    maxRegisters = tuningOf(getOperation(), kHoistRegisters)
                       .value_or(std::numeric_limits<int64_t>::max());
    fenceRegisters = tuningOf(getOperation(), kFenceRegisters)
                         .value_or(std::numeric_limits<int64_t>::max());
    getOperation()->walk([&](Block *block) {
      registers = 0;
      hoist(*block, nullptr);
      // What had to stay behind a wait gathers there.
      for (auto wait : block->getOps<AwaitPredecessorOp>())
        hoist(*block, wait);
    });
  }

  /// Moves what may move from behind `wait` up to it, or without one from the
  /// whole block to its start.
  void hoist(Block &block, AwaitPredecessorOp wait) {
    SmallVector<LoadOp> loads;
    llvm::DenseSet<Operation *> movable; // Loads that may move.
    llvm::SetVector<Value> written;      // Pointers, null if not known.
    for (Operation &op :
         llvm::make_range(wait ? std::next(wait->getIterator()) : block.begin(),
                          block.end())) {
      if (isa<LoadFenceOp>(op))
        break;
      if (auto load = dyn_cast<LoadOp>(op)) {
        Value pointer = pointerOf(load.getView());
        if (!load.getView().getType().getShared() &&
            llvm::none_of(written,
                          [&](Value p) { return mayAlias(p, pointer); }) &&
            canMove(load, block, wait, movable)) {
          loads.push_back(load);
          movable.insert(load);
        }
        continue;
      }
      forEachWrite(&op, [&](Value pointer) { written.insert(pointer); });
    }
    // Small ones first: their users run while the large ones arrive.
    llvm::stable_sort(loads, [](LoadOp a, LoadOp b) {
      return elementsOf(a) < elementsOf(b);
    });
    Operation *const first =
        wait ? wait.getOperation() : lastLeadingCopy(block);
    Operation *last = first;
    for (LoadOp load : loads)
      moveWithOperands(load, block, wait, last);
    // The assembler would put a load behind arithmetic that waits for another.
    if (last != first && registers >= fenceRegisters) {
      OpBuilder b(&block, std::next(last->getIterator()));
      LoadFenceOp::create(b, last->getLoc());
    }
  }

  /// The last of the asynchronous copies with which the block starts, and which
  /// stay first: they hold no registers. What they need stays with them.
  Operation *lastLeadingCopy(Block &block) {
    Operation *last = nullptr;
    SmallVector<Operation *> leading;
    for (Operation &op : block) {
      leading.push_back(&op);
      if (isa<AsyncCopyOp>(op)) {
        last = &op;
        moved.insert_range(leading);
        leading.clear();
      } else if (!isa<AllocOp>(op) &&
                 (!isPure(&op) || op.getNumRegions() != 0)) {
        break;
      }
    }
    return last;
  }

  /// Registers a thread needs to hold a tile that no two threads share.
  int64_t registersOf(LoadOp load) {
    auto type = dyn_cast<RankedTensorType>(load.getType());
    if (!type)
      return 1;
    int64_t words = llvm::divideCeil(
        type.getNumElements() * elementBytes(type.getElementType()), 4);
    return llvm::divideCeil(words, 32 * getOperation().getNumWarps());
  }

  /// True if what `op` needs inside `block` stands before `wait`, is pure, or
  /// is a load that may move.
  bool canMove(Operation *op, Block &block, AwaitPredecessorOp wait,
               const llvm::DenseSet<Operation *> &movable) {
    return llvm::all_of(op->getOperands(), [&](Value operand) {
      Operation *def = operand.getDefiningOp();
      return !def || def->getBlock() != &block || movable.contains(def) ||
             (wait && def->isBeforeInBlock(wait)) ||
             (isPure(def) && def->getNumRegions() == 0 &&
              canMove(def, block, wait, movable));
    });
  }

  /// Moves `op`, after what it needs, behind `last` (or to the block's start),
  /// unless it stands before `wait`. False if a load in the way would take more
  /// registers than allowed.
  bool moveWithOperands(Operation *op, Block &block, AwaitPredecessorOp wait,
                        Operation *&last) {
    if (moved.contains(op) || (wait && op->isBeforeInBlock(wait)))
      return true;
    if (auto load = dyn_cast<LoadOp>(op)) {
      if (registers + registersOf(load) > maxRegisters)
        return false;
    }
    for (Value operand : op->getOperands())
      if (Operation *def = operand.getDefiningOp();
          def && def->getBlock() == &block &&
          !moveWithOperands(def, block, wait, last))
        return false;
    if (auto load = dyn_cast<LoadOp>(op))
      registers += registersOf(load);
    if (last)
      op->moveAfter(last);
    else
      op->moveBefore(&block, block.begin());
    last = op;
    moved.insert(op);
    return true;
  }

  int64_t maxRegisters = 0, fenceRegisters = 0;
  int64_t registers = 0; ///< Of the loads moved in the current block.
  llvm::DenseSet<Operation *> moved;
};

} // namespace
