//===- ExpandState.cpp - Replay-level operations become tile programs -----===//
//
// What is not formed (StateParts) is read as each use says: output-only, by
// fp32 or by the matrix unit, rebuild, or formed tile by tile. A formed state
// is the tiles of its columns; loops and branches carry these.
//
//===----------------------------------------------------------------------===//

#include "compiler/Transforms/ExactProducts.h"
#include "compiler/Transforms/Passes.h"
#include "compiler/Transforms/StateParts.h"

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
    tile = decayed(b, tile, decay, column);
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

/// A tile of S as a `replay.form` or a `replay.flush` asks for it.
template <typename Op>
Value formTile(TileBuilder &b, const StateParts &state, Op how, Value column,
               int64_t width) {
  if (how.getSplit())
    return state.formExactly(b, column, width, *how.getSplit());
  if (auto rows = how.getRows())
    return state.formInSteps(b, column, width, *rows, how.getPrecision());
  return state.formAtOnce(b, column, width, how.getPrecision());
}

//===----------------------------------------------------------------------===//
// Uses of a state that is not formed
//===----------------------------------------------------------------------===//

template <typename Op> int64_t blockOf(Op op) {
  return op.getBlockK().value_or(op.getState().getType().getColumns());
}

/// S0 x for each vector, `block_k` columns at a time.
SmallVector<Value> contractCheckpoint(TileBuilder &b, const StateParts &state,
                                      ContractOp op, ValueRange vectors) {
  int64_t width = blockOf(op);
  SmallVector<Value> init(vectors.size(), b.zeros({state.rows}));
  scf::ForOp loop = tileLoop(b, state.columns, width, init);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value column = loop.getInductionVar();
  Value tile = state.checkpoint(b, column, width);
  scf::YieldOp::create(
      b, contractTile(b, tile, vectors, column, loop.getRegionIterArgs()));
  return loop.getResults();
}

/// S x = A (S0 x) + sum_j d_j W_j (k_j . x), or with a decay a column
/// S x = S0 (A x) + sum_j d_j ((W_j k_j) . x)
void contractOutputOnly(const StateParts &state, ContractOp op) {
  TileBuilder b(op.getLoc(), op);
  bool perColumn = state.isPerColumn();
  SmallVector<Value> vectors(op.getVectors()); // As S0 sees them.
  if (perColumn)
    for (Value &vector : vectors)
      vector = b.mul(vector, state.decay);
  std::optional<SplitVectors> split;
  SmallVector<Value> results;
  if (op.getSplit()) {
    split.emplace(b, vectors, *op.getSplit());
    results = split->products(b, state.checkpoint(b, b.i32(0), state.columns));
  } else {
    results = contractCheckpoint(b, state, op, vectors);
  }

  if (state.hasRing()) {
    Value kRows =
        state.loadK(b, b.i32(0), state.depth, b.i32(0), state.columns);
    if (perColumn)
      kRows = state.weighted(b, kRows, state.weights, b.i32(0));
    Value dRows = state.loadD(b, b.i32(0), state.depth);
    SmallVector<Value> exact; // k_j . x of all rows, for each vector.
    if (split && state.hasExactK(*op.getSplit()))
      exact = split->products(b, kRows);
    for (auto [i, vector] : llvm::enumerate(op.getVectors())) {
      Value &result = results[i];
      Value scores =
          exact.empty()
              ? b.reduce(b.mul(kRows, b.spread(vector, 0, state.depth)), 1)
              : exact[i];
      Value weighted = perColumn ? scores : b.mul(scores, state.weights);
      Value ring = b.reduce(b.mul(dRows, b.spread(weighted, 1, state.rows)), 0);
      result = perColumn
                   ? b.add(result, ring)
                   : b.fma(result, b.splat(state.decay, {state.rows}), ring);
    }
  }
  op->replaceAllUsesWith(results);
}

void contractRebuild(const StateParts &state, ContractOp op) {
  TileBuilder b(op.getLoc(), op);
  int64_t width = blockOf(op);
  SmallVector<Value> init(op.getVectors().size(), b.zeros({state.rows}));
  scf::ForOp loop = tileLoop(b, state.columns, width, init);
  b.setInsertionPointToStart(loop.getBody());
  Value column = loop.getInductionVar();
  Value tile = state.formAtOnce(b, column, width, *op.getRebuild());
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

/// Says which use wants exact products of what its precision does not hold.
LogicalResult checkSplits(const StateParts &state, Operation *use) {
  auto refuse = [&](const char *what, Type type, Precision precision) {
    return use->emitOpError()
           << "cannot split for " << what << " of " << type << ", which "
           << stringifyPrecision(precision) << " does not hold";
  };
  auto checkRing = [&](std::optional<Precision> split) -> LogicalResult {
    if (!split || !state.hasRing())
      return success();
    Type type = (state.isPerColumn() ? state.op.getD() : state.op.getK())
                    .getType()
                    .getElementType();
    return holds(*split, type) ? success() : refuse("a ring", type, *split);
  };
  if (auto flush = dyn_cast<FlushOp>(use))
    return checkRing(flush.getSplit());
  if (auto form = dyn_cast<FormOp>(use))
    return checkRing(form.getSplit());
  auto split = cast<ContractOp>(use).getSplit();
  Type type = state.op.getCheckpoint().getType().getElementType();
  return !split || holds(*split, type) ? success()
                                       : refuse("a checkpoint", type, *split);
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
    for (ReconstructOp op : states)
      for (Operation *user : op->getUsers())
        if (failed(checkSplits(*parts[op], user)))
          return signalPassFailure();
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
