//===- LayoutRules.cpp - How layouts depend on each other -----------------===//

#include "dialect/LayoutRules.h"
#include "dialect/ReplayDialect.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/DialectRegistry.h"

using namespace mlir;
using namespace replayjit::internal;
using namespace replayjit::internal::replay;

static RankedTensorType tile(Value value) {
  return dyn_cast<RankedTensorType>(value.getType());
}

static LinearLayout same(const LinearLayout &layout) { return layout; }

void LayoutRules::demandSame(OpOperand &operand, Value from) {
  demand(operand, from, same);
}

void LayoutRules::suggestSame(Value to, Value from) {
  suggest(to, from, LayoutStrength::Flow, same);
}

//===----------------------------------------------------------------------===//
// Layouts that anchors ask for
//===----------------------------------------------------------------------===//

LinearLayout ThreadGrid::wide(RankedTensorType type, int contiguousDim) const {
  int vector = 16 / elementBytes(type.getElementType());
  vector = std::min<int64_t>(vector, type.getDimSize(contiguousDim));
  // No two threads hold the same element if there is one for each: what one
  // of them stores in place, another may still have to read.
  vector =
      std::clamp<int64_t>(type.getNumElements() / (32 * numWarps), 1, vector);
  bool isMatrix = type.getRank() == 2;
  return LinearLayout::coalesced(type.getShape(), contiguousDim,
                                 isMatrix ? vector : 1,
                                 isMatrix ? lanesPerRow : 32, numWarps);
}

LinearLayout ThreadGrid::spreadOut(RankedTensorType type, int axis) const {
  auto vector = [&](int64_t size) {
    int neighbours = std::clamp<int64_t>(size / (32 * numWarps), 1, 4);
    return LinearLayout::coalesced({size}, 0, neighbours, 32, numWarps);
  };
  if (type.getRank() == 1)
    return vector(type.getDimSize(0));
  return vector(type.getDimSize(1 - axis))
      .expand(axis)
      .widenInRegisters(axis, type.getDimSize(axis));
}

//===----------------------------------------------------------------------===//
// Our operations
//===----------------------------------------------------------------------===//

/// Elements of integers: masks and what tells one place from another.
static bool holdsIntegers(Value value) {
  return isa<IntegerType>(getElementTypeOrSelf(value));
}

bool SplatOp::isCheapToRepeat() { return true; }
bool IotaOp::isCheapToRepeat() { return true; }
bool ExpandOp::isCheapToRepeat() { return holdsIntegers(getResult()); }
bool BroadcastOp::isCheapToRepeat() { return holdsIntegers(getResult()); }

void ExpandOp::layoutRules(LayoutRules &rules) {
  int axis = getAxis();
  rules.demand(getValueMutable(), getResult(),
               [&](const LinearLayout &l) { return l.slice(axis); });
  rules.suggest(getResult(), getValue(), LayoutStrength::Flow,
                [&](const LinearLayout &l) { return l.expand(axis); });
}

void BroadcastOp::layoutRules(LayoutRules &rules) {
  RankedTensorType thin = tile(getValue()), full = tile(getResult());
  SmallVector<int, 2> repeated;
  for (int dim = 0; dim < thin.getRank(); ++dim)
    if (thin.getDimSize(dim) != full.getDimSize(dim))
      repeated.push_back(dim);
  rules.demand(getValueMutable(), getResult(), [&](const LinearLayout &l) {
    LinearLayout layout = l;
    for (int dim : repeated)
      layout = layout.squeeze(dim);
    return layout;
  });
  bool isNewRows = repeated.size() == 1 && repeated[0] == 0;
  rules.suggest(getResult(), getValue(),
                isNewRows ? LayoutStrength::SpreadRows
                          : LayoutStrength::SpreadColumns,
                [&](const LinearLayout &l) {
                  LinearLayout layout = l;
                  for (int dim : repeated)
                    layout = layout.widen(dim, full.getDimSize(dim));
                  return layout;
                });
}

static LinearLayout transposed(const LinearLayout &from) {
  LinearLayout layout = from;
  std::swap(layout.shape[0], layout.shape[1]);
  for (auto *bases : {&layout.registers, &layout.lanes, &layout.warps})
    for (Basis &basis : *bases)
      if (basis.move)
        basis.dim = 1 - basis.dim;
  return layout;
}

void TransposeOp::layoutRules(LayoutRules &rules) {
  rules.demand(getValueMutable(), getResult(), transposed);
  rules.suggest(getResult(), getValue(), LayoutStrength::Flow, transposed);
}

