//===- PoolProgram.cpp - What all kernels on a state pool share -----------===//

#include "kernels/Decode/PoolProgram.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace replayjit::internal;
using namespace replayjit::internal::replay;

PoolProgram::PoolProgram(MLIRContext &context, const DecodeSpec &spec,
                         const DecodeTuning &tuning)
    : spec(spec), tuning(tuning), keys(nextPowerOfTwo(spec.headDimK)),
      rows(tuning.blockV), depth(nextPowerOfTwo(spec.ringDepth)),
      tiles((spec.headDimV + rows - 1) / rows),
      b(context, kernelName(spec, tuning), declarations(spec), tuning.numWarps,
        spec.numValueHeads * tiles) {
  KernelBuilder::ThreadTuning threads;
  threads.maxRegisters = tuning.maxRegisters;
  threads.stageBytes = tuning.stageBytes;
  // 16 lanes hold fewer columns each, of all the vectors that a row meets; a
  // block of one warp has few rows and gains by it.
  if (tuning.numWarps == 1)
    threads.lanesPerRow = 16;
  b.tune(threads);
  b.awaitPredecessor(spec.programmaticLaunch);
}

Value PoolProgram::locateHead(Value block) {
  Value tile = b.remI(block, tiles);
  Value pair = b.divI(block, tiles);
  setHead(tile, b.remI(pair, spec.numValueHeads));
  return b.divI(pair, spec.numValueHeads);
}

void PoolProgram::setHead(Value tile, Value head) {
  at.tile = tile;
  at.head = head;
  at.keyHead = b.divI(at.head, spec.numValueHeads / spec.numKeyHeads);
  at.firstV = b.mulI(at.tile, b.i32(rows));
  // A head whose V is no multiple of BV has fewer rows in its last tile.
  at.vDim = {rows, 1};
  if (spec.headDimV % rows != 0)
    at.vDim.dynamicSize =
        b.minI(b.subI(b.i32(spec.headDimV), at.firstV), b.i32(rows));
}

void PoolProgram::setRow(Value row) {
  at.row = row;
  at.row64 = b.toI64(row);
}

//===----------------------------------------------------------------------===//
// Indices of the row
//===----------------------------------------------------------------------===//

Value PoolProgram::loadIndex(const char *name, const char *stride) {
  b.describe(name);
  return b.toI64(
      b.loadScalar(b.argument(name), b.mulI(at.row64, b.argument(stride))));
}

Value PoolProgram::loadRowInt(const char *name) {
  b.describe(name);
  return b.loadScalar(b.argument(name), at.row64);
}

Value PoolProgram::isNull(Value slot) {
  return b.isLess(slot, b.i64(spec.nullSlot == NullSlot::Negative ? 0 : 1));
}

void PoolProgram::check(Value isLegal, ErrorKind kind, Value value) {
  checks.push_back({isLegal, kind, b.toI64(value)});
}

void PoolProgram::readRingPlace(bool mayBeUnused) {
  auto isBelow = [&](Value value, int32_t end) {
    return b.allOf(b.isLess(b.i32(-1), value), b.isLess(value, b.i32(end)));
  };
  at.cursor = loadRowInt("writePos");
  check(isBelow(at.cursor, cursorEnd(spec)), ErrorKind::WritePos, at.cursor);
  at.ringSlot = at.slot;
  if (spec.hasRingIndices) {
    at.ringSlot = loadIndex("ringIndices", "ringIndexStride");
    Value isRing =
        b.allOf(b.isLess(b.i64(-1), at.ringSlot),
                b.isLess(at.ringSlot, b.toI64(b.argument("ringSlots"))));
    if (mayBeUnused)
      isRing = b.anyOf(b.isEqual(at.cursor, b.i32(0)), isRing);
    check(isRing, ErrorKind::RingSlot, at.ringSlot);
  }
  if (spec.isCircular) {
    at.base = loadRowInt("ringBase");
    check(isBelow(at.base, spec.ringDepth), ErrorKind::RingBase, at.base);
  }
}

