//===- ExpandState.cpp - Replay-level operations become tile programs -----===//
//
// A state that is not formed is a checkpoint and a ring. This file writes down
// how each use reads it (output-only or rebuild) and how it is formed. A formed
// state is the tiles of its columns; loops and branches carry these.
//
//===----------------------------------------------------------------------===//

#include "compiler/Transforms/Passes.h"
#include "dialect/TileBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Transforms/Patterns.h"
#include "mlir/Transforms/DialectConversion.h"

namespace replayjit::internal {
#define GEN_PASS_DEF_EXPANDSTATEPASS
#include "compiler/Transforms/Passes.h.inc"
} // namespace replayjit::internal

using namespace mlir;
using namespace replayjit::internal;
using namespace replayjit::internal::replay;

namespace {

/// A loop over the K tiles, to be unrolled.
scf::ForOp tileLoop(TileBuilder &b, int64_t size, int64_t step,
                    ValueRange init) {
  auto loop = scf::ForOp::create(b, b.i32(0), b.i32(size), b.i32(step), init);
  loop->setAttr(kTileLoop, b.getUnitAttr());
  return loop;
}

/// Of each row, the sum of the gates of the rows before it: the newer ones.
Value newerSums(TileBuilder &b, Value gates) {
  return CumsumOp::create(b, gates.getType(), gates, /*axis=*/0,
                          /*reverse=*/false, /*exclusive=*/true);
}

/// `tile` times `decay`, a number or one a column.
Value decayed(TileBuilder &b, Value tile, Value decay) {
  auto type = cast<RankedTensorType>(tile.getType());
  bool perColumn = isa<RankedTensorType>(decay.getType());
  return b.mul(tile, perColumn ? b.spread(decay, 0, type.getDimSize(0))
                               : b.splat(decay, type.getShape()));
}

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
      Value gates = loadGates(b, b.i32(0), depth, b.i32(0), columns);
      weights = b.exp(exponents(b, gates, b.i32(0)));
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
    return b.i32(op.getD().getType().getShape()[0]);
  }

  Value checkpoint(TileBuilder &b, Value column, int64_t width) const {
    return b.load(op.getCheckpoint(), {b.i32(0), column}, {rows, width});
  }
  /// `count` rows of d from `row`.
  Value loadD(TileBuilder &b, Value row, int64_t count) const {
    return loadRows(b, op.getD(), row, count, b.i32(0), rows);
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
      return newerSums(b, gates);
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
    Value shift = b.addI(row, b.subI(b.i32(size), op.getBase()));
    Value place = b.remI(b.addI(b.iota(count), all(shift)), all(b.i32(size)));
    return b.spread(b.isBelow(place, all(op.getCount())), 1, width);
  }
};

/// The columns from `column` of a decay; all of them if it is a number.
Value columnsOf(TileBuilder &b, Value decay, Value column, int64_t width) {
  return isa<RankedTensorType>(decay.getType()) ? b.slice(decay, column, width)
                                                : decay;
}

/// The columns from `column` of S diag(decay) + d k^T; `tile` are those of S.
/// Decay, or d and k, may be null.
Value updated(TileBuilder &b, Value tile, Value decay, Value d, Value k,
              Value column) {
  auto type = cast<RankedTensorType>(tile.getType());
  int64_t rows = type.getDimSize(0), width = type.getDimSize(1);
  Value dTile, kTile;
  if (d) {
    dTile = b.spread(d, 1, width);
    kTile = b.spread(b.slice(k, column, width), 0, rows);
  }
  if (decay)
    tile = decayed(b, tile, columnsOf(b, decay, column, width));
  return d ? b.fma(dTile, kTile, tile) : tile;
}

/// The products of a tile of S with its columns of `vectors`, each added to a
/// sum.
SmallVector<Value> contractTile(TileBuilder &b, Value tile, ValueRange vectors,
                                Value column, ValueRange sums) {
  auto type = cast<RankedTensorType>(tile.getType());
  SmallVector<Value> results;
  for (auto [vector, sum] : llvm::zip(vectors, sums)) {
    Value piece = b.slice(vector, column, type.getDimSize(1));
    Value product = b.mul(tile, b.spread(piece, 0, type.getDimSize(0)));
    results.push_back(b.add(sum, b.reduce(product, 1)));
  }
  return results;
}

//===----------------------------------------------------------------------===//
// Forming a tile
//===----------------------------------------------------------------------===//

