//===- StateParts.cpp - A state in memory, and how it is formed -----------===//

#include "compiler/Transforms/StateParts.h"

#include "compiler/Transforms/ExactProducts.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace replayjit::internal;
using namespace replayjit::internal::replay;

Value replayjit::internal::decayed(TileBuilder &b, Value tile, Value decay,
                                   Value column) {
  auto type = cast<RankedTensorType>(tile.getType());
  if (!isa<RankedTensorType>(decay.getType()))
    return b.mul(tile, b.splat(decay, type.getShape()));
  Value own = b.slice(decay, column, type.getDimSize(1));
  return b.mul(tile, b.spread(own, 0, type.getDimSize(0)));
}

StateParts::StateParts(ReconstructOp op)
    : op(op), rows(op.getType().getRows()), columns(op.getType().getColumns()),
      depth(op.getDepth()) {
  if (!hasRing())
    return;
  TileBuilder b(op.getLoc(), op);
  Value total = op.getTotal();
  if (op.getGates()) {
    Value gates = loadGates(b, b.i32(0), depth, b.i32(0), columns, {});
    weights = b.exp(exponents(b, gates, b.i32(0)));
    if (!total)
      total = b.reduce(gates, 0);
  }
  decay = b.exp(total);
}

Value StateParts::checkpoint(TileBuilder &b, Value column,
                             int64_t width) const {
  return b.load(op.getCheckpoint(), {b.i32(0), column}, {rows, width});
}

Value StateParts::loadD(TileBuilder &b, Value row, int64_t count,
                        Value wanted) const {
  return loadRows(b, op.getD(), row, count, b.i32(0), rows, wanted);
}

Value StateParts::loadK(TileBuilder &b, Value row, int64_t count, Value column,
                        int64_t width, Value wanted) const {
  return loadRows(b, op.getK(), row, count, column, width, wanted);
}

/// The gates of `count` rows from `row`, of the columns asked for if they
/// have columns.
Value StateParts::loadGates(TileBuilder &b, Value row, int64_t count,
                            Value column, int64_t width, Value wanted) const {
  if (op.getGates().getType().getRank() == 2)
    return loadRows(b, op.getGates(), row, count, column, width, wanted);
  if (!op.getBase())
    return b.load(op.getGates(), row, count);
  Value mask = isThere(b, row, count);
  return b.load(op.getGates(), row, count,
                wanted ? b.allOf(mask, wanted) : mask);
}

Value StateParts::loadRows(TileBuilder &b, Value view, Value row, int64_t count,
                           Value column, int64_t width, Value wanted) const {
  Value mask;
  if (op.getBase()) {
    mask = isThere(b, row, count);
    mask = b.spread(wanted ? b.allOf(mask, wanted) : mask, 1, width);
  }
  return b.load(view, {row, column}, {count, width}, mask);
}

/// Of each physical row of a ring of L that wraps: (p - base) mod L < count.
Value StateParts::isThere(TileBuilder &b, Value row, int64_t count) const {
  int32_t size = ringSize();
  auto all = [&](Value scalar) { return b.splat(scalar, {count}); };
  Value shift = b.addI(row, b.subI(b.i32(size), op.getBase()));
  Value place = b.remI(b.addI(b.iota(count), all(shift)), all(b.i32(size)));
  return b.isBelow(place, all(op.getCount()));
}

/// The physical row after the newest, 1..L: rows below it are newer than those
/// from it on.
Value StateParts::afterNewest(TileBuilder &b) const {
  Value newest =
      b.remI(b.addI(op.getBase(), b.addI(op.getCount(), b.i32(ringSize() - 1))),
             ringSize());
  return b.addI(newest, b.i32(1));
}

/// Of each row, the sum of the newer ones: those before it, or with `reverse`
/// those behind it.
static Value newerSum(TileBuilder &b, Value gates, bool reverse) {
  return CumsumOp::create(b, gates.getType(), gates, /*axis=*/0, reverse,
                          /*exclusive=*/true);
}

/// Of each row of a ring that wraps, in the order of memory, the sum of the
/// newer ones: those above it up to the newest, or to the end and then from
/// the start to the newest.
Value StateParts::scanWrapped(TileBuilder &b, Value gates) const {
  auto type = cast<RankedTensorType>(gates.getType());
  int64_t count = type.getDimSize(0);
  Value isNew = b.isBelow(b.iota(count), b.splat(afterNewest(b), {count}));
  if (type.getRank() == 2)
    isNew = b.spread(isNew, 1, type.getDimSize(1));
  Value none = b.constant(0, gates);
  Value newer = b.select(isNew, gates, none);
  Value total = b.reduce(newer, 0);
  total =
      type.getRank() == 2 ? b.spread(total, 0, count) : b.splat(total, {count});
  Value older = b.select(isNew, none, gates);
  return b.select(isNew, newerSum(b, newer, /*reverse=*/true),
                  b.add(newerSum(b, older, /*reverse=*/true), total));
}

/// What exp makes the weights of rows from their `gates`, of the columns from
/// `column`. A scan starts from zero.
Value StateParts::exponents(TileBuilder &b, Value gates, Value column) const {
  if (isScanned() && op.getBase())
    return scanWrapped(b, gates);
  if (isScanned())
    return newerSum(b, gates, /*reverse=*/false);
  auto type = cast<RankedTensorType>(gates.getType());
  Value total = b.slice(op.getTotal(), column, type.getDimSize(1));
  return b.sub(b.spread(total, 0, type.getDimSize(0)), gates);
}

Value StateParts::weighted(TileBuilder &b, Value kRows, Value own,
                           Value column) const {
  auto type = cast<RankedTensorType>(kRows.getType());
  if (own)
    return b.mul(kRows, own);
  return b.mul(kRows, b.spread(b.slice(decay, column, type.getDimSize(1)), 0,
                               type.getDimSize(0)));
}

