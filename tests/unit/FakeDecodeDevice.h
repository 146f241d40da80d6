//===- FakeDecodeDevice.h - A device whose kernel is a function -*- C++ -*-===//
//
// Host memory as a Device, and a decode kernel in fp32, written in the
// output-only form and apart from the fp64 reference, that can be told to be
// wrong in one of several ways.
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_TESTS_UNIT_FAKEDECODEDEVICE_H
#define REPLAYJIT_TESTS_UNIT_FAKEDECODEDEVICE_H

#include "kernels/Decode/DecodeArgs.h"
#include "runtime/Device.h"

#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace replayjit {

struct FakeKernel : LoadedKernel {
  std::function<void(const DecodeArgs &)> run;
  ResourceUsage resources() const override { return {}; }
};

class FakeDevice : public Device {
public:
  std::string description() const override { return "fake"; }
  int multiprocessors() const override { return 1; }
  Target target() const override { return {}; }
  bool isEmulation() const override { return true; }

  Result<uint64_t> allocate(size_t bytes, std::string name) override {
    std::vector<char> memory(bytes + 1);
    uint64_t address = reinterpret_cast<uint64_t>(memory.data());
    allocations[address] = std::move(memory);
    return address;
  }
  Status free(uint64_t address) override {
    allocations.erase(address);
    return Status::ok();
  }
  Status copyToDevice(uint64_t dst, const void *src, size_t bytes) override {
    std::memcpy(reinterpret_cast<void *>(dst), src, bytes);
    return Status::ok();
  }
  Status copyFromDevice(void *dst, uint64_t src, size_t bytes) override {
    std::memcpy(dst, reinterpret_cast<void *>(src), bytes);
    return Status::ok();
  }
  Result<std::unique_ptr<LoadedKernel>> load(const CompiledKernel &) override {
    return Status::error(StatusCode::Unsupported, "load: not in a fake");
  }
  Status launch(LoadedKernel &kernel, uint32_t blocks, const void *params,
                size_t paramBytes) override {
    ++launches;
    lastBlocks = blocks;
    if (launches == failAtLaunch)
      return Status::error(StatusCode::DriverError, "launch: as told");
    DecodeArgs args;
    if (paramBytes != sizeof(args))
      return Status::invalid("params: not a DecodeArgs");
    std::memcpy(&args, params, sizeof(args));
    static_cast<FakeKernel &>(kernel).run(args);
    return Status::ok();
  }
  Status synchronize() override { return Status::ok(); }

  std::map<uint64_t, std::vector<char>> allocations;
  int launches = 0;
  int failAtLaunch = 0; ///< Counted from 1; 0: never.
  uint32_t lastBlocks = 0;

protected:
  Status beginCapture() override {
    return Status::error(StatusCode::Unsupported, "time: not in a fake");
  }
  Result<double> endCaptureAndTime(int) override { return beginCapture(); }
};

enum class Bug {
  None,
  ForgetsFlush,
  FlushesAlways,
  ReadsRingRowM,
  IgnoresForceFlush,
  WritesUnusedSlot,
  WritesUnusedRing,
  LeavesOutputUnwritten,
  WrongHeadMapping,
  TransposedState,
  AppendsOnFlush,
  AppendsOneRowLate,
  WritesRowPadding,
  MovesCursor,
  LeavesPaddingRows,
  TakesBadCursor,
  TakesBadSlot,
  DecaysKq,
  StoresScaledK,
  RingByRow,
  IgnoresIndexStride,
  RoundsState,
  RoundsDotOperands, ///< Right for Readout::Rebuild.
  SubtractsGates,    ///< W_j as exp(G - P_j).
  OneWrongElement,
  ForgetsBetaRound,
  CountsOwnGate,      ///< W_j holds g_j too.
  OneGateForAll,      ///< KDA: all channels decay as the first.
  AlphaOfNextChannel, ///< KDA, of the current token.
  ForgetsAlpha,       ///< The current token does not decay the state.
  GateOfNextHead,     ///< What is appended.
  StaleChannel,       ///< KDA: the last channel of g is not appended.
  TransposedDtBias,   ///< KDA: as [K, HV].
  ConstantLowerBound, ///< -5, whatever the launch says.
  ClampsGate,         ///< LowerBound as a clamp of the softplus gate.
};

