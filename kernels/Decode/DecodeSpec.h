//===- DecodeSpec.h - One ReplaySSM decode kernel ---------------*- C++ -*-===//
//
// The compile-time facts of a decode kernel (DecodeSpec), our choices for it
// (DecodeTuning) and the arguments of one launch (DecodeArgs). Plain C++.
//
// The operator is the decode step of SGLang pull request #28451
// (fused_recurrent_linear_replayssm_decode). One token of one value head:
//     alpha = exp(g)
//     d  = beta * (v - (S diag(alpha)) k)
//     o  = (S diag(alpha)) q + d (k . q)
//     S' = S diag(alpha) + d k^T          written only when the row flushes
// where S = S0 diag(A) + sum_j d_j (W_j k_j)^T over the ring's first write_pos
// rows, A = exp(sum_i g_i) and W_j = exp(sum of the gates after j).
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_KERNELS_DECODE_DECODESPEC_H
#define REPLAYJIT_KERNELS_DECODE_DECODESPEC_H

#include "compiler/Target.h"
#include "kernels/DataType.h"

#include <cstdint>
#include <string>

namespace replayjit {

/// How an output is read from checkpoint and ring.
enum class Readout : uint8_t {
  OutputOnly, ///< Products of the parts with a vector; the state is not formed.
  Rebuild,    ///< Each K tile of the state is formed by a tensor-core dot.
};

/// Which state slots mean "no request here".
enum class NullSlot : uint8_t {
  Negative,    ///< slot < 0
  NonPositive, ///< slot <= 0 (vLLM reserves block 0)
};

/// How the decay's logarithm g follows from x = a + dt_bias.
enum class Gate : uint8_t {
  Softplus,   ///< g = -exp(A_log) softplus(x)
  LowerBound, ///< g = lower_bound sigmoid(exp(A_log) x); KDA's "safe gate"
};

/// How a flush's product of ring rows is computed.
enum class FlushPrecision : uint8_t { Ieee, Tf32x3 };

/// What a kernel is specialized on. Strides, pitches, batch and slot counts are
/// run-time arguments and never part of it.
struct DecodeSpec {
  bool isKda = false; ///< Kimi Delta Attention: the gate is a vector over K.
  int numKeyHeads = 16;
  int numValueHeads = 32; ///< A multiple of numKeyHeads.
  int headDimK = 128;     ///< 1..256
  int headDimV = 128;     ///< 1..256
  int ringDepth = 16;     ///< L, 1..64. L = 1 flushes at every step.

  DataType actType = DataType::BF16;   ///< mixed_qkv
  DataType gateType = DataType::BF16;  ///< a and b: actType or F32
  DataType paramType = DataType::F32;  ///< A_log and dt_bias: F32 or BF16
  DataType outType = DataType::BF16;   ///< out
  DataType stateType = DataType::F32;  ///< state
  DataType ringType = DataType::F32;   ///< d_ring and k_ring; g_ring is F32
  DataType indexType = DataType::I32;  ///< state_indices: I32 or I64

  bool qkL2Norm = true;      ///< q and k are L2-normalized over K (eps 1e-6).
  Gate gate = Gate::Softplus;
  bool betaRound = false;    ///< beta is rounded through b's type.
  bool hasForceFlush = true; ///< The force_flush argument is present.
  NullSlot nullSlot = NullSlot::Negative;
  Readout readout = Readout::OutputOnly;

  /// Bytes that divide every base pointer, row stride and slot pitch. 16 allows
  /// wide accesses; 0 promises only the element's own alignment.
  int alignment = 16;

