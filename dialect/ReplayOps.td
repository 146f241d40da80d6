//===- ReplayOps.td - Operations ---------------------------*- tablegen -*-===//
//
// One paragraph of semantics, numbered constraints and an example per
// operation. Each example is a test in tests/dialect/ops.mlir, and each
// constraint has an invalid twin in tests/dialect/ops_invalid.mlir.
//
//===----------------------------------------------------------------------===//

#ifndef REPLAY_OPS_TD
#define REPLAY_OPS_TD

include "dialect/ReplayDialect.td"
include "dialect/ReplayTypes.td"
include "dialect/ReplayAttrs.td"
include "dialect/ReplayInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/FunctionInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/CommonTypeConstraints.td"

class Replay_Op<string mnemonic, list<Trait> traits = []>
    : Op<Replay_Dialect, mnemonic, traits>;

// What has rules of its own for layouts implements the methods named; the others
// say nothing.
class Replay_Layouts<list<string> methods>
    : DeclareOpInterfaceMethods<Replay_LayoutOpInterface, methods>;
def Replay_LayoutRules : Replay_Layouts<["layoutRules"]>;

// Effects on global memory are on MLIR's default resource, by the view or pointer
// that names the place; these are elsewhere.
def Replay_SharedMemory
    : Resource<"::replayjit::internal::replay::SharedMemoryResource">;
def Replay_LoadOrder
    : Resource<"::replayjit::internal::replay::LoadOrderResource">;
def Replay_Reports
    : Resource<"::replayjit::internal::replay::ReportsResource">;
def Replay_KernelOrder
    : Resource<"::replayjit::internal::replay::KernelOrderResource">;

def Replay_Tile : Type<
    CPred<"::replayjit::internal::replay::isTileType($_self)">,
    "a tile: a ranked tensor of rank 1 or 2 whose dimensions are powers of two",
    "::mlir::RankedTensorType">;
def Replay_ThreadPointer : Type<
    CPred<"::replayjit::internal::replay::isThreadPointer($_self)">, "an LLVM pointer">;
def Replay_Scalar : AnyTypeOf<[AnySignlessInteger, AnyFloat]>;
def Replay_TileOrScalar : AnyTypeOf<[Replay_Tile, Replay_Scalar]>;
def Replay_FloatTileOrScalar : AnyTypeOf<[Replay_Tile, AnyFloat]>;

//===----------------------------------------------------------------------===//
// Kernel
//===----------------------------------------------------------------------===//

