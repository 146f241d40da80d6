//===- UnrollTiles.cpp - Unroll loops over K tiles ------------------------===//

#include "compiler/Transforms/Passes.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Utils/Utils.h"

namespace replayjit::internal {
#define GEN_PASS_DEF_UNROLLTILESPASS
#include "compiler/Transforms/Passes.h.inc"
} // namespace replayjit::internal

using namespace mlir;
using namespace replayjit::internal;

namespace {
struct UnrollTilesPass
    : replayjit::internal::impl::UnrollTilesPassBase<UnrollTilesPass> {
  void runOnOperation() override {
    SmallVector<scf::ForOp> loops;
    getOperation()->walk([&](scf::ForOp loop) {
      if (loop->hasAttr(kTileLoop))
        loops.push_back(loop);
    });
    for (scf::ForOp loop : loops)
      if (failed(loopUnrollFull(loop))) {
        loop.emitError("a loop over tiles needs constant bounds");
        return signalPassFailure();
      }
  }
};
} // namespace