  bool operator==(const DecodeSpec &) const = default;
};

/// Our choices: they change speed, and bits only within the stated bounds.
struct DecodeTuning {
  int blockV = 32;  ///< BV: rows of the state per block; a power of two >= 16.
  int blockK = 128; ///< BKT: columns per K tile; divides pow2(headDimK).
  int numWarps = 4; ///< Warps per block: 1, 2, 4 or 8.
  int flushRows = 4; ///< Ring rows folded per step of a flush: 1, 2, 4 or 8.
  FlushPrecision flushPrecision = FlushPrecision::Ieee;
  int maxRegisters = 0; ///< Caps a thread's registers, 32..255; 0: no cap.
  /// Each block asks for the checkpoint of the block so many places on, which
  /// then comes from the L2 cache; 0: not. Needs sm_90.
  int prefetchDistance = 0;

  bool operator==(const DecodeTuning &) const = default;
};

/// The arguments of one launch. This struct is the kernel's parameter buffer,
/// byte for byte. Pointers are device addresses owned by the caller; strides
/// and pitches count elements. Inner dimensions are dense.
struct DecodeArgs {
  uint64_t mixedQkv = 0;     ///< [B, 2*H*K + HV*V], q then k then v
  uint64_t a = 0;            ///< GDN [B, HV]; KDA [B, HV, K]
  uint64_t b = 0;            ///< [B, HV]
  uint64_t aLog = 0;         ///< [HV]
  uint64_t dtBias = 0;       ///< GDN [HV]; KDA [HV, K]
  uint64_t out = 0;          ///< [B, HV, V]
  uint64_t state = 0;        ///< [slots, HV, V, K], read and written in place
  uint64_t dRing = 0;        ///< [slots, HV, L, V]
  uint64_t kRing = 0;        ///< [slots, H, L, K]
  uint64_t gRing = 0;        ///< GDN [slots, HV, L]; KDA [slots, HV, L, K]
  uint64_t stateIndices = 0; ///< [B]
  uint64_t writePos = 0;     ///< [B] int32
  uint64_t forceFlush = 0;   ///< [B] int32; ignored unless hasForceFlush
  int64_t qkvStride = 0;
  int64_t aStride = 0;
  int64_t bStride = 0;
  int64_t outStride = 0;
  int64_t indexStride = 1;
  int64_t statePitch = 0; ///< >= HV*V*K
  int64_t dPitch = 0;
  int64_t kPitch = 0;
  int64_t gPitch = 0;
  int32_t batch = 0; ///< Rows of this launch; 0 is a valid no-op.
  int32_t slots = 0;
  float scale = 1.0f;      ///< Multiplies q after normalization.
  float lowerBound = -5.0f; ///< Of Gate::LowerBound: finite, negative.
};

/// Says in one sentence (field, value, what is allowed) what is wrong.
Status validate(const DecodeSpec &spec, const DecodeTuning &tuning,
                const Target &target);

/// The choice for `spec` when `rows` requests decode together on a GPU of type
/// `target` with `multiprocessors` SMs. rows = 0 asks for the large-batch
/// variant. Any spec gets an answer; `validate` says whether it is legal.
DecodeTuning chooseTuning(const DecodeSpec &spec, int rows,
                          const Target &target, int multiprocessors = 132);

/// A symbol such as "gdn_decode_h16_hv32_k128_v128_l16_..." that names every
/// specialized fact; equal symbols mean equal programs.
std::string kernelName(const DecodeSpec &spec, const DecodeTuning &tuning);

/// The shape and gate of a shipped model on one rank. `model` is one of
/// qwen3-next, qwen3.5-27b, qwen3.5-397b (GDN), kimi-linear, kimi-k3, ling-flash
/// (KDA); heads are split over `tensorParallel` ranks.
Result<DecodeSpec> modelPreset(const std::string &model, int tensorParallel);

/// Gates of one token of one value head: what a g_ring row holds.
constexpr int gateWidth(const DecodeSpec &spec) {
  return spec.isKda ? spec.headDimK : 1;
}

/// Smallest power of two >= n, but at most 2^30, the largest of an int.
constexpr int nextPowerOfTwo(int n) {
  int p = 1;
  while (p < n && p < 1 << 30)
    p *= 2;
  return p;
}

} // namespace replayjit

#endif