/// The columns from `column` of S: S0 A + (W d)^T k, or with a decay a column
/// S0 A + d^T (W k), by one dot over all rows.
Value formAtOnce(TileBuilder &b, const StateParts &state, Value column,
                 int64_t width, Precision precision) {
  Value tile = state.checkpoint(b, column, width);
  if (!state.hasRing())
    return tile;
  // The matrix unit wants at least 16 rows; those past the ring read as zero.
  int64_t depth = state.depth;
  if (precision != Precision::Ieee)
    depth = std::max<int64_t>(depth, 16);
  Value dRows = state.loadD(b, b.i32(0), depth);
  Value kRows = state.loadK(b, b.i32(0), depth, column, width);
  Value weights = state.weights; // Those of the ring's rows, and all columns.
  if (weights && (state.isPerColumn() || depth != state.depth)) {
    Value gates = state.loadGates(b, b.i32(0), depth, column, width);
    weights = b.exp(state.exponents(b, gates, column));
  }
  if (state.isPerColumn())
    kRows = state.weighted(b, kRows, weights, column);
  else
    dRows = b.mul(dRows, b.spread(weights, 1, state.rows));
  tile = decayed(b, tile, columnsOf(b, state.decay, column, width));
  return b.dot(b.transpose(dRows), kRows, tile, precision);
}

/// The same by a loop that adds `chunk` rows a step to S0 A. Where a row's
/// weight is exp of the gates of all newer rows, the loop carries their sum.
Value formInSteps(TileBuilder &b, const StateParts &state, Value column,
                  int64_t width, int64_t chunk, Precision precision) {
  Value tile = state.checkpoint(b, column, width);
  if (!state.hasRing())
    return tile;
  tile = decayed(b, tile, columnsOf(b, state.decay, column, width));
  if (precision == Precision::Ieee)
    chunk = std::min<int64_t>(chunk, state.depth);
  bool perColumn = state.isPerColumn();
  SmallVector<Value> carried = {tile};
  if (state.isScanned())
    carried.push_back(perColumn ? b.zeros({width}) : b.f32(-0.0));
  auto loop =
      scf::ForOp::create(b, b.i32(0), state.rowCount(b), b.i32(chunk), carried);
  b.setInsertionPointToStart(loop.getBody());
  Value row = loop.getInductionVar();
  Value gates, weights;
  if (state.weights) {
    gates = state.loadGates(b, row, chunk, column, width);
    weights = state.exponents(b, gates, column);
    if (state.isScanned()) {
      Value newer = loop.getRegionIterArg(1);
      weights = b.add(weights, perColumn ? b.spread(newer, 0, chunk)
                                         : b.splat(newer, {chunk}));
    }
    weights = b.exp(weights);
  }
  Value dRows = state.loadD(b, row, chunk);
  Value kRows = state.loadK(b, row, chunk, column, width);
  if (perColumn)
    kRows = state.weighted(b, kRows, weights, column);
  else
    dRows = b.mul(dRows, b.spread(weights, 1, state.rows));
  carried = {
      b.dot(b.transpose(dRows), kRows, loop.getRegionIterArg(0), precision)};
  if (state.isScanned())
    carried.push_back(b.add(loop.getRegionIterArg(1), b.reduce(gates, 0)));
  scf::YieldOp::create(b, carried);
  b.setInsertionPointAfter(loop);
  return loop.getResult(0);
}

/// A tile of S as a `replay.form` or a `replay.flush` asks for it.
template <typename Op>
Value formTile(TileBuilder &b, const StateParts &state, Op how, Value column,
               int64_t width) {
  if (auto rows = how.getRows())
    return formInSteps(b, state, column, width, *rows, how.getPrecision());
  return formAtOnce(b, state, column, width, how.getPrecision());
}

//===----------------------------------------------------------------------===//
// Uses of a state that is not formed
//===----------------------------------------------------------------------===//

template <typename Op> int64_t blockOf(Op op) {
  return op.getBlockK().value_or(op.getState().getType().getColumns());
}

