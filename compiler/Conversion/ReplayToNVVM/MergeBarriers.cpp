//===- MergeBarriers.cpp - Exchange what is ready in one round ------------===//

#include "compiler/Conversion/ReplayToNVVM/NVVMOps.h"
#include "compiler/Conversion/ReplayToNVVM/ReplayToNVVM.h"
#include "dialect/ReplayDialect.h"

#include "mlir/Dialect/LLVMIR/LLVMTypes.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"

namespace replayjit::internal {
#define GEN_PASS_DEF_MERGEBARRIERSPASS
#include "compiler/Conversion/ReplayToNVVM/Passes.h.inc"
} // namespace replayjit::internal

using namespace mlir;
using namespace replayjit::internal;
using namespace replayjit::internal::replay;

namespace {

constexpr unsigned sharedSpace = 3;

bool isShared(Value address) {
  auto type = cast<LLVM::LLVMPointerType>(address.getType());
  return type.getAddressSpace() == sharedSpace;
}

struct MergeBarriersPass
    : replayjit::internal::impl::MergeBarriersPassBase<MergeBarriersPass> {
  void runOnOperation() override {
    for (auto function : getOperation().getOps<FunctionOpInterface>()) {
      function.walk([](Block *block) {
        // In a loop a barrier also keeps a buffer until it has been read.
        for (Operation *op = block->getParentOp(); op; op = op->getParentOp())
          if (isa<LoopLikeOpInterface>(op))
            return;
        merge(*block);
      });
    }
  }

  static void merge(Block &block) {
    Operation *last = nullptr; // The barrier to merge into.
    for (Operation &op : llvm::make_early_inc_range(block)) {
      if (!nvvm::isBarrier(&op)) {
        // A branch may hold barriers and exchanges of its own.
        if (op.getNumRegions() != 0)
          last = nullptr;
        continue;
      }
      if (last && last->getName() == op.getName() && storeBefore(last, &op))
        op.erase();
      else
        last = &op;
    }
  }

  /// Moves the stores to shared memory between two barriers before the first,
  /// with what they need. False, and nothing moves, if they need what was read
  /// after it.
  static bool storeBefore(Operation *first, Operation *second) {
    llvm::SetVector<Operation *> moved; // In program order of need.
    bool globalStores = false;
    for (Operation *op = first->getNextNode(); op != second;
         op = op->getNextNode()) {
      auto store = dyn_cast<StOp>(op);
      if (!store) {
        globalStores |= !isa<LdOp>(op) && !isMemoryEffectFree(op) &&
                        !nvvm::isShuffle(op);
        continue;
      }
      if (!isShared(store.getAddress()))
        globalStores = true;
      else if (!collect(store, first, moved, globalStores))
        return false;
    }
    for (Operation *op : moved)
      op->moveBefore(first);
    return true;
  }

  /// Adds `op`, after all it needs that stands behind `first`, to `moved`.
  static bool collect(Operation *op, Operation *first,
                      llvm::SetVector<Operation *> &moved, bool globalStores) {
    if (moved.contains(op))
      return true;
    bool mayMove = isa<StOp>(op) || nvvm::isShuffle(op) || isPure(op);
    if (auto load = dyn_cast<LdOp>(op))
      mayMove = !isShared(load.getAddress()) && !globalStores;
    if (!mayMove || op->getNumRegions() != 0)
      return false;
    for (Value operand : op->getOperands()) {
      Operation *def = operand.getDefiningOp();
      if (def && def->getBlock() == first->getBlock() &&
          first->isBeforeInBlock(def) &&
          !collect(def, first, moved, globalStores))
        return false;
    }
    moved.insert(op);
    return true;
  }
};

} // namespace
