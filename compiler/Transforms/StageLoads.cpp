//===- StageLoads.cpp - Copy views to shared memory before their loads ----===//

#include "compiler/Transforms/Memory.h"
#include "compiler/Transforms/Passes.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "llvm/ADT/MapVector.h"

namespace replayjit::internal {
#define GEN_PASS_DEF_STAGELOADSPASS
#include "compiler/Transforms/Passes.h.inc"
} // namespace replayjit::internal

using namespace mlir;
using namespace replayjit::internal;
using namespace replayjit::internal::replay;

namespace {

/// A view and the loads of its tiles, in program order.
struct Candidate {
  ViewOp view;
  SmallVector<LoadOp> loads;
};

/// The sizes of a view, or the most they can be; empty if that is not known.
SmallVector<int64_t> sizesOf(ViewOp view) {
  SmallVector<int64_t> sizes(view.getType().getShape());
  if (view.getMost())
    sizes[0] = *view.getMost();
  if (llvm::any_of(sizes, ShapedType::isDynamic))
    return {};
  return sizes;
}

int64_t bytesOf(ViewOp view) {
  int64_t bytes = elementBytes(view.getType().getElementType());
  for (int64_t size : sizesOf(view))
    bytes *= size;
  return bytes;
}

struct StageLoadsPass
    : replayjit::internal::impl::StageLoadsPassBase<StageLoadsPass> {
  void runOnOperation() override {
    auto leastBytes = tuningOf(getOperation(), kStageBytes);
    if (!leastBytes)
      return;
    llvm::MapVector<ViewOp, Candidate> candidates;
    SmallVector<Operation *> writers;
    getOperation()->walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (writesMemory(op))
        writers.push_back(op);
      auto load = dyn_cast<LoadOp>(op);
      if (!load || !isa<RankedTensorType>(load.getType()))
        return;
      if (auto view = load.getView().getDefiningOp<ViewOp>()) {
        candidates[view].view = view;
        candidates[view].loads.push_back(load);
      }
    });
    // The last first, so that the copy of what is needed first starts first.
    for (auto &[view, candidate] : llvm::reverse(candidates)) {
      if (!sizesOf(view).empty() && bytesOf(view) < *leastBytes)
        continue;
      if (const char *reason = whyNot(candidate, writers))
        view.emitRemark("is not staged: ") << reason;
      else
        stage(candidate);
    }
  }

  /// Null if the view can be staged.
  static const char *whyNot(const Candidate &candidate,
                            ArrayRef<Operation *> writers) {
    ViewOp view = candidate.view;
    ViewType type = view.getType();
    ArrayRef<int64_t> shape = type.getShape(), strides = type.getStrides();
    SmallVector<int64_t> sizes = sizesOf(view);
    if (sizes.empty())
      return "its sizes are not bounded";
    if (strides.back() != 1 || (type.getRank() == 2 && strides[0] != sizes[1] &&
                                strides[0] != -sizes[1]))
      return "its rows are not adjacent";
    int64_t unit = elementBytes(type.getElementType()) *
                   (type.getRank() == 2               ? sizes[1]
                    : ShapedType::isDynamic(shape[0]) ? 1
                                                      : sizes[0]);
    if (unit % 16 != 0 || type.getAlignment() % 16 != 0)
      return "its rows or its address are not multiples of 16 bytes";
    LoadOp first = candidate.loads.front();
    if (first->getBlock() != view->getBlock())
      return "its first load stands in a branch or a loop";
    for (Operation *op = view->getParentOp(); op; op = op->getParentOp())
      if (isa<LoopLikeOpInterface>(op))
        return "it stands in a loop";
    for (Operation *writer : writers)
      if (mayPrecede(writer, candidate))
        return "what is loaded may be written before";
    return nullptr;
  }

  /// True if `writer` may write, after the copy, what a load then reads.
  static bool mayPrecede(Operation *writer, const Candidate &candidate) {
    return llvm::any_of(candidate.loads, [&](LoadOp load) {
      return mayTouch(writer, load) && !areExclusive(writer, load) &&
             mayFollow(load, writer);
    });
  }

  /// True if `second` may run after `first`.
  static bool mayFollow(Operation *second, Operation *first) {
    for (Operation *loop = first->getParentOp(); loop;
         loop = loop->getParentOp())
      if (isa<LoopLikeOpInterface>(loop) && loop->isAncestor(second))
        return true;
    Block *common = first->getBlock();
    Operation *last = common->findAncestorOpInBlock(*second);
    for (; !last; last = common->findAncestorOpInBlock(*second)) {
      first = common->getParentOp();
      common = first->getBlock();
    }
    return first->isBeforeInBlock(last);
  }

  void stage(const Candidate &candidate) {
    ViewOp view = candidate.view;
    ViewType type = view.getType();
    ImplicitLocOpBuilder b(view.getLoc(), getOperation());
    // Buffers first and together, so that threads meet once for all of them.
    b.setInsertionPointToStart(&getOperation().getBody().front());
    auto buffer =
        AllocOp::create(b, BufferType::get(b.getContext(), sizesOf(view),
                                           type.getElementType()));
    moveUp(view);
    b.setInsertionPointAfter(view);
    AsyncCopyOp::create(b, view, buffer);
    LoadOp first = candidate.loads.front();
    b.setInsertionPoint(first);
    WaitOp::create(b, buffer);
    auto stageType =
        ViewType::get(b.getContext(), type.getShape(), type.getElementType(),
                      type.getStrides(), /*alignment=*/16, /*shared=*/true);
    Value size = view.getSizes().empty() ? Value() : view.getSizes().front();
    Value stage = StageOp::create(b, stageType, buffer, size);
    for (LoadOp load : candidate.loads)
      load.getViewMutable().assign(stage);
  }

  /// Moves a view, with what its address needs, to the start of its block. It
  /// stays where it is if it needs more than pure operations of that block.
  static void moveUp(ViewOp view) {
    Block *block = view->getBlock();
    llvm::SetVector<Operation *> slice;
    bool isPureSlice = true;
    BackwardSliceOptions options;
    options.inclusive = true;
    options.filter = [&](Operation *op) {
      if (op->getBlock() != block)
        return false;
      isPureSlice &= isPure(op) && op->getNumRegions() == 0;
      return true;
    };
    if (failed(getBackwardSlice(view.getOperation(), &slice, options)) ||
        !isPureSlice)
      return;
    Operation *place = &block->front();
    while (isa<AllocOp>(place)) // Of a kernel's body.
      place = place->getNextNode();
    for (Operation *op : slice)
      if (op == place)
        place = place->getNextNode();
      else
        op->moveBefore(place);
  }
};

} // namespace
