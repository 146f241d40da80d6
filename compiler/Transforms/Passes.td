//===- Passes.td - Rewrites of tile programs ---------------*- tablegen -*-===//

#ifndef REPLAY_TRANSFORMS_PASSES_TD
#define REPLAY_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def ExpandStatePass : Pass<"replay-expand-state", "::replayjit::internal::replay::KernelOp"> {
  let summary = "Replace replay-level operations by tile programs";
  let description = [{
    A state that is not formed is read as each use says; afterwards no state is left.

    `replay.contract`: `S x = A (S0 x) + sum_j d_j W_j (k_j . x)`. The state is not
    formed; all sums are f32.
    ```mlir
    %o = replay.contract %s, %x          // before
    // after, for each K tile:           %p = reduce(%s0 * broadcast(%x))
    //        once:                      %r = reduce(%d * (W * reduce(%k * %x)))
    //                                   %o = A * sum(%p) + %r
    ```
    With `rebuild` each K tile of S is formed by a dot, `S0 A + (W d)^T k`, and
    contracted with every vector at once. Numeric effect: the dot rounds W d and k
    to that precision.

    With `split` the products of S0, and of rows of k that have no weights, with all
    vectors are one dot, of three parts of each vector (`ExactProducts.h`):
    ```mlir
    // %x0 = bf16(%x), %x1 = bf16(%x - %x0), %x2 = bf16(%x - %x0 - %x1)
    // %b = transpose(stack(%x0, %x1, %x2)) : tensor<128x8xf32>
    // %c = dot %s0, %b, 0 precision bf16 {wide}, and %p = reduce(%c)
    ```
    Numeric effect: none but the order of the sums, and that of the matrix unit.

    `replay.flush` and `replay.form` form each K tile: `rows` rows of the ring a
    step, or by one dot, or with `split` by three. A formed state becomes its f32 tiles, also where `scf.for`
    carries it or `scf.if` gives it:
    ```mlir
    %t = scf.for .. iter_args(%s = %s0) -> (!replay.state<32x128, tiles 64>) {
      %u = replay.update %s decay %a     // before
    // after: iter_args(%x = .., %y = ..) -> (tensor<32x64xf32>, tensor<32x64xf32>)
    //   %u = %x * splat(%a), %v = %y * splat(%a)
    ```

    Preconditions: only operations of this dialect use a state, but for `scf.for`,
    `scf.if` and `scf.yield`, which take formed ones; a precision to split for holds
    what is stored.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
                           "::mlir::scf::SCFDialect"];
}

def UnrollTilesPass : Pass<"replay-unroll-tiles", "::replayjit::internal::replay::KernelOp"> {
  let summary = "Unroll loops over K tiles";
  let description = [{
    Unrolls every `scf.for` marked `replay.tiles`, whose bounds are constants, so
    that slices of vectors held in registers have constant offsets. No numeric
    effect.
  }];
  let dependentDialects = ["::mlir::scf::SCFDialect"];
}

def DelayWaitPass : Pass<"replay-delay-wait", "::replayjit::internal::replay::KernelOp"> {
  let summary = "Wait for the kernel before as late as possible";
  let description = [{
    Moves each `replay.await_predecessor` down its block to the first operation that
    writes global memory or reads what the wait stands for, by their effects; and
    where that is an `scf.if`, into both of its branches, each of which then starts
    to look anew. So a kernel waits once on each path, and what its branches have
    in common is read before. No numeric effect.
    ```mlir
    replay.await_predecessor           // becomes
    %i = replay.load %slots[%c0]       // %i = replay.load %slots[%c0]
    scf.if %c {                        // scf.if %c {
      %q = replay.load %token[%i]      //   replay.await_predecessor
    }                                  //   %q = replay.load %token[%i]
                                       // } else {
                                       //   replay.await_predecessor
                                       // }
    ```
  }];
  let dependentDialects = ["::mlir::scf::SCFDialect"];
}

