//===- DecodeReference.cpp - The decode step in fp64 ----------------------===//
//
// Slow and obvious on purpose. R1 to R11 are the rules listed in the header.
//
//===----------------------------------------------------------------------===//

#include "kernels/Decode/DecodeReference.h"

#include <cmath>

namespace replayjit {

DecodeTensors::DecodeTensors(const DecodeSpec &spec, const DecodeArgs &args)
    : mixedQkv{spec.actType, args.q, args.qStride}, a{spec.gateType,
                                                               args.a,
                                                               args.aStride},
      b{spec.gateType, args.b, args.bStride}, aLog{spec.paramType, args.aLog,
                                                   0},
      dtBias{spec.paramType, args.dtBias, 0}, out{spec.outType, args.out,
                                                  args.outStride},
      state{spec.stateType, args.state, args.statePitch}, dRing{spec.ringType,
                                                                args.dRing,
                                                                args.dPitch},
      kRing{spec.ringType, args.kRing, args.kPitch}, gRing{DataType::F32,
                                                           args.gRing,
                                                           args.gPitch},
      stateIndices{spec.indexType, args.stateIndices, args.stateIndexStride},
      writePos{DataType::I32, args.writePos, 1}, forceFlush{DataType::I32,
                                                            args.forceFlush,
                                                            1} {}

static double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

static double softplus(double x) {
  return x > 20 ? x : std::log1p(std::exp(x));
}

/// R6. Reads K values of `tensor` from element `first` of `row`.
static void readVector(const DecodeSpec &spec, const HostTensor &tensor,
                       int row, int64_t first, double scale, double *result) {
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

double gateOf(const DecodeSpec &spec, double lowerBound, double aLog,
              double x) {
  if (spec.gate == Gate::LowerBound)
    return lowerBound * sigmoid(std::exp(aLog) * x);
  return -std::exp(aLog) * softplus(x);
}

DecodeToken readToken(const DecodeSpec &spec, const DecodeArgs &args, int row) {
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
    readVector(spec, tensors.mixedQkv, row, h * K, args.scale, &token.q[h * K]);
    readVector(spec, tensors.mixedQkv, row, (H + h) * K, 1, &token.k[h * K]);
  }
  for (int i = 0; i < HV * V; ++i)
    token.v[i] = tensors.mixedQkv.get(row, 2 * H * K + i);
  for (int hv = 0; hv < HV; ++hv) {
    token.beta[hv] = sigmoid(tensors.b.get(row, hv)); // R4
    if (spec.betaRound)
      token.beta[hv] = roundTo(spec.gateType, token.beta[hv]);
    for (int i = hv * G; i < (hv + 1) * G; ++i) // R5
      token.g[i] = gateOf(spec, args.lowerBound, tensors.aLog.get(0, hv),
                          tensors.a.get(row, i) + tensors.dtBias.get(0, i));
  }
  return token;
}

/// exp of the `gateWidth` gates at `gates`, one for each of K channels.
static std::vector<double> decayOf(const DecodeSpec &spec,
                                   const double *gates) {
  std::vector<double> result(spec.headDimK);
  for (int k = 0; k < spec.headDimK; ++k)
    result[k] = std::exp(gates[spec.isKda ? k : 0]);
  return result;
}

bool isLive(const DecodeSpec &spec, const DecodeArgs &args, int row) {
  const DecodeTensors tensors(spec, args);
  double slot = tensors.stateIndices.get(row, 0);
  double m = tensors.writePos.get(row, 0);
  double firstSlot = spec.nullSlot == NullSlot::NonPositive ? 1 : 0;
  return slot >= firstSlot && slot < args.slots && // R1, R2
         m >= 0 && m < spec.ringDepth;             // R2
}

bool flushes(const DecodeSpec &spec, const DecodeArgs &args, int row) {
  const DecodeTensors tensors(spec, args);
  if (tensors.writePos.get(row, 0) == spec.ringDepth - 1) // R3
    return true;
  return spec.hasForceFlush && tensors.forceFlush.get(row, 0) != 0;
}

std::vector<double> materialize(const DecodeSpec &spec, const DecodeArgs &args,
                                int64_t slot, int valueHead, int ringRows) {
  const DecodeTensors tensors(spec, args);
  const int K = spec.headDimK, V = spec.headDimV, L = spec.ringDepth;
  const int G = gateWidth(spec);
  const int keyHead = valueHead / (spec.numValueHeads / spec.numKeyHeads); // R7
  std::vector<double> S(V * K);

  // R8, from the newest row down: `gates` is the sum of the gates after row j.
  std::vector<double> gates(G);
  for (int j = ringRows - 1; j >= 0; --j) {
    const std::vector<double> W = decayOf(spec, gates.data());
    for (int v = 0; v < V; ++v) {
      double d = tensors.dRing.get(slot, (int64_t(valueHead) * L + j) * V + v);
      for (int k = 0; k < K; ++k)
        S[v * K + k] +=
            d * W[k] *
            tensors.kRing.get(slot, (int64_t(keyHead) * L + j) * K + k);
    }
    for (int i = 0; i < G; ++i)
      gates[i] += tensors.gRing.get(slot, (int64_t(valueHead) * L + j) * G + i);
  }
  const std::vector<double> A = decayOf(spec, gates.data());
  for (int i = 0; i < V * K; ++i)
    S[i] += A[i % K] * tensors.state.get(slot, int64_t(valueHead) * V * K + i);
  return S;
}

void replayStep(const DecodeSpec &spec, const DecodeArgs &args) {
  const DecodeTensors tensors(spec, args);
  const int H = spec.numKeyHeads, HV = spec.numValueHeads;
  const int K = spec.headDimK, V = spec.headDimV, L = spec.ringDepth;
  const int G = gateWidth(spec);
  for (int row = 0; row < args.batch; ++row) {
    if (!isLive(spec, args, row)) { // R1, R2
      for (int i = 0; i < HV * V; ++i)
        tensors.out.set(row, i, 0);
      continue;
    }
    const int64_t slot = int64_t(tensors.stateIndices.get(row, 0));
    const int m = int(tensors.writePos.get(row, 0));
    const bool flush = flushes(spec, args, row);
    const DecodeToken token = readToken(spec, args, row);

    for (int hv = 0; hv < HV; ++hv) {
      const int h = hv / (HV / H); // R7
      std::vector<double> S = materialize(spec, args, slot, hv, m);
      const double *q = &token.q[h * K], *k = &token.k[h * K];
      const std::vector<double> alpha = decayOf(spec, &token.g[hv * G]);
      for (int v = 0; v < V; ++v) { // R9
        double Sk = 0, Sq = 0, kq = 0;
        for (int i = 0; i < K; ++i) {
          Sk += S[v * K + i] * alpha[i] * k[i];
          Sq += S[v * K + i] * alpha[i] * q[i];
          kq += k[i] * q[i];
        }
        const double d = token.beta[hv] * (token.v[hv * V + v] - Sk);
        tensors.out.set(row, hv * V + v, Sq + d * kq);
        if (!flush) { // R11
          tensors.dRing.set(slot, (int64_t(hv) * L + m) * V + v, d);
          continue;
        }
        for (int i = 0; i < K; ++i) // R10
          tensors.state.set(slot, (int64_t(hv) * V + v) * K + i,
                            S[v * K + i] * alpha[i] + d * k[i]);
      }
      if (!flush) // R11
        for (int i = 0; i < G; ++i)
          tensors.gRing.set(slot, (int64_t(hv) * L + m) * G + i,
                            token.g[hv * G + i]);
    }
    if (!flush) // R11
      for (int h = 0; h < H; ++h)
        for (int k = 0; k < K; ++k)
          tensors.kRing.set(slot, (int64_t(h) * L + m) * K + k,
                            token.k[h * K + k]);
  }
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
      result.d[i] = token.beta[hv] * (token.v[i] - predicted);
      // R9 in its other form: o = S' q, as S' already holds d k^T.
      for (int j = 0; j < K; ++j)
        result.out[i] += (row[j] += result.d[i] * k[j]) * q[j];
    }
  }
  return result;
}

} // namespace replayjit
