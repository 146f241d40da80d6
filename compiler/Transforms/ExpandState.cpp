//===- ExpandState.cpp - Replay-level operations become tile programs -----===//
//
// A state is a checkpoint and a ring. This file writes down how it is read
// (output-only or rebuild) and how it is formed for a flush.
//
//===----------------------------------------------------------------------===//

#include "compiler/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace replayjit {
#define GEN_PASS_DEF_EXPANDSTATEPASS
#include "compiler/Transforms/Passes.h.inc"
} // namespace replayjit

using namespace mlir;
using namespace replayjit;
using namespace replayjit::replay;

namespace {

/// Tile arithmetic in f32 at one insertion point.
struct TileBuilder : ImplicitLocOpBuilder {
  using ImplicitLocOpBuilder::ImplicitLocOpBuilder;

  RankedTensorType tileType(ArrayRef<int64_t> shape, Type element = {}) {
    return RankedTensorType::get(shape, element ? element : getF32Type());
  }
  Value index(int32_t value) {
    return arith::ConstantOp::create(*this, getI32IntegerAttr(value));
  }
  /// The neutral element of a sum; -0, so that adding to it folds away.
  Value zeros(ArrayRef<int64_t> shape) {
    return arith::ConstantOp::create(
        *this, DenseElementsAttr::get(tileType(shape), getF32FloatAttr(-0.0)));
  }
  Value zero() {
    return arith::ConstantOp::create(*this, getF32FloatAttr(-0.0));
  }
  /// A tile of `view` as f32.
  Value load(Value view, ArrayRef<Value> offsets, ArrayRef<int64_t> shape) {
    Type element = cast<ViewType>(view.getType()).getElementType();
    Value tile = LoadOp::create(*this, tileType(shape, element), view, offsets,
                                /*mask=*/Value());
    return element.isF32()
               ? tile
               : arith::ExtFOp::create(*this, tileType(shape), tile);
  }
  void store(Value tile, Value view, ArrayRef<Value> offsets) {
    auto type = cast<RankedTensorType>(tile.getType());
    Type element = cast<ViewType>(view.getType()).getElementType();
    if (!element.isF32())
      tile = arith::TruncFOp::create(*this, tileType(type.getShape(), element),
                                     tile);
    StoreOp::create(*this, tile, view, offsets);
  }
  Value add(Value a, Value b) { return arith::AddFOp::create(*this, a, b); }
  Value mul(Value a, Value b) { return arith::MulFOp::create(*this, a, b); }
  Value fma(Value a, Value b, Value c) {
    return math::FmaOp::create(*this, a, b, c);
  }
  Value exp(Value a) { return math::ExpOp::create(*this, a); }
  Value reduce(Value tile, int axis) {
    auto type = cast<RankedTensorType>(tile.getType());
    Type result = getF32Type();
    if (type.getRank() == 2)
      result = tileType({type.getDimSize(1 - axis)});
    return ReduceOp::create(*this, result, tile, axis);
  }
  Value splat(Value scalar, ArrayRef<int64_t> shape) {
    return SplatOp::create(*this, tileType(shape), scalar);
  }
  /// A rank-1 tile repeated along a new dimension `axis` of size `size`.
  Value spread(Value tile, int axis, int64_t size) {
    int64_t length = cast<RankedTensorType>(tile.getType()).getDimSize(0);
    SmallVector<int64_t> thin = {length, length}, full = {length, length};
    thin[axis] = 1;
    full[axis] = size;
    Value expanded = ExpandOp::create(*this, tileType(thin), tile, axis);
    if (size == 1)
      return expanded;
    return BroadcastOp::create(*this, tileType(full), expanded);
  }
  Value slice(Value tile, Value offset, int64_t size) {
    return createOrFold<SliceOp>(tileType({size}), tile, offset);
  }
  Value transpose(Value tile) {
    auto type = cast<RankedTensorType>(tile.getType());
    return TransposeOp::create(
        *this, tileType({type.getDimSize(1), type.getDimSize(0)}), tile);
  }
  /// Of each row, the sum of the gates of the rows before it: the newer ones.
  Value newerSums(Value gates) {
    return CumsumOp::create(*this, gates.getType(), gates, /*axis=*/0,
                            /*reverse=*/false, /*exclusive=*/true);
  }
  /// `tile` times `decay`, a number or one a column.
  Value decayed(Value tile, Value decay) {
    auto type = cast<RankedTensorType>(tile.getType());
    bool perColumn = isa<RankedTensorType>(decay.getType());
    return mul(tile, perColumn ? spread(decay, 0, type.getDimSize(0))
                               : splat(decay, type.getShape()));
  }
  Value dot(Value a, Value b, Value c, Precision precision) {
    return DotOp::create(*this, c.getType(), a, b, c, precision);
  }
  /// A loop over the K tiles, to be unrolled.
  scf::ForOp tileLoop(int64_t size, int64_t step, ValueRange init) {
    auto loop =
        scf::ForOp::create(*this, index(0), index(size), index(step), init);
    loop->setAttr(kTileLoop, getUnitAttr());
    return loop;
  }
};

/// What every use of one state shares: its parts, and the decays of the
/// checkpoint (A) and of the ring's rows (W), computed once where it is
/// reconstructed. Gates of a column each (KDA) make A a vector over K and W a
/// tile; else they are a number and a vector over the rows.
struct StateParts {
  ReconstructOp op;
  int64_t rows, columns, depth;
  Value decay;   ///< A, f32 or tensor<columns>; null without a ring.
  Value weights; ///< W, tensor<depth[xcolumns]>; null without a ring.

