//===- RebuildModel.h - The rebuild readout, rounding for rounding --------===//
//
// What a launch with Readout::Rebuild computes, in plain loops over host
// memory: fp32 throughout, but the operands of the product that forms the state
// are rounded to readoutType (cut off to tf32 for fp32):
//     GDN  S = A S0 + sum_j round(W_j d_j) round(k_j)^T
//     KDA  S = S0 diag(A) + sum_j round(d_j) round(W_j k_j)^T
// It shares no formula with the kernels, and the order of its sums is its own.
// Raw rings, one block of arguments, valid slots and cursors.
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_TESTS_UNIT_REBUILDMODEL_H
#define REPLAYJIT_TESTS_UNIT_REBUILDMODEL_H

#include "kernels/Decode/DecodeReference.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace replayjit::internal {

/// What happens to an operand of the product.
enum class OperandRounding {
  Reference, ///< To readoutType; fp32 is cut off to tf32.
  Nearest,   ///< fp32 to the nearest tf32, ties away from 0; else the same.
  None,
};

inline float roundOperand(OperandRounding rounding, DataType outType, float x) {
  if (rounding == OperandRounding::None)
    return x;
  if (outType != DataType::F32)
    return float(roundTo(outType, x));
  uint32_t bits = std::bit_cast<uint32_t>(x);
  if (rounding == OperandRounding::Nearest)
    bits += 1u << 12;
  return std::bit_cast<float>(bits & ~0x1fffu);
}

class RebuildModel {
public:
  explicit RebuildModel(const DecodeSpec &spec) : spec(spec) {}

  OperandRounding dRounding = OperandRounding::Reference; ///< Of d or W d.
  OperandRounding kRounding = OperandRounding::Reference; ///< Of k or W k.

  /// Runs a launch whose arguments are host addresses.
  void step(const DecodeArgs &args) const {
    for (int row = 0; row < args.batch; ++row)
      for (int hv = 0; hv < spec.numValueHeads; ++hv)
        stepHead(args, row, hv);
  }

private:
  DecodeSpec spec;

  static float sigmoid(float x) { return 1 / (1 + std::exp(-x)); }

  float gate(float lowerBound, float aLog, float x) const {
    float rate = std::exp(aLog);
    if (spec.gate == Gate::LowerBound)
      return lowerBound * sigmoid(rate * x);
    return -rate * (x > 20 ? x : std::log1p(std::exp(x)));
  }

