//===- StreamProgram.cpp - Kernels that only move bytes -------------------===//

#include "tools/StreamProgram.h"

#include "kernels/Decode/PoolProgram.h"
#include "kernels/Families.h"

using namespace mlir;
using namespace replayjit::internal;
using namespace replayjit::internal::replay;

//===----------------------------------------------------------------------===//
// Plain streams
//===----------------------------------------------------------------------===//

static KernelBuilder streamBuilder(MLIRContext &context, const char *name,
                                   int numWarps) {
  std::vector<ArgumentSpec> arguments(2);
  arguments[0].name = "src";
  arguments[0].isReadOnly = true;
  arguments[1].name = "dst";
  return KernelBuilder(context, name, arguments, numWarps, /*blocksPerRow=*/1);
}

/// The block's tile of `pointer`.
static Value tileView(KernelBuilder &b, const char *pointer, Value block,
                      int rows) {
  Value first = b.mulI(b.toI64(block), b.i64(int64_t(rows) * streamColumns));
  return b.view(b.argument(pointer), first,
                {Dim{rows, streamColumns}, Dim{streamColumns, 1}},
                /*alignment=*/16);
}

OwningOpRef<ModuleOp> replayjit::internal::buildRead(MLIRContext &context,
                                                     int rows, int numWarps) {
  KernelBuilder b = streamBuilder(context, "read_stream", numWarps);
  Value block = ProgramIdOp::create(b, Axis::X);
  Value tile =
      b.loadTile(tileView(b, "src", block, rows), {rows, streamColumns});
  Value first = b.mulI(b.toI64(block), b.i64(rows));
  Value sums = b.view(b.argument("dst"), first, {Dim{rows, 1}}, 16);
  b.storeTile(b.reduce(tile, /*axis=*/1), sums);
  return b.take();
}

OwningOpRef<ModuleOp> replayjit::internal::buildCopy(MLIRContext &context,
                                                     int rows, int numWarps) {
  KernelBuilder b = streamBuilder(context, "copy_stream", numWarps);
  Value block = ProgramIdOp::create(b, Axis::X);
  Value tile =
      b.loadTile(tileView(b, "src", block, rows), {rows, streamColumns});
  b.storeTile(tile, tileView(b, "dst", block, rows));
  return b.take();
}

//===----------------------------------------------------------------------===//
// A decode kernel's own
//===----------------------------------------------------------------------===//

namespace {

class OwnStream : PoolProgram {
public:
  OwnStream(MLIRContext &context, const DecodeSpec &spec,
            const DecodeTuning &tuning)
      : PoolProgram(context, spec, tuning) {
    pool.state = b.argument("state");
    pool.statePitch = b.argument("statePitch");
    if (!hasRing())
      return;
    pool.dRing = b.argument("dRing");
    pool.kRing = b.argument("kRing");
    pool.gRing = b.argument("gRing");
    pool.dPitch = b.argument("dPitch");
    pool.kPitch = b.argument("kPitch");
    pool.gPitch = b.argument("gPitch");
  }

  OwningOpRef<ModuleOp> build() {
    setRow(locateHead(ProgramIdOp::create(b, Axis::X)));
    b.when(b.isLess(at.row, b.argument("batch")), [&] { row(); });
    return b.take();
  }

private:
  void row() {
    at.slot = at.ringSlot = loadIndex("stateIndices", "stateIndexStride");
    if (hasRing())
      at.cursor = loadRowInt("writePos");
    Value tile = b.loadTile(stateView(at.slot), {rows, keys});
    Value ofRows = b.reduce(tile, /*axis=*/1), ofKeys;
    if (hasRing()) {
      ofRows = b.add(ofRows, b.reduce(readRows(dView(), rows), 0));
      ofKeys = b.reduce(readRows(kView(), keys), 0);
      Value gates = readGates();
      ofRows = b.add(ofRows, b.splat(b.add(b.sum(ofKeys), gates), ofRows));
    }
    Value column = b.addI(b.mulI(at.head, b.i32(spec.headDimV)), at.firstV);
    Value offset =
        b.addI(b.mulI(at.row64, b.argument("outStride")), b.toI64(column));
    b.storeTile(ofRows, b.view(b.argument("out"), offset, {at.vDim},
                               alignment(spec.outType, spec.headDimV)));
    // Not as it was: that store would be none.
    auto writeBack = [&] { b.storeTile(b.neg(tile), stateView(at.slot)); };
    if (!hasRing())
      return writeBack();
    b.branch(b.isEqual(at.cursor, b.i32(spec.ringDepth - 1)), writeBack,
             [&] { append(ofRows, ofKeys); });
  }

