//===- ReplayDialect.td - The replay dialect ---------------*- tablegen -*-===//

#ifndef REPLAY_DIALECT_TD
#define REPLAY_DIALECT_TD

include "mlir/IR/OpBase.td"

def Replay_Dialect : Dialect {
  let name = "replay";
  let cppNamespace = "::replayjit::internal::replay";
  let summary = "Tile programs for linear-attention decode kernels";
  let description = [{
    A kernel of this dialect is the program of one block: scalars are uniform
    over the block, tiles are tensors of rank 1 or 2 with power-of-two shapes.
    There are no threads until a tile has a layout (its tensor encoding) and the
    program is lowered. Elementwise work is written with `arith` and `math` on
    tensors, loops and branches with `scf`.

    Four groups of operations, each lowered to the next:
    1. replay level: a state in memory (`reconstruct`) or in registers (`form`,
       `update`), its products (`contract`) and its store (`flush`);
    2. tile level: views of global memory, loads, dots, scans, reductions;
    3. staged level: buffers in shared memory, filled by asynchronous copies;
    4. thread level: the memory accesses of one thread.
  }];
  let hasConstantMaterializer = 1;
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
  let dependentDialects = ["::mlir::arith::ArithDialect"];
  let extraClassDeclaration = [{
    void registerAttributes();
    void registerTypes();
  }];
}

#endif