/// One launch of the decode operator in fp32 on host memory.
inline void fakeDecode(const DecodeSpec &spec, const DecodeArgs &args,
                       Bug bug) {
  const int H = spec.numKeyHeads, HV = spec.numValueHeads;
  const int K = spec.headDimK, V = spec.headDimV, L = spec.ringDepth;
  const int G = spec.isKda ? K : 1; // gates of a value head
  auto load = [](DataType type, uint64_t base, int64_t index) {
    return float(loadElement(type, reinterpret_cast<void *>(base), index));
  };
  auto store = [](DataType type, uint64_t base, int64_t index, float value) {
    storeElement(type, reinterpret_cast<void *>(base), index, value);
  };
  for (int row = 0; row < args.batch; ++row) {
    const int64_t stride =
        bug == Bug::IgnoresIndexStride ? 1 : args.stateIndexStride;
    int64_t slot = int64_t(
        loadElement(spec.indexType, reinterpret_cast<void *>(args.stateIndices),
                    row * stride));
    int m = int(load(DataType::I32, args.writePos, row));
    const bool badSlot =
        slot < (spec.nullSlot == NullSlot::NonPositive ? 1 : 0) ||
        slot >= args.slots;
    const bool badCursor = m < 0 || m >= L;
    if (bug == Bug::TakesBadSlot && badSlot)
      slot = 0;
    if (bug == Bug::TakesBadCursor && badCursor)
      m = 0;
    if ((badSlot && bug != Bug::TakesBadSlot) ||
        (badCursor && bug != Bug::TakesBadCursor)) {
      if (bug != Bug::LeavesPaddingRows)
        for (int i = 0; i < HV * V; ++i)
          store(spec.outType, args.out, row * args.outStride + i, 0);
      continue;
    }
    bool forced = spec.hasForceFlush && bug != Bug::IgnoresForceFlush &&
                  load(DataType::I32, args.forceFlush, row) != 0;
    bool flush = m == L - 1 || forced || bug == Bug::FlushesAlways;
    const int64_t ringSlot = bug == Bug::RingByRow ? row : slot;

    for (int hv = 0; hv < HV; ++hv) {
      const int h = bug == Bug::WrongHeadMapping ? hv % H : hv / (HV / H);
      std::vector<float> q(K), k(K);
      float qq = 0, kk = 0;
      for (int i = 0; i < K; ++i) {
        const int64_t base = row * args.qStride;
        q[i] = load(spec.actType, args.q, base + h * K + i);
        k[i] = load(spec.actType, args.q, base + (H + h) * K + i);
        qq += q[i] * q[i];
        kk += k[i] * k[i];
      }
      for (int i = 0; i < K; ++i) {
        q[i] *= args.scale * (spec.qkL2Norm ? 1 / std::sqrt(qq + 1e-6f) : 1);
        k[i] *= spec.qkL2Norm ? 1 / std::sqrt(kk + 1e-6f) : 1;
      }
      auto gateOf = [&](int head, int c) {
        const int bias =
            bug == Bug::TransposedDtBias ? c * HV + head : head * G + c;
        const float x =
            load(spec.gateType, args.a, row * args.aStride + head * G + c) +
            load(spec.paramType, args.dtBias, bias);
        const float rate = std::exp(load(spec.paramType, args.aLog, head));
        const float low = bug == Bug::ConstantLowerBound ? -5 : args.lowerBound;
        const float soft = -rate * (x > 20 ? x : std::log1p(std::exp(x)));
        if (spec.gate == Gate::Softplus)
          return soft;
        if (bug == Bug::ClampsGate)
          return std::fmax(low, soft);
        return low / (1 + std::exp(-rate * x));
      };
      float beta =
          1 /
          (1 + std::exp(-load(spec.gateType, args.b, row * args.bStride + hv)));
      if (spec.betaRound && bug != Bug::ForgetsBetaRound)
        beta = float(roundTo(spec.gateType, beta));
      std::vector<float> g(G), alpha(K);
      for (int c = 0; c < G; ++c)
        g[c] = gateOf(hv, c);
      for (int i = 0; i < K; ++i) {
        int c = bug == Bug::AlphaOfNextChannel ? (i + 1) % K : i;
        alpha[i] = std::exp(g[bug == Bug::OneGateForAll ? 0 : c % G]);
        if (bug == Bug::ForgetsAlpha)
          alpha[i] = 1;
      }

      // The ring: weights of its rows, and their products with q and k.
      const int ringRows = bug == Bug::ReadsRingRowM ? m + 1 : m;
      std::vector<std::vector<float>> W(ringRows, std::vector<float>(K));
      std::vector<float> ringKq(ringRows), ringKk(ringRows), gates(K), A(K);
      float kq = 0;
      const bool rounds = bug == Bug::RoundsDotOperands;
      auto operand = [&](float x) {
        return rounds ? float(roundTo(spec.outType, x)) : x;
      };
      auto ringG = [&](int j, int i) {
        int c = bug == Bug::OneGateForAll ? 0 : i % G;
        return load(DataType::F32, args.gRing,
                    ringSlot * args.gPitch + (int64_t(hv) * L + j) * G + c);
      };
      // W_j goes with d_j, where it is a scalar, else with k_j.
      auto ringK = [&](int j, int i) {
        float x = load(spec.ringType, args.kRing,
                       ringSlot * args.kPitch + (int64_t(h) * L + j) * K + i);
        return operand(spec.isKda ? W[j][i] * x : x);
      };
      auto ringD = [&](int j, int v) {
        float x = load(spec.ringType, args.dRing,
                       ringSlot * args.dPitch + (int64_t(hv) * L + j) * V + v);
        return operand(spec.isKda ? x : W[j][0] * x);
      };
      for (int j = ringRows - 1; j >= 0; --j)
        for (int i = 0; i < K; ++i) {
          W[j][i] = std::exp(gates[i]);
          gates[i] += ringG(j, i);
          if (bug == Bug::CountsOwnGate)
            W[j][i] = std::exp(gates[i]);
        }
      if (bug == Bug::SubtractsGates)
        for (int i = 0; i < K; ++i) {
          float P = 0;
          for (int j = 0; j < ringRows; ++j) {
            P += ringG(j, i);
            W[j][i] = std::exp(gates[i] - P);
          }
        }
      for (int i = 0; i < K; ++i) {
        A[i] = std::exp(gates[i]);
        kq += k[i] * q[i] * (bug == Bug::DecaysKq ? alpha[i] : 1);
      }
      for (int j = 0; j < ringRows; ++j)
        for (int i = 0; i < K; ++i) {
          ringKq[j] += ringK(j, i) * (alpha[i] * q[i]);
          ringKk[j] += ringK(j, i) * (alpha[i] * k[i]);
        }

      auto stateIndex = [&](int v, int i) {
        int64_t in = bug == Bug::TransposedState ? int64_t(i) * V + v
                                                 : int64_t(v) * K + i;
        return slot * args.statePitch + int64_t(hv) * V * K + in;
      };
      for (int v = 0; v < V; ++v) {
        float Sq = 0, Sk = 0;
        for (int i = 0; i < K; ++i) {
          float S0 = load(spec.stateType, args.state, stateIndex(v, i));
          Sq += S0 * (A[i] * alpha[i] * q[i]);
          Sk += S0 * (A[i] * alpha[i] * k[i]);
        }
        for (int j = 0; j < ringRows; ++j) {
          Sq += ringD(j, v) * ringKq[j];
          Sk += ringD(j, v) * ringKk[j];
        }
        const float value = load(spec.actType, args.q,
                                 row * args.qStride + 2 * H * K + hv * V + v);
        const float d = beta * (value - Sk);
        float o = Sq + d * kq;
        if (bug == Bug::OneWrongElement && row == 0 && hv == 0 && v == 1 &&
            m == 2)
          o *= 1.5f;
        if (bug != Bug::LeavesOutputUnwritten || hv != HV - 1 || v != V - 1)
          store(spec.outType, args.out, row * args.outStride + hv * V + v, o);

        if (flush && bug != Bug::ForgetsFlush)
          for (int i = 0; i < K; ++i) {
            float S = A[i] * load(spec.stateType, args.state, stateIndex(v, i));
            for (int j = 0; j < ringRows; ++j)
              S += ringD(j, v) * ringK(j, i);
            S = alpha[i] * S + d * k[i];
            if (bug == Bug::RoundsState)
              S = float(roundTo(DataType::BF16, S));
            store(spec.stateType, args.state, stateIndex(v, i), S);
          }
        if (!flush || bug == Bug::AppendsOnFlush) {
          int j = bug == Bug::AppendsOneRowLate ? (m + 1) % L : m;
          store(spec.ringType, args.dRing,
                ringSlot * args.dPitch + (int64_t(hv) * L + j) * V + v, d);
        }
      }
      if (!flush) {
        const int head = bug == Bug::GateOfNextHead ? (hv + 1) % HV : hv;
        for (int c = 0; c < (bug == Bug::StaleChannel ? G - 1 : G); ++c)
          store(DataType::F32, args.gRing,
                ringSlot * args.gPitch + (int64_t(hv) * L + m) * G + c,
                gateOf(head, c));
        float factor = bug == Bug::StoresScaledK ? args.scale : 1;
        for (int i = 0; i < K; ++i)
          store(spec.ringType, args.kRing,
                ringSlot * args.kPitch + (int64_t(h) * L + m) * K + i,
                factor * k[i]);
      }
    }
    if (bug == Bug::MovesCursor)
      store(DataType::I32, args.writePos, row, flush ? 0 : m + 1);
    if (bug == Bug::WritesRowPadding)
      store(spec.outType, args.out, row * args.outStride + HV * V, 0);
    if (bug == Bug::WritesUnusedSlot)
      store(spec.stateType, args.state, 5, 0);
    if (bug == Bug::WritesUnusedRing)
      store(DataType::F32, args.gRing, 0, 0);
  }
}

} // namespace replayjit

#endif
