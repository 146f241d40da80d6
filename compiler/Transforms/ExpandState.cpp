//===- ExpandState.cpp - Replay-level operations become tile programs -----===//
//
// A state is a checkpoint and a ring. This file writes down how it is read
// (output-only or rebuild) and how it is formed for a flush.
//
//===----------------------------------------------------------------------===//

#include "compiler/Transforms/Passes.h"
#include "compiler/Transforms/TileBuilder.h"

namespace replayjit::internal {
#define GEN_PASS_DEF_EXPANDSTATEPASS
#include "compiler/Transforms/Passes.h.inc"
} // namespace replayjit::internal

using namespace mlir;
using namespace replayjit::internal;
using namespace replayjit::internal::replay;

namespace {

/// What every use of one state shares: its parts, and the decays of the
/// checkpoint (A) and of the ring's rows (W), computed once where it is
/// reconstructed. Gates of a column each (KDA) make A a vector over K and W a
/// tile, or A again where k comes decayed; else A is a number and W a vector
/// over the rows.
struct StateParts {
  mutable ReconstructOp op;
  int64_t rows, columns, depth;
  Value decay;   ///< A, f32 or tensor<columns>; null without a ring.
  Value weights; ///< W, tensor<depth[xcolumns]>; null without gates.

  explicit StateParts(ReconstructOp op)
      : op(op), rows(op.getType().getRows()),
        columns(op.getType().getColumns()), depth(op.getDepth()) {
    if (!hasRing())
      return;
    TileBuilder b(op.getLoc(), op);
    Value total = op.getTotal();
    if (op.getGates()) {
      Value gates = loadGates(b, b.index(0), depth, b.index(0), columns);
      weights = b.exp(exponents(b, gates, b.index(0)));
      if (!total)
        total = b.reduce(gates, 0);
    }
    decay = b.exp(total);
  }

  bool hasRing() const { return op.getCount() != nullptr; }
  bool isPerColumn() const {
    return decay && isa<RankedTensorType>(decay.getType());
  }
  /// True if the weight of a row needs the gates of the rows before it.
  bool isScanned() const { return hasRing() && !op.getTotal(); }
  /// The end of a loop over the ring's rows.
  Value rowCount(TileBuilder &b) const {
    if (!op.getBase())
      return op.getCount();
    return b.index(op.getD().getType().getShape()[0]);
  }

  Value checkpoint(TileBuilder &b, Value column, int64_t width) const {
    return b.load(op.getCheckpoint(), {b.index(0), column}, {rows, width});
  }
  /// `count` rows of d from `row`.
  Value loadD(TileBuilder &b, Value row, int64_t count) const {
    return loadRows(b, op.getD(), row, count, b.index(0), rows);
  }
  Value loadK(TileBuilder &b, Value row, int64_t count, Value column,
              int64_t width) const {
    return loadRows(b, op.getK(), row, count, column, width);
  }
  /// The gates of `count` rows from `row`, of the columns asked for if they
  /// have columns.
  Value loadGates(TileBuilder &b, Value row, int64_t count, Value column,
                  int64_t width) const {
    if (op.getGates().getType().getRank() == 1)
      return b.load(op.getGates(), row, count);
    return loadRows(b, op.getGates(), row, count, column, width);
  }

  /// What exp makes the weights of rows from their `gates`, of the columns
  /// from `column`. A scan starts from zero.
  Value exponents(TileBuilder &b, Value gates, Value column) const {
    if (isScanned())
      return b.newerSums(gates);
    auto type = cast<RankedTensorType>(gates.getType());
    Value total = b.slice(op.getTotal(), column, type.getDimSize(1));
    return b.sub(b.spread(total, 0, type.getDimSize(0)), gates);
  }

  /// Rows of k times weights: one a row, one each, or (none) A's.
  Value weighted(TileBuilder &b, Value kRows, Value own, Value column) const {
    auto type = cast<RankedTensorType>(kRows.getType());
    if (own)
      return b.mul(kRows, own);
    return b.mul(kRows, b.spread(b.slice(decay, column, type.getDimSize(1)), 0,
                                 type.getDimSize(0)));
  }

private:
  Value loadRows(TileBuilder &b, Value view, Value row, int64_t count,
                 Value column, int64_t width) const {
    return b.load(view, {row, column}, {count, width},
                  op.getBase() ? isThere(b, row, count, width) : Value());
  }

