//===- FakeDecodeKernel.h - A decode kernel that can be wrong ---*- C++ -*-===//
//
// A decode kernel in fp32 on host memory, written in the output-only form and
// apart from the fp64 reference, that can be told to be wrong in one of several
// ways.
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_TESTS_UNIT_FAKEDECODEKERNEL_H
#define REPLAYJIT_TESTS_UNIT_FAKEDECODEKERNEL_H

#include "kernels/Decode/DecodeArgs.h"

#include <cmath>
#include <vector>

namespace replayjit::internal {

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
  KeepsErrors,        ///< The error word is not touched.
  ErrorOfNextLayer,
  BaseOffByOne,
  IgnoresBase,      ///< Logical rows where they would be with base 0.
  FoldsTokenToo,    ///< Circular: a natural flush writes S'.
  DropsToken,       ///< Circular: a natural flush appends nothing.
  ForgetsRebase,    ///< Circular: the kept token has the old sums.
  AppendsGate,      ///< Sums: g in place of P.
  ReadsStateRing,   ///< The ring by the state's slot.
  FlushesToSource,  ///< dst_indices are ignored.
  ReadsDestination, ///< The checkpoint too is that of dst_indices.
  IgnoresTrack,
  TracksWithoutToken, ///< S in place of S'.
  TrackingFlushes,    ///< The row's own slot too.
  TakesTrackForNull,  ///< A track slot past the end is taken for none.
};