void SliceOp::layoutRules(LayoutRules &rules) {
  // The operand's higher bits are registers'.
  rules.demand(getValueMutable(), getResult(), [&](const LinearLayout &piece) {
    LinearLayout whole = piece;
    int64_t size = tile(getValue()).getDimSize(0);
    for (int64_t move = piece.shape[0]; move < size; move *= 2)
      whole.registers.push_back({0, (int32_t)move});
    whole.shape = {size};
    return whole;
  });
}

/// The operand of a sum over `rows` rows whose result is laid out so: lanes
/// that hold the same result share the rows, the rest lies in registers.
static LinearLayout sumOperand(const LinearLayout &result, int64_t rows) {
  LinearLayout layout = result.expand(0);
  layout.shape[0] = rows;
  int32_t move = 1;
  for (Basis &lane : layout.lanes)
    if (lane.move == 0 && move < rows) {
      lane = {0, move};
      move *= 2;
    }
  for (; move < rows; move *= 2)
    layout.registers.push_back({0, move});
  return layout;
}

void ReduceOp::layoutRules(LayoutRules &rules) {
  RankedTensorType type = tile(getValue());
  if (type.getRank() != 2)
    return;
  int axis = getAxis();
  rules.produce(getResult(), getValue(),
                [&](const LinearLayout &l) { return l.reduced(axis); });
  if (axis == 0)
    rules.suggest(getValue(), getResult(), LayoutStrength::Sum,
                  [&](const LinearLayout &l) {
                    return sumOperand(l, type.getDimSize(0));
                  });
}

void CumsumOp::layoutRules(LayoutRules &rules) {
  rules.equal({getValue(), getResult()});
  rules.demandSame(getValueMutable(), getResult());
}

/// A scan has its axis in registers.
std::optional<LayoutAnchor> CumsumOp::layoutAnchor(const ThreadGrid &grid) {
  RankedTensorType type = tile(getResult());
  return LayoutAnchor{LayoutAnchor::Own,
                      type.getRank() == 1 ? LinearLayout::inRegisters(
                                                type.getShape(), grid.numWarps)
                                          : grid.spreadOut(type, getAxis())};
}

void StackOp::layoutRules(LayoutRules &rules) {
  for (OpOperand &vector : getVectorsMutable())
    rules.demand(vector, getResult(),
                 [](const LinearLayout &l) { return l.slice(0); });
}

/// A thread has all rows of its columns.
std::optional<LayoutAnchor> StackOp::layoutAnchor(const ThreadGrid &grid) {
  return LayoutAnchor{LayoutAnchor::Own,
                      grid.spreadOut(tile(getResult()), /*axis=*/0)};
}

void DotOp::layoutRules(LayoutRules &rules) {
  bool isMatrixUnit = getPrecision() != Precision::Ieee;
  bool isHalf =
      getPrecision() == Precision::Bf16 || getPrecision() == Precision::F16;
  int64_t m = tile(getA()).getDimSize(0), k = tile(getA()).getDimSize(1);
  int64_t n = tile(getB()).getDimSize(1);
  rules.demandSame(getCMutable(), getResult());
  if (getWide()) {
    rules.demand(getAMutable(), getResult(), [&](const LinearLayout &l) {
      return LinearLayout::wideMmaOperandA(m, k, n, 1 << l.warps.size());
    });
    rules.demand(getBMutable(), getResult(), [&](const LinearLayout &l) {
      return LinearLayout::wideMmaOperandB(m, k, n, 1 << l.warps.size());
    });
    return;
  }
  if (!isMatrixUnit)
    rules.suggestSame(getResult(), getC());
  rules.demand(getAMutable(), getResult(), [&](const LinearLayout &l) {
    return isMatrixUnit
               ? LinearLayout::mmaOperandA(m, k, n, isHalf, 1 << l.warps.size())
               : l.squeeze(1).widenInRegisters(1, k);
  });
  rules.demand(getBMutable(), getResult(), [&](const LinearLayout &l) {
    return isMatrixUnit
               ? LinearLayout::mmaOperandB(m, k, n, isHalf, 1 << l.warps.size())
               : l.squeeze(0).widenInRegisters(0, k);
  });
}

