//===- Passes.td - Rewrites of tile programs ---------------*- tablegen -*-===//

#ifndef REPLAY_TRANSFORMS_PASSES_TD
#define REPLAY_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def ExpandStatePass : Pass<"replay-expand-state", "::replayjit::internal::replay::KernelOp"> {
  let summary = "Replace replay-level operations by tile programs";
  let description = [{
    Expands each `replay.contract` and `replay.flush` of a state, and erases
    `replay.reconstruct`.

    `readout=output-only`: `S x = A (S0 x) + sum_j d_j W_j (k_j . x)`. The state
    is not formed; all sums are f32.
    ```mlir
    %o = replay.contract %s, %x          // before
    // after, for each K tile:           %p = reduce(%s0 * broadcast(%x))
    //        once:                      %r = reduce(%d * (W * reduce(%k * %x)))
    //                                   %o = A * sum(%p) + %r
    ```
    `readout=rebuild`: each K tile of S is formed by a dot,
    `S0 A + (W d)^T k`, and contracted with every vector at once.
    Numeric effect: the dot rounds W d and k to `precision`.

    A flush walks the K tiles: output-only adds the ring's rows in chunks of
    `flush-rows`; rebuild forms each tile again, as its readout did.

    Preconditions: `block-k` divides the state's columns.
  }];
  let options = [
    Option<"rebuild", "rebuild", "bool", "false", "form the state to read it">,
    Option<"blockK", "block-k", "int", "128", "columns per K tile">,
    Option<"flushRows", "flush-rows", "int", "4", "ring rows per step of a flush">,
    Option<"precision", "precision", "std::string", "\"tf32\"",
           "of the rebuild readout's dot">];
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

def FuseFlushPass : Pass<"replay-fuse-flush", "::replayjit::internal::replay::KernelOp"> {
  let summary = "Keep the tile that the readout loaded for the flush";
  let description = [{
    Replaces a load by an earlier load of the same tile that dominates it, so
    that a flush reads no checkpoint. No numeric effect.

    Preconditions: the tiles of one row together fit in `max-registers`
    registers a thread; nothing between the loads stores through the pointer.
    ```mlir
    %t = replay.load %s0[%i, %j]         // both stay one load:
    scf.if %flush {
      %u = replay.load %s0[%i, %j]       // replaced by %t
    }
    ```
  }];
  let options = [Option<"maxRegisters", "max-registers", "int", "128",
                        "registers a thread may keep for such tiles">];
}

def HoistLoadsPass : Pass<"replay-hoist-loads", "::replayjit::internal::replay::KernelOp"> {
  let summary = "Issue a block's loads before its arithmetic";
  let description = [{
    Moves the loads of each block to its start, with the pure operations that
    give their addresses, smallest tile first, so that a block waits for memory
    once. A load stays behind a store through its own pointer; pointers of
    different arguments do not overlap, except where the operator contract says
    so (the cursor for an absent force_flush, and neither is stored to). Loads
    that would need more than `max-registers` registers a thread stay. If they
    are many, `nvvm.pmevent` ends them, which the assembler moves no load across: it
    would put one behind arithmetic that waits for another. No numeric effect.
  }];
  let dependentDialects = ["::mlir::NVVM::NVVMDialect"];
  let options = [Option<"maxRegisters", "max-registers", "int", "176",
                        "registers a thread may hold for loads in flight">];
}

def AssignLayoutsPass : Pass<"replay-assign-layouts", "::replayjit::internal::replay::KernelOp"> {
  let summary = "Give every tile a layout";
  let description = [{
    Sets the encoding of every tile type and inserts `replay.convert_layout`
    where an operation needs another one. Anchors come first, in this order:
    results of matrix-unit dots; rank-2 loads, largest first (8 lanes a row, or 16
    in a block of one warp, 16 bytes each); scans, exponentials and logarithms, which have theirs from the
    start: a scan's axis lies in registers, an exponential is computed once. From each
    anchor layouts flow to operands and users; the first to reach a value wins. No numeric
    effect, except that a reduction adds in the order of its layout.
  }];
}

#endif