/// S x = A (S0 x) + sum_j d_j W_j (k_j . x), or with a decay a column
/// S x = S0 (A x) + sum_j d_j ((W_j k_j) . x)
void contractOutputOnly(const StateParts &state, ContractOp op) {
  TileBuilder b(op.getLoc(), op);
  int64_t width = blockOf(op);
  SmallVector<Value> init(op.getVectors().size(), b.zeros({state.rows}));
  bool perColumn = state.isPerColumn();
  SmallVector<Value> vectors(op.getVectors()); // As S0 sees them.
  if (perColumn)
    for (Value &vector : vectors)
      vector = b.mul(vector, state.decay);
  scf::ForOp loop = tileLoop(b, state.columns, width, init);
  b.setInsertionPointToStart(loop.getBody());
  Value column = loop.getInductionVar();
  Value tile = state.checkpoint(b, column, width);
  scf::YieldOp::create(
      b, contractTile(b, tile, vectors, column, loop.getRegionIterArgs()));
  b.setInsertionPoint(op);

  Value kRows, dRows;
  if (state.hasRing()) {
    kRows = state.loadK(b, b.i32(0), state.depth, b.i32(0), state.columns);
    if (perColumn)
      kRows = state.weighted(b, kRows, state.weights, b.i32(0));
    dRows = state.loadD(b, b.i32(0), state.depth);
  }
  for (auto [i, vector] : llvm::enumerate(op.getVectors())) {
    Value result = loop.getResult(i);
    if (state.hasRing()) {
      Value scores =
          b.reduce(b.mul(kRows, b.spread(vector, 0, state.depth)), 1);
      Value weighted = perColumn ? scores : b.mul(scores, state.weights);
      Value ring = b.reduce(b.mul(dRows, b.spread(weighted, 1, state.rows)), 0);
      result = perColumn
                   ? b.add(result, ring)
                   : b.fma(result, b.splat(state.decay, {state.rows}), ring);
    }
    op.getResult(i).replaceAllUsesWith(result);
  }
}

void contractRebuild(const StateParts &state, ContractOp op) {
  TileBuilder b(op.getLoc(), op);
  int64_t width = blockOf(op);
  SmallVector<Value> init(op.getVectors().size(), b.zeros({state.rows}));
  scf::ForOp loop = tileLoop(b, state.columns, width, init);
  b.setInsertionPointToStart(loop.getBody());
  Value column = loop.getInductionVar();
  Value tile = formAtOnce(b, state, column, width, *op.getRebuild());
  scf::YieldOp::create(b, contractTile(b, tile, op.getVectors(), column,
                                       loop.getRegionIterArgs()));
  op->replaceAllUsesWith(loop.getResults());
}

void store(TileBuilder &b, FlushOp op, Value tile, Value column) {
  tile = updated(b, tile, op.getDecay(), op.getD(), op.getK(), column);
  for (Value dst : op.getDsts())
    b.store(tile, dst, {b.i32(0), column});
}

void flush(const StateParts &state, FlushOp op) {
  TileBuilder b(op.getLoc(), op);
  int64_t width = blockOf(op);
  scf::ForOp tiles = tileLoop(b, state.columns, width, {});
  b.setInsertionPointToStart(tiles.getBody());
  Value column = tiles.getInductionVar();
  store(b, op, formTile(b, state, op, column, width), column);
}

//===----------------------------------------------------------------------===//
// Formed states
//===----------------------------------------------------------------------===//

using AllParts = llvm::DenseMap<Value, std::unique_ptr<StateParts>>;

/// Converts an operation on formed states, whose operands come as tiles.
template <typename Op> struct TilesPattern : OpConversionPattern<Op> {
  const AllParts &parts;
  TilesPattern(const TypeConverter &converter, MLIRContext *context,
               const AllParts &parts)
      : OpConversionPattern<Op>(converter, context), parts(parts) {}

  using Adaptor = typename OpConversionPattern<Op>::OneToNOpAdaptor;
  LogicalResult
  matchAndRewrite(Op op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    TileBuilder b(op.getLoc(), rewriter);
    lower(op, adaptor.getState(), b, rewriter);
    return success();
  }

private:
  static int64_t widthOf(ValueRange tiles) {
    return cast<RankedTensorType>(tiles[0].getType()).getDimSize(1);
  }

  void lower(FormOp op, ValueRange, TileBuilder &b,
             ConversionPatternRewriter &rewriter) const {
    const StateParts &state = *parts.at(op.getState());
    int64_t width = op.getType().getTileColumns();
    SmallVector<Value> tiles;
    for (int64_t column = 0; column < state.columns; column += width)
      tiles.push_back(formTile(b, state, op, b.i32(column), width));
    rewriter.replaceOpWithMultiple(op, {tiles});
  }

  void lower(UpdateOp op, ValueRange tiles, TileBuilder &b,
             ConversionPatternRewriter &rewriter) const {
    SmallVector<Value> results;
    for (auto [i, tile] : llvm::enumerate(tiles))
      results.push_back(updated(b, tile, op.getDecay(), op.getD(), op.getK(),
                                b.i32(i * widthOf(tiles))));
    rewriter.replaceOpWithMultiple(op, {results});
  }

  void lower(ContractOp op, ValueRange tiles, TileBuilder &b,
             ConversionPatternRewriter &rewriter) const {
    int64_t rows = op.getState().getType().getRows();
    SmallVector<Value> sums(op.getVectors().size(), b.zeros({rows}));
    for (auto [i, tile] : llvm::enumerate(tiles))
      sums = contractTile(b, tile, op.getVectors(), b.i32(i * widthOf(tiles)),
                          sums);
    rewriter.replaceOp(op, sums);
  }

  void lower(FlushOp op, ValueRange tiles, TileBuilder &b,
             ConversionPatternRewriter &rewriter) const {
    for (auto [i, tile] : llvm::enumerate(tiles))
      store(b, op, tile, b.i32(i * widthOf(tiles)));
    rewriter.eraseOp(op);
  }
};

