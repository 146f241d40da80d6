//===- ReplayAttrs.td - Attributes -------------------------*- tablegen -*-===//

#ifndef REPLAY_ATTRS_TD
#define REPLAY_ATTRS_TD

include "dialect/ReplayDialect.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/TensorEncoding.td"

def Replay_LayoutAttr : AttrDef<Replay_Dialect, "Layout",
    [DeclareAttrInterfaceMethods<VerifiableTensorEncoding>]> {
  let mnemonic = "layout";
  let summary = "Which register of which lane of which warp holds an element";
  let description = [{
    A linear map over bits. Bit i of the register number, the lane number or the
    warp number moves an element by `register[i]`, `lane[i]` or `warp[i]`; an
    element's coordinate is the sum of the moves of the set bits. A zero basis
    means that both values of the bit hold the same element (replication).

    Constraints, for a tensor of shape s with rank r:
    - (L1) every basis has r entries, at most one of them is not zero, and that
      one is a power of two smaller than its dimension;
    - (L2) no two bases are the same move, unless zero;
    - (L3) every power of two below each dimension is the move of some basis;
    - (L4) there are exactly 5 lane bases.

    ```mlir
    // 8 lanes share a row of 32 floats, 16 bytes each; 4 rows per warp.
    #rows = #replay.layout<register = [[0, 1], [0, 2]],
                           lane = [[0, 4], [0, 8], [0, 16], [1, 0], [2, 0]],
                           warp = []>
    ```
  }];
  // The bases one after another, `rank` entries each.
  let parameters = (ins "int64_t":$rank,
    ArrayRefParameter<"int32_t">:$registers, ArrayRefParameter<"int32_t">:$lanes,
    ArrayRefParameter<"int32_t">:$warps);
  let hasCustomAssemblyFormat = 1;
}

class Replay_Enum<string name, string summary, list<I32EnumAttrCase> cases>
    : I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::replayjit::internal::replay";
  let genSpecializedAttr = 0;
}

def Replay_Axis : Replay_Enum<"Axis", "axis of the launch grid", [
    I32EnumAttrCase<"X", 0, "x">, I32EnumAttrCase<"Y", 1, "y">,
    I32EnumAttrCase<"Z", 2, "z">]>;
def Replay_AxisAttr : EnumAttr<Replay_Dialect, Replay_Axis, "axis">;

def Replay_Precision : Replay_Enum<"Precision", "how a dot rounds its operands", [
    I32EnumAttrCase<"Ieee", 0, "ieee">, I32EnumAttrCase<"Tf32", 1, "tf32">,
    I32EnumAttrCase<"Bf16", 2, "bf16">, I32EnumAttrCase<"F16", 3, "f16">]>;
def Replay_PrecisionAttr : EnumAttr<Replay_Dialect, Replay_Precision, "precision">;

def Replay_CachePolicy : Replay_Enum<"CachePolicy", "where a load may leave its line", [
    I32EnumAttrCase<"Normal", 0, "normal">,
    I32EnumAttrCase<"Streaming", 1, "streaming">]>;
def Replay_CachePolicyAttr : EnumAttr<Replay_Dialect, Replay_CachePolicy, "cache">;

#endif
