//===- AssignLayouts.cpp - Give every tile a layout -----------------------===//
//
// Three steps: copy cheap constants so that each use may have its own layout;
// let layouts flow from the anchors over the program until every tile has one;
// write them into the types, converting where two meet. What an operation
// needs, and what follows for its tiles, it says itself (LayoutOpInterface).
//
//===----------------------------------------------------------------------===//

#include "compiler/Transforms/Memory.h"
#include "compiler/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
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

class LayoutFlow {
public:
  LayoutFlow(KernelOp kernel)
      : kernel(kernel), grid{.numWarps = (int)kernel.getNumWarps()} {
    if (auto lanes = tuningOf(kernel, kLanesPerRow))
      grid.lanesPerRow = *lanes;
  }

  void run() {
    separateConstants();
    findAnchors();
    setOnly();
    setAccesses();
    releaseOwn();
    setRest();
    writeTypes();
  }

private:
  KernelOp kernel;
  ThreadGrid grid;
  llvm::MapVector<Value, LinearLayout> known;
  std::vector<std::pair<Value, LinearLayout>> only, accesses; ///< Anchors.
  SmallVector<Value> own;
  llvm::DenseSet<Value> held; ///< Anchors of the kind Own until they flow.

  /// What is left to infer, for each strength of rules.
  static constexpr int numStrengths = (int)LayoutStrength::SpreadColumns + 1;
  SmallVector<Operation *> worklists[numStrengths];

  //===--- Step 1 ---===//

  /// Constants and what tells one place from another, masks and their parts:
  /// cheaper to compute in each layout than to exchange.
  static bool isCheap(Operation *op) {
    auto type = op->getNumResults() == 1
                    ? dyn_cast<RankedTensorType>(op->getResult(0).getType())
                    : RankedTensorType();
    if (!type)
      return false;
    if (op->hasTrait<OpTrait::ConstantLike>())
      return true;
    if (auto rules = dyn_cast<LayoutOpInterface>(op))
      return rules.isCheapToRepeat();
    return isa<IntegerType>(type.getElementType()) &&
           op->hasTrait<OpTrait::Elementwise>();
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
    for (int strength = 0; strength < numStrengths;) {
      if (worklists[strength].empty()) {
        ++strength;
        continue;
      }
      infer(worklists[strength].pop_back_val(), LayoutStrength(strength));
      strength = 0; // What became known may decide more by a stronger rule.
    }
  }

  void anchor(Value value, LinearLayout layout) {
    set(value, std::move(layout));
    flow();
  }

  /// Fills in what one operation's known tiles imply for its others, by its
  /// rules of one strength.
  void infer(Operation *op, LayoutStrength strength) {
    struct Inference : LayoutRules {
      LayoutFlow &flow;
      LayoutStrength strength;
      Inference(LayoutFlow &flow, LayoutStrength strength)
          : flow(flow), strength(strength) {}

      void follow(Value to, Value from, LayoutStrength rule,
                  Derivation derive) {
        if (rule != strength)
          return;
        if (const LinearLayout *layout = flow.get(from))
          flow.set(to, derive(LinearLayout(*layout))); // set() moves the map.
      }
      void equal(ValueRange values) override {
        if (strength != LayoutStrength::Flow)
          return;
        for (Value from : values)
          if (const LinearLayout *layout = flow.get(from)) {
            LinearLayout copy = *layout;
            for (Value to : values)
              flow.set(to, copy);
            return;
          }
      }
      void demand(OpOperand &operand, Value from, Derivation derive) override {
        follow(operand.get(), from, LayoutStrength::Flow, derive);
      }
      void produce(Value result, Value from, Derivation derive) override {
        follow(result, from, LayoutStrength::Flow, derive);
      }
      void suggest(Value to, Value from, LayoutStrength rule,
                   Derivation derive) override {
        follow(to, from, rule, derive);
      }
    } rules(*this, strength);
    visitLayoutRules(op, rules);
  }

