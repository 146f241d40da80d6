//===- DecodeBuilder.cpp - The decode step as a tile program --------------===//
//
// The order of the steps is that of the operator contract (SGLang PR #28451).
//
//===----------------------------------------------------------------------===//

#include "kernels/Decode/DecodeBuilder.h"

#include "kernels/Decode/PoolProgram.h"
#include "kernels/Decode/TritonArgs.h"
#include "kernels/Plan/PlanBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <numeric>

using namespace mlir;
using namespace replayjit::internal;
using namespace replayjit::internal::replay;

namespace {

class DecodeProgram : PoolProgram {
public:
  DecodeProgram(MLIRContext &context, const DecodeSpec &spec,
                const DecodeTuning &tuning)
      : PoolProgram(context, spec, tuning),
        isNative(spec.abi == LaunchAbi::Native) {
    if (!isNative)
      fixStrides();
    pool = {.state = b.argument("state"),
            .dRing = b.argument("dRing"),
            .kRing = b.argument("kRing"),
            .gRing = b.argument("gRing"),
            .flushed = isNative ? Value() : b.argument("finalState"),
            .statePitch = b.argument("statePitch"),
            .dPitch = b.argument("dPitch"),
            .kPitch = b.argument("kPitch"),
            .gPitch = b.argument("gPitch")};
  }

  OwningOpRef<ModuleOp> build() {
    if (isNative) {
      setRow(locateHead(ProgramIdOp::create(b, Axis::X)));
      // Any grid: blocks past the batch do nothing.
      b.when(b.isLess(at.row, b.argument("batch")), [&] { row(); });
    } else {
      setHead(ProgramIdOp::create(b, Axis::X), ProgramIdOp::create(b, Axis::Z));
      setRow(ProgramIdOp::create(b, Axis::Y));
      row();
    }
    return b.take();
  }

private:
  const bool isNative;        ///< Else LaunchAbi::Triton.
  Value trackSlot, isTracked; ///< If the spec has track_indices.

  /// Triton's tensors are dense.
  void fixStrides() {
    const ArgumentTable table = decodeArguments();
    for (const Argument &argument : table)
      if (argument.kind == Argument::Kind::Stride)
        b.replaceArgument(argument.name,
                          b.i64(innerElements(spec, table[argument.pointer])));
  }

  void row() {
    if (isNative)
      reportOverflow(b.argument("layer"));
    readPlaces();
    Value isThere = negated(isNull(at.slot));
    b.branch(
        b.allOf(isThere, allLegal()), [&] { liveRow(); },
        [&] { nullRow(isThere); });
  }

  /// Triton's kernels do not know how many there are.
  Value isSlot(Value slot) {
    return isNative ? b.isLess(slot, b.toI64(b.argument("slots")))
                    : trueValue();
  }

  void readSlot() { at.slot = loadIndex("stateIndices", "stateIndexStride"); }

  void readPlaces() {
    readSlot();
    check(isSlot(at.slot), ErrorKind::StateSlot, at.slot);
    if (spec.family == Family::Replay)
      readRingPlace();
    at.dst = at.slot;
    if (spec.hasDstIndices) {
      at.dst = loadIndex("dstIndices", "dstIndexStride");
      check(b.allOf(negated(isNull(at.dst)), isSlot(at.dst)),
            ErrorKind::DstSlot, at.dst);
    }
    if (spec.hasTrackIndices) {
      trackSlot = loadIndex("trackIndices", "trackIndexStride");
      isTracked = negated(isNull(trackSlot));
      check(isSlot(trackSlot), ErrorKind::TrackSlot, trackSlot);
    }
  }

  //===--- Views of a token's arguments --------------------------------------//

  /// row * stride + head-dependent column.
  Value inRow(const char *stride, Value column) {
    return b.addI(b.mulI(at.row64, b.argument(stride)), b.toI64(column));
  }
  Value vectorView(Value pointer, const char *name, DataType type, Value offset,
                   Dim dim, int64_t headSize) {
    b.describe(name);
    return b.view(pointer, offset, {dim}, alignment(type, headSize));
  }
  Value argumentView(const char *name, DataType type, Value offset, Dim dim,
                     int64_t headSize) {
    return vectorView(b.argument(name), name, type, offset, dim, headSize);
  }
  Value outView() {
    Value column = b.addI(b.mulI(at.head, b.i32(spec.headDimV)), at.firstV);
    return argumentView("out", spec.outType, inRow("outStride", column),
                        at.vDim, spec.headDimV);
  }

  void nullRow(Value isThere) {
    b.describe("out");
    Value zeros = SplatOp::create(b, b.tileType({rows}), b.f32(0));
    b.storeTile(zeros, outView());
    if (isNative)
      b.when(isThere, [&] { reportFailure(b.argument("layer")); });
  }