  explicit StateParts(ReconstructOp op)
      : op(op), rows(op.getType().getRows()),
        columns(op.getType().getColumns()), depth(op.getDepth()) {
    if (!op.getCount())
      return;
    TileBuilder b(op.getLoc(), op);
    Value gates = loadGates(b, b.index(0), depth, b.index(0), columns);
    weights = b.exp(b.newerSums(gates));
    decay = b.exp(b.reduce(gates, 0));
  }
  bool hasRing() const { return weights != nullptr; }
  bool isPerColumn() const {
    ReconstructOp parts = op;
    return hasRing() && parts.getGates().getType().getRank() == 2;
  }
  /// The gates of `count` rows from `row`, of the columns asked for if they
  /// have columns.
  Value loadGates(TileBuilder &b, Value row, int64_t count, Value column,
                  int64_t width) const {
    ReconstructOp parts = op;
    if (parts.getGates().getType().getRank() == 1)
      return b.load(parts.getGates(), row, count);
    return b.load(parts.getGates(), {row, column}, {count, width});
  }
  Value checkpoint(TileBuilder &b, Value column, int64_t blockK) const {
    ReconstructOp parts = op;
    return b.load(parts.getCheckpoint(), {b.index(0), column}, {rows, blockK});
  }
};

struct ExpandStatePass : replayjit::impl::ExpandStatePassBase<ExpandStatePass> {
  using ExpandStatePassBase::ExpandStatePassBase;

  Precision readoutPrecision, ringPrecision;

