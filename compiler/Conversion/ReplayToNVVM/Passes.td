//===- Passes.td - Tile programs to thread programs --------*- tablegen -*-===//

#ifndef REPLAY_CONVERSION_PASSES_TD
#define REPLAY_CONVERSION_PASSES_TD

include "mlir/Pass/PassBase.td"

def ConvertReplayToNVVMPass : Pass<"convert-replay-to-nvvm", "::mlir::ModuleOp"> {
  let summary = "Lower the program of a block to the program of one thread";
  let description = [{
    Each tile becomes the scalars that a thread holds of it, each kernel an
    `llvm.func` with `nvvm.kernel`. Elementwise operations repeat for every
    register; exchanges become shuffles, `mma.sync` and barriers; memory accesses
    become `replay.ld` and `replay.st`. `scf` and scalar arithmetic stay. What
    remains is the thread program that GPU and emulation share.

    Numeric effect: a sum of products adds by fused multiply-add.

    The function carries `replay.shared_bytes`, `replay.threads` and
    `replay.blocks_per_row`.

    Precondition: every tile has a layout (`replay-assign-layouts`).
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect", // and nvvm::addDialect
    "::mlir::scf::SCFDialect", "::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
}

def MergeBarriersPass : Pass<"replay-merge-barriers", "::mlir::ModuleOp"> {
  let summary = "Exchange in one round what is ready together";
  let description = [{
    Where the stores to shared memory between two barriers need nothing that was
    read after the first, they move before it and the second barrier goes. Every
    exchange has a buffer of its own, so a barrier outside of loops has only to
    order writes before reads. Blocks within loops stay as they are. No numeric
    effect.

    Before: `st A; barrier; ld A; st B; barrier; ld B`;
    after: `st A; st B; barrier; ld A; ld B`.
  }];
}

def ExpandMathPass : Pass<"replay-expand-math", "::mlir::ModuleOp"> {
  let summary = "Write exp and log1p of f32 scalars with fused multiply-adds";
  let description = [{
    The PTX backend has no library for them, and its approximate instructions lose
    digits that decay gates amplify. exp: split ln 2, then a minimax polynomial of
    degree 6. log1p: split off the exponent, then the atanh series of m/(2+m), whose
    quotient is a product with an approximate reciprocal, corrected once. Both are within 2 units
    in the last place of the exact value, infinities and NaN too. An exp below
    2^-126.5 is 0, one above 2^127.5 infinite; log1p takes arguments above -1, and
    finite ones up to 2^126.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
}

def LowerMathForGPUPass : Pass<"replay-lower-math-for-gpu", "::mlir::ModuleOp"> {
  let summary = "Use approximate instructions where the program allows them";
  let description = [{
    f32 scalars: `math.rsqrt` with `fastmath<afn>` becomes `rsqrt.approx.ftz`, and
    `arith.divf` with `fastmath<arcp>` a product with `rcp.approx.ftz`. All else
    stays: exact division and square root take a call and a branch each.

    Numeric effect (PTX ISA, "Floating-Point Instructions"): relative errors up to
    2^-22.9 (rsqrt) and 2^-23 (rcp); numbers below 2^-126 count as 0.
  }];
}

def LowerMemoryForGPUPass : Pass<"replay-lower-memory-for-gpu", "::mlir::ModuleOp"> {
  let summary = "Lower replay.ld, replay.st and replay.load_fence for a GPU";
  let description = [{
    An access without a predicate becomes a vector load or store; with one, a
    predicated PTX instruction that reads zero where the predicate is false, so
    that no branch stands around it. A load fence becomes a `pmevent`, across which
    the assembler moves nothing.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"]; // and nvvm::addDialect
}

#endif