/// One launch of the decode operator in fp32 on host memory. Sums over K are
/// taken in double: those of kernels are trees, which are nearly as exact.
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
    const bool packed = spec.family == Family::Packed;
    int m = packed ? 0 : int(load(DataType::I32, args.writePos, row));
    auto index = [&](bool isThere, uint64_t base, int64_t stride,
                     int64_t otherwise) {
      return isThere ? int64_t(loadElement(spec.indexType,
                                           reinterpret_cast<void *>(base),
                                           row * stride))
                     : otherwise;
    };
    const int64_t first = spec.nullSlot == NullSlot::NonPositive ? 1 : 0;
    int64_t ringSlot = index(spec.hasRingIndices && bug != Bug::ReadsStateRing,
                             args.ringIndices, args.ringIndexStride, slot);
    int64_t dst = index(spec.hasDstIndices && bug != Bug::FlushesToSource,
                        args.dstIndices, args.dstIndexStride, slot);
    int64_t track = index(spec.hasTrackIndices && bug != Bug::IgnoresTrack,
                          args.trackIndices, args.trackIndexStride, -1);
    if (bug == Bug::TakesTrackForNull && track >= args.slots)
      track = -1;
    int base =
        spec.isCircular ? int(load(DataType::I32, args.ringBase, row)) : 0;
    const bool badSlot = slot < first || slot >= args.slots;
    const bool badCursor = m < 0 || m >= L;
    uint32_t error = 0;
    int64_t value = 0;
    auto forbid = [&](bool isBad, uint32_t kind, int64_t x) {
      if (isBad && error == 0)
        error = kind, value = x;
    };
    forbid(slot >= args.slots, 1, slot);
    forbid(badCursor, 2, m);
    forbid(spec.hasRingIndices && (ringSlot < 0 || ringSlot >= args.ringSlots),
           3, ringSlot);
    forbid(dst < first || dst >= args.slots, 4, dst);
    forbid(track >= args.slots, 5, track);
    forbid(base < 0 || base >= L, 6, base);
    const bool isNull = slot < first;
    if (bug == Bug::TakesBadSlot && badSlot)
      slot = ringSlot = dst = 0, error = 0;
    if (bug == Bug::TakesBadCursor && badCursor)
      m = 0, error = 0;
    if ((isNull && bug != Bug::TakesBadSlot) || error != 0) {
      if (bug != Bug::LeavesPaddingRows)
        for (int i = 0; i < HV * V; ++i)
          store(spec.outType, args.out, row * args.outStride + i, 0);
      auto *word = reinterpret_cast<ErrorWord *>(args.errorWord);
      if (!isNull && word && bug != Bug::KeepsErrors) {
        const int layer = args.layer + (bug == Bug::ErrorOfNextLayer);
        if (word->count++ == 0)
          *word = {1, error, row, layer, value};
      }
      continue;
    }
    bool forced = !packed && spec.hasForceFlush &&
                  bug != Bug::IgnoresForceFlush &&
                  load(DataType::I32, args.forceFlush, row) != 0;
    if (bug == Bug::TrackingFlushes && track >= first)
      forced = true;
    bool flush = m == L - 1 || forced || bug == Bug::FlushesAlways;
    // What a natural flush of a circular ring leaves for the next checkpoint.
    const bool keeps = spec.isCircular && flush && !forced;
    const bool appends =
        (!flush || keeps) && !(keeps && bug == Bug::DropsToken);
    if (bug == Bug::RingByRow)
      ringSlot = row;
    if (bug == Bug::IgnoresBase)
      base = 0;
    auto placeOf = [&](int j) {
      return (base + j + (bug == Bug::BaseOffByOne)) % L;
    };
    const bool hasSums = spec.ringFormat != RingFormat::Raw;
    const bool isPredecayed = spec.ringFormat == RingFormat::Predecayed;
    const int64_t source = bug == Bug::ReadsDestination ? dst : slot;
    // q, k and v of the row, as addresses of elements.
    const uint64_t act = byteSize(spec.actType);
    const uint64_t qRow = args.q + row * args.qStride * act;
    const uint64_t kRow = spec.hasSeparateQkv
                              ? args.k + row * args.kStride * act
                              : qRow + uint64_t(H) * K * act;
    const uint64_t vRow = spec.hasSeparateQkv
                              ? args.v + row * args.vStride * act
                              : qRow + 2 * uint64_t(H) * K * act;

    for (int hv = 0; hv < HV; ++hv) {
      const int h = bug == Bug::WrongHeadMapping ? hv % H : hv / (HV / H);
      std::vector<float> q(K), k(K);
      double qq = 0, kk = 0;
      for (int i = 0; i < K; ++i) {
        q[i] = load(spec.actType, qRow, h * K + i);
        k[i] = load(spec.actType, kRow, h * K + i);
        qq += q[i] * q[i];
        kk += k[i] * k[i];
      }
      for (int i = 0; i < K; ++i) {
        q[i] *=
            args.scale * (spec.qkL2Norm ? float(1 / std::sqrt(qq + 1e-6)) : 1);
        k[i] *= spec.qkL2Norm ? float(1 / std::sqrt(kk + 1e-6)) : 1;
      }
      auto gateOf = [&](int head, int c) {
        if (spec.gate == Gate::LogDecay)
          return load(spec.gateType, args.a, row * args.aStride + head * G + c);
        const int bias =
            bug == Bug::TransposedDtBias ? c * HV + head : head * G + c;
        const float x =
            load(spec.gateType, args.a, row * args.aStride + head * G + c) +
            load(spec.biasType, args.dtBias, bias);
        const float rate = std::exp(load(spec.paramType, args.aLog, head));
        const float low = bug == Bug::ConstantLowerBound ? -5 : args.lowerBound;
        const float soft = -rate * (x > 20 ? x : std::log1p(std::exp(x)));
        if (spec.gate == Gate::Softplus)
          return soft;
        if (bug == Bug::ClampsGate)
          return std::fmax(low, soft);
        return low / (1 + std::exp(-rate * x));
      };
      float beta = load(spec.betaType, args.b, row * args.bStride + hv);
      if (spec.beta != Beta::Given)
        beta =
            (spec.beta == Beta::TwiceSigmoid ? 2 : 1) / (1 + std::exp(-beta));
      if (spec.betaRound && bug != Bug::ForgetsBetaRound)
        beta = float(roundTo(spec.betaType, beta));
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
      std::vector<float> gates(K), A(K);
      std::vector<double> ringKq(ringRows), ringKk(ringRows);
      double kq = 0;
      const bool rounds = bug == Bug::RoundsDotOperands;
      auto operand = [&](float x) {
        return rounds ? float(roundTo(spec.outType, x)) : x;
      };
      auto ringG = [&](int j, int i) {
        int c = bug == Bug::OneGateForAll ? 0 : i % G;
        return load(DataType::F32, args.gRing,
                    ringSlot * args.gPitch +
                        (int64_t(hv) * L + placeOf(j)) * G + c);
      };
      // W_j goes with d_j, where it is a scalar, else with k_j.
      auto ringK = [&](int j, int i) {
        float x = load(spec.ringType, args.kRing,
                       ringSlot * args.kPitch +
                           (int64_t(h) * L + placeOf(j)) * K + i);
        return operand(spec.isKda ? W[j][i] * x : x);
      };
      auto ringD = [&](int j, int v) {
        float x = load(spec.ringType, args.dRing,
                       ringSlot * args.dPitch +
                           (int64_t(hv) * L + placeOf(j)) * V + v);
        return operand(spec.isKda ? x : W[j][0] * x);
      };
      for (int i = 0; hasSums && i < K && ringRows > 0; ++i) {
        gates[i] = ringG(ringRows - 1, i);
        for (int j = 0; j < ringRows; ++j)
          W[j][i] = std::exp(gates[i] - (isPredecayed ? 0 : ringG(j, i)));
      }
      for (int j = ringRows - 1; j >= 0 && !hasSums; --j)
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
        return int64_t(hv) * V * K + in;
      };
      auto loadState = [&](int v, int i) {
        return load(spec.stateType, args.state,
                    source * args.statePitch + stateIndex(v, i));
      };
      auto storeState = [&](int64_t to, int v, int i, float S) {
        store(spec.stateType, args.state,
              to * args.statePitch + stateIndex(v, i), S);
      };
      for (int v = 0; v < V; ++v) {
        double Sq = 0, Sk = 0;
        for (int i = 0; i < K; ++i) {
          float S0 = loadState(v, i);
          Sq += S0 * (A[i] * alpha[i] * q[i]);
          Sk += S0 * (A[i] * alpha[i] * k[i]);
        }
        for (int j = 0; j < ringRows; ++j) {
          Sq += ringD(j, v) * ringKq[j];
          Sk += ringD(j, v) * ringKk[j];
        }
        const float value = load(spec.actType, vRow, hv * V + v);
        const float d = beta * (value - Sk);
        float o = Sq + d * kq;
        if (bug == Bug::OneWrongElement && row == 0 && hv == 0 && v == 1 &&
            m == 2)
          o *= 1.5f;
        if (bug != Bug::LeavesOutputUnwritten || hv != HV - 1 || v != V - 1)
          store(spec.outType, args.out, row * args.outStride + hv * V + v, o);

        for (int i = 0; i < K; ++i) {
          float history = A[i] * loadState(v, i);
          for (int j = 0; j < ringRows; ++j)
            history += ringD(j, v) * ringK(j, i);
          float S = alpha[i] * history + d * k[i];
          if (bug == Bug::RoundsState)
            S = float(roundTo(DataType::BF16, S));
          if (flush && bug != Bug::ForgetsFlush)
            storeState(dst, v, i,
                       keeps && bug != Bug::FoldsTokenToo ? history : S);
          if (track >= first)
            storeState(track, v, i,
                       bug == Bug::TracksWithoutToken ? history : S);
        }
        if (appends || bug == Bug::AppendsOnFlush) {
          int j = placeOf(bug == Bug::AppendsOneRowLate ? m + 1 : m);
          store(spec.ringType, args.dRing,
                ringSlot * args.dPitch + (int64_t(hv) * L + j) * V + v, d);
        }
      }
      if (!appends)
        continue;
      const int head = bug == Bug::GateOfNextHead ? (hv + 1) % HV : hv;
      const bool addsSum = hasSums && m > 0 && bug != Bug::AppendsGate &&
                           (!keeps || bug == Bug::ForgetsRebase);
      std::vector<float> appended(G); // what g_ring gets
      for (int c = 0; c < G; ++c)
        appended[c] = gateOf(head, c) + (addsSum ? ringG(m - 1, c) : 0);
      for (int c = 0; c < (bug == Bug::StaleChannel ? G - 1 : G); ++c)
        store(DataType::F32, args.gRing,
              ringSlot * args.gPitch + (int64_t(hv) * L + placeOf(m)) * G + c,
              appended[c]);
      float factor = bug == Bug::StoresScaledK ? args.scale : 1;
      for (int i = 0; i < K; ++i)
        store(spec.ringType, args.kRing,
              ringSlot * args.kPitch + (int64_t(h) * L + placeOf(m)) * K + i,
              factor * k[i] * (isPredecayed ? std::exp(-appended[i]) : 1));
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

} // namespace replayjit::internal

#endif