  /// Of each physical row of a ring of L that wraps: (p - base) mod L < count.
  Value isThere(TileBuilder &b, Value row, int64_t count, int64_t width) const {
    int32_t size = op.getD().getType().getShape()[0];
    auto all = [&](Value scalar) { return b.splat(scalar, {count}); };
    Value shift = b.addI(row, b.subI(b.index(size), op.getBase()));
    Value place = b.remI(b.addI(b.iota(count), all(shift)), all(b.index(size)));
    return b.spread(b.isLess(place, all(op.getCount())), 1, width);
  }
};

struct ExpandStatePass
    : replayjit::internal::impl::ExpandStatePassBase<ExpandStatePass> {
  using ExpandStatePassBase::ExpandStatePassBase;

  Precision readoutPrecision;

  void runOnOperation() override {
    auto read = symbolizePrecision(precision);
    if (!read) {
      getOperation().emitError("precision must be ieee, tf32, bf16 or f16");
      return signalPassFailure();
    }
    readoutPrecision = *read;

    SmallVector<ReconstructOp> states;
    getOperation()->walk([&](ReconstructOp op) { states.push_back(op); });
    for (ReconstructOp op : states) {
      if (blockK < 1 || op.getType().getColumns() % blockK != 0) {
        op.emitError() << "block-k " << (int)blockK << " does not divide the "
                       << op.getType().getColumns() << " columns of the state";
        return signalPassFailure();
      }
      StateParts parts(op);
      for (Operation *user : llvm::make_early_inc_range(op->getUsers())) {
        if (auto contract = dyn_cast<ContractOp>(user))
          rebuild ? contractRebuild(parts, contract)
                  : contractOutputOnly(parts, contract);
        else
          rebuild ? flushRebuild(parts, cast<FlushOp>(user))
                  : flushOutputOnly(parts, cast<FlushOp>(user));
        user->erase();
      }
      op.erase();
    }
  }

  /// S x = A (S0 x) + sum_j d_j W_j (k_j . x), or with a decay a column
  /// S x = S0 (A x) + sum_j d_j ((W_j k_j) . x)
  void contractOutputOnly(const StateParts &state, ContractOp op) {
    TileBuilder b(op.getLoc(), op);
    SmallVector<Value> init(op.getVectors().size(), b.zeros({state.rows}));
    bool perColumn = state.isPerColumn();
    SmallVector<Value> vectors(op.getVectors()); // As S0 sees them.
    if (perColumn)
      for (Value &vector : vectors)
        vector = b.mul(vector, state.decay);
    scf::ForOp loop = b.tileLoop(state.columns, blockK, init);
    b.setInsertionPointToStart(loop.getBody());
    Value column = loop.getInductionVar();
    Value tile = state.checkpoint(b, column, blockK);
    SmallVector<Value> sums;
    for (auto [vector, sum] : llvm::zip(vectors, loop.getRegionIterArgs())) {
      Value piece = b.slice(vector, column, blockK);
      Value product = b.mul(tile, b.spread(piece, 0, state.rows));
      sums.push_back(b.add(sum, b.reduce(product, 1)));
    }
    scf::YieldOp::create(b, sums);
    b.setInsertionPoint(op);

    Value kRows, dRows;
    if (state.hasRing()) {
      kRows =
          state.loadK(b, b.index(0), state.depth, b.index(0), state.columns);
      if (perColumn)
        kRows = state.weighted(b, kRows, state.weights, b.index(0));
      dRows = state.loadD(b, b.index(0), state.depth);
    }
    for (auto [i, vector] : llvm::enumerate(op.getVectors())) {
      Value result = loop.getResult(i);
      if (state.hasRing()) {
        Value scores =
            b.reduce(b.mul(kRows, b.spread(vector, 0, state.depth)), 1);
        Value weighted = perColumn ? scores : b.mul(scores, state.weights);
        Value ring =
            b.reduce(b.mul(dRows, b.spread(weighted, 1, state.rows)), 0);
        result = perColumn
                     ? b.add(result, ring)
                     : b.fma(result, b.splat(state.decay, {state.rows}), ring);
      }
      op.getResult(i).replaceAllUsesWith(result);
    }
  }

  /// The columns from `column` of S as a tile: S0 A + (W d)^T k, or with a
  /// decay a column S0 A + d^T (W k).
  Value rebuildTile(TileBuilder &b, const StateParts &state, Value column) {
    Value tile = state.checkpoint(b, column, blockK);
    if (!state.hasRing())
      return tile;
    // The matrix unit wants at least 16 rows; those past the ring read as zero.
    int64_t depth = std::max<int64_t>(state.depth, 16);
    Value dRows = state.loadD(b, b.index(0), depth);
    Value kRows = state.loadK(b, b.index(0), depth, column, blockK);
    Value weights = state.weights; // Those of the ring's rows, and all columns.
    if (weights && (state.isPerColumn() || depth != state.depth)) {
      Value gates = state.loadGates(b, b.index(0), depth, column, blockK);
      weights = b.exp(state.exponents(b, gates, column));
    }
    if (state.isPerColumn())
      kRows = state.weighted(b, kRows, weights, column);
    else
      dRows = b.mul(dRows, b.spread(weights, 1, state.rows));
    tile = b.decayed(tile, columnsOf(b, state.decay, column));
    return b.dot(b.transpose(dRows), kRows, tile, readoutPrecision);
  }

  void contractRebuild(const StateParts &state, ContractOp op) {
    TileBuilder b(op.getLoc(), op);
    SmallVector<Value> init(op.getVectors().size(), b.zeros({state.rows}));
    scf::ForOp loop = b.tileLoop(state.columns, blockK, init);
    b.setInsertionPointToStart(loop.getBody());
    Value column = loop.getInductionVar();
    Value tile = rebuildTile(b, state, column);
    SmallVector<Value> sums;
    for (auto [vector, sum] :
         llvm::zip(op.getVectors(), loop.getRegionIterArgs())) {
      Value piece = b.slice(vector, column, blockK);
      sums.push_back(
          b.add(sum, b.reduce(b.mul(tile, b.spread(piece, 0, state.rows)), 1)));
    }
    scf::YieldOp::create(b, sums);
    op->replaceAllUsesWith(loop.getResults());
  }

  /// Stores S' = tile * decay + d k^T, or the tile if there is no update.
  void storeUpdated(TileBuilder &b, const StateParts &state, FlushOp op,
                    Value tile, Value column) {
    if (op.getDecay()) {
      Value d = b.spread(op.getD(), 1, blockK);
      Value k = b.spread(b.slice(op.getK(), column, blockK), 0, state.rows);
      tile = b.decayed(tile, columnsOf(b, op.getDecay(), column));
      tile = b.fma(d, k, tile);
    }
    for (Value dst : op.getDsts())
      b.store(tile, dst, {b.index(0), column});
  }

  /// The columns from `column` of a decay; all of them if it is a number.
  Value columnsOf(TileBuilder &b, Value decay, Value column) {
    return isa<RankedTensorType>(decay.getType())
               ? b.slice(decay, column, blockK)
               : decay;
  }

  void flushRebuild(const StateParts &state, FlushOp op) {
    TileBuilder b(op.getLoc(), op);
    scf::ForOp loop = b.tileLoop(state.columns, blockK, {});
    b.setInsertionPointToStart(loop.getBody());
    Value column = loop.getInductionVar();
    storeUpdated(b, state, op, rebuildTile(b, state, column), column);
  }

  /// Adds the ring's rows to S0 A in chunks. Where a row's weight is exp of the
  /// gates of all newer rows, the loop carries their sum.
  void flushOutputOnly(const StateParts &state, FlushOp op) {
    TileBuilder b(op.getLoc(), op);
    scf::ForOp tiles = b.tileLoop(state.columns, blockK, {});
    b.setInsertionPointToStart(tiles.getBody());
    Value column = tiles.getInductionVar();
    Value tile = state.checkpoint(b, column, blockK);
    if (state.hasRing()) {
      tile = b.decayed(tile, columnsOf(b, state.decay, column));
      tile = addRows(b, state, tile, column);
    }
    storeUpdated(b, state, op, tile, column);
  }

  Value addRows(TileBuilder &b, const StateParts &state, Value tile,
                Value column) {
    int64_t chunk = std::min<int64_t>(flushRows, state.depth);
    bool perColumn = state.isPerColumn();
    SmallVector<Value> carried = {tile};
    if (state.isScanned())
      carried.push_back(perColumn ? b.zeros({blockK}) : b.zero());
    auto loop = scf::ForOp::create(b, b.index(0), state.rowCount(b),
                                   b.index(chunk), carried);
    b.setInsertionPointToStart(loop.getBody());
    Value row = loop.getInductionVar();
    Value gates, weights;
    if (state.weights) {
      gates = state.loadGates(b, row, chunk, column, blockK);
      weights = state.exponents(b, gates, column);
      if (state.isScanned()) {
        Value newer = loop.getRegionIterArg(1);
        weights = b.add(weights, perColumn ? b.spread(newer, 0, chunk)
                                           : b.splat(newer, {chunk}));
      }
      weights = b.exp(weights);
    }
    Value dRows = state.loadD(b, row, chunk);
    Value kRows = state.loadK(b, row, chunk, column, blockK);
    if (perColumn)
      kRows = state.weighted(b, kRows, weights, column);
    else
      dRows = b.mul(dRows, b.spread(weights, 1, state.rows));
    carried = {b.dot(b.transpose(dRows), kRows, loop.getRegionIterArg(0),
                     Precision::Ieee)};
    if (state.isScanned())
      carried.push_back(b.add(loop.getRegionIterArg(1), b.reduce(gates, 0)));
    scf::YieldOp::create(b, carried);
    b.setInsertionPointAfter(loop);
    return loop.getResult(0);
  }
};

} // namespace
