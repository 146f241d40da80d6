//===- DecodeBuilder.cpp - The decode step as a tile program --------------===//
//
// One block computes BV rows of one value head of one request: the grid is
// (request, value head, V tile), the V tile running fastest. The order of the
// steps is that of the operator contract (SGLang PR #28451).
//
//===----------------------------------------------------------------------===//

#include "kernels/Decode/DecodeBuilder.h"

#include "kernels/Decode/DecodeArgs.h"
#include "kernels/KernelBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <numeric>

using namespace mlir;
using namespace replayjit;
using namespace replayjit::replay;

namespace {

/// The arguments in the order of DecodeArgs.
std::vector<ArgumentSpec> argumentsOf(const DecodeSpec &spec) {
  auto input = [](const char *name, DataType type) {
    return ArgumentSpec{name, type, /*isPointer=*/true, /*isReadOnly=*/true};
  };
  auto memory = [](const char *name, DataType type) {
    return ArgumentSpec{name, type, /*isPointer=*/true, /*isReadOnly=*/false};
  };
  std::vector<ArgumentSpec> arguments = {
      input("q", spec.actType), input("k", spec.actType),
      input("v", spec.actType), input("a", spec.gateType),
      input("b", spec.gateType), input("aLog", spec.paramType),
      input("dtBias", spec.paramType), memory("out", spec.outType),
      memory("state", spec.stateType), memory("dRing", spec.ringType),
      memory("kRing", spec.ringType), memory("gRing", DataType::F32),
      // The cursor may stand in for an absent force_flush, so neither is
      // declared free of aliases, nor are the indices.
      memory("stateIndices", spec.indexType), memory("writePos", DataType::I32),
      memory("forceFlush", DataType::I32), memory("ringBase", DataType::I32),
      memory("ringIndices", spec.indexType),
      memory("dstIndices", spec.indexType),
      memory("trackIndices", spec.indexType),
      memory("errorWord", DataType::I32)};
  for (const char *name :
       {"qStride", "kStride", "vStride", "aStride", "bStride", "outStride",
        "stateIndexStride", "ringIndexStride", "dstIndexStride",
        "trackIndexStride", "statePitch", "dPitch", "kPitch", "gPitch"})
    arguments.push_back({name, DataType::I64, /*isPointer=*/false});
  for (const char *name : {"batch", "slots", "ringSlots", "layer"})
    arguments.push_back({name, DataType::I32, /*isPointer=*/false});
  for (const char *name : {"scale", "lowerBound"})
    arguments.push_back({name, DataType::F32, /*isPointer=*/false});
  return arguments;
}

class DecodeProgram {
public:
  DecodeProgram(MLIRContext &context, const DecodeSpec &spec,
                const DecodeTuning &tuning)
      : spec(spec), tuning(tuning), keys(nextPowerOfTwo(spec.headDimK)),
        rows(tuning.blockV), depth(nextPowerOfTwo(spec.ringDepth)),
        tiles((spec.headDimV + rows - 1) / rows),
        b(context, kernelName(spec, tuning), argumentsOf(spec), tuning.numWarps,
          spec.numValueHeads * tiles) {
    if (tuning.maxRegisters)
      b.limitRegisters(tuning.maxRegisters);
  }

  OwningOpRef<ModuleOp> build() {
    locateBlock();
    // Any grid: blocks past the batch do nothing.
    b.when(b.isLess(at.row, b.argument("batch")), [&] {
      readCursor();
      b.branch(
          at.isLive, [&] { liveRow(); }, [&] { nullRow(); });
    });
    return b.take();
  }

private:
  const DecodeSpec &spec;
  const DecodeTuning &tuning;
  const int64_t keys;  ///< K rounded up to a power of two.
  const int64_t rows;  ///< BV
  const int64_t depth; ///< L rounded up to a power of two.
  const int tiles;     ///< V tiles of a head.
  KernelBuilder b;

  /// What a block works on: request, value head, key head, V tile, the tile's
  /// first row and its rows; and the request's slot and cursor.
  struct Place {
    Value row, row64, head, keyHead, tile, firstV;
    Dim vDim;
    Value slot, cursor, isLive;
  };
  Place at;

  bool hasRing() const { return spec.ringDepth > 1; }
  /// Elements of a gate ring's row.
  int64_t gatesPerRow() const { return gateWidth(spec); }

  void locateBlock() { locate(ProgramIdOp::create(b, Axis::X)); }

