//===- TokenProgram.cpp - Tokens of each row ------------------------------===//
//
// The order of the steps is that of the operator contract (SGLang PR #28451).
//
//===----------------------------------------------------------------------===//

#include "kernels/Decode/TokenProgram.h"

#include "kernels/Decode/TritonArgs.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <numeric>

using namespace mlir;
using namespace replayjit::internal;
using namespace replayjit::internal::replay;

TokenProgram::TokenProgram(MLIRContext &context, const DecodeSpec &spec,
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

OwningOpRef<ModuleOp> TokenProgram::build() {
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

/// Triton's tensors are dense.
void TokenProgram::fixStrides() {
  const ArgumentTable table = decodeArguments();
  for (const Argument &argument : table)
    if (argument.kind == Argument::Kind::Stride)
      b.replaceArgument(argument.name,
                        b.i64(innerElements(spec, table[argument.pointer])));
}

void TokenProgram::row() {
  if (isNative)
    reportOverflow(b.argument("layer"));
  tokenPlace = at.row64;
  readPlaces();
  Value isLive = isThere();
  b.branch(
      b.allOf(isLive, allLegal()), [&] { liveRow(); },
      [&] {
        nullRow();
        if (isNative)
          b.when(isLive, [&] { reportFailure(b.argument("layer")); });
      });
}

/// Triton's kernels do not know how many there are.
Value TokenProgram::isSlot(Value slot) {
  return isNative ? b.isLess(slot, b.toI64(b.argument("slots"))) : trueValue();
}

void TokenProgram::readPlaces() {
  at.slot = loadIndex("stateIndices", "stateIndexStride");
  check(isSlot(at.slot), ErrorKind::StateSlot, at.slot);
  readRing();
  at.dst = at.slot;
  if (spec.hasDstIndices) {
    at.dst = loadIndex("dstIndices", "dstIndexStride");
    check(b.allOf(negated(isNull(at.dst)), isSlot(at.dst)), ErrorKind::DstSlot,
          at.dst);
  }
  if (spec.hasTrackIndices) {
    trackSlot = loadIndex("trackIndices", "trackIndexStride");
    isTracked = negated(isNull(trackSlot));
    check(isSlot(trackSlot), ErrorKind::TrackSlot, trackSlot);
  }
}

//===----------------------------------------------------------------------===//
// Views of a token's arguments
//===----------------------------------------------------------------------===//

Value TokenProgram::ofToken(const char *stride, Value column) {
  return b.addI(b.mulI(tokenPlace, b.argument(stride)), b.toI64(column));
}

Value TokenProgram::vectorView(Value pointer, const char *name, DataType type,
                               Value offset, Dim dim, int64_t headSize) {
  b.describe(name);
  return b.view(pointer, offset, {dim}, alignment(type, headSize));
}

Value TokenProgram::argumentView(const char *name, DataType type, Value offset,
                                 Dim dim, int64_t headSize) {
  return vectorView(b.argument(name), name, type, offset, dim, headSize);
}

Value TokenProgram::outView(Value isWanted) {
  Value column = b.addI(b.mulI(at.head, b.i32(spec.headDimV)), at.firstV);
  return argumentView("out", spec.outType, ofToken("outStride", column),
                      onlyIf(isWanted, at.vDim), spec.headDimV);
}

void TokenProgram::nullRow() { b.storeTile(zeroOutput(), outView()); }

Value TokenProgram::zeroOutput() {
  b.describe("out");
  return SplatOp::create(b, b.tileType({rows}), b.f32(0));
}

//===----------------------------------------------------------------------===//
// The parts of a step
//===----------------------------------------------------------------------===//

TokenProgram::GateValues TokenProgram::readGate() {
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
  const bool hasParams = spec.gate != Gate::LogDecay;
  Value g =
      perChannel("a", spec.gateType, b.mulI(tokenPlace, b.argument("aStride")));
  Value bias, aLog;
  if (hasParams)
    bias = perChannel("dtBias", spec.biasType, b.i64(0));
  Value beta = scalar("b", ofToken("bStride", at.head));
  if (hasParams)
    aLog = scalar("aLog", b.toI64(at.head));
  b.describe("gate");
  if (hasParams) {
    // Either factor of the gate may be infinite or zero, but not this one.
    Value rate =
        b.exp(b.max(b.min(aLog, b.f32(mostLogRate)), b.f32(-mostLogRate)));
    Value x = b.add(g, bias);
    if (spec.gate == Gate::Softplus)
      g = b.mul(b.softplus(x), b.splat(b.neg(rate), x));
    else
      g = b.mul(b.sigmoid(b.mul(x, b.splat(rate, x))),
                b.splat(b.argument("lowerBound"), x));
  }
  if (spec.beta != Beta::Given)
    beta = b.sigmoid(beta);
  if (spec.beta == Beta::TwiceSigmoid)
    beta = b.add(beta, beta);
  if (spec.betaRound)
    beta = b.roundedTo(beta, spec.betaType);
  return {g, b.exp(g), beta};
}

Value TokenProgram::readKey(int part, Value scale) {
  int64_t k = spec.headDimK;
  const bool isOwn = spec.hasSeparateQkv && part == 1;
  Value head = at.keyHead;
  if (part == 1 && !spec.hasSeparateQkv)
    head = b.addI(b.i32(spec.numKeyHeads), head);
  Value offset = ofToken(isOwn ? "kStride" : "qStride", b.mulI(head, b.i32(k)));
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

Value TokenProgram::readValue() {
  Value column = b.addI(b.mulI(at.head, b.i32(spec.headDimV)), at.firstV);
  if (spec.hasSeparateQkv)
    return b.loadTile(argumentView("v", spec.actType, ofToken("vStride", column),
                                   at.vDim, spec.headDimV),
                      {rows});
  // v follows q and k, so its alignment is also that of their size.
  int64_t before = 2 * spec.numKeyHeads * spec.headDimK;
  Value offset = ofToken("qStride", b.addI(b.i32(before), column));
  return b.loadTile(argumentView("q", spec.actType, offset, at.vDim,
                                 std::gcd<int64_t>(before, spec.headDimV)),
                    {rows});
}

TokenProgram::Token TokenProgram::readToken() {
  GateValues gate = readGate();
  Value q = readKey(0, b.argument("scale")), k = readKey(1), v = readValue();
  return {gate, q, k, v, b.sum(b.mul(k, q))};
}

void TokenProgram::liveRow() {
  Token token = readToken();
  b.describe("readout");
  Value total;
  if (hasRing() && spec.ringFormat != RingFormat::Raw)
    total = readTotal();
  Value state = readState(total);
  // d = beta (v - S diag(alpha) k);  o = S diag(alpha) q + d (k . q). A
  // number alpha multiplies the products, a vector the vectors.
  const GateValues &gate = token.gate;
  auto decayed = [&](Value x) { return spec.isKda ? b.mul(x, gate.alpha) : x; };
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

void TokenProgram::leave(Value state, const Token &token, Value total) {
  store(state, token, /*isWanted=*/{});
}

void TokenProgram::store(Value state, const Token &token, Value isWanted) {
  b.describe("flush");
  SmallVector<Value> destinations = {flushView(at.dst, isWanted)};
  if (spec.hasTrackIndices)
    destinations.push_back(flushView(trackSlot, isTracked));
  flush(state, destinations, token.gate.alpha, token.d, token.k);
}
