//===- Memory.cpp - What passes ask about memory --------------------------===//

#include "compiler/Transforms/Memory.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace replayjit::internal;
using namespace replayjit::internal::replay;

Value replayjit::internal::pointerOf(Value memory) {
  if (isa<PtrType>(memory.getType()))
    return memory;
  auto view = memory.getDefiningOp<ViewOp>();
  return view ? Value(view.getPtr()) : Value();
}

/// The word that is told of a number which does not fit where `op` narrows it;
/// null if nobody asked.
static Value overflowWord(Operation *op) {
  auto narrowed = dyn_cast<arith::TruncFOp>(op);
  if (!narrowed || !isa<RankedTensorType>(narrowed.getType()) ||
      !getElementTypeOrSelf(narrowed.getType()).isF16())
    return {};
  Value word;
  op->getParentOfType<KernelOp>()->walk(
      [&](OnOverflowOp report) { word = report.getWord(); });
  return word;
}

/// The effects of one kind that an operation itself has on global memory, which
/// is the default resource.
template <typename Effect>
static void forEachOwn(Operation *op, function_ref<void(Value)> visit) {
  if (Value word = overflowWord(op))
    visit(word);
  auto interface = dyn_cast<MemoryEffectOpInterface>(op);
  if (!interface) {
    if (!op->hasTrait<OpTrait::HasRecursiveMemoryEffects>())
      visit(Value());
    return;
  }
  SmallVector<MemoryEffects::EffectInstance> effects;
  interface.getEffects(effects);
  for (const MemoryEffects::EffectInstance &effect : effects)
    if (isa<Effect>(effect.getEffect()) &&
        effect.getResource() == SideEffects::DefaultResource::get())
      visit(effect.getValue() ? pointerOf(effect.getValue()) : Value());
}

bool replayjit::internal::writesMemory(Operation *op) {
  bool writes = false;
  forEachOwn<MemoryEffects::Write>(op, [&](Value) { writes = true; });
  return writes;
}

void replayjit::internal::forEachWrite(Operation *op,
                                       function_ref<void(Value)> visit) {
  op->walk([&](Operation *inner) {
    forEachOwn<MemoryEffects::Write>(inner, visit);
  });
}

/// True if what is read through `pointer` was written through no other.
static bool isUnaliased(Value pointer) {
  if (auto made = pointer.getDefiningOp<PointerOp>())
    return made.getNoalias();
  auto argument = dyn_cast<BlockArgument>(pointer);
  auto kernel = argument
                    ? dyn_cast<KernelOp>(argument.getOwner()->getParentOp())
                    : KernelOp();
  return kernel && (kernel.getArgAttr(argument.getArgNumber(), kArgNoAlias) ||
                    kernel.getArgAttr(argument.getArgNumber(), kArgReadOnly));
}

bool replayjit::internal::mayAlias(Value written, Value loaded) {
  if (!written || !loaded || written == loaded)
    return true;
  return !isUnaliased(loaded);
}

/// True if both access constant pieces of one view that do not meet.
static bool areApart(AccessOpInterface a, AccessOpInterface b) {
  auto tile = [](AccessOpInterface access) {
    return dyn_cast<RankedTensorType>(access.getAccessedType());
  };
  if (a.getView() != b.getView() || !tile(a) || !tile(b))
    return false;
  for (auto [dim, offsets] :
       llvm::enumerate(llvm::zip(a.getOffsets(), b.getOffsets()))) {
    auto x = constantOf(std::get<0>(offsets));
    auto y = constantOf(std::get<1>(offsets));
    if (x && y &&
        (*x + tile(a).getDimSize(dim) <= *y ||
         *y + tile(b).getDimSize(dim) <= *x))
      return true;
  }
  return false;
}

bool replayjit::internal::mayTouch(Operation *writer, LoadOp load) {
  bool touches = false;
  Value loaded = pointerOf(load.getView());
  forEachOwn<MemoryEffects::Write>(
      writer, [&](Value written) { touches |= mayAlias(written, loaded); });
  auto access = dyn_cast<AccessOpInterface>(writer);
  return touches && !(access && areApart(access, load));
}

bool replayjit::internal::mayRead(Operation *op, Operation *writer) {
  bool reads = false;
  op->walk([&](Operation *inner) {
    forEachOwn<MemoryEffects::Read>(inner, [&](Value loaded) {
      forEachOwn<MemoryEffects::Write>(
          writer, [&](Value written) { reads |= mayAlias(written, loaded); });
    });
  });
  return reads;
}

bool replayjit::internal::areExclusive(Operation *a, Operation *b) {
  auto isInThen = [](scf::IfOp branch, Operation *op) {
    return branch.getThenRegion().findAncestorOpInRegion(*op) != nullptr;
  };
  for (auto branch = a->getParentOfType<scf::IfOp>(); branch;
       branch = branch->getParentOfType<scf::IfOp>())
    if (branch->isAncestor(b))
      return isInThen(branch, a) != isInThen(branch, b);
  return false;
}