def Replay_KernelOp : Replay_Op<"kernel", [
    IsolatedFromAbove, Symbol, FunctionOpInterface, AutomaticAllocationScope,
    OpAsmOpInterface]> {
  let summary = "The program of one block";
  let description = [{
    `num_warps` is the number of warps of the block, `blocks_per_row` the number of
    blocks per batch row of the one-dimensional launch grid.

    Constraints: (K1) `num_warps` is a power of two from 1 to 32; (K2) the body
    is one block that ends in `replay.return`; (K3) arguments are pointers or
    scalars; (K4) only pointers are `replay.readonly`, `replay.noalias` or
    `replay.dependent`; (K5) `replay.lanes_per_row` is a power of two from 1 to 32;
    (K6) what is dependent is not read-only.

    Attributes of an argument: `replay.name`; `replay.readonly`: nothing writes the
    memory while the kernel runs; `replay.noalias`: what the kernel has written
    through another pointer it does not read through this one; `replay.dependent`:
    the kernel before may write the memory until an `await_predecessor`.

    Attributes of the kernel, all facts of its tuning:
    - `replay.max_registers` caps the registers of a thread;
    - `replay.lanes_per_row`: lanes that share a row in a wide access to a tile; 8
      if absent, a cache line of 16 bytes each;
    - `replay.reuse_registers`: registers a thread may keep for tiles that are used
      again (`replay-reuse-loads`), and `replay.hoist_registers`: those it may hold
      for loads in flight (`replay-hoist-loads`); any number if absent;
    - `replay.fence_registers`: loads that need as many end in a `load_fence`; none
      do if absent;
    - `replay.stage_bytes`: views of at least as many bytes come through shared
      memory (`replay-stage-loads`); none do if absent.

    ```mlir
    replay.kernel @copy(%src: !replay.ptr<f32>) num_warps(4) blocks_per_row(1) {
      replay.return
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name,
    TypeAttrOf<FunctionType>:$function_type, I32Attr:$num_warps,
    I32Attr:$blocks_per_row, OptionalAttr<DictArrayAttr>:$arg_attrs,
    OptionalAttr<DictArrayAttr>:$res_attrs);
  let regions = (region AnyRegion:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::ArrayRef<::mlir::Type> getArgumentTypes() { return getFunctionType().getInputs(); }
    ::mlir::ArrayRef<::mlir::Type> getResultTypes() { return getFunctionType().getResults(); }
    ::mlir::Region *getCallableRegion() { return &getBody(); }
    static ::llvm::StringRef getDefaultDialect() { return "replay"; }
  }];
  let skipDefaultBuilders = 1;
  let builders = [OpBuilder<(ins "::llvm::StringRef":$name,
    "::mlir::FunctionType":$type, "int":$numWarps, "int":$blocksPerRow,
    CArg<"::mlir::ArrayRef<::mlir::DictionaryAttr>", "{}">:$argAttrs)>];
}

def Replay_ReturnOp : Replay_Op<"return",
    [Pure, Terminator, ReturnLike, HasParent<"KernelOp">]> {
  let summary = "Ends a kernel";
  let description = [{
    ```mlir
    replay.return
    ```
  }];
  let assemblyFormat = "attr-dict";
}

def Replay_ProgramIdOp : Replay_Op<"program_id", [Pure]> {
  let summary = "The block's index along an axis of the grid";
  let description = [{
    ```mlir
    %pid = replay.program_id x
    ```
  }];
  let arguments = (ins Replay_AxisAttr:$axis);
  let results = (outs I32:$result);
  let assemblyFormat = "$axis attr-dict";
}

def Replay_NumProgramsOp : Replay_Op<"num_programs", [Pure]> {
  let summary = "The number of blocks along an axis of the grid";
  let description = [{
    ```mlir
    %n = replay.num_programs x
    ```
  }];
  let arguments = (ins Replay_AxisAttr:$axis);
  let results = (outs I32:$result);
  let assemblyFormat = "$axis attr-dict";
}

def Replay_AwaitPredecessorOp : Replay_Op<"await_predecessor",
    [DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "Waits until the kernels before this one have ended";
  let description = [{
    Of a programmatic launch (sm_90), which may start while the kernel before it on
    the stream still runs: each thread that comes here waits until that one and all
    before it have ended and what they wrote can be read. With `then_launch` the
    next kernel may start from here on.

    To this kernel the wait is a write, by others, of all memory behind dependent
    arguments and behind pointers that it makes itself. Every path waits before it
    writes global memory and before it ends: who waits for this kernel has then
    waited for those before it too.

    ```mlir
    replay.await_predecessor {then_launch}
    ```
  }];
  let arguments = (ins UnitAttr:$then_launch);
  let assemblyFormat = "attr-dict";
}

def Replay_LaunchDependentsOp : Replay_Op<"launch_dependents",
    [MemoryEffects<[MemWrite<Replay_KernelOrder>]>]> {
  let summary = "Lets the next kernel start";
  let description = [{
    The next kernel on the stream, if it is launched programmatically, may start
    once every block came here or ended. In front of the wait it may start while
    kernels before this one still run.

    ```mlir
    replay.launch_dependents
    ```
  }];
  let assemblyFormat = "attr-dict";
}

//===----------------------------------------------------------------------===//
// Replay level
//===----------------------------------------------------------------------===//

// How a state is formed where it is formed: attributes of each use.
defvar Replay_Forming = (ins OptionalAttr<I32Attr>:$rows,
  DefaultValuedAttr<Replay_PrecisionAttr,
    "::replayjit::internal::replay::Precision::Ieee">:$precision,
  OptionalAttr<Replay_PrecisionAttr>:$split);

def Replay_ReconstructOp : Replay_Op<"reconstruct", [Pure,
    AttrSizedOperandSegments]> {
  let summary = "The state of checkpoint and ring, without forming it";
  let description = [{
    Stands for the block's rows of

        S = S0 diag(A) + sum_j d_j (W_j k_j)^T,   j = 0 .. count-1

    (SGLang PR #28451): `checkpoint` is S0 [V, K]; `d` [L, V] and `k` [L, K] are
    views of the ring's rows. Without a ring, S is the checkpoint. `depth` is the
    most rows a ring can hold, rounded up to a power of two. Memory is read where
    the state is used; until its last use nothing writes what it reads. What the
    decays are made from:

    - `gates` alone, [L] for Gated DeltaNet or [L, K] for Kimi Delta Attention:
      A is exp of their sum, and W_j of the sum of the newer ones. Rows are given
      from the newest down, unless the ring wraps; summing in this order keeps W
      exact for gates of any size, -inf included.
    - `total`, [K], and gates that are sums P_j since the checkpoint, the newest
      of them `total`: A = exp(total), W_j = exp(total - P_j).
    - `total` alone: k_j comes times exp(-P_j), so A = W_j = exp(total).

    Sums must be finite: inf - inf is no decay. Views have `count` rows, unless
    `base`, 0 to L-1, says that the ring wraps: then they have all L physical rows,
    and row p holds number (p - base) mod L, which is there if it is below `count`.

    Constraints: (R1) checkpoint, d and k have rank 2, gates rank 1 or 2, and all
    have float elements; (R2) `depth` is a power of two; (R3) count, d and k are
    all there, with gates or total or both, or all of them are absent; (R4) total
    is a tensor<Kxf32>, and gates beside it have rank 2; (R5) `base` needs the
    same static first size of d, k and gates, at most `depth`; (R6) the result is
    not formed.

    ```mlir
    %s = replay.reconstruct %s0 rows %m of %d, %k gates %g {depth = 16 : i32}
        : !replay.view<32x128xf32, strides [128, 1], align 16>,
          !replay.view<?x32xf32, strides [-128, 1], align 16>,
          !replay.view<?x128xf32, strides [-128, 1], align 16>,
          !replay.view<?xf32, strides [-1]> -> !replay.state<32x128>
    ```
  }];
  let arguments = (ins Replay_ViewType:$checkpoint, Optional<I32>:$count,
    Optional<Replay_ViewType>:$d, Optional<Replay_ViewType>:$k,
    Optional<Replay_ViewType>:$gates, Optional<Replay_Tile>:$total,
    Optional<I32>:$base, I32Attr:$depth);
  let results = (outs Replay_StateType:$result);
  let hasVerifier = 1;
  let assemblyFormat = [{
    $checkpoint (`rows` $count^ `of` $d `,` $k)? (`gates` $gates^)?
    (`total` $total^)? (`from` $base^)? attr-dict `:` type($checkpoint)
    (`,` type($d)^ `,` type($k))? (`,` type($gates)^)? (`total` type($total)^)?
    `->` type($result) }];
}

def Replay_FormOp : Replay_Op<"form", []> {
  let summary = "Reads a state into registers";
  let description = [{
    The same state, held as tiles of f32: a value like any other, which may be
    updated, carried by `scf.for` and passed on by `scf.if`. `rows` and `precision`
    say how the ring is added: so many rows a step, in a loop, or all at once if
    `rows` is absent; and how the products d_j (W_j k_j)^T round their operands. With
    `split` nothing is rounded: the matrix unit multiplies what the ring stores, which
    this precision holds, with the three parts of the factor that has a weight, all
    rows at once (see `replay.contract`).

    Constraints: (J1) the operand is not formed, and the result is the same state,
    formed; (J2) `rows` is a power of two; precisions other than ieee are for the
    matrix unit, which takes 16 or more; (J3) `split` is bf16 or tf32, and beside it
    there is neither rows nor a precision.

    ```mlir
    %t = replay.form %s {rows = 4 : i32} : !replay.state<32x128>
        -> !replay.state<32x128, tiles 128>
    ```
  }];
  let arguments = !con((ins Arg<Replay_StateType, "", [MemRead]>:$state),
    Replay_Forming);
  let results = (outs Replay_StateType:$result);
  let hasVerifier = 1;
  let assemblyFormat = "$state attr-dict `:` type($state) `->` type($result)";
}

def Replay_UpdateOp : Replay_Op<"update", [Pure, AttrSizedOperandSegments,
    AllTypesMatch<["state", "result"]>]> {
  let summary = "The state after a decay, a token, or both";
  let description = [{
    `S diag(decay) + d k^T`. `decay` is one number or one a column; the product is
    added by fused multiply-add.

    Constraints: (U1) the state is formed; (U2) decay or d and k are there: d is a
    tensor<Vxf32>, k a tensor<Kxf32> of the state's shape, and decay an f32 or a
    tensor<Kxf32>.

    ```mlir
    %u = replay.update %s decay %alpha add %d, %k : !replay.state<32x128, tiles 64>
        decay f32 add tensor<32xf32>, tensor<128xf32>
    ```
  }];
  let arguments = (ins Replay_StateType:$state,
    Optional<Replay_FloatTileOrScalar>:$decay, Optional<Replay_Tile>:$d,
    Optional<Replay_Tile>:$k);
  let results = (outs Replay_StateType:$result);
  let hasVerifier = 1;
  let assemblyFormat = [{ $state (`decay` $decay^)? (`add` $d^ `,` $k)? attr-dict `:`
    type($state) (`decay` type($decay)^)? (`add` type($d)^ `,` type($k))? }];
}

def Replay_ContractOp : Replay_Op<"contract", []> {
  let summary = "Products of a state with vectors over K";
  let description = [{
    `y_i = S x_i` for each x_i, in one walk over the state. Of a state that is not
    formed, `block_k` columns are read at a time (all if absent), output-only:
    S x = S0 (A x) + sum_j d_j ((W_j k_j) . x). With `rebuild` each such tile of S
    is formed, by a dot that rounds W d or W k, and the other operand, as that says.
    With `split` it is read output-only, S0 and rows k_j without weights by the matrix
    unit: their elements have a type that this precision holds, and each x_i becomes
    the sum of three parts of the precision, together as exact as f32, so that all
    products are exact.

    Constraints: (C1) each x_i is a tensor<Kxf32> and each y_i a tensor<Vxf32>
    of the state's shape; (C2) as many results as vectors; (C3) `block_k` divides
    K; (C4) a formed state is read as it is: it has none of the attributes; (C5)
    `split` is bf16 or tf32, and beside it there is neither rebuild nor block_k.

    ```mlir
    %o, %u = replay.contract %s, %xq, %xk {block_k = 64 : i32} : !replay.state<32x128>,
        tensor<128xf32>, tensor<128xf32> -> tensor<32xf32>, tensor<32xf32>
    ```
  }];
  let arguments = (ins Arg<Replay_StateType, "", [MemRead]>:$state,
    Variadic<Replay_Tile>:$vectors, OptionalAttr<I32Attr>:$block_k,
    OptionalAttr<Replay_PrecisionAttr>:$rebuild,
    OptionalAttr<Replay_PrecisionAttr>:$split);
  let results = (outs Variadic<Replay_Tile>:$results);
  let hasVerifier = 1;
  let assemblyFormat = [{ $state `,` $vectors attr-dict `:` type($state) `,`
    type($vectors) `->` type($results) }];
}

def Replay_FlushOp : Replay_Op<"flush", [AttrSizedOperandSegments]> {
  let summary = "Stores a state";
  let description = [{
    Stores S to each destination or, the short form of `replay.update` and a store,
    `S diag(decay) + d k^T`: the state after a token. A state that is not formed is
    formed for it, `block_k` columns at a time (all if absent), as `rows`,
    `precision` and `split` say (see `replay.form`).

    Constraints: (F1) decay, d and k are all there or all absent: d is a
    tensor<Vxf32>, k a tensor<Kxf32> of the state's shape, and decay an f32 or a
    tensor<Kxf32>; (F2) there is a destination, and each has rank 2; (F3) `block_k`
    and the others are as (C3), (J2) and (J3) say; (F4) a formed state is stored as it
    is: it has none of these attributes.

    ```mlir
    replay.flush %s decay %alpha update %dt, %kt into %s0 {rows = 4 : i32}
        : !replay.state<32x128>, f32, tensor<32xf32>, tensor<128xf32> into
        !replay.view<32x128xf32, strides [128, 1], align 16>
    ```
  }];
  let arguments = !con((ins Arg<Replay_StateType, "", [MemRead]>:$state,
    Optional<Replay_FloatTileOrScalar>:$decay, Optional<Replay_Tile>:$d,
    Optional<Replay_Tile>:$k, Arg<Variadic<Replay_ViewType>, "", [MemWrite]>:$dsts,
    OptionalAttr<I32Attr>:$block_k), Replay_Forming);
  let hasVerifier = 1;
  let assemblyFormat = [{ $state (`decay` $decay^ `update` $d `,` $k)? `into` $dsts
    attr-dict `:` type($state) (`,` type($decay)^ `,` type($d) `,` type($k))?
    `into` type($dsts) }];
}

//===----------------------------------------------------------------------===//
// Tile level: memory
//===----------------------------------------------------------------------===//

def Replay_ViewOp : Replay_Op<"view", [Pure, AttrSizedOperandSegments]> {
  let summary = "A view of global memory";
  let description = [{
    The piece of memory that starts `offset` elements (64-bit) after `ptr`. One
    operand for each `?` of the type's sizes (i32) and strides (i64), in order.
    `at_most` bounds a first size that is known only at run time.

    Constraints: (W1) pointer and view have one element type, and the view is of
    global memory; (W2) as many operands as `?`; (W3) `at_most` is positive and
    the first size `?`.

    ```mlir
    %v = replay.view %p offset %off sizes %m at_most 16 : !replay.ptr<f32>
        -> !replay.view<?x128xf32, strides [128, 1], align 16>
    ```
  }];
  let arguments = (ins Replay_PtrType:$ptr, I64:$offset, Variadic<I32>:$sizes,
    Variadic<I64>:$strides, OptionalAttr<I32Attr>:$most);
  let results = (outs Replay_ViewType:$result);
  let hasVerifier = 1;
  let assemblyFormat = [{ $ptr `offset` $offset (`sizes` $sizes^)?
    (`at_most` $most^)? (`strides` $strides^)? attr-dict `:` type($ptr) `->`
    type($result) }];
}

def Replay_PointerOp : Replay_Op<"pointer", [Pure]> {
  let summary = "An address that the kernel read from memory";
  let description = [{
    With `noalias`, what the kernel has written through another pointer it does not
    read through this one.

    ```mlir
    %p = replay.pointer %address {noalias} -> !replay.ptr<f32>
    ```
  }];
  let arguments = (ins I64:$address, UnitAttr:$noalias);
  let results = (outs Replay_PtrType:$result);
  let assemblyFormat = "$address attr-dict `->` type($result)";
}

def Replay_LoadOp : Replay_Op<"load", [AttrSizedOperandSegments,
    DeclareOpInterfaceMethods<Replay_AccessOpInterface>,
    Replay_Layouts<["layoutRules", "layoutAnchor"]>]> {
  let summary = "Reads a tile, or one element, of a view";
  let description = [{
    Element i of the result is the view's element at `offsets` + i. Elements
    outside the view's sizes, or where `mask` is false, are not accessed and
    read as zero. A result without a shape is the one element at `offsets`.

    Constraints: (D1) one i32 offset per dimension of the view; (D2) a tile has
    the view's rank and element type; (D3) a mask has the tile's shape.

    ```mlir
    %t = replay.load %v[%i, %j] : !replay.view<?x128xf32, strides [128, 1],
        align 16> -> tensor<16x128xf32>
    ```
  }];
  let arguments = (ins Arg<Replay_ViewType, "", [MemRead]>:$view,
    Variadic<I32>:$offsets, Optional<Replay_Tile>:$mask,
    DefaultValuedAttr<Replay_CachePolicyAttr,
      "::replayjit::internal::replay::CachePolicy::Normal">:$cache);
  let results = (outs Replay_TileOrScalar:$result);
  let hasVerifier = 1;
  let assemblyFormat = [{ $view `[` $offsets `]` (`mask` $mask^ `:` type($mask))?
    attr-dict `:` type($view) `->` type($result) }];
}

def Replay_StoreOp : Replay_Op<"store",
    [DeclareOpInterfaceMethods<Replay_AccessOpInterface>]> {
  let summary = "Writes a tile, or one element, to a view";
  let description = [{
    The twin of `replay.load`; elements outside the view's sizes are not
    written. A replicated element is written once.

    Constraints: (S1) one i32 offset per dimension of the view; (S2) a tile has
    the view's rank and element type; (S3) the view is of global memory.

    ```mlir
    replay.store %t, %v[%i, %j] : tensor<16x128xf32>,
        !replay.view<?x128xf32, strides [128, 1], align 16>
    ```
  }];
  let arguments = (ins Replay_TileOrScalar:$value,
    Arg<Replay_ViewType, "", [MemWrite]>:$view, Variadic<I32>:$offsets);
  let hasVerifier = 1;
  let assemblyFormat = [{ $value `,` $view `[` $offsets `]` attr-dict `:`
    type($value) `,` type($view) }];
}

def Replay_LoadFenceOp : Replay_Op<"load_fence",
    [MemoryEffects<[MemWrite<Replay_LoadOrder>]>]> {
  let summary = "Loads do not move across it";
  let description = [{
    The loads before it in its block are issued before what follows starts; what
    needs their results may still run behind it. Nothing waits here.

    ```mlir
    replay.load_fence
    ```
  }];
  let assemblyFormat = "attr-dict";
}

def Replay_ReportOp : Replay_Op<"report", []> {
  let summary = "Tells the host of an error";
  let description = [{
    `word` points at { count, kind, row, layer: i32, value: i64 }, which other
    devices and the host may read at any time. One thread of the block adds one
    to the count; who finds it zero writes the rest, the kind last. Does nothing
    if `word` is null. With `trap` the launch then ends as a fault.

    ```mlir
    replay.report %kind row %row layer %layer value %value to %word : !replay.ptr<i32>
    replay.report %kind row %row layer %layer value %value to %word {trap} : !replay.ptr<i32>
    ```
  }];
  let arguments = (ins I32:$kind, I32:$row, I32:$layer, I64:$value,
    Arg<Replay_PtrType, "", [MemRead, MemWrite]>:$word, UnitAttr:$trap);
  let assemblyFormat = [{ $kind `row` $row `layer` $layer `value` $value `to`
    $word attr-dict `:` type($word) }];
}

def Replay_OnOverflowOp : Replay_Op<"on_overflow",
    [MemoryEffects<[MemWrite<Replay_Reports>]>]> {
  let summary = "Where a kernel reports what does not fit fp16";
  let description = [{
    An `arith.truncf` of a tile to f16 saturates: a finite number that would
    round to infinity becomes 65504 or -65504; infinities and NaN stay. In a
    kernel with this operation, one lane of each warp that meets such a number
    also reports, as `replay.report` does, with its magnitude rounded down (at
    most 2^62) as the value, and with `trap`: these write the word, not this
    operation. Stands before, and dominates, what it is for.

    Constraint: (V1) a kernel has at most one.

    ```mlir
    replay.on_overflow %kind row %row layer %layer to %word : !replay.ptr<i32>
    ```
  }];
  let arguments = (ins I32:$kind, I32:$row, I32:$layer, Replay_PtrType:$word,
    UnitAttr:$trap);
  let hasVerifier = 1;
  let assemblyFormat = [{ $kind `row` $row `layer` $layer `to` $word attr-dict
    `:` type($word) }];
}

//===----------------------------------------------------------------------===//
// Tile level: shape and layout
//===----------------------------------------------------------------------===//

def Replay_IotaOp : Replay_Op<"iota", [Pure, Replay_Layouts<["isCheapToRepeat"]>]> {
  let summary = "0, 1, 2, ..";
  let description = [{
    Constraint: (I1) the result is a rank-1 tile of i32.

    ```mlir
    %i = replay.iota : tensor<16xi32>
    ```
  }];
  let results = (outs Replay_Tile:$result);
  let hasVerifier = 1;
  let assemblyFormat = "attr-dict `:` type($result)";
}

def Replay_SplatOp : Replay_Op<"splat", [Pure, Replay_Layouts<["isCheapToRepeat"]>]> {
  let summary = "A tile whose elements are one scalar";
  let description = [{
    Constraint: (P1) the tile's element type is the scalar's type.

    ```mlir
    %t = replay.splat %x : f32 -> tensor<16xf32>
    ```
  }];
  let arguments = (ins Replay_Scalar:$value);
  let results = (outs Replay_Tile:$result);
  let hasVerifier = 1;
  let hasFolder = 1;
  let assemblyFormat = "$value attr-dict `:` type($value) `->` type($result)";
}

def Replay_ExpandOp : Replay_Op<"expand", [Pure,
    Replay_Layouts<["layoutRules", "isCheapToRepeat"]>]> {
  let summary = "Adds a dimension of size 1";
  let description = [{
    Constraint: (E1) the operand has rank 1; `axis` is 0 or 1; the result is the
    operand's shape with a 1 inserted at `axis`.

    ```mlir
    %c = replay.expand %x axis 1 : tensor<16xf32> -> tensor<16x1xf32>
    ```
  }];
  let arguments = (ins Replay_Tile:$value, I32Attr:$axis);
  let results = (outs Replay_Tile:$result);
  let hasVerifier = 1;
  let assemblyFormat = [{ $value `axis` $axis attr-dict `:` type($value) `->`
    type($result) }];
}

def Replay_BroadcastOp : Replay_Op<"broadcast", [Pure,
    Replay_Layouts<["layoutRules", "isCheapToRepeat"]>]> {
  let summary = "Repeats dimensions of size 1";
  let description = [{
    Constraint: (B1) operand and result have one rank and element type, and each
    dimension of the operand is 1 or the result's.

    ```mlir
    %b = replay.broadcast %c : tensor<16x1xf32> -> tensor<16x128xf32>
    ```
  }];
  let arguments = (ins Replay_Tile:$value);
  let results = (outs Replay_Tile:$result);
  let hasVerifier = 1;
  let hasFolder = 1;
  let assemblyFormat = "$value attr-dict `:` type($value) `->` type($result)";
}

def Replay_TransposeOp : Replay_Op<"transpose", [Pure, Replay_LayoutRules]> {
  let summary = "Swaps the two dimensions; moves no data";
  let description = [{
    Constraint: (Q1) the result is the operand's rank-2 shape, swapped.

    ```mlir
    %t = replay.transpose %x : tensor<4x32xf32> -> tensor<32x4xf32>
    ```
  }];
  let arguments = (ins Replay_Tile:$value);
  let results = (outs Replay_Tile:$result);
  let hasVerifier = 1;
  let assemblyFormat = "$value attr-dict `:` type($value) `->` type($result)";
}

def Replay_SliceOp : Replay_Op<"slice", [Pure, Replay_LayoutRules]> {
  let summary = "A piece of a rank-1 tile";
  let description = [{
    The elements from `offset`. When a tile has a layout the offset must be a
    constant: K-tile loops are unrolled first (`replay-unroll-tiles`).

    Constraints: (Z1) both have rank 1 and one element type; the result is not
    larger than the operand; (Z2) the offset is a multiple of the result's size
    and the piece lies within the operand (checked where it is a constant).

    ```mlir
    %p = replay.slice %x[%kt] : tensor<128xf32> -> tensor<64xf32>
    ```
  }];
  let arguments = (ins Replay_Tile:$value, I32:$offset);
  let results = (outs Replay_Tile:$result);
  let hasVerifier = 1;
  let hasFolder = 1;
  let assemblyFormat = [{ $value `[` $offset `]` attr-dict `:` type($value) `->`
    type($result) }];
}

def Replay_StackOp : Replay_Op<"stack", [Pure,
    Replay_Layouts<["layoutRules", "layoutAnchor"]>]> {
  let summary = "Vectors as the rows of a tile";
  let description = [{
    Rows past the last vector are zero.

    Constraint: (ST1) the vectors are rank-1 tiles of one type; the result has their
    element type and size, and at least as many rows.

    ```mlir
    %m = replay.stack %x, %y, %z : tensor<16xf32>, tensor<16xf32>, tensor<16xf32>
        -> tensor<4x16xf32>
    ```
  }];
  let arguments = (ins Variadic<Replay_Tile>:$vectors);
  let results = (outs Replay_Tile:$result);
  let hasVerifier = 1;
  let assemblyFormat = [{ $vectors attr-dict `:` type($vectors) `->`
    type($result) }];
}

def Replay_ConvertLayoutOp : Replay_Op<"convert_layout", [Pure]> {
  let summary = "The same tile in another layout";
  let description = [{
    Lowered to register moves and selects where every thread holds what it needs,
    else to an exchange through shared memory.

    Constraint: (T1) shapes and element types agree.

    ```mlir
    %b = replay.convert_layout %a : tensor<16xf32, #a> -> tensor<16xf32, #b>
    ```
  }];
  let arguments = (ins Replay_Tile:$value);
  let results = (outs Replay_Tile:$result);
  let hasVerifier = 1;
  let hasFolder = 1;
  let assemblyFormat = "$value attr-dict `:` type($value) `->` type($result)";
}

//===----------------------------------------------------------------------===//
// Tile level: arithmetic
//===----------------------------------------------------------------------===//

def Replay_ReduceOp : Replay_Op<"reduce", [Pure, Replay_LayoutRules]> {
  let summary = "Sum of a tile along an axis";
  let description = [{
    The order of the additions is that of the layout. A rank-1 tile reduces to a
    scalar. The result of a rank-2 tile may be distributed: where the rows a
    lane group holds are as many as its lanes, each lane ends with its own row.

    Constraint: (N1) `axis` is below the rank; the element type is f32; the
    result is the operand's shape without that dimension.

    ```mlir
    %r = replay.reduce %t axis 1 : tensor<32x128xf32> -> tensor<32xf32>
    ```
  }];
  let arguments = (ins Replay_Tile:$value, I32Attr:$axis);
  let results = (outs Replay_TileOrScalar:$result);
  let hasVerifier = 1;
  let assemblyFormat = [{ $value `axis` $axis attr-dict `:` type($value) `->`
    type($result) }];
}

def Replay_CumsumOp : Replay_Op<"cumsum", [Pure, SameOperandsAndResultType,
    Replay_Layouts<["layoutRules", "layoutAnchor"]>]> {
  let summary = "Running sum along an axis";
  let description = [{
    Inclusive unless `exclusive`; from the last element down if `reverse`. The
    additions run one after another in that direction, in f32.

    Constraint: (M1) `axis` is below the rank and the element type is f32.

    ```mlir
    %w = replay.cumsum %g axis 0 {exclusive, reverse} : tensor<16xf32>
    ```
  }];
  let arguments = (ins Replay_Tile:$value, I32Attr:$axis, UnitAttr:$reverse,
    UnitAttr:$exclusive);
  let results = (outs Replay_Tile:$result);
  let hasVerifier = 1;
  let assemblyFormat = "$value `axis` $axis attr-dict `:` type($value)";
}

def Replay_DotOp : Replay_Op<"dot", [Pure,
    Replay_Layouts<["layoutRules", "layoutAnchor"]>]> {
  let summary = "Matrix product of two tiles plus an accumulator";
  let description = [{
    `c + a b` with f32 accumulation. `precision` alone says how the f32 operands
    round: `ieee` not at all (FMA), `bf16` and `f16` to nearest, `tf32` cut off as
    by the matrix unit. With `wide` a lane's part of a fragment is up to eight
    neighbours of a's row, and of b's row: wide accesses to memory, for which K and N
    take another order in the fragments.

    Constraints: (O1) a is MxK, b is KxN, c and the result are MxN, all f32;
    (O2) all but `ieee`: M and K are at least 16, N at least 8; (O3) `ieee` is not wide.

    ```mlir
    %s = replay.dot %a, %b, %c precision tf32
        : tensor<64x16xf32>, tensor<16x64xf32>, tensor<64x64xf32>
        -> tensor<64x64xf32>
    ```
  }];
  let arguments = (ins Replay_Tile:$a, Replay_Tile:$b, Replay_Tile:$c,
    Replay_PrecisionAttr:$precision, UnitAttr:$wide);
  let results = (outs Replay_Tile:$result);
  let hasVerifier = 1;
  let assemblyFormat = [{ $a `,` $b `,` $c `precision` $precision attr-dict `:`
    type($a) `,` type($b) `,` type($c) `->` type($result) }];
}

//===----------------------------------------------------------------------===//
// Staged level
//===----------------------------------------------------------------------===//

def Replay_AllocOp : Replay_Op<"alloc",
    [MemoryEffects<[MemAlloc<Replay_SharedMemory>]>]> {
  let summary = "A buffer in the block's shared memory";
  let description = [{
    One `async_copy` fills it, once in the life of a block.

    Constraint: (A1) stands directly in a kernel's body.

    ```mlir
    %buf = replay.alloc : !replay.buffer<64x128xf32>
    replay.async_copy %v, %buf : !replay.view<64x128xf32, strides [128, 1],
      align 16>, !replay.buffer<64x128xf32>
    replay.wait %buf : !replay.buffer<64x128xf32>
    %s = replay.stage %buf : !replay.buffer<64x128xf32>
      -> !replay.view<64x128xf32, strides [128, 1], align 16, shared>
    %t = replay.load %s[%c0, %c0] : !replay.view<64x128xf32, strides [128, 1],
      align 16, shared> -> tensor<64x128xf32>
    ```
  }];
  let results = (outs Replay_BufferType:$result);
  let hasVerifier = 1;
  let assemblyFormat = "attr-dict `:` type($result)";
}

def Replay_AsyncCopyOp : Replay_Op<"async_copy"> {
  let summary = "Starts the bulk copy of a view into a buffer";
  let description = [{
    The block goes on; `replay.wait` says when the copy has arrived.

    Constraints: (Y1) the view is of global memory and has the buffer's element
    type and sizes; a first size known only at run time is at most the buffer's;
    (Y2) rows are adjacent, ascending or descending; the bytes of a row, or of a
    view of rank 1, and the view's alignment are multiples of 16.

    See `replay.alloc` for an example.
  }];
  let arguments = (ins Arg<Replay_ViewType, "", [MemRead]>:$view,
    Arg<Replay_BufferType, "", [MemWrite<Replay_SharedMemory>]>:$buffer);
  let hasVerifier = 1;
  let assemblyFormat = [{ $view `,` $buffer attr-dict `:` type($view) `,`
    type($buffer) }];
}

def Replay_WaitOp : Replay_Op<"wait"> {
  let summary = "Waits until a buffer's copy has arrived";
  let description = [{ See `replay.alloc` for an example. }];
  let arguments = (ins Arg<Replay_BufferType, "", [MemRead<Replay_SharedMemory>,
    MemWrite<Replay_SharedMemory>]>:$buffer);
  let assemblyFormat = "$buffer attr-dict `:` type($buffer)";
}

def Replay_StageOp : Replay_Op<"stage", [Pure]> {
  let summary = "A buffer as a view of shared memory";
  let description = [{
    What was copied, to be loaded after the `wait`. `size` is a first size known
    only at run time. Rows lie in the order of memory: those of a view that
    descended still do.

    Constraints: (X1) the view is of shared memory, has the buffer's element
    type and sizes, or a first `?` and `size`; (X2) rows are adjacent, ascending
    or descending.

    See `replay.alloc` for an example.
  }];
  let arguments = (ins Replay_BufferType:$buffer, Optional<I32>:$size);
  let results = (outs Replay_ViewType:$result);
  let hasVerifier = 1;
  let assemblyFormat = [{ $buffer (`size` $size^)? attr-dict `:` type($buffer)
    `->` type($result) }];
}

//===----------------------------------------------------------------------===//
// Thread level
//===----------------------------------------------------------------------===//

def Replay_LdOp : Replay_Op<"ld"> {
  let summary = "One thread's read of consecutive elements";
  let description = [{
    One access of as many bytes as the results have together; zero where
    `predicate` is false. Lowered to a vector load or a predicated PTX load on a
    GPU, to a checked call under emulation. `dependent`: not before the wait for
    the kernel before.

    Constraints: (H1) the results have one type, and together 2, 4, 8 or 16
    bytes, which the address is a multiple of.

    ```mlir
    %a, %b = replay.ld %p if %c : !llvm.ptr<1> -> f32, f32
    ```
  }];
  let arguments = (ins Arg<Replay_ThreadPointer, "", [MemRead]>:$address,
    Optional<I1>:$predicate, UnitAttr:$readonly, DefaultValuedAttr<Replay_CachePolicyAttr,
      "::replayjit::internal::replay::CachePolicy::Normal">:$cache, UnitAttr:$dependent);
  let results = (outs Variadic<Replay_Scalar>:$results);
  let hasVerifier = 1;
  let assemblyFormat = [{ $address (`if` $predicate^)? attr-dict `:`
    type($address) `->` type($results) }];
}

def Replay_StOp : Replay_Op<"st", [AttrSizedOperandSegments]> {
  let summary = "One thread's write of consecutive elements";
  let description = [{
    The twin of `replay.ld`; does nothing where `predicate` is false.

    Constraint: (H2) as (H1), for the operands.

    ```mlir
    replay.st %a, %b to %p if %c : !llvm.ptr<1>, f32, f32
    ```
  }];
  let arguments = (ins Variadic<Replay_Scalar>:$values,
    Arg<Replay_ThreadPointer, "", [MemWrite]>:$address, Optional<I1>:$predicate);
  let hasVerifier = 1;
  let assemblyFormat = [{ $values `to` $address (`if` $predicate^)? attr-dict `:`
    type($address) `,` type($values) }];
}

#endif