/// The matrix unit takes as many rows.
static constexpr int64_t leastRows = 16;

bool StateParts::hasExactK(Precision precision) const {
  return hasRing() && !isPerColumn() && depth >= leastRows &&
         holds(precision, op.getK().getType().getElementType());
}

StateParts::WeightedRows StateParts::weightedRows(TileBuilder &b, Value column,
                                                  int64_t width,
                                                  int64_t taken) const {
  Value dRows = loadD(b, b.i32(0), taken);
  Value kRows = loadK(b, b.i32(0), taken, column, width);
  Value own = weights; // Those of the ring's rows, and all columns.
  if (own && (isPerColumn() || taken != depth)) {
    Value gates = loadGates(b, b.i32(0), taken, column, width, {});
    own = b.exp(exponents(b, gates, column));
  }
  if (isPerColumn())
    kRows = weighted(b, kRows, own, column);
  else
    dRows = b.mul(dRows, b.spread(own, 1, rows));
  return {dRows, kRows};
}

Value StateParts::formAtOnce(TileBuilder &b, Value column, int64_t width,
                             Precision precision) const {
  Value tile = checkpoint(b, column, width);
  if (!hasRing())
    return tile;
  int64_t taken =
      precision == Precision::Ieee ? depth : std::max(depth, leastRows);
  WeightedRows ring = weightedRows(b, column, width, taken);
  tile = decayed(b, tile, decay, column);
  return b.dot(b.transpose(ring.d), ring.k, tile, precision);
}

Value StateParts::formExactly(TileBuilder &b, Value column, int64_t width,
                              Precision precision) const {
  Value tile = checkpoint(b, column, width);
  if (!hasRing())
    return tile;
  WeightedRows ring =
      weightedRows(b, column, width, std::max(depth, leastRows));
  tile = decayed(b, tile, decay, column);
  Value left = b.transpose(ring.d);
  return exactDot(b, left, ring.k, tile, isPerColumn() ? ring.k : left,
                  precision);
}

/// The end of a loop of `formInSteps`, whose indices count rows, or chunks
/// where a ring that wraps is walked from its newest row down.
Value StateParts::lastStep(TileBuilder &b, int64_t chunk) const {
  if (!op.getBase())
    return op.getCount();
  if (!isScanned())
    return b.i32(ringSize());
  // The chunk of the newest row is met twice, if older rows share it.
  return b.i32((llvm::divideCeil(ringSize(), chunk) + 1) * chunk);
}

StateParts::Step StateParts::stepAt(TileBuilder &b, Value index,
                                    int64_t chunk) const {
  if (!op.getBase() || !isScanned())
    return {index, {}};
  // Chunks from that of the newest row down, around the end, to it again: of it
  // first the newer rows, at last the others.
  int32_t end = llvm::divideCeil(ringSize(), chunk) * chunk;
  Value after = afterNewest(b);
  Value first =
      b.subI(b.subI(after, b.i32(1)), b.remI(b.subI(after, b.i32(1)), chunk));
  Value row = b.remI(b.addI(b.subI(first, index), b.i32(end)), end);
  Value isFirst = b.isEqual(index, b.i32(0));
  Value isLast = b.isEqual(index, b.i32(end));
  Value low = b.select(isLast, after, b.i32(0));
  Value high = b.select(isFirst, after, b.i32(end));
  auto all = [&](Value scalar) { return b.splat(scalar, {chunk}); };
  Value place = b.addI(b.iota(chunk), all(b.subI(row, low)));
  return {row, b.isBelow(place, all(b.subI(high, low)))};
}

/// Where a row's weight is exp of the gates of all newer rows, the loop carries
/// their sum.
Value StateParts::formInSteps(TileBuilder &b, Value column, int64_t width,
                              int64_t chunk, Precision precision) const {
  Value tile = checkpoint(b, column, width);
  if (!hasRing())
    return tile;
  tile = decayed(b, tile, decay, column);
  if (precision == Precision::Ieee)
    chunk = std::min<int64_t>(chunk, depth);
  bool perColumn = isPerColumn();
  SmallVector<Value> carried = {tile};
  if (isScanned())
    carried.push_back(perColumn ? b.zeros({width}) : b.f32(-0.0));
  auto loop = scf::ForOp::create(b, b.i32(0), lastStep(b, chunk), b.i32(chunk),
                                 carried);
  b.setInsertionPointToStart(loop.getBody());
  auto [row, wanted] = stepAt(b, loop.getInductionVar(), chunk);
  Value gates, own;
  if (weights) {
    gates = loadGates(b, row, chunk, column, width, wanted);
    own = wanted ? newerSum(b, gates, /*reverse=*/true)
                 : exponents(b, gates, column);
    if (isScanned()) {
      Value newer = loop.getRegionIterArg(1);
      own = b.add(own, perColumn ? b.spread(newer, 0, chunk)
                                 : b.splat(newer, {chunk}));
    }
    own = b.exp(own);
  }
  Value dRows = loadD(b, row, chunk, wanted);
  Value kRows = loadK(b, row, chunk, column, width, wanted);
  if (perColumn)
    kRows = weighted(b, kRows, own, column);
  else
    dRows = b.mul(dRows, b.spread(own, 1, rows));
  carried = {
      b.dot(b.transpose(dRows), kRows, loop.getRegionIterArg(0), precision)};
  if (isScanned())
    carried.push_back(b.add(loop.getRegionIterArg(1), b.reduce(gates, 0)));
  scf::YieldOp::create(b, carried);
  b.setInsertionPointAfter(loop);
  return loop.getResult(0);
}
