//===- ReplayInterfaces.td - What passes ask of operations -*- tablegen -*-===//

#ifndef REPLAY_INTERFACES_TD
#define REPLAY_INTERFACES_TD

include "mlir/IR/OpBase.td"

def Replay_LayoutOpInterface : OpInterface<"LayoutOpInterface"> {
  let cppNamespace = "::replayjit::internal::replay";
  let description = [{
    What an operation says about the layouts of the tiles it takes and makes.
    `replay-assign-layouts` asks nothing else, so that each rule is written once.
    An elementwise operation needs no model: all its tiles have one layout.
    LayoutRules.h has the vocabulary.
  }];
  let methods = [
    InterfaceMethod<
      "Tells `rules` how the layouts of the operation's tiles depend on each other.",
      "void", "layoutRules",
      (ins "::replayjit::internal::LayoutRules &":$rules), "", "(void)rules;">,
    InterfaceMethod<
      "The layout that the operation wants for its result, whatever its neighbours want.",
      "std::optional<::replayjit::internal::LayoutAnchor>", "layoutAnchor",
      (ins "const ::replayjit::internal::ThreadGrid &":$grid), "",
      "(void)grid; return std::nullopt;">,
    InterfaceMethod<
      "True if computing the result in each layout is cheaper than exchanging it.",
      "bool", "isCheapToRepeat", (ins), "", "return false;">
  ];
}

def Replay_AccessOpInterface : OpInterface<"AccessOpInterface"> {
  let cppNamespace = "::replayjit::internal::replay";
  let description = [{
    An access to a piece of a view: element i of the tile is the view's element at
    `offsets` + i. What it does there, its memory effects say.
  }];
  let methods = [
    InterfaceMethod<"The view.",
      "::mlir::TypedValue<::replayjit::internal::replay::ViewType>", "getView">,
    InterfaceMethod<"Where the piece starts, one i32 a dimension.",
      "::mlir::OperandRange", "getOffsets">,
    InterfaceMethod<"The tile or the element that is moved.",
      "::mlir::Type", "getAccessedType">
  ];
}

#endif