  void locate(Value pid) {
    at.tile = b.remI(pid, tiles);
    Value pair = b.divI(pid, tiles);
    at.head = b.remI(pair, spec.numValueHeads);
    at.row = b.divI(pair, spec.numValueHeads);
    at.row64 = b.toI64(at.row);
    at.keyHead = b.divI(at.head, spec.numValueHeads / spec.numKeyHeads);
    at.firstV = b.mulI(at.tile, b.i32(rows));
    // A head whose V is no multiple of BV has fewer rows in its last tile.
    at.vDim = {rows, 1};
    if (spec.headDimV % rows != 0)
      at.vDim.dynamicSize =
          b.minI(b.subI(b.i32(spec.headDimV), at.firstV), b.i32(rows));
  }

  void readCursor() {
    b.describe("state_indices");
    at.slot =
        b.toI64(b.loadScalar(b.argument("stateIndices"),
                             b.mulI(at.row64, b.argument("stateIndexStride"))));
    b.describe("write_pos");
    at.cursor = b.loadScalar(b.argument("writePos"), at.row64);
    Value first = b.i64(spec.nullSlot == NullSlot::Negative ? -1 : 0);
    Value slotOk = b.allOf(b.isLess(first, at.slot),
                           b.isLess(at.slot, b.toI64(b.argument("slots"))));
    Value cursorOk = b.allOf(b.isLess(b.i32(-1), at.cursor),
                             b.isLess(at.cursor, b.i32(spec.ringDepth)));
    at.isLive = b.allOf(slotOk, cursorOk);
  }

  /// Asks for the checkpoint that the block `prefetchDistance` places on will
  /// read, so that it finds it in the L2 cache.
  void prefetchAhead() {
    if (tuning.prefetchDistance == 0 ||
        alignment(spec.stateType, spec.headDimK) < 16)
      return;
    Place own = at;
    locate(b.addI(ProgramIdOp::create(b, Axis::X),
                  b.i32(tuning.prefetchDistance)));
    b.when(b.isLess(at.row, b.argument("batch")), [&] {
      readCursor();
      b.when(at.isLive, [&] { PrefetchOp::create(b, stateView()); });
    });
    at = own;
  }

  //===--- Offsets (elements, i64) and views
  //----------------------------------//

  /// row * stride + head-dependent column.
  Value inRow(const char *stride, Value column) {
    return b.addI(b.mulI(at.row64, b.argument(stride)), b.toI64(column));
  }
  /// slot * pitch + inner * size.
  Value inSlot(const char *pitch, Value inner, int64_t size) {
    return b.addI(b.mulI(at.slot, b.argument(pitch)),
                  b.mulI(b.toI64(inner), b.i64(size)));
  }
  /// What the spec promises, cut down to what divides `elements` of `type`.
  int64_t alignment(DataType type, int64_t elements) {
    int64_t bytes = spec.alignment;
    while (bytes > 0 && (elements * byteSize(type)) % bytes != 0)
      bytes /= 2;
    return bytes;
  }
  Value vectorView(const char *name, DataType type, Value offset, Dim dim,
                   int64_t headSize) {
    b.describe(name);
    return b.view(b.argument(name), offset, {dim}, alignment(type, headSize));
  }
  Value valueView(const char *name, DataType type, Value offset) {
    return vectorView(name, type, b.addI(offset, b.toI64(at.firstV)), at.vDim,
                      spec.headDimV);
  }
  /// The block's rows of the checkpoint.
  Value stateView() {
    int64_t k = spec.headDimK;
    Value offset = b.addI(inSlot("statePitch", at.head, spec.headDimV * k),
                          b.toI64(b.mulI(at.firstV, b.i32(k))));
    Dim rowsDim = at.vDim;
    rowsDim.stride = k;
    b.describe("state");
    return b.view(b.argument("state"), offset, {rowsDim, Dim{k, 1}},
                  alignment(spec.stateType, k));
  }

  /// Ring row `index` (i32): its offset in a ring of `size` elements a row.
  Value ringRow(const char *pitch, Value inner, Value index, int64_t size) {
    return b.addI(inSlot(pitch, inner, spec.ringDepth * size),
                  b.toI64(b.mulI(index, b.i32(size))));
  }

  //===--- The parts of a step
  //-------------------------------------------------//

  Value outView() {
    Value column = b.mulI(at.head, b.i32(spec.headDimV));
    return valueView("out", spec.outType, inRow("outStride", column));
  }

  void nullRow() {
    b.describe("out");
    Value zeros = SplatOp::create(b, b.tileType({rows}), b.f32(0));
    b.storeTile(zeros, outView());
  }

  /// g and alpha are numbers for GDN, vectors over K for KDA.
  struct GateValues {
    Value g, alpha, beta;
  };

