//===- DecodeLaunch.h - A launch in host memory -----------------*- C++ -*-===//
//
// The tensors of one small launch of a decode kernel, for the fp64 reference
// and, by TestDevice.h, for kernels.
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_TESTS_UNIT_DECODELAUNCH_H
#define REPLAYJIT_TESTS_UNIT_DECODELAUNCH_H

#include "kernels/Decode/DecodeReference.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace replayjit::internal {

/// A spec with every tensor in fp32 but the values that a test changes.
inline DecodeSpec makeSpec(int H, int HV, int K, int V, int L) {
  DecodeSpec spec;
  spec.numKeyHeads = H;
  spec.numValueHeads = HV;
  spec.headDimK = K;
  spec.headDimV = V;
  spec.ringDepth = L;
  spec.actType = spec.gateType = spec.betaType = spec.outType = DataType::F32;
  return spec;
}

/// Owns the tensors of a launch. Rows and slots are padded by a few elements,
/// as spec.alignment allows, which hold `guard`; rings start as NaN.
class Launch {
public:
  Launch(const DecodeSpec &spec, int batch, int slots) : spec(spec), random(7) {
    const int H = spec.numKeyHeads, HV = spec.numValueHeads;
    const int K = spec.headDimK, V = spec.headDimV, L = spec.ringDepth;
    const int G = gateWidth(spec);
    args.batch = batch;
    args.slots = slots;
    args.scale = 0.5f;
    args.stateIndexStride = 2;
    const int tokens = batch * tokensPerRow(spec);
    args.tokens = tokens;
    if (spec.hasSeparateQkv) {
      args.q = make(spec.actType, tokens, H * K, args.qStride);
      args.k = make(spec.actType, tokens, H * K + 4, args.kStride);
      args.v = make(spec.actType, tokens, HV * V, args.vStride);
    } else {
      args.q = make(spec.actType, tokens, 2 * H * K + HV * V, args.qStride);
    }
    args.a = make(spec.gateType, tokens, HV * G, args.aStride);
    args.b = make(spec.betaType, tokens, HV, args.bStride);
    int64_t unused;
    args.aLog = make(spec.paramType, 1, HV, unused);
    args.dtBias = make(spec.biasType, 1, HV * G, unused);
    args.skip = make(spec.biasType, 1, HV * V, unused);
    args.outGate = make(spec.actType, tokens, HV * V, args.outGateStride);
    args.out = make(spec.outType, tokens, HV * V, args.outStride);
    args.state = make(spec.stateType, slots, HV * V * K, args.statePitch);
    args.dRing = make(spec.ringType, slots, HV * L * V, args.dPitch);
    args.kRing = make(spec.ringType, slots, H * L * K, args.kPitch);
    args.gRing = make(DataType::F32, slots, HV * L * G, args.gPitch);
    args.stateIndices = make(spec.indexType, 1, batch * 2, unused);
    args.ringIndices = make(spec.indexType, 1, batch, unused);
    args.dstIndices = make(spec.indexType, 1, batch, unused);
    args.trackIndices = make(spec.indexType, 1, batch, unused);
    args.writePos = make(DataType::I32, 1, batch, unused);
    args.forceFlush = make(DataType::I32, 1, batch, unused);
    args.ringBase = make(DataType::I32, 1, batch, unused);
    args.tokenCounts = make(DataType::I32, 1, batch, unused);
    args.tokenOffsets = make(DataType::I32, 1, batch + 1, unused);
    args.ringSlots = slots;
    args.errorWord = reinterpret_cast<uint64_t>(&error);
    DecodeTensors t = tensors();
    for (int row = 0; row < batch; ++row) {
      t.stateIndices.set(row, 0, slots - 1 - row);
      t.ringIndices.set(row, 0, row);
      t.dstIndices.set(row, 0, slots - 1 - row);
      t.trackIndices.set(row, 0, -1);
      for (const HostTensor &tensor : {t.writePos, t.forceFlush, t.ringBase})
        tensor.set(row, 0, 0);
      t.tokenCounts.set(row, 0, tokensPerRow(spec));
    }
    for (int row = 0; row <= batch; ++row)
      t.tokenOffsets.set(row, 0, row * tokensPerRow(spec));
    for (int hv = 0; hv < HV; ++hv) {
      t.aLog.set(0, hv, 0.3 * normal(random));
      if (spec.gate == Gate::Fixed || spec.gate == Gate::Rate)
        t.aLog.set(0, hv, -std::exp(t.aLog.get(0, hv)));
      for (int i = 0; i < G; ++i)
        t.dtBias.set(0, hv * G + i, 0.1 * normal(random));
    }
    for (int i = 0; i < HV * V && spec.skip != Skip::None; ++i)
      t.skip.set(0, i, normal(random));
    for (int slot = 0; slot < slots; ++slot) {
      for (int i = 0; i < HV * V * K; ++i)
        t.state.set(slot, i, 0.3 * normal(random));
      for (int i = 0; i < HV * L * V; ++i)
        t.dRing.set(slot, i, NAN);
      for (int i = 0; i < H * L * K; ++i)
        t.kRing.set(slot, i, NAN);
      for (int i = 0; i < HV * L * G; ++i)
        t.gRing.set(slot, i, NAN);
    }
  }
  Launch(const Launch &) = delete;