Value PoolProgram::allLegal() {
  Value all = trueValue();
  for (const Check &check : checks)
    all = b.createOrFold<arith::AndIOp>(all, check.isLegal);
  return all;
}

void PoolProgram::reportFailure(Value layer) {
  b.describe("error word");
  llvm::stable_sort(
      checks, [](const Check &x, const Check &y) { return x.kind < y.kind; });
  Value kind = b.i32(0), value = b.i64(0);
  for (const Check &check : llvm::reverse(checks)) {
    kind = b.select(check.isLegal, kind, b.i32(int32_t(check.kind)));
    value = b.select(check.isLegal, value, check.value);
  }
  Value isFirst =
      b.allOf(b.isEqual(at.tile, b.i32(0)), b.isEqual(at.head, b.i32(0)));
  b.when(b.allOf(isFirst, negated(b.isEqual(kind, b.i32(0)))), [&] {
    ReportOp::create(b, kind, at.row, layer, value, b.argument("errorWord"),
                     spec.trapOnError);
  });
}

void PoolProgram::reportOverflow(Value layer) {
  if (!storesF16(spec))
    return;
  b.describe("error word");
  OnOverflowOp::create(b, b.i32(int32_t(ErrorKind::Overflow)), at.row, layer,
                       b.argument("errorWord"), spec.trapOnError);
}

//===----------------------------------------------------------------------===//
// Offsets and views
//===----------------------------------------------------------------------===//

Value PoolProgram::inSlot(Value slot, Value pitch, Value inner, int64_t size) {
  return b.addI(b.mulI(slot, pitch), b.mulI(b.toI64(inner), b.i64(size)));
}

Value PoolProgram::ringRow(Value pitch, Value inner, Value index,
                           int64_t size) {
  return b.addI(inSlot(at.ringSlot, pitch, inner, spec.ringDepth * size),
                b.toI64(b.mulI(index, b.i32(size))));
}

int64_t PoolProgram::alignment(DataType type, int64_t elements) {
  int64_t bytes = spec.alignment;
  while (bytes > 0 && (elements * byteSize(type)) % bytes != 0)
    bytes /= 2;
  return bytes;
}

Dim PoolProgram::onlyIf(Value isWanted, Dim dim) {
  if (!isWanted)
    return dim;
  Value all = dim.dynamicSize ? dim.dynamicSize : b.i32(dim.size);
  dim.dynamicSize = b.select(isWanted, all, b.i32(0));
  return dim;
}

Value PoolProgram::stateView(Value slot) {
  return stateView(pool.state, slot, /*isWanted=*/{});
}

Value PoolProgram::flushView(Value slot, Value isWanted) {
  return stateView(pool.flushed ? pool.flushed : pool.state, slot, isWanted);
}

Value PoolProgram::stateView(Value pointer, Value slot, Value isWanted) {
  int64_t k = spec.headDimK;
  b.describe("state");
  Value offset =
      b.addI(inSlot(slot, pool.statePitch, at.head, spec.headDimV * k),
             b.toI64(b.mulI(at.firstV, b.i32(k))));
  Dim rowsDim = at.vDim;
  rowsDim.stride = k;
  return b.view(pointer, offset, {onlyIf(isWanted, rowsDim), Dim{k, 1}},
                alignment(spec.stateType, k));
}

Value PoolProgram::physicalRow(Value index) {
  return spec.isCircular ? b.remI(b.addI(at.base, index), spec.ringDepth)
                         : index;
}

Value PoolProgram::readTotal() {
  b.describe("gRing");
  int64_t k = spec.headDimK;
  // Of an empty ring nothing is read, whatever row -1 would be.
  Value isEmpty = b.isEqual(at.cursor, b.i32(0));
  Value newest = physicalRow(
      b.addI(at.cursor, b.i32(spec.isCircular ? spec.ringDepth - 1 : -1)));
  Dim dim = {0, 1};
  dim.dynamicSize = b.select(isEmpty, b.i32(0), b.i32(k));
  Value view =
      b.view(pool.gRing, ringRow(pool.gPitch, at.head, newest, k), {dim});
  return b.loadTile(view, {keys});
}