/// The matrix unit takes no other layout.
std::optional<LayoutAnchor> DotOp::layoutAnchor(const ThreadGrid &grid) {
  if (getPrecision() == Precision::Ieee)
    return std::nullopt;
  int64_t m = tile(getResult()).getDimSize(0);
  int64_t n = tile(getResult()).getDimSize(1);
  return LayoutAnchor{LayoutAnchor::Only,
                      getWide()
                          ? LinearLayout::wideMmaResult(m, n, grid.numWarps)
                          : LinearLayout::mmaResult(m, n, grid.numWarps)};
}

void LoadOp::layoutRules(LayoutRules &rules) {
  if (getMask())
    rules.demandSame(getMaskMutable()[0], getResult());
}

std::optional<LayoutAnchor> LoadOp::layoutAnchor(const ThreadGrid &grid) {
  RankedTensorType type = tile(getResult());
  if (!type || type.getRank() != 2)
    return std::nullopt;
  ArrayRef<int64_t> strides = getView().getType().getStrides();
  int contiguousDim = std::abs(strides[0]) == 1 && strides[1] != 1 ? 0 : 1;
  return LayoutAnchor{LayoutAnchor::Access, grid.wide(type, contiguousDim)};
}

//===----------------------------------------------------------------------===//
// Operations of other dialects
//===----------------------------------------------------------------------===//

static void elementwiseRules(Operation *op, LayoutRules &rules) {
  SmallVector<Value, 4> tiles(op->getOperands());
  llvm::append_range(tiles, op->getResults());
  rules.equal(tiles);
  if (op->getNumResults() > 0)
    for (OpOperand &operand : op->getOpOperands())
      rules.demandSame(operand, op->getResult(0));
}

void replayjit::internal::replay::visitLayoutRules(Operation *op,
                                                   LayoutRules &rules) {
  if (auto own = dyn_cast<LayoutOpInterface>(op))
    own.layoutRules(rules);
  else if (op->hasTrait<OpTrait::Elementwise>())
    elementwiseRules(op, rules);
}

namespace {

/// Exponentials and logarithms cost more than a change of layout.
template <typename Op>
struct CostlyModel : LayoutOpInterface::ExternalModel<CostlyModel<Op>, Op> {
  void layoutRules(Operation *op, LayoutRules &rules) const {
    elementwiseRules(op, rules);
  }
  std::optional<LayoutAnchor> layoutAnchor(Operation *op,
                                           const ThreadGrid &grid) const {
    RankedTensorType type = tile(op->getResult(0));
    if (!type || type.getNumElements() < 32)
      return std::nullopt;
    return LayoutAnchor{LayoutAnchor::Own, grid.spreadOut(type, 0)};
  }
};

/// What a loop carries has one layout on all its ways.
struct ForModel : LayoutOpInterface::ExternalModel<ForModel, scf::ForOp> {
  void layoutRules(Operation *op, LayoutRules &rules) const {
    auto loop = cast<scf::ForOp>(op);
    for (auto [init, arg, yielded, result] :
         llvm::zip(loop.getInitArgsMutable(), loop.getRegionIterArgs(),
                   loop.getYieldedValues(), loop.getResults())) {
      rules.equal({arg, result, init.get(), yielded});
      rules.demandSame(init, arg);
    }
  }
};

struct IfModel : LayoutOpInterface::ExternalModel<IfModel, scf::IfOp> {
  void layoutRules(Operation *op, LayoutRules &rules) const {
    auto branch = cast<scf::IfOp>(op);
    for (auto [i, result] : llvm::enumerate(branch.getResults()))
      rules.equal({result, branch.thenYield().getOperand(i),
                   branch.elseYield().getOperand(i)});
  }
};

struct YieldModel : LayoutOpInterface::ExternalModel<YieldModel, scf::YieldOp> {
  void layoutRules(Operation *op, LayoutRules &rules) const {
    visitLayoutRules(op->getParentOp(), rules);
    for (OpOperand &operand : op->getOpOperands())
      rules.demandSame(
          operand, op->getParentOp()->getResult(operand.getOperandNumber()));
  }
};

} // namespace

void replayjit::internal::replay::registerLayoutModels(
    DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, math::MathDialect *) {
    math::ExpOp::attachInterface<CostlyModel<math::ExpOp>>(*context);
    math::Log1pOp::attachInterface<CostlyModel<math::Log1pOp>>(*context);
  });
  registry.addExtension(+[](MLIRContext *context, scf::SCFDialect *) {
    scf::ForOp::attachInterface<ForModel>(*context);
    scf::IfOp::attachInterface<IfModel>(*context);
    scf::YieldOp::attachInterface<YieldModel>(*context);
  });
}