  /// g as DecodeSpec::gate says, alpha = exp(g), beta = sigmoid(b).
  GateValues readGate() {
    auto scalar = [&](const char *name, Value offset) {
      b.describe(name);
      return b.widen(b.loadScalar(b.argument(name), offset));
    };
    // One number a head, or one a channel of the head.
    auto perChannel = [&](const char *name, DataType type, Value row) {
      if (!spec.isKda)
        return scalar(name, b.addI(row, b.toI64(at.head)));
      int64_t k = spec.headDimK;
      Value offset = b.addI(row, b.toI64(b.mulI(at.head, b.i32(k))));
      return b.loadTile(vectorView(name, type, offset, Dim{k, 1}, k), {keys});
    };
    Value a =
        perChannel("a", spec.gateType, b.mulI(at.row64, b.argument("aStride")));
    Value bias = perChannel("dtBias", spec.paramType, b.i64(0));
    Value beta = scalar("b", inRow("bStride", at.head));
    Value aLog = scalar("aLog", b.toI64(at.head));
    b.describe("gate");
    Value x = b.add(a, bias), rate = b.exp(aLog);
    Value g;
    if (spec.gate == Gate::Softplus)
      g = b.mul(b.softplus(x), b.splat(b.neg(rate), x));
    else
      g = b.mul(b.sigmoid(b.mul(x, b.splat(rate, x))),
                b.splat(b.argument("lowerBound"), x));
    beta = b.sigmoid(beta);
    if (spec.betaRound)
      beta = b.roundedTo(beta, spec.gateType);
    return {g, b.exp(g), beta};
  }

  /// q or k of the key head, normalized over K if the spec says so.
  Value readKey(int part) {
    int64_t k = spec.headDimK;
    Value column =
        b.mulI(b.addI(b.i32(part * spec.numKeyHeads), at.keyHead), b.i32(k));
    Value x = b.loadTile(vectorView("q", spec.actType,
                                    inRow("qStride", column), Dim{k, 1}, k),
                         {keys});
    if (!spec.qkL2Norm)
      return x;
    b.describe("q/k norm");
    Value norm = b.sqrt(b.add(b.sum(b.mul(x, x)), b.f32(1e-6)));
    return b.mul(x, b.splat(b.div(b.f32(1), norm), x));
  }

  Value readValue() {
    // v follows q and k, so its alignment is also that of their size.
    int64_t before = 2 * spec.numKeyHeads * spec.headDimK;
    Value column =
        b.addI(b.i32(before),
               b.addI(b.mulI(at.head, b.i32(spec.headDimV)), at.firstV));
    return b.loadTile(vectorView("q", spec.actType,
                                 inRow("qStride", column), at.vDim,
                                 std::gcd<int64_t>(before, spec.headDimV)),
                      {rows});
  }

  /// Checkpoint and ring, the ring's rows from the newest down.
  Value readState() {
    Value s0 = stateView();
    auto type = StateType::get(b.getContext(), rows, keys);
    if (!hasRing())
      return ReconstructOp::create(b, type, s0, Value(), Value(), Value(),
                                   Value(), /*depth=*/1);
    int64_t k = spec.headDimK, v = spec.headDimV;
    Value newest = b.subI(at.cursor, b.i32(1));
    b.describe("dRing");
    Value dOffset =
        b.addI(ringRow("dPitch", at.head, newest, v), b.toI64(at.firstV));
    Value d =
        b.view(b.argument("dRing"), dOffset, {Dim{0, -v, at.cursor}, at.vDim},
               alignment(spec.ringType, v));
    b.describe("kRing");
    Value kr =
        b.view(b.argument("kRing"), ringRow("kPitch", at.keyHead, newest, k),
               {Dim{0, -k, at.cursor}, Dim{k, 1}}, alignment(spec.ringType, k));
    b.describe("gRing");
    int64_t gates = gatesPerRow();
    SmallVector<Dim> gateDims = {Dim{0, -gates, at.cursor}};
    if (spec.isKda)
      gateDims.push_back(Dim{gates, 1});
    Value g =
        b.view(b.argument("gRing"), ringRow("gPitch", at.head, newest, gates),
               gateDims, spec.isKda ? alignment(DataType::F32, gates) : 0);
    b.describe("replay");
    return ReconstructOp::create(b, type, s0, at.cursor, d, kr, g, depth);
  }