  /// Sorts the anchors by kind; those of the kind Own are known from here on,
  /// but do not flow yet.
  void findAnchors() {
    kernel->walk([&](LayoutOpInterface op) {
      std::optional<LayoutAnchor> anchor = op.layoutAnchor(grid);
      if (!anchor)
        return;
      Value result = op->getResult(0);
      if (anchor->kind == LayoutAnchor::Only) {
        only.push_back({result, anchor->layout});
      } else if (anchor->kind == LayoutAnchor::Access) {
        accesses.push_back({result, anchor->layout});
      } else {
        reserve(result, anchor->layout);
        Needs needs(*this, op);
        for (OpOperand &operand : op->getOpOperands())
          if (auto &layout = needs.operands[operand.getOperandNumber()])
            reserve(operand.get(), *layout);
      }
    });
  }

  /// Takes along the elementwise work that gives `value`, up to its loads.
  void reserve(Value value, const LinearLayout &layout) {
    if (!tileTypeOf(value) || !known.insert({value, layout}).second)
      return;
    own.push_back(value);
    held.insert(value);
    Operation *def = value.getDefiningOp();
    if (def && def->hasTrait<OpTrait::Elementwise>())
      for (Value operand : def->getOperands())
        reserve(operand, layout);
  }

  /// All of them before anything flows.
  void setOnly() {
    for (auto &[value, layout] : only)
      set(value, layout);
    flow();
  }

  void setAccesses() {
    llvm::stable_sort(accesses, [](const auto &a, const auto &b) {
      return tileTypeOf(a.first).getNumElements() >
             tileTypeOf(b.first).getNumElements();
    });
    for (auto &[value, layout] : accesses)
      anchor(value, layout);
  }

  /// Only now do the anchors of the kind Own flow on.
  void releaseOwn() {
    held.clear();
    for (Value value : own)
      announce(value);
    flow();
  }

  void setRest() {
    kernel->walk<WalkOrder::PreOrder>([&](Operation *op) {
      for (Value result : op->getResults())
        if (auto type = tileTypeOf(result))
          anchor(result, grid.wide(type, type.getRank() - 1));
    });
  }

  //===--- Step 3 ---===//

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

  /// What an operation takes and leaves, whatever the types will say.
  struct Needs : LayoutRules {
    const LayoutFlow &flow;
    Operation *op;
    std::vector<std::optional<LinearLayout>> operands; ///< By their number.
    std::vector<std::pair<Value, LinearLayout>> results;
    Needs(const LayoutFlow &flow, Operation *op)
        : flow(flow), op(op), operands(op->getNumOperands()) {
      visitLayoutRules(op, *this);
    }
    void demand(OpOperand &operand, Value from, Derivation derive) override {
      if (operand.getOwner() == op && tileTypeOf(operand.get()))
        operands[operand.getOperandNumber()] = derive(flow.known.at(from));
    }
    void produce(Value result, Value from, Derivation derive) override {
      results.push_back({result, derive(flow.known.at(from))});
    }
    void equal(ValueRange) override {}
    void suggest(Value, Value, LayoutStrength, Derivation) override {}
  };

  void writeTypes() {
    SmallVector<Operation *> ops;
    kernel->walk<WalkOrder::PreOrder>(
        [&](Operation *op) { ops.push_back(op); });
    for (Operation *op : ops) {
      OpBuilder builder(op);
      Needs needs(*this, op);
      for (OpOperand &operand : op->getOpOperands())
        if (auto &layout = needs.operands[operand.getOperandNumber()])
          operand.set(convert(builder, op->getLoc(), operand.get(),
                              known.at(operand.get()), *layout));
      builder.setInsertionPointAfter(op);
      for (auto &[result, left] : needs.results) {
        LinearLayout wanted = known.at(result);
        Value converted = convert(builder, op->getLoc(), result, left, wanted);
        if (converted == result)
          continue;
        result.replaceAllUsesExcept(converted, converted.getDefiningOp());
        known.insert({converted, wanted});
        known[result] = left;
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
