//===- AssignLayouts.cpp - Give every tile a layout -----------------------===//
//
// Three steps: copy cheap constants so that each use may have its own layout;
// let layouts flow from the anchors over the program until every tile has one;
// write them into the types, converting where two meet.
//
//===----------------------------------------------------------------------===//

#include "compiler/Layout/LinearLayout.h"
#include "compiler/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/MapVector.h"

namespace replayjit::internal {
#define GEN_PASS_DEF_ASSIGNLAYOUTSPASS
#include "compiler/Transforms/Passes.h.inc"
} // namespace replayjit::internal

using namespace mlir;
using namespace replayjit::internal;
using namespace replayjit::internal::replay;

namespace {

RankedTensorType tileTypeOf(Value value) {
  return dyn_cast<RankedTensorType>(value.getType());
}

/// True for operations whose tiles all have the layout of the result.
bool isUniform(Operation *op) {
  return op->hasTrait<OpTrait::Elementwise>() || isa<CumsumOp>(op);
}

/// A slice's operand from its result: the higher bits are registers'.
LinearLayout unslice(LinearLayout piece, int64_t size) {
  for (int64_t move = piece.shape[0]; move < size; move *= 2)
    piece.registers.push_back({0, (int32_t)move});
  piece.shape = {size};
  return piece;
}

/// The dimensions that a broadcast repeats.
SmallVector<int> repeatedDims(BroadcastOp op) {
  SmallVector<int> dims;
  auto thin = tileTypeOf(op.getValue()), full = tileTypeOf(op.getResult());
  for (int dim = 0; dim < thin.getRank(); ++dim)
    if (thin.getDimSize(dim) != full.getDimSize(dim))
      dims.push_back(dim);
  return dims;
}

/// A broadcast's operand from its result.
LinearLayout squeezed(LinearLayout layout, BroadcastOp op) {
  for (int dim : repeatedDims(op))
    layout = layout.squeeze(dim);
  return layout;
}

/// The operand of a sum over `rows` rows whose result is laid out so: lanes
/// that hold the same result share the rows, the rest lies in registers.
LinearLayout sumOperand(const LinearLayout &result, int64_t rows) {
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

LinearLayout transposed(LinearLayout layout) {
  std::swap(layout.shape[0], layout.shape[1]);
  for (auto *bases : {&layout.registers, &layout.lanes, &layout.warps})
    for (Basis &basis : *bases)
      if (basis.move)
        basis.dim = 1 - basis.dim;
  return layout;
}

bool is16Bit(Precision precision) {
  return precision == Precision::Bf16 || precision == Precision::F16;
}

/// A dot's operand 0 (a) or 1 (b) for its result's layout.
LinearLayout dotOperand(DotOp dot, int operand, const LinearLayout &result,
                        int numWarps) {
  int64_t m = tileTypeOf(dot.getA()).getDimSize(0);
  int64_t k = tileTypeOf(dot.getA()).getDimSize(1);
  int64_t n = tileTypeOf(dot.getB()).getDimSize(1);
  bool half = is16Bit(dot.getPrecision());
  if (dot.getPrecision() == Precision::Ieee)
    return operand == 0 ? result.squeeze(1).widenInRegisters(1, k)
                        : result.squeeze(0).widenInRegisters(0, k);
  return operand == 0 ? LinearLayout::mmaOperandA(m, k, n, half, numWarps)
                      : LinearLayout::mmaOperandB(m, k, n, half, numWarps);
}

class LayoutFlow {
public:
  LayoutFlow(KernelOp kernel)
      : kernel(kernel), numWarps(kernel.getNumWarps()) {}

  void run() {
    separateConstants();
    reserve();
    anchorDots();
    anchorLoads();
    anchorReserved();
    anchorRest();
    writeTypes();
  }

private:
  KernelOp kernel;
  int numWarps;
  llvm::MapVector<Value, LinearLayout> known;
  SmallVector<Value> reserved;
  llvm::DenseSet<Value> held; ///< The reserved values until they flow.

  /// Rules in the order in which they may decide. A tile takes the layout of
  /// its operands and users (Flow). A vector repeated along new rows spreads
  /// them over idle lanes (SpreadRows), so that a contraction with it uses all
  /// lanes. A sum over rows keeps them in registers, or in lanes that would
  /// else hold the same (Sum), so that it needs no exchange but theirs. Last,
  /// new columns are spread (SpreadColumns).
  enum Rule { Flow, SpreadRows, Sum, SpreadColumns, NumRules };
  SmallVector<Operation *> worklists[NumRules];

  //===--- Step 1 ---===//

  /// Constants and what tells one place from another, masks and their parts:
  /// cheaper to compute in each layout than to exchange.
  static bool isCheap(Operation *op) {
    auto type = op->getNumResults() == 1
                    ? dyn_cast<RankedTensorType>(op->getResult(0).getType())
                    : RankedTensorType();
    if (!type)
      return false;
    if (isa<arith::ConstantOp, SplatOp, IotaOp>(op))
      return true;
    return isa<IntegerType>(type.getElementType()) &&
           (op->hasTrait<OpTrait::Elementwise>() ||
            isa<ExpandOp, BroadcastOp>(op));
  }

  /// One copy of what is cheap for each use; users first, so that a copy's
  /// operands are copied too.
  void separateConstants() {
    SmallVector<Operation *> cheap;
    kernel->walk([&](Operation *op) {
      if (isCheap(op))
        cheap.push_back(op);
    });
    for (Operation *op : llvm::reverse(cheap)) {
      OpBuilder builder(op);
      for (OpOperand &use :
           llvm::make_early_inc_range(llvm::drop_begin(op->getUses())))
        use.set(builder.clone(*op)->getResult(0));
    }
  }

  //===--- Step 2 ---===//

  void set(Value value, LinearLayout layout) {
    if (!tileTypeOf(value) || known.count(value))
      return;
    known.insert({value, std::move(layout)});
    announce(value);
  }

  /// Everything around `value` may now know more.
  void announce(Value value) {
    Operation *def = value.getDefiningOp();
    for (auto &worklist : worklists) {
      worklist.push_back(def ? def : value.getParentBlock()->getParentOp());
      llvm::append_range(worklist, value.getUsers());
    }
  }

  /// Null for what is not known, or reserved and not to flow yet.
  const LinearLayout *get(Value value) {
    if (held.contains(value))
      return nullptr;
    auto it = known.find(value);
    return it == known.end() ? nullptr : &it->second;
  }

  void flow() {
    for (int rule = Flow; rule < NumRules;) {
      if (worklists[rule].empty()) {
        ++rule;
        continue;
      }
      infer(worklists[rule].pop_back_val(), Rule(rule));
      rule = Flow; // What became known may decide more by a stronger rule.
    }
  }

  void anchor(Value value, LinearLayout layout) {
    set(value, std::move(layout));
    flow();
  }

  /// Fills in what one operation's known tiles imply for its others.
  void infer(Operation *op, Rule rule) {
    // Copies, because set() may grow the map.
    auto from = [&](Value value, auto derive, Value to) {
      if (const LinearLayout *layout = get(value))
        set(to, derive(LinearLayout(*layout)));
    };
    if (rule != Flow)
      return inferWeakly(op, rule, from);
    if (isUniform(op)) {
      SmallVector<Value> tiles(op->getOperands());
      llvm::append_range(tiles, op->getResults());
      for (Value a : tiles)
        if (const LinearLayout *layout = get(a)) {
          LinearLayout copy = *layout;
          for (Value b : tiles)
            set(b, copy);
          return;
        }
      return;
    }
    if (auto expand = dyn_cast<ExpandOp>(op)) {
      int axis = expand.getAxis();
      from(
          expand.getResult(), [&](LinearLayout l) { return l.slice(axis); },
          expand.getValue());
      from(
          expand.getValue(), [&](LinearLayout l) { return l.expand(axis); },
          expand.getResult());
    } else if (auto broadcast = dyn_cast<BroadcastOp>(op)) {
      from(
          broadcast.getResult(),
          [&](LinearLayout l) { return squeezed(std::move(l), broadcast); },
          broadcast.getValue());
    } else if (auto reduce = dyn_cast<ReduceOp>(op)) {
      auto type = tileTypeOf(reduce.getValue());
      if (type.getRank() != 2)
        return;
      int axis = reduce.getAxis();
      from(
          reduce.getValue(), [&](LinearLayout l) { return l.reduced(axis); },
          reduce.getResult());
    } else if (auto transpose = dyn_cast<TransposeOp>(op)) {
      from(transpose.getResult(), transposed, transpose.getValue());
      from(transpose.getValue(), transposed, transpose.getResult());
    } else if (auto slice = dyn_cast<SliceOp>(op)) {
      int64_t size = tileTypeOf(slice.getValue()).getDimSize(0);
      from(
          slice.getResult(),
          [&](LinearLayout l) { return unslice(std::move(l), size); },
          slice.getValue());
    } else if (auto dot = dyn_cast<DotOp>(op)) {
      from(
          dot.getResult(), [](LinearLayout l) { return l; }, dot.getC());
      if (dot.getPrecision() == Precision::Ieee)
        from(
            dot.getC(), [](LinearLayout l) { return l; }, dot.getResult());
      for (int i : {0, 1})
        from(
            dot.getResult(),
            [&](LinearLayout l) { return dotOperand(dot, i, l, numWarps); },
            dot.getOperand(i));
    } else if (auto load = dyn_cast<LoadOp>(op)) {
      if (load.getMask())
        from(
            load.getResult(), [](LinearLayout l) { return l; }, load.getMask());
    } else if (auto loop = dyn_cast<scf::ForOp>(op)) {
      for (auto [init, arg, yielded, result] :
           llvm::zip(loop.getInitArgs(), loop.getRegionIterArgs(),
                     loop.getYieldedValues(), loop.getResults()))
        equate({arg, result, init, yielded});
    } else if (isa<scf::YieldOp>(op)) {
      infer(op->getParentOp(), rule);
    } else if (auto branch = dyn_cast<scf::IfOp>(op)) {
      for (auto [i, result] : llvm::enumerate(branch.getResults()))
        equate({result, branch.thenYield().getOperand(i),
                branch.elseYield().getOperand(i)});
    }
  }

  /// The rules that give way to Flow.
  template <typename From>
  void inferWeakly(Operation *op, Rule rule, From from) {
    if (auto reduce = dyn_cast<ReduceOp>(op); reduce && rule == Sum) {
      auto type = tileTypeOf(reduce.getValue());
      if (type.getRank() == 2 && reduce.getAxis() == 0)
        from(
            reduce.getResult(),
            [&](LinearLayout l) { return sumOperand(l, type.getDimSize(0)); },
            reduce.getValue());
    }
    if (auto broadcast = dyn_cast<BroadcastOp>(op); broadcast && rule != Sum) {
      SmallVector<int> dims = repeatedDims(broadcast);
      bool rows = llvm::is_contained(dims, 0) && dims.size() == 1;
      if (rule != (rows ? SpreadRows : SpreadColumns))
        return;
      auto full = tileTypeOf(broadcast.getResult());
      from(
          broadcast.getValue(),
          [&](LinearLayout l) {
            for (int dim : dims)
              l = l.widen(dim, full.getDimSize(dim));
            return l;
          },
          broadcast.getResult());
    }
  }

  void equate(ArrayRef<Value> values) {
    for (Value a : values)
      if (const LinearLayout *layout = get(a)) {
        LinearLayout copy = *layout;
        for (Value b : values)
          set(b, copy);
        return;
      }
  }

  /// All of them before anything flows: the matrix unit takes no other layout.
  void anchorDots() {
    kernel->walk([&](DotOp dot) {
      auto type = tileTypeOf(dot.getResult());
      if (dot.getPrecision() != Precision::Ieee)
        set(dot.getResult(),
            LinearLayout::mmaResult(type.getDimSize(0), type.getDimSize(1),
                                    numWarps));
    });
    flow();
  }

  /// 8 lanes of 16 bytes cover 128 bytes of a row, a whole cache line. 16 of
  /// them hold fewer columns each, of all the vectors a row meets; a block of
  /// one warp has few rows and gains by it.
  LinearLayout wide(RankedTensorType type, int contiguousDim) {
    int vector = 16 / elementBytes(type.getElementType());
    vector = std::min<int64_t>(vector, type.getDimSize(contiguousDim));
    // No two threads hold the same element if there is one for each: what one
    // of them stores in place, another may still have to read.
    vector = std::clamp<int64_t>(type.getNumElements() / (32 * numWarps), 1,
                                 vector);
    int lanes = type.getRank() == 1 ? 32 : numWarps == 1 ? 16 : 8;
    return LinearLayout::coalesced(type.getShape(), contiguousDim,
                                   type.getRank() == 2 ? vector : 1, lanes,
                                   numWarps);
  }

  void anchorLoads() {
    SmallVector<Value> tiles;
    kernel->walk([&](Operation *op) {
      if (isa<LoadOp, ReadOp>(op) && tileTypeOf(op->getResult(0)) &&
          tileTypeOf(op->getResult(0)).getRank() == 2)
        tiles.push_back(op->getResult(0));
    });
    llvm::stable_sort(tiles, [](Value a, Value b) {
      return tileTypeOf(a).getNumElements() > tileTypeOf(b).getNumElements();
    });
    for (Value tile : tiles) {
      int contiguousDim = 1;
      if (auto load = tile.getDefiningOp<LoadOp>()) {
        ArrayRef<int64_t> strides = load.getView().getType().getStrides();
        if (std::abs(strides[0]) == 1 && strides[1] != 1)
          contiguousDim = 0;
      }
      anchor(tile, wide(tileTypeOf(tile), contiguousDim));
    }
  }

  /// Every thread has its own elements: those of a vector, or the columns of a
  /// tile, whose `axis` lies in registers. Neighbours stay together if there is
  /// more than one for each thread.
  LinearLayout spreadOut(RankedTensorType type, int axis) {
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

  /// Whatever their neighbours want, a scan has its axis in registers, and
  /// exponentials and logarithms, which cost more than a change of layout, are
  /// computed once each.
  void reserve() {
    kernel->walk([&](Operation *op) {
      auto scan = dyn_cast<CumsumOp>(op);
      if (!scan && !isa<math::ExpOp, math::Log1pOp>(op))
        return;
      Value operand = op->getOperand(0), result = op->getResult(0);
      auto type = tileTypeOf(result);
      if (!type || (!scan && type.getNumElements() < 32))
        return;
      LinearLayout layout =
          scan && type.getRank() == 1
              ? LinearLayout::inRegisters(type.getShape(), numWarps)
              : spreadOut(type, scan ? scan.getAxis() : 0);
      reserve(result, layout);
      reserve(operand, layout);
    });
  }

  /// Takes along the elementwise work that gives `value`, up to its loads.
  void reserve(Value value, const LinearLayout &layout) {
    if (!tileTypeOf(value) || !known.insert({value, layout}).second)
      return;
    reserved.push_back(value);
    held.insert(value);
    Operation *def = value.getDefiningOp();
    if (def && isUniform(def))
      for (Value operand : def->getOperands())
        reserve(operand, layout);
  }

  /// Only now do the reserved layouts flow on.
  void anchorReserved() {
    held.clear();
    for (Value value : reserved)
      announce(value);
    flow();
  }

  void anchorRest() {
    kernel->walk<WalkOrder::PreOrder>([&](Operation *op) {
      for (Value result : op->getResults())
        if (auto type = tileTypeOf(result))
          anchor(result, wide(type, type.getRank() - 1));
    });
  }

  //===--- Step 3 ---===//

  /// The layout that `op` needs its operand in; none if any will do.
  std::optional<LinearLayout> required(Operation *op, OpOperand &operand) {
    Value value = operand.get();
    if (isUniform(op)) {
      for (Value result : op->getResults())
        return known.at(result);
      return std::nullopt;
    }
    if (auto expand = dyn_cast<ExpandOp>(op))
      return known.at(expand.getResult()).slice(expand.getAxis());
    if (auto broadcast = dyn_cast<BroadcastOp>(op)) {
      return squeezed(known.at(broadcast.getResult()), broadcast);
    }
    if (auto transpose = dyn_cast<TransposeOp>(op))
      return transposed(known.at(transpose.getResult()));
    if (auto slice = dyn_cast<SliceOp>(op))
      return unslice(known.at(slice.getResult()),
                     tileTypeOf(value).getDimSize(0));
    if (auto dot = dyn_cast<DotOp>(op)) {
      LinearLayout result = known.at(dot.getResult());
      return operand.getOperandNumber() == 2
                 ? result
                 : dotOperand(dot, operand.getOperandNumber(), result,
                              numWarps);
    }
    if (auto load = dyn_cast<LoadOp>(op))
      return known.at(load.getResult());
    if (auto loop = dyn_cast<scf::ForOp>(op))
      return known.at(loop.getTiedLoopRegionIterArg(&operand));
    if (isa<scf::YieldOp>(op))
      return known.at(op->getParentOp()->getResult(operand.getOperandNumber()));
    return std::nullopt;
  }

  Value convert(OpBuilder &builder, Location loc, Value value,
                const LinearLayout &from, const LinearLayout &to) {
    if (from == to)
      return value;
    auto type = tileTypeOf(value);
    value.setType(from.applyTo(type));
    Type wanted = to.applyTo(type);
    // Once for all uses in a block; across branches the copy would only hold
    // registers.
    for (Operation *user : value.getUsers())
      if (auto earlier = dyn_cast<ConvertLayoutOp>(user);
          earlier && earlier.getType() == wanted &&
          earlier->getBlock() == builder.getBlock())
        return earlier;
    return ConvertLayoutOp::create(builder, loc, wanted, value);
  }

  void writeTypes() {
    SmallVector<Operation *> ops;
    kernel->walk<WalkOrder::PreOrder>(
        [&](Operation *op) { ops.push_back(op); });
    for (Operation *op : ops) {
      OpBuilder builder(op);
      for (OpOperand &operand : op->getOpOperands())
        if (tileTypeOf(operand.get()))
          if (auto layout = required(op, operand))
            operand.set(convert(builder, op->getLoc(), operand.get(),
                                known.at(operand.get()), *layout));
      // A reduction has its own idea of its result.
      auto reduce = dyn_cast<ReduceOp>(op);
      if (reduce && tileTypeOf(reduce.getResult())) {
        Value result = reduce.getResult();
        LinearLayout own =
            known.at(reduce.getValue()).reduced(reduce.getAxis());
        LinearLayout wanted = known.at(result);
        builder.setInsertionPointAfter(op);
        Value converted = convert(builder, op->getLoc(), result, own, wanted);
        if (converted != result)
          result.replaceAllUsesExcept(converted, converted.getDefiningOp());
        known.insert({converted, wanted});
        if (converted != result)
          known[result] = own;
      }
    }
    for (auto &[value, layout] : known)
      if (tileTypeOf(value))
        value.setType(layout.applyTo(tileTypeOf(value)));
    kernel->walk([&](arith::ConstantOp constant) {
      if (auto splat = dyn_cast<SplatElementsAttr>(constant.getValue()))
        constant.setValueAttr(
            DenseElementsAttr::get(cast<ShapedType>(constant.getType()),
                                   splat.getSplatValue<Attribute>()));
    });
  }
};

struct AssignLayoutsPass
    : replayjit::internal::impl::AssignLayoutsPassBase<AssignLayoutsPass> {
  void runOnOperation() override { LayoutFlow(getOperation()).run(); }
};

} // namespace