  DecodeTensors tensors() const { return DecodeTensors(spec, args); }

  void freshInputs() {
    DecodeTensors t = tensors();
    const int HV = spec.numValueHeads;
    for (int row = 0; row < args.tokens; ++row) {
      for (int i = 0; i < spec.numKeyHeads * spec.headDimK; ++i)
        t.q.set(row, i, normal(random));
      for (int i = 0; i < spec.numKeyHeads * spec.headDimK; ++i)
        t.k.set(row, i, normal(random));
      for (int i = 0; i < HV * spec.headDimV; ++i)
        t.v.set(row, i, normal(random));
      for (int hv = 0; hv < HV; ++hv) {
        for (int i = 0; i < gateWidth(spec); ++i)
          t.a.set(row, hv * gateWidth(spec) + i, 0.5 * normal(random));
        t.b.set(row, hv, normal(random));
        if (spec.gate == Gate::LogDecay && spec.rule == Rule::Additive)
          for (int i = hv * gateWidth(spec); i < (hv + 1) * gateWidth(spec);
               ++i)
            t.a.set(row, i, -std::abs(t.a.get(row, i)));
      }
      for (int i = 0; i < HV * spec.headDimV && spec.hasOutGate; ++i)
        t.outGate.set(row, i, normal(random));
    }
  }

  /// NaN in all ring rows of a slot but those that `cursor` counts.
  void forgetRing(int64_t slot, RingCursor cursor) const {
    DecodeTensors t = tensors();
    const int L = spec.ringDepth, V = spec.headDimV, K = spec.headDimK;
    const int G = gateWidth(spec);
    for (int j = cursor.writePos; j < L; ++j) {
      const int place = ringRow(spec, cursor, j);
      for (int hv = 0; hv < spec.numValueHeads; ++hv) {
        for (int i = 0; i < V; ++i)
          t.dRing.set(slot, (hv * L + place) * V + i, NAN);
        for (int i = 0; i < G; ++i)
          t.gRing.set(slot, (hv * L + place) * G + i, NAN);
      }
      for (int h = 0; h < spec.numKeyHeads; ++h)
        for (int i = 0; i < K; ++i)
          t.kRing.set(slot, (h * L + place) * K + i, NAN);
    }
  }

  /// Of what fp32 rings cost: sums of gates up to 80 round to 4e-6.
  double bound() const {
    return spec.ringFormat == RingFormat::Raw ? 2e-6 : 1e-5;
  }

  bool guardsIntact() const {
    for (const Buffer &buffer : buffers)
      for (int row = 0; row < buffer.rows; ++row)
        for (int64_t i = buffer.inner; i < buffer.tensor.pitch; ++i)
          if (buffer.tensor.get(row, i) != guard)
            return false;
    return true;
  }

  /// Calls `visit(bytes)` for the memory of every tensor, a vector<char> &.
  template <typename Visit> void forEachTensor(Visit visit) {
    for (Buffer &buffer : buffers)
      visit(buffer.bytes);
  }

  DecodeSpec spec;
  DecodeArgs args;
  ErrorWord error;
  std::mt19937 random;
  std::normal_distribution<double> normal;

private:
  static constexpr double guard = 3;
  struct Buffer {
    std::vector<char> bytes;
    HostTensor tensor;
    int rows;
    int64_t inner;
  };
  std::vector<Buffer> buffers;

  uint64_t make(DataType type, int rows, int64_t inner, int64_t &pitch) {
    const int64_t unit = std::max(1, spec.alignment / byteSize(type));
    pitch = (inner + 3 + unit - 1) / unit * unit;
    Buffer buffer{std::vector<char>(rows * pitch * byteSize(type)),
                  {type, 0, pitch},
                  rows,
                  inner};
    buffer.tensor.address = reinterpret_cast<uint64_t>(buffer.bytes.data());
    for (int row = 0; row < rows; ++row)
      for (int64_t i = 0; i < pitch; ++i)
        buffer.tensor.set(row, i, guard);
    uint64_t address = buffer.tensor.address;
    buffers.push_back(std::move(buffer));
    return address;
  }
};

/// Largest |x - y| over a row of `tensor`.
inline double distance(const HostTensor &tensor, int64_t row, int64_t first,
                       const std::vector<double> &expected) {
  double largest = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    double difference = std::abs(tensor.get(row, first + i) - expected[i]);
    if (!(difference <= largest))
      largest = difference;
  }
  return largest;
}

} // namespace replayjit::internal

#endif
