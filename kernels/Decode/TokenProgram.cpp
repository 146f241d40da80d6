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

Value TokenProgram::valueColumn() {
  return b.addI(b.mulI(at.head, b.i32(spec.headDimV)), at.firstV);
}

Value TokenProgram::outView(Value isWanted) {
  return argumentView("out", spec.outType, ofToken("outStride", valueColumn()),
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
  Value a, bias, beta, aLog;
  if (hasGateInput(spec))
    a = perChannel("a", spec.gateType,
                   b.mulI(tokenPlace, b.argument("aStride")));
  if (hasBias(spec))
    bias = perChannel("dtBias", spec.biasType, b.i64(0));
  if (hasBetaInput(spec))
    beta = scalar("b", ofToken("bStride", at.head));
  if (hasLogRate(spec))
    aLog = scalar("aLog", b.toI64(at.head));
  b.describe("gate");
  // Either factor of the gate may be infinite or zero, but not this one.
  auto rate = [&] {
    return b.exp(b.max(b.min(aLog, b.f32(mostLogRate)), b.f32(-mostLogRate)));
  };
  Value g, step;
  switch (spec.gate) {
  case Gate::LogDecay:
    g = a;
    break;
  case Gate::Fixed:
    g = aLog;
    break;
  case Gate::LowerBound: {
    Value some = rate(), x = b.add(a, bias);
    g = b.mul(b.sigmoid(b.mul(x, b.splat(some, x))),
              b.splat(b.argument("lowerBound"), x));
    break;
  }
  case Gate::Softplus:
  case Gate::Rate: {
    Value factor = spec.gate == Gate::Rate ? aLog : rate();
    Value x = b.add(a, bias);
    if (spec.gate == Gate::Softplus)
      factor = b.neg(factor);
    factor = b.splat(factor, x);
    step = b.softplus(x);
    if (spec.hasStepLimits)
      step = b.min(b.max(step, b.argument("stepMin")), b.argument("stepMax"));
    g = b.mul(step, factor);
    break;
  }
  }
  switch (spec.beta) {
  case Beta::Sigmoid:
    beta = b.sigmoid(beta);
    break;
  case Beta::TwiceSigmoid:
    beta = b.sigmoid(beta);
    beta = b.add(beta, beta);
    break;
  case Beta::Step:
    beta = step;
    break;
  case Beta::Given:
  case Beta::One:
    break;
  }
  if (beta && spec.betaRound && spec.beta != Beta::Step)
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
  Value column = valueColumn();
  if (spec.hasSeparateQkv)
    return b.loadTile(argumentView("v", spec.actType,
                                   ofToken("vStride", column), at.vDim,
                                   spec.headDimV),
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
  Token token = {gate, q, k, v, b.sum(b.mul(k, q))};
  token.skip = readSkip();
  token.outGate = readOutGate();
  return token;
}

Value TokenProgram::readSkip() {
  switch (spec.skip) {
  case Skip::None:
    return {};
  case Skip::Head:
    b.describe("skip");
    return SplatOp::create(
        b, b.tileType({rows}),
        b.widen(b.loadScalar(b.argument("skip"), b.toI64(at.head))));
  case Skip::Channel:
    return b.loadTile(argumentView("skip", spec.biasType,
                                   b.toI64(valueColumn()), at.vDim,
                                   /*headSize=*/1),
                      {rows});
  }
  llvm_unreachable("all skips are handled");
}

Value TokenProgram::readOutGate() {
  if (!spec.hasOutGate)
    return {};
  Value z = b.loadTile(argumentView("outGate", spec.actType,
                                    ofToken("outGateStride", valueColumn()),
                                    at.vDim, spec.headDimV),
                       {rows});
  return b.mul(z, b.sigmoid(z));
}

Value TokenProgram::update(const Token &token, Value predicted) {
  Value lacking = predicted ? b.sub(token.v, predicted) : token.v;
  if (!token.gate.beta)
    return lacking;
  return b.mul(b.splat(token.gate.beta, token.v), lacking);
}

Value TokenProgram::output(const Token &token, Value read) {
  if (token.skip)
    read = b.fma(token.skip, token.v, read);
  return token.outGate ? b.mul(read, token.outGate) : read;
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
  SmallVector<Value> vectors = {decayed(token.q)};
  if (needsState())
    vectors.push_back(decayed(token.k));
  ContractOp product = contract(state, vectors);
  Value sq = product.getResult(0), sk;
  if (needsState())
    sk = product.getResult(1);
  if (!spec.isKda) {
    Value alpha = b.splat(gate.alpha, token.v);
    sq = b.mul(alpha, sq);
    if (sk)
      sk = b.mul(alpha, sk);
  }
  token.d = update(token, sk);
  Value o = output(token, b.fma(token.d, b.splat(token.kq, token.v), sq));
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