bool isFormed(Type type) {
  auto state = dyn_cast<StateType>(type);
  return state && state.isFormed();
}

/// Formed states to their tiles, in all that takes, makes or carries them.
LogicalResult lowerFormed(KernelOp kernel, const AllParts &parts) {
  TypeConverter converter;
  converter.addConversion([](Type type) { return type; });
  converter.addConversion([](StateType type, SmallVectorImpl<Type> &types)
                              -> std::optional<LogicalResult> {
    if (!type.isFormed()) {
      types.push_back(type);
      return success();
    }
    types.assign(type.getColumns() / type.getTileColumns(),
                 RankedTensorType::get({type.getRows(), type.getTileColumns()},
                                       Float32Type::get(type.getContext())));
    return success();
  });
  MLIRContext *context = kernel.getContext();
  RewritePatternSet patterns(context);
  ConversionTarget target(*context);
  scf::populateSCFStructuralTypeConversionsAndLegality(converter, patterns,
                                                       target);
  patterns.add<TilesPattern<FormOp>, TilesPattern<UpdateOp>,
               TilesPattern<ContractOp>, TilesPattern<FlushOp>>(converter,
                                                                context, parts);
  target.markUnknownOpDynamicallyLegal([](Operation *op) {
    return llvm::none_of(op->getOperandTypes(), isFormed) &&
           llvm::none_of(op->getResultTypes(), isFormed);
  });
  ConversionConfig config;
  config.allowPatternRollback = false;
  return applyPartialConversion(kernel, target, std::move(patterns), config);
}

/// Says what uses a state that cannot.
LogicalResult checkUses(KernelOp kernel, bool &hasFormed) {
  auto check = [&](Operation *op) -> WalkResult {
    auto isState = [](Type type) { return isa<StateType>(type); };
    if (llvm::none_of(op->getOperandTypes(), isState) &&
        llvm::none_of(op->getResultTypes(), isState))
      return WalkResult::advance();
    bool isOurs = isa<ReplayDialect>(op->getDialect());
    if (!isOurs && !isa<scf::ForOp, scf::IfOp, scf::YieldOp>(op))
      return op->emitOpError("cannot use a state; operations of the replay "
                             "dialect, scf.for, scf.if and scf.yield can");
    for (Type type : op->getOperandTypes())
      if (isState(type) && !isFormed(type) && !isOurs)
        return op->emitOpError() << "carries a " << type
                                 << ", which is not formed; replay.form forms "
                                    "it";
    hasFormed |= llvm::any_of(op->getResultTypes(), isFormed);
    return WalkResult::advance();
  };
  return failure(kernel->walk<WalkOrder::PreOrder>(check).wasInterrupted());
}

struct ExpandStatePass
    : replayjit::internal::impl::ExpandStatePassBase<ExpandStatePass> {
  void runOnOperation() override {
    bool hasFormed = false;
    if (failed(checkUses(getOperation(), hasFormed)))
      return signalPassFailure();
    SmallVector<ReconstructOp> states;
    getOperation()->walk([&](ReconstructOp op) { states.push_back(op); });
    AllParts parts;
    for (ReconstructOp op : states)
      parts[op] = std::make_unique<StateParts>(op);
    if (hasFormed && failed(lowerFormed(getOperation(), parts)))
      return signalPassFailure();
    for (ReconstructOp op : states) {
      const StateParts &state = *parts[op];
      for (Operation *user : llvm::make_early_inc_range(op->getUsers())) {
        if (auto contract = dyn_cast<ContractOp>(user))
          contract.getRebuild() ? contractRebuild(state, contract)
                                : contractOutputOnly(state, contract);
        else
          flush(state, cast<FlushOp>(user));
        user->erase();
      }
      op.erase();
    }
  }
};

} // namespace