  //===--- The parts of a step -----------------------------------------------//

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
      return b.loadTile(argumentView(name, type, offset, Dim{k, 1}, k), {keys});
    };
    Value a =
        perChannel("a", spec.gateType, b.mulI(at.row64, b.argument("aStride")));
    Value bias = perChannel("dtBias", spec.biasType, b.i64(0));
    Value beta = scalar("b", inRow("bStride", at.head));
    Value aLog = scalar("aLog", b.toI64(at.head));
    b.describe("gate");
    // Either factor of the gate may be infinite or zero, but not this one.
    Value rate =
        b.exp(b.max(b.min(aLog, b.f32(mostLogRate)), b.f32(-mostLogRate)));
    Value x = b.add(a, bias);
    Value g;
    if (spec.gate == Gate::Softplus)
      g = b.mul(b.softplus(x), b.splat(b.neg(rate), x));
    else
      g = b.mul(b.sigmoid(b.mul(x, b.splat(rate, x))),
                b.splat(b.argument("lowerBound"), x));
    beta = b.sigmoid(beta);
    if (spec.betaRound)
      beta = b.roundedTo(beta, spec.betaType);
    return {g, b.exp(g), beta};
  }

  /// q (part 0) or k (1) of the key head, normalized over K if the spec says
  /// so, and times `scale` if given.
  Value readKey(int part, Value scale = {}) {
    int64_t k = spec.headDimK;
    const bool isOwn = spec.hasSeparateQkv && part == 1;
    Value head = at.keyHead;
    if (part == 1 && !spec.hasSeparateQkv)
      head = b.addI(b.i32(spec.numKeyHeads), head);
    Value offset = inRow(isOwn ? "kStride" : "qStride", b.mulI(head, b.i32(k)));
    Value x = b.loadTile(
        argumentView(isOwn ? "k" : "q", spec.actType, offset, Dim{k, 1}, k),
        {keys});
    if (spec.qkL2Norm) {
      b.describe("q/k norm");
      Value norm = b.rsqrt(b.add(b.sum(b.mul(x, x)), b.f32(1e-6)));
      scale = scale ? b.mul(norm, scale) : norm;
    }
    return scale ? b.mul(x, b.splat(scale, x)) : x;
  }

  Value readValue() {
    Value column = b.addI(b.mulI(at.head, b.i32(spec.headDimV)), at.firstV);
    if (spec.hasSeparateQkv)
      return b.loadTile(argumentView("v", spec.actType,
                                     inRow("vStride", column), at.vDim,
                                     spec.headDimV),
                        {rows});
    // v follows q and k, so its alignment is also that of their size.
    int64_t before = 2 * spec.numKeyHeads * spec.headDimK;
    Value offset = inRow("qStride", b.addI(b.i32(before), column));
    return b.loadTile(argumentView("q", spec.actType, offset, at.vDim,
                                   std::gcd<int64_t>(before, spec.headDimV)),
                      {rows});
  }

  /// What a token brings: q scaled, k normalized and unscaled, k . q.
  struct Token {
    GateValues gate;
    Value q, k, v, kq;
    Value d = {}; ///< Once it is known.
  };

  Token readToken() {
    GateValues gate = readGate();
    Value q = readKey(0, b.argument("scale")), k = readKey(1), v = readValue();
    return {gate, q, k, v, b.sum(b.mul(k, q))};
  }

  void liveRow() {
    // Not before the row is known to be live, though every row has inputs: a
    // norm waits for q and k, and the state's loads would wait behind it.
    Token token = readToken();
    b.describe("readout");
    Value total;
    if (hasRing() && spec.ringFormat != RingFormat::Raw)
      total = readTotal();
    Value state = readState(total);
    // d = beta (v - S diag(alpha) k);  o = S diag(alpha) q + d (k . q). A
    // number alpha multiplies the products, a vector the vectors.
    const GateValues &gate = token.gate;
    auto decayed = [&](Value x) {
      return spec.isKda ? b.mul(x, gate.alpha) : x;
    };
    ContractOp product = contract(state, {decayed(token.q), decayed(token.k)});
    Value sq = product.getResult(0), sk = product.getResult(1);
    if (!spec.isKda) {
      Value alpha = b.splat(gate.alpha, token.v);
      sq = b.mul(alpha, sq);
      sk = b.mul(alpha, sk);
    }
    token.d = b.mul(b.splat(gate.beta, token.v), b.sub(token.v, sk));
    Value o = b.fma(token.d, b.splat(token.kq, token.v), sq);
    Value out = outView();
    b.storeTile(o, out);
    leave(state, token, total);
  }

  /// Flushes or appends, as the cursor, force_flush and track_indices say.
  void leave(Value state, const Token &token, Value total) {
    if (!hasRing()) {
      store(state, token, /*isWanted=*/{});
      return;
    }
    Value isFull = b.isEqual(at.cursor, b.i32(spec.ringDepth - 1));
    Value isForced;
    if (spec.hasForceFlush)
      isForced = negated(b.isEqual(loadRowInt("forceFlush"), b.i32(0)));
    // Of a circular ring that is full only the history is folded.
    Value folds = spec.isCircular ? isForced : isFull;
    if (!spec.isCircular && isForced)
      folds = b.anyOf(isFull, isForced);
    auto keep = [&] {
      if (spec.isCircular)
        b.when(isFull, [&] { storeHistory(state); });
      append(token, total, isFull);
    };
    if (!spec.hasTrackIndices) {
      if (!folds)
        return keep();
      b.branch(
          folds, [&] { store(state, token, {}); }, keep);
      return;
    }
    b.when(folds ? b.anyOf(folds, isTracked) : isTracked,
           [&] { store(state, token, folds ? folds : negated(trueValue())); });
    if (!folds)
      return keep();
    b.when(negated(folds), keep);
  }

  /// Stores the state after the token: to the row's slot if `isWanted` (or not
  /// given), to the tracking slot if there is one.
  void store(Value state, const Token &token, Value isWanted) {
    b.describe("flush");
    SmallVector<Value> destinations = {flushView(at.dst, isWanted)};
    if (spec.hasTrackIndices)
      destinations.push_back(flushView(trackSlot, isTracked));
    flush(state, destinations, token.gate.alpha, token.d, token.k);
  }

  /// Stores the state before the token.
  void storeHistory(Value state) {
    b.describe("flush");
    flush(state, flushView(at.dst));
  }

  /// Writes d, k and the gate to the first free ring row, in its format. Each
  /// is written by one block of those that share it.
  void append(const Token &token, Value total, Value isFull) {
    int64_t kSize = spec.headDimK, v = spec.headDimV;
    Value row = physicalRow(at.cursor);
    Value dOffset =
        b.addI(ringRow(pool.dPitch, at.head, row, v), b.toI64(at.firstV));
    b.storeTile(token.d, vectorView(pool.dRing, "dRing", spec.ringType, dOffset,
                                    at.vDim, v));
    Value isFirstTile = b.isEqual(at.tile, b.i32(0));
    int32_t ratio = spec.numValueHeads / spec.numKeyHeads;
    Value isFirstHead = b.isEqual(b.remI(at.head, ratio), b.i32(0));
    auto storeK = [&](Value k) {
      b.storeTile(k, vectorView(pool.kRing, "kRing", spec.ringType,
                                ringRow(pool.kPitch, at.keyHead, row, kSize),
                                Dim{kSize, 1}, kSize));
    };
    if (spec.ringFormat != RingFormat::Predecayed)
      b.when(b.allOf(isFirstTile, isFirstHead), [&] { storeK(token.k); });
    b.when(isFirstTile, [&] {
      Value g = token.gate.g;
      if (total) {
        // After a natural flush the sum starts anew.
        if (spec.isCircular)
          total = b.select(isFull, b.constant(0, total), total);
        g = b.add(total, g);
      }
      if (spec.ringFormat == RingFormat::Predecayed)
        storeK(b.mul(token.k, b.exp(b.neg(g))));
      storeGate(g, row);
    });
  }

  void storeGate(Value g, Value row) {
    int64_t gates = gatesPerRow();
    Value offset = ringRow(pool.gPitch, at.head, row, gates);
    if (spec.isKda) {
      b.storeTile(g, vectorView(pool.gRing, "gRing", DataType::F32, offset,
                                Dim{gates, 1}, gates));
      return;
    }
    b.describe("gRing");
    Value one = b.view(pool.gRing, offset, {Dim{1, 1}});
    StoreOp::create(b, g, one, ValueRange{b.i32(0)});
  }
};

} // namespace

OwningOpRef<ModuleOp>
replayjit::internal::buildDecode(MLIRContext &context, const DecodeSpec &spec,
                                 const DecodeTuning &tuning) {
  if (isPlan(spec))
    return buildPlan(context, spec);
  if (spec.family == Family::Materialize)
    return buildMaterialize(context, spec, tuning);
  return DecodeProgram(context, spec, tuning).build();
}

Result<CompiledKernel> replayjit::internal::compileDecode(
    Compiler &compiler, const DecodeSpec &spec, const DecodeTuning &tuning,
    const Target &target, CompileOptions options, bool forHost) {
  if (Status status = validate(spec, tuning, target); !status)
    return status;
  auto build = [&](MLIRContext &context) {
    return buildDecode(context, spec, tuning);
  };
  return forHost ? compiler.compileForHost(build, target, options)
                 : compiler.compile(build, target, options);
}