  void liveRow() {
    prefetchAhead(); // The loads below are hoisted above it.
    GateValues gate = readGate();
    Value q = readKey(0), k = readKey(1), v = readValue();
    b.describe("readout");
    Value scaled = b.mul(q, b.splat(b.argument("scale"), q));
    Value kq = b.sum(b.mul(k, scaled));
    Value state = readState();
    // d = beta (v - S diag(alpha) k);  o = S diag(alpha) q + d (k . q). A
    // number alpha multiplies the products, a vector the vectors.
    auto decayed = [&](Value x) {
      return spec.isKda ? b.mul(x, gate.alpha) : x;
    };
    auto product =
        ContractOp::create(b, TypeRange{v.getType(), v.getType()}, state,
                           ValueRange{decayed(scaled), decayed(k)});
    Value sq = product.getResult(0), sk = product.getResult(1);
    if (!spec.isKda) {
      Value alpha = b.splat(gate.alpha, v);
      sq = b.mul(alpha, sq);
      sk = b.mul(alpha, sk);
    }
    Value d = b.mul(b.splat(gate.beta, v), b.sub(v, sk));
    Value o = b.fma(d, b.splat(kq, v), sq);
    Value out = outView();
    b.storeTile(o, out);

    b.describe("flush");
    auto flush = [&] {
      Value destination = stateView();
      FlushOp::create(b, state, gate.alpha, d, k, destination);
    };
    if (!hasRing())
      return flush();
    Value isFull = b.isEqual(at.cursor, b.i32(spec.ringDepth - 1));
    if (spec.hasForceFlush) {
      b.describe("force_flush");
      Value force = b.loadScalar(b.argument("forceFlush"), at.row64);
      Value isForced =
          arith::XOrIOp::create(b, b.isEqual(force, b.i32(0)), trueValue());
      isFull = b.anyOf(isFull, isForced);
    }
    b.branch(isFull, flush, [&] { append(d, k, gate.g); });
  }

  Value trueValue() {
    return arith::ConstantOp::create(b, b.getBoolAttr(true));
  }

  /// Ring row `cursor` gets d, the normalized and unscaled k, and g. Each is
  /// written by one block of those that share it.
  void append(Value d, Value k, Value g) {
    int64_t kSize = spec.headDimK, v = spec.headDimV;
    b.storeTile(d, valueView("dRing", spec.ringType,
                             ringRow("dPitch", at.head, at.cursor, v)));
    Value isFirstTile = b.isEqual(at.tile, b.i32(0));
    int32_t ratio = spec.numValueHeads / spec.numKeyHeads;
    Value isFirstHead = b.isEqual(b.remI(at.head, ratio), b.i32(0));
    b.when(b.allOf(isFirstTile, isFirstHead), [&] {
      b.storeTile(k, vectorView("kRing", spec.ringType,
                                ringRow("kPitch", at.keyHead, at.cursor, kSize),
                                Dim{kSize, 1}, kSize));
    });
    b.when(isFirstTile, [&] {
      int64_t gates = gatesPerRow();
      Value offset = ringRow("gPitch", at.head, at.cursor, gates);
      if (spec.isKda) {
        b.storeTile(g, vectorView("gRing", DataType::F32, offset, Dim{gates, 1},
                                  gates));
        return;
      }
      b.describe("gRing");
      Value one = b.view(b.argument("gRing"), offset, {Dim{1, 1}});
      StoreOp::create(b, g, one, ValueRange{b.i32(0)});
    });
  }
};

/// What rebuild mode rounds the dot's operands to.
const char *readoutPrecision(DataType outType) {
  switch (outType) {
  case DataType::BF16:
    return "bf16";
  case DataType::F16:
    return "f16";
  default:
    return "tf32";
  }
}

} // namespace

OwningOpRef<ModuleOp> replayjit::buildDecode(MLIRContext &context,
                                             const DecodeSpec &spec,
                                             const DecodeTuning &tuning) {
  return DecodeProgram(context, spec, tuning).build();
}

PipelineOptions replayjit::decodePipeline(const DecodeSpec &spec,
                                          const DecodeTuning &tuning) {
  PipelineOptions options;
  options.rebuild = spec.readout == Readout::Rebuild;
  options.blockK = tuning.blockK;
  options.flushRows = tuning.flushRows;
  options.precision = readoutPrecision(spec.outType);
  options.flushPrecision =
      tuning.flushPrecision == FlushPrecision::Tf32x3 ? "tf32x3" : "ieee";
  return options;
}

Result<CompiledKernel>
replayjit::compileDecode(Compiler &compiler, const DecodeSpec &spec,
                         const DecodeTuning &tuning, const Target &target,
                         CompileOptions options, bool forHost) {
  if (Status status = validate(spec, tuning, target); !status)
    return status;
  options.pipeline = decodePipeline(spec, tuning);
  auto build = [&](MLIRContext &context) {
    return buildDecode(context, spec, tuning);
  };
  return forHost ? compiler.compileForHost(build, target, options)
                 : compiler.compile(build, target, options);
}