  //===--- Ring rows ---------------------------------------------------------//

  Value readRows(Value view, int64_t columns) {
    return b.loadTile(view, {depth, columns});
  }
  /// The rows in use, or the one after them, of a tensor of `size` a row.
  Value dView(bool isNext = false) {
    int64_t v = spec.headDimV;
    Value row = isNext ? at.cursor : b.i32(0);
    Value offset =
        b.addI(ringRow(pool.dPitch, at.head, row, v), b.toI64(at.firstV));
    return ringView(pool.dRing, offset, v, at.vDim, spec.ringType, isNext);
  }
  Value kView(bool isNext = false) {
    int64_t k = spec.headDimK;
    Value row = isNext ? at.cursor : b.i32(0);
    return ringView(pool.kRing, ringRow(pool.kPitch, at.keyHead, row, k), k,
                    Dim{k, 1}, spec.ringType, isNext);
  }
  Value gRow(Value row) { return gView(row, /*isOne=*/true); }
  Value gRows() { return gView(b.i32(0), /*isOne=*/false); }
  Value gView(Value row, bool isOne) {
    int64_t g = gatesPerRow();
    return ringView(pool.gRing, ringRow(pool.gPitch, at.head, row, g), g,
                    Dim{g, 1}, DataType::F32, isOne);
  }
  Value ringView(Value ring, Value offset, int64_t size, Dim columns,
                 DataType type, bool isNext) {
    const int64_t bytes = alignment(type, size);
    if (isNext)
      return b.view(ring, offset, {columns}, bytes);
    return b.view(ring, offset, {Dim{spec.ringDepth, size, at.cursor}, columns},
                  bytes);
  }

  /// The sum of the gates in use; of a predecayed ring the newest are enough,
  /// of which an empty ring has those at its end.
  Value readGates() {
    const int64_t g = nextPowerOfTwo(int(gatesPerRow()));
    if (spec.ringFormat == RingFormat::Predecayed) {
      const int last = spec.ringDepth - 1;
      Value newest = b.remI(b.addI(at.cursor, b.i32(last)), spec.ringDepth);
      return b.sum(b.loadTile(gRow(newest), {g}));
    }
    return b.sum(b.reduce(readRows(gRows(), g), 0));
  }

  void append(Value ofRows, Value ofKeys) {
    b.storeTile(ofRows, dView(/*isNext=*/true));
    Value isFirstTile = b.isEqual(at.tile, b.i32(0));
    int32_t ratio = spec.numValueHeads / spec.numKeyHeads;
    Value isFirstHead = b.isEqual(b.remI(at.head, ratio), b.i32(0));
    b.when(b.allOf(isFirstTile, isFirstHead),
           [&] { b.storeTile(ofKeys, kView(/*isNext=*/true)); });
    b.when(isFirstTile, [&] {
      const int64_t g = nextPowerOfTwo(int(gatesPerRow()));
      b.storeTile(b.splat(b.sum(ofKeys), {g}), gRow(at.cursor));
    });
  }
};

} // namespace

OwningOpRef<ModuleOp> replayjit::internal::buildOwnStream(
    MLIRContext &context, const DecodeSpec &spec, const DecodeTuning &tuning) {
  return OwnStream(context, spec, tuning).build();
}

double replayjit::internal::bytesMoved(const DecodeSpec &spec, int batch,
                                       std::optional<int> cursor) {
  const double heads = spec.numValueHeads, K = spec.headDimK, V = spec.headDimV;
  const double state = heads * K * V * byteSize(spec.stateType);
  const double out = heads * V * byteSize(spec.outType);
  if (spec.ringDepth == 1)
    return batch * (2 * state + out);
  const double ofDAndK =
      (heads * V + spec.numKeyHeads * K) * byteSize(spec.ringType);
  const double ofGates = heads * gateWidth(spec) * sizeof(float);
  const bool readsAllGates = spec.ringFormat != RingFormat::Predecayed;
  auto at = [&](int m) {
    const bool isFull = m == spec.ringDepth - 1;
    return state + out + m * ofDAndK + (readsAllGates ? m : 1) * ofGates +
           (isFull ? state : ofDAndK + ofGates);
  };
  if (cursor)
    return batch * at(*cursor);
  double all = 0;
  for (int m = 0; m < spec.ringDepth; ++m)
    all += at(m);
  return batch * all / spec.ringDepth;
}