  /// K values from `first`, normalized if the spec says so.
  std::vector<float> key(const HostTensor &qkv, int row, int first) const {
    std::vector<float> x(spec.headDimK);
    float squares = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      x[i] = float(qkv.get(row, first + int(i)));
      squares += x[i] * x[i];
    }
    if (spec.qkL2Norm)
      for (float &value : x)
        value /= std::sqrt(squares + 1e-6f);
    return x;
  }

  /// S of checkpoint plus the first `m` ring rows, [V, K].
  std::vector<float> rebuild(const DecodeTensors &t, int64_t slot, int hv,
                             int h, int m) const {
    const int K = spec.headDimK, V = spec.headDimV, L = spec.ringDepth;
    const bool kda = spec.isKda;
    auto gateAt = [&](int j, int k) {
      int64_t ringRow = int64_t(hv) * L + j;
      return float(t.gRing.get(slot, kda ? ringRow * K + k : ringRow));
    };
    std::vector<float> S(size_t(V) * K);
    for (int k = 0; k < K; ++k) {
      float sum = 0;
      for (int j = 0; j < m; ++j)
        sum += gateAt(j, k);
      for (int v = 0; v < V; ++v)
        S[v * K + k] = std::exp(sum) *
                       float(t.state.get(slot, (int64_t(hv) * V + v) * K + k));
    }
    std::vector<float> scaledK(K);
    for (int j = 0; j < m; ++j) {
      float dWeight = 1;
      for (int k = 0; k < K; ++k) {
        float newer = 0;
        for (int i = j + 1; i < m; ++i)
          newer += gateAt(i, k);
        float weight = std::exp(newer);
        float value = float(t.kRing.get(slot, (int64_t(h) * L + j) * K + k));
        scaledK[k] = roundOperand(kRounding, readoutType(spec),
                                  kda ? weight * value : value);
        if (!kda)
          dWeight = weight;
      }
      for (int v = 0; v < V; ++v) {
        float d = float(t.dRing.get(slot, (int64_t(hv) * L + j) * V + v));
        d = roundOperand(dRounding, readoutType(spec), dWeight * d);
        for (int k = 0; k < K; ++k)
          S[v * K + k] += d * scaledK[k];
      }
    }
    return S;
  }

  void stepHead(const DecodeArgs &args, int row, int hv) const {
    const DecodeTensors t(spec, args);
    const int H = spec.numKeyHeads, HV = spec.numValueHeads;
    const int K = spec.headDimK, V = spec.headDimV, L = spec.ringDepth;
    const int G = gateWidth(spec), h = hv / (HV / H);
    const int64_t slot = int64_t(t.stateIndices.get(row, 0));
    const int m = int(t.writePos.get(row, 0));
    const bool flush = flushes(spec, args, row);

    std::vector<float> q = key(t.mixedQkv, row, h * K);
    std::vector<float> k = key(t.mixedQkv, row, (H + h) * K);
    for (float &value : q)
      value *= args.scale;
    std::vector<float> g(K);
    for (int i = 0; i < K; ++i) {
      int at = spec.isKda ? hv * K + i : hv;
      g[i] = gate(args.lowerBound, float(t.aLog.get(0, hv)),
                  float(t.a.get(row, at)) + float(t.dtBias.get(0, at)));
    }
    float beta = sigmoid(float(t.b.get(row, hv)));
    if (spec.betaRound)
      beta = float(roundTo(spec.betaType, beta));

    std::vector<float> S = rebuild(t, slot, hv, h, m);
    for (int v = 0; v < V; ++v) {
      float Sq = 0, Sk = 0, kq = 0;
      for (int i = 0; i < K; ++i) {
        float &s = S[v * K + i];
        s *= std::exp(g[i]);
        Sq += s * q[i];
        Sk += s * k[i];
        kq += k[i] * q[i];
      }
      float value = float(t.mixedQkv.get(row, 2 * H * K + hv * V + v));
      float d = beta * (value - Sk);
      t.out.set(row, hv * V + v, Sq + d * kq);
      if (!flush)
        t.dRing.set(slot, (int64_t(hv) * L + m) * V + v, d);
      for (int i = 0; flush && i < K; ++i)
        t.state.set(slot, (int64_t(hv) * V + v) * K + i,
                    S[v * K + i] + d * k[i]);
    }
    if (flush)
      return;
    for (int i = 0; i < G; ++i)
      t.gRing.set(slot, (int64_t(hv) * L + m) * G + i, g[i]);
    // Heads of one key head write the same. Each reads only rows below m.
    for (int i = 0; i < K; ++i)
      t.kRing.set(slot, (int64_t(h) * L + m) * K + i, k[i]);
  }
};

/// How far apart two computations are that round the same operands.
struct Agreement {
  DataType stored;  ///< Type of the values.
  DataType outType; ///< What the operands were rounded to.
  int64_t elements = 0, equal = 0;
  double worst = 0; ///< In units of the last place, see `unit`.
  double difference = 0, size = 0;

  /// Adds a row. Values of 16 bits are equal or not. Sums in another order move
  /// an fp32 value a little: there, equal means within 16 units in the last
  /// place of the row's largest.
  void addRow(const HostTensor &have, const HostTensor &want, int64_t row,
              int64_t first, int64_t count) {
    double largest = 0;
    for (int64_t i = first; i < first + count; ++i)
      largest = std::max(largest, std::abs(want.get(row, i)));
    double noise =
        stored == DataType::F32 ? 16 * unit(largest, mantissaBits(stored)) : 0;
    // An operand that falls on the other side of a rounding moves the result by
    // a unit of the operands' type.
    int bits = outType == DataType::F32 ? 10 : mantissaBits(outType);
    double place = unit(largest, std::min(bits, mantissaBits(stored)));
    for (int64_t i = first; i < first + count; ++i) {
      double wanted = want.get(row, i);
      double distance = std::abs(have.get(row, i) - wanted);
      ++elements;
      equal += distance <= noise;
      if (!(distance / place <= worst)) // also NaN
        worst = std::isnan(distance) ? std::numeric_limits<double>::infinity()
                                     : distance / place;
      difference += distance * distance;
      size += wanted * wanted;
    }
  }
  double equalShare() const { return double(equal) / double(elements); }
  double norm() const { return std::sqrt(difference / size); }
  /// 99 in 100 equal, none farther than two units in the last place of its
  /// row's largest; with fp32 output also near as a whole.
  bool holds() const {
    return elements > 0 && equalShare() >= 0.99 && worst <= 2 &&
           (outType != DataType::F32 || norm() <= 5e-4);
  }

private:
  static int mantissaBits(DataType type) {
    return type == DataType::BF16 ? 7 : type == DataType::F16 ? 10 : 23;
  }
  static double unit(double magnitude, int bits) {
    return magnitude > 0 ? std::ldexp(1.0, std::ilogb(magnitude) - bits)
                         : std::numeric_limits<float>::denorm_min();
  }
};

} // namespace replayjit::internal

#endif