Value PoolProgram::readState(Value total) {
  Value s0 = stateView(at.slot);
  auto type = StateType::get(b.getContext(), rows, keys);
  if (!hasRing())
    return ReconstructOp::create(b, type, s0, Value(), Value(), Value(),
                                 Value(), Value(), Value(), /*depth=*/1);
  int64_t k = spec.headDimK, v = spec.headDimV, gates = gatesPerRow();
  // All physical rows if they wrap, else those there are, newest first.
  Value first = spec.isCircular ? b.i32(0) : b.subI(at.cursor, b.i32(1));
  auto rowsOf = [&](int64_t size) {
    return spec.isCircular ? Dim{spec.ringDepth, size}
                           : Dim{spec.ringDepth, -size, at.cursor};
  };
  b.describe("dRing");
  Value dOffset =
      b.addI(ringRow(pool.dPitch, at.head, first, v), b.toI64(at.firstV));
  Value d = b.view(pool.dRing, dOffset, {rowsOf(v), at.vDim},
                   alignment(spec.ringType, v));
  b.describe("kRing");
  Value kr = b.view(pool.kRing, ringRow(pool.kPitch, at.keyHead, first, k),
                    {rowsOf(k), Dim{k, 1}}, alignment(spec.ringType, k));
  Value g;
  if (spec.ringFormat != RingFormat::Predecayed) {
    b.describe("gRing");
    SmallVector<Dim> dims = {rowsOf(gates)};
    if (spec.isKda)
      dims.push_back(Dim{gates, 1});
    g = b.view(pool.gRing, ringRow(pool.gPitch, at.head, first, gates), dims,
               spec.isKda ? alignment(DataType::F32, gates) : 0);
  }
  b.describe("replay");
  return ReconstructOp::create(b, type, s0, at.cursor, d, kr, g, total, at.base,
                               depth);
}

//===----------------------------------------------------------------------===//
// Uses of a state
//===----------------------------------------------------------------------===//

Precision PoolProgram::rebuildPrecision() const {
  switch (readoutType(spec)) {
  case DataType::BF16:
    return Precision::Bf16;
  case DataType::F16:
    return Precision::F16;
  default:
    return Precision::Tf32;
  }
}

/// What holds the numbers of a 16-bit type.
PrecisionAttr PoolProgram::splitFor(DataType type) {
  return PrecisionAttr::get(b.getContext(), type == DataType::BF16
                                                ? Precision::Bf16
                                                : Precision::Tf32);
}

ContractOp PoolProgram::contract(Value state, ValueRange vectors) {
  SmallVector<Type> results(vectors.size(), b.tileType({rows}));
  IntegerAttr width = b.getI32IntegerAttr(tuning.blockK);
  PrecisionAttr rebuild, split;
  if (spec.readout == Readout::Rebuild) {
    rebuild = PrecisionAttr::get(b.getContext(), rebuildPrecision());
  } else if (tuning.splitVectors) {
    split = splitFor(spec.stateType);
    width = {};
  }
  return ContractOp::create(b, results, state, vectors, width, rebuild, split);
}

void PoolProgram::flush(Value state, ValueRange destinations, Value decay,
                        Value d, Value k) {
  IntegerAttr rowsPerStep; // A rebuilt state takes all at once.
  Precision precision = rebuildPrecision();
  PrecisionAttr split;
  if (spec.readout == Readout::OutputOnly) {
    precision = Precision::Ieee;
    if (tuning.flushRows)
      rowsPerStep = b.getI32IntegerAttr(tuning.flushRows);
    else
      split = splitFor(spec.ringType);
  }
  FlushOp::create(b, state, decay, d, k, destinations,
                  b.getI32IntegerAttr(tuning.blockK), rowsPerStep, precision,
                  split);
}

Value PoolProgram::trueValue() {
  return arith::ConstantOp::create(b, b.getBoolAttr(true));
}

Value PoolProgram::negated(Value condition) {
  return arith::XOrIOp::create(b, condition, trueValue());
}
