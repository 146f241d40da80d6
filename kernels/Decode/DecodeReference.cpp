//===- DecodeReference.cpp - The decode step in fp64 ----------------------===//
//
// Slow and obvious on purpose. R1 to R18 are the rules listed in the header:
// here the token and the recurrence, in DecodeReferenceMemory.cpp what a launch
// does to memory.
//
//===----------------------------------------------------------------------===//

#include "kernels/Decode/DecodeReference.h"

#include <algorithm>
#include <cmath>

namespace replayjit::internal {

DecodeTensors::DecodeTensors(const DecodeSpec &spec, const DecodeArgs &args)
    : mixedQkv{spec.actType, args.q, args.qStride}, a{spec.gateType, args.a,
                                                      args.aStride},
      b{spec.betaType, args.b, args.bStride}, aLog{spec.paramType, args.aLog,
                                                   0},
      dtBias{spec.biasType, args.dtBias, 0}, out{spec.outType, args.out,
                                                 args.outStride},
      skip{spec.biasType, args.skip, 0}, outGate{spec.actType, args.outGate,
                                                 args.outGateStride},
      state{spec.stateType, args.state, args.statePitch}, dRing{spec.ringType,
                                                                args.dRing,
                                                                args.dPitch},
      kRing{spec.ringType, args.kRing, args.kPitch}, gRing{DataType::F32,
                                                           args.gRing,
                                                           args.gPitch},
      stateIndices{spec.indexType, args.stateIndices, args.stateIndexStride},
      ringIndices{spec.indexType, args.ringIndices, args.ringIndexStride},
      dstIndices{spec.indexType, args.dstIndices, args.dstIndexStride},
      trackIndices{spec.indexType, args.trackIndices, args.trackIndexStride},
      writePos{DataType::I32, args.writePos, 1},
      forceFlush{DataType::I32, args.forceFlush, 1}, ringBase{DataType::I32,
                                                              args.ringBase, 1},
      tokenCounts{DataType::I32, args.tokenCounts, 1},
      tokenOffsets{DataType::I32, args.tokenOffsets, 1} {
  q = k = v = mixedQkv;
  if (spec.hasSeparateQkv) {
    k = {spec.actType, args.k, args.kStride};
    v = {spec.actType, args.v, args.vStride};
    return;
  }
  const uint64_t keys = uint64_t(spec.numKeyHeads) * spec.headDimK;
  k.address += keys * byteSize(spec.actType);
  v.address += 2 * keys * byteSize(spec.actType);
}

static double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

static double softplus(double x) {
  return x > 20 ? x : std::log1p(std::exp(x));
}

/// R6. Reads K values of `tensor` from element `first` of `row`.
static void readVector(const DecodeSpec &spec, const HostTensor &tensor,
                       int64_t row, int64_t first, double scale,
                       double *result) {
  double squares = 0;
  for (int i = 0; i < spec.headDimK; ++i) {
    result[i] = tensor.get(row, first + i);
    squares += result[i] * result[i];
  }
  double factor = scale;
  if (spec.qkL2Norm)
    factor /= std::sqrt(squares + 1e-6);
  for (int i = 0; i < spec.headDimK; ++i)
    result[i] *= factor;
}

static double stepOf(const DecodeSpec &spec, const DecodeArgs &args, double x) {
  const double step = softplus(x);
  if (!spec.hasStepLimits)
    return step;
  return std::min<double>(std::max<double>(step, args.stepMin), args.stepMax);
}

double gateOf(const DecodeSpec &spec, const DecodeArgs &args, double aLog,
              double x) {
  if (spec.gate == Gate::LogDecay)
    return x;
  if (spec.gate == Gate::Fixed)
    return aLog;
  if (spec.gate == Gate::Rate)
    return aLog * stepOf(spec, args, x);
  const double rate =
      std::exp(std::clamp<double>(aLog, -mostLogRate, mostLogRate));
  if (spec.gate == Gate::LowerBound)
    return args.lowerBound * sigmoid(rate * x);
  return -rate * stepOf(spec, args, x);
}

/// R4, of the betas that have a b.
static double betaOf(const DecodeSpec &spec, double b) {
  if (spec.beta == Beta::Given)
    return b;
  const double beta = (spec.beta == Beta::TwiceSigmoid ? 2 : 1) * sigmoid(b);
  return spec.betaRound ? roundTo(spec.betaType, beta) : beta;
}

DecodeToken readToken(const DecodeSpec &spec, const DecodeArgs &args,
                      int64_t row) {
  const DecodeTensors tensors(spec, args);
  const int H = spec.numKeyHeads, HV = spec.numValueHeads;
  const int K = spec.headDimK, V = spec.headDimV, G = gateWidth(spec);
  DecodeToken token;
  token.q.resize(H * K);
  token.k.resize(H * K);
  token.v.resize(HV * V);
  token.beta.resize(HV);
  token.g.resize(HV * G);
  for (int h = 0; h < H; ++h) {
    readVector(spec, tensors.q, row, h * K, args.scale, &token.q[h * K]);
    readVector(spec, tensors.k, row, h * K, 1, &token.k[h * K]);
  }
  for (int i = 0; i < HV * V; ++i)
    token.v[i] = tensors.v.get(row, i);
  for (int hv = 0; hv < HV; ++hv) {
    const double aLog = hasLogRate(spec) ? tensors.aLog.get(0, hv) : 0;
    double x = 0;
    for (int i = hv * G; i < (hv + 1) * G; ++i) { // R5
      x = (hasGateInput(spec) ? tensors.a.get(row, i) : 0) +
          (hasBias(spec) ? tensors.dtBias.get(0, i) : 0);
      token.g[i] = gateOf(spec, args, aLog, x);
    }
    if (hasBetaInput(spec))
      token.beta[hv] = betaOf(spec, tensors.b.get(row, hv));
    else
      token.beta[hv] = spec.beta == Beta::Step ? stepOf(spec, args, x) : 1;
  }
  token.skip.resize(HV * V);
  token.outGate.assign(HV * V, 1);
  for (int i = 0; i < HV * V; ++i) {
    if (spec.skip != Skip::None)
      token.skip[i] =
          token.v[i] * tensors.skip.get(0, spec.skip == Skip::Head ? i / V : i);
    if (spec.hasOutGate) {
      const double z = tensors.outGate.get(row, i);
      token.outGate[i] = z * sigmoid(z);
    }
  }
  return token;
}

std::vector<double> decayOf(const DecodeSpec &spec, const double *gates) {
  std::vector<double> result(spec.headDimK);
  for (int k = 0; k < spec.headDimK; ++k)
    result[k] = std::exp(gates[spec.isKda ? k : 0]);
  return result;
}

std::vector<double> &DecodeRecurrence::state(int64_t slot) {
  std::vector<double> &S = states[slot];
  if (S.empty())
    S.resize(size_t(spec.numValueHeads) * spec.headDimV * spec.headDimK);
  return S;
}

DecodeRecurrence::Step DecodeRecurrence::step(int64_t slot,
                                              const DecodeToken &token) {
  const int HV = spec.numValueHeads, K = spec.headDimK, V = spec.headDimV;
  std::vector<double> &S = state(slot);
  Step result{std::vector<double>(HV * V), std::vector<double>(HV * V)};
  for (int hv = 0; hv < HV; ++hv) {
    const int h = hv / (HV / spec.numKeyHeads); // R7
    const double *q = &token.q[h * K], *k = &token.k[h * K];
    const std::vector<double> alpha =
        decayOf(spec, &token.g[hv * gateWidth(spec)]);
    for (int i = hv * V; i < (hv + 1) * V; ++i) {
      double *row = &S[size_t(i) * K];
      double predicted = 0;
      for (int j = 0; j < K; ++j)
        predicted += (row[j] *= alpha[j]) * k[j];
      if (spec.rule == Rule::Additive)
        predicted = 0;
      result.d[i] = token.beta[hv] * (token.v[i] - predicted);
      // R9 in its other form: o = S' q, as S' already holds d k^T.
      for (int j = 0; j < K; ++j)
        result.out[i] += (row[j] += result.d[i] * k[j]) * q[j];
      result.out[i] = (result.out[i] + token.skip[i]) * token.outGate[i];
    }
  }
  return result;
}

} // namespace replayjit::internal