  void runOnOperation() override {
    auto read = symbolizePrecision(precision);
    auto flush = symbolizePrecision(flushPrecision);
    if (!read || !flush) {
      getOperation().emitError("precision and flush-precision must be ieee, "
                               "tf32, tf32x3, bf16 or f16");
      return signalPassFailure();
    }
    readoutPrecision = *read;
    ringPrecision = *flush;

    SmallVector<ReconstructOp> states;
    getOperation()->walk([&](ReconstructOp op) { states.push_back(op); });
    for (ReconstructOp op : states) {
      if (rebuild && op.getGates() && op.getGates().getType().getRank() == 2) {
        op.emitError("the rebuild readout takes one gate a row");
        return signalPassFailure();
      }
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

    ReconstructOp parts = state.op;
    Value kRows, dRows;
    if (state.hasRing()) {
      kRows = b.load(parts.getK(), {b.index(0), b.index(0)},
                     {state.depth, state.columns});
      if (perColumn)
        kRows = b.mul(kRows, state.weights);
      dRows = b.load(parts.getD(), {b.index(0), b.index(0)},
                     {state.depth, state.rows});
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

  /// The columns from `column` of S as a tile: S0 A + (W d)^T k.
  Value rebuildTile(TileBuilder &b, const StateParts &state, Value column) {
    Value tile = state.checkpoint(b, column, blockK);
    if (!state.hasRing())
      return tile;
    // The matrix unit wants at least 16 rows; those past the ring read as zero.
    int64_t depth = std::max<int64_t>(state.depth, 16);
    ReconstructOp parts = state.op;
    Value dRows =
        b.load(parts.getD(), {b.index(0), b.index(0)}, {depth, state.rows});
    Value kRows = b.load(parts.getK(), {b.index(0), column}, {depth, blockK});
    Value weighted =
        b.mul(dRows, b.spread(weightsOf(b, state, depth), 1, state.rows));
    tile = b.mul(tile, b.splat(state.decay, {state.rows, blockK}));
    return b.dot(b.transpose(weighted), kRows, tile, readoutPrecision);
  }

  /// The ring's weights for `depth` rows, at least as many as it has.
  Value weightsOf(TileBuilder &b, const StateParts &state, int64_t depth) {
    if (depth == state.depth)
      return state.weights;
    ReconstructOp parts = state.op;
    Value gates = b.load(parts.getGates(), b.index(0), depth);
    return b.exp(b.newerSums(gates));
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

  /// S' = tile * decay + d k^T, stored.
  void storeUpdated(TileBuilder &b, const StateParts &state, FlushOp op,
                    Value tile, Value column) {
    Value d = b.spread(op.getD(), 1, blockK);
    Value k = b.spread(b.slice(op.getK(), column, blockK), 0, state.rows);
    tile = b.decayed(tile, columnsOf(b, op.getDecay(), column));
    b.store(b.fma(d, k, tile), op.getDst(), {b.index(0), column});
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

  /// Adds the ring's rows to S0 A in chunks, newest first; the weight of a row
  /// is exp of the gates summed so far, which the loop carries.
  void flushOutputOnly(const StateParts &state, FlushOp op) {
    TileBuilder b(op.getLoc(), op);
    ReconstructOp parts = state.op;
    scf::ForOp tiles = b.tileLoop(state.columns, blockK, {});
    b.setInsertionPointToStart(tiles.getBody());
    Value column = tiles.getInductionVar();
    Value tile = state.checkpoint(b, column, blockK);
    if (state.hasRing()) {
      int64_t chunk = std::min<int64_t>(flushRows, state.depth);
      if (ringPrecision != Precision::Ieee)
        chunk = std::max<int64_t>(state.depth, 16);
      bool perColumn = state.isPerColumn();
      tile = b.decayed(tile, columnsOf(b, state.decay, column));
      Value zero = perColumn ? b.zeros({blockK}) : b.zero();
      auto loop = scf::ForOp::create(b, b.index(0), parts.getCount(),
                                     b.index(chunk), ValueRange{tile, zero});
      b.setInsertionPointToStart(loop.getBody());
      Value row = loop.getInductionVar();
      Value newer = loop.getRegionIterArg(1);
      Value gates = state.loadGates(b, row, chunk, column, blockK);
      Value before =
          perColumn ? b.spread(newer, 0, chunk) : b.splat(newer, {chunk});
      Value weights = b.exp(b.add(b.newerSums(gates), before));
      Value dRows =
          b.load(parts.getD(), {row, b.index(0)}, {chunk, state.rows});
      Value kRows = b.load(parts.getK(), {row, column}, {chunk, blockK});
      if (perColumn)
        kRows = b.mul(kRows, weights);
      else
        dRows = b.mul(dRows, b.spread(weights, 1, state.rows));
      Value next = b.dot(b.transpose(dRows), kRows, loop.getRegionIterArg(0),
                         ringPrecision);
      Value sum = b.add(newer, b.reduce(gates, 0));
      scf::YieldOp::create(b, ValueRange{next, sum});
      b.setInsertionPointAfter(loop);
      tile = loop.getResult(0);
    }
    storeUpdated(b, state, op, tile, column);
  }
};

} // namespace