def StageLoadsPass : Pass<"replay-stage-loads", "::replayjit::internal::replay::KernelOp"> {
  let summary = "Copy views to shared memory before their tiles are loaded";
  let description = [{
    A view of at least `replay.stage_bytes` (a kernel without it stays as it is)
    whose tiles are loaded becomes a stage: its asynchronous copy starts as early
    in its block as the address is known, the block waits for it before the first
    load, and all loads read the stage. So a thread holds no registers for what is
    on its way, and what is loaded twice comes from memory once. No numeric effect.

    Preconditions, else a remark says why a view stays: adjacent rows, of a static
    number or of at most a known one; an address, and bytes a row, that are
    multiples of 16; a first load that stands in the view's own block, outside of
    loops and in a kernel without roles; and nothing in between that may write what
    is loaded. The target needs bulk copies.
    ```mlir
    %t = replay.load %v[%i, %j]        // becomes
    replay.async_copy %v, %buffer[%c0]
    replay.wait %buffer[%c0]
    %s = replay.stage %buffer[%c0]
    %t = replay.load %s[%i, %j]
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def ReuseLoadsPass : Pass<"replay-reuse-loads", "::replayjit::internal::replay::KernelOp"> {
  let summary = "Keep a tile that is loaded again";
  let description = [{
    Replaces a load by an earlier load of the same tile that dominates it: a flush
    then reads no checkpoint that its readout has read. No numeric effect.

    Preconditions: all tiles kept together fit in the kernel's
    `replay.reuse_registers`; nothing between the loads may write what they read.
    Writes are what operations declare as their effects; two pointers are told
    apart by `replay.readonly` and `replay.noalias` (see `replay.kernel`).
    ```mlir
    %t = replay.load %s0[%i, %j]         // both stay one load:
    scf.if %flush {
      %u = replay.load %s0[%i, %j]       // replaced by %t
    }
    ```
  }];
}

def HoistLoadsPass : Pass<"replay-hoist-loads", "::replayjit::internal::replay::KernelOp"> {
  let summary = "Issue a block's loads before its arithmetic";
  let description = [{
    Moves the loads of each block to its start, with the pure operations that
    give their addresses, smallest tile first, so that a block waits for memory
    once; behind the asynchronous copies that stand there. A load stays behind
    what may write the memory it reads, by the same rules as in
    `replay-reuse-loads`, behind a `replay.load_fence`, and where it reads shared
    memory. Loads that would need more than the kernel's `replay.hoist_registers`
    a thread stay. If those that moved need `replay.fence_registers`, a
    `replay.load_fence` ends them. No numeric effect.

    A `replay.await_predecessor` parts a block in two. Loads of what it does not
    stand for go to the block's start from either side, so that they are on their
    way while the kernel waits; the others gather behind it in the same manner.
    ```mlir
    replay.await_predecessor           // becomes
    %q = replay.load %token[%i]        // %s = replay.load %state[%i]
    %x = math.exp %q                   // replay.await_predecessor
    %s = replay.load %state[%i]        // %q = replay.load %token[%i]
                                       // %x = math.exp %q
    ```
  }];
}

def AssignLayoutsPass : Pass<"replay-assign-layouts", "::replayjit::internal::replay::KernelOp"> {
  let summary = "Give every tile a layout";
  let description = [{
    Sets the encoding of every tile type and inserts `replay.convert_layout`
    where an operation needs another one. What an operation needs and what follows
    for its tiles it says itself (`LayoutOpInterface`). Anchors come first, in this
    order: results of matrix-unit dots; rank-2 accesses, largest first
    (`replay.lanes_per_row` lanes a row, 16 bytes each); scans, exponentials and
    logarithms, which have theirs from the start: a scan's axis lies in registers,
    an exponential is computed once. From each anchor layouts flow to operands and
    users; the first to reach a value wins. No numeric effect, except that a
    reduction adds in the order of its layout.
  }];
}

#endif
