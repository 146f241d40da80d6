//===- DecodeSpec.h - One ReplaySSM decode kernel ---------------*- C++ -*-===//
//
// The compile-time facts of a decode kernel (DecodeSpec) and our choices for it
// (DecodeTuning). DecodeArgs.h has the arguments of a launch. Plain C++.
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

#include "base/DataType.h"
#include "base/Target.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace replayjit::internal {

/// The largest sizes of a spec.
inline constexpr int maxHeads = 1024, maxHeadDim = 256, maxRingDepth = 64;
/// A tile row narrower than this has no tensor-core fragment.
inline constexpr int minDotWidth = 16;

/// Which of the kernels around one state pool.
enum class Family : uint8_t {
  Replay, ///< Reads checkpoint and ring; writes the state once in L tokens.
  Packed, ///< Reads and writes the state at every token; there is no ring.
  Materialize, ///< Stores checkpoint plus ring in a slot; no token.
  PlanBegin,   ///< Looks up cursors and judges indices (kernels/Plan).
  PlanCommit,  ///< Moves the cursors of a step that began (kernels/Plan).
};

/// What a ring row of Kimi Delta Attention holds beside d. P_j is the sum of
/// the gates since the checkpoint up to row j.
enum class RingFormat : uint8_t {
  Raw,        ///< g_j and k_j
  Prefix,     ///< P_j and k_j: the newest row has the sum of all gates.
  Predecayed, ///< P_j and k_j exp(-P_j): one exp a channel serves all rows.
};

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

/// How a launch hands over its arguments.
enum class LaunchAbi : uint8_t {
  Native, ///< DecodeArgs: run-time strides, slot bounds, error word, any grid.
  Triton, ///< TritonArgs: dense, a grid of three dimensions; Family::Replay.
};

/// What a kernel is specialized on. Strides, pitches, batch and slot counts are
/// run-time arguments and never part of it. What a family does not have is
/// ignored: a packed kernel has no ring and no force_flush; a materialize
/// kernel no token, so neither its types, gate and norm nor force_flush. A plan
/// has ringDepth, isCircular, indexType, nullSlot and trapOnError alone.
struct DecodeSpec {
  Family family = Family::Replay;
  bool isKda = false; ///< Kimi Delta Attention: the gate is a vector over K.
  int numKeyHeads = 16;
  int numValueHeads = 32; ///< A multiple of numKeyHeads.
  int headDimK = 128;     ///< 1..256
  int headDimV = 128;     ///< 1..256
  /// L, 1..64. L = 1 flushes at every step. Packed decode has no ring: 1.
  int ringDepth = 16;

  DataType actType = DataType::BF16;  ///< mixed_qkv
  DataType gateType = DataType::BF16; ///< a: actType or F32
  DataType betaType = DataType::BF16; ///< b: actType or F32
  DataType paramType = DataType::F32; ///< A_log: F32 or BF16
  DataType biasType = DataType::F32;  ///< dt_bias: F32 or BF16
  DataType outType = DataType::BF16;  ///< out
  DataType stateType = DataType::F32; ///< state
  DataType ringType = DataType::F32;  ///< d_ring and k_ring; g_ring is F32
  DataType indexType = DataType::I32; ///< state_indices: I32 or I64

  bool qkL2Norm = true; ///< q and k are L2-normalized over K (eps 1e-6).
  Gate gate = Gate::Softplus;
  bool betaRound = false;    ///< beta is rounded through b's type.
  bool hasForceFlush = true; ///< The force_flush argument is present.
  /// All but Raw need KDA with Gate::LowerBound, qkL2Norm and H = HV, and
  /// Predecayed an fp32 or bf16 ring.
  RingFormat ringFormat = RingFormat::Raw;
  /// Logical row j lives at (ring_base + j) mod L, and a natural flush folds
  /// the history alone (SGLang PR #37739). Not with Raw; L >= 2.
  bool isCircular = false;
  bool hasSeparateQkv = false;  ///< q, k, v: three pointers and row strides.
  bool hasRingIndices = false;  ///< Rings have indices of their own.
  bool hasDstIndices = false;   ///< A flush writes the state to another slot.
  bool hasTrackIndices = false; ///< S' may also be stored to a tracking slot.
  bool hasMask = true;          ///< Materialize: the mask argument is present.
  /// What is reported in the ErrorWord also ends the launch, as a fault that
  /// CUDA keeps for the whole context: for debugging.
  bool trapOnError = false;
  /// May be launched programmatically (LaunchOrder): the kernel itself waits
  /// for its predecessor on the stream. Needs sm_90.
  bool hasProgrammaticLaunch = false;
  NullSlot nullSlot = NullSlot::Negative;
  Readout readout = Readout::OutputOnly;

  /// Bytes that divide every base pointer, row stride and slot pitch. 16 allows
  /// wide accesses; 0 promises only the element's own alignment.
  int alignment = 16;

  /// Triton needs what its kernel has: a raw ring, the softplus gate, packed
  /// q, k and v, one index array (see TritonArgs.h).
  LaunchAbi abi = LaunchAbi::Native;

  bool operator==(const DecodeSpec &) const = default;
};

/// Our choices: they change speed, and bits only within the stated bounds.
struct DecodeTuning {
  int blockV = 32;   ///< BV: rows of the state per block; a power of two >= 8.
  int blockK = 128;  ///< BKT: columns per K tile; divides pow2(headDimK).
  int numWarps = 4;  ///< Warps per block: 1, 2, 4 or 8.
  int flushRows = 4; ///< Ring rows folded per step of a flush: 1, 2, 4 or 8.
  int maxRegisters = 0; ///< Caps a thread's registers, 32..255; 0: no cap.

  bool operator==(const DecodeTuning &) const = default;
};

/// Says in one sentence (field, value, what is allowed) what is wrong.
Status validate(const DecodeSpec &spec, const DecodeTuning &tuning,
                const Target &target);

/// The choice for `spec` when `rows` requests decode together on a GPU of type
/// `target` with `multiprocessors` SMs. rows = 0 asks for the large-batch
/// variant. Any spec gets an answer; `validate` says whether it is legal.
DecodeTuning chooseTuning(const DecodeSpec &spec, int rows,
                          const Target &target, int multiprocessors = 132);

/// "replay", "packed", "materialize", "plan-begin" or "plan-commit".
std::string_view toString(Family family);
/// "raw", "prefix" or "predecayed".
std::string_view toString(RingFormat format);

/// A symbol such as "gdn_decode_h16_hv32_k128_v128_l16_..." that names every
/// specialized fact the family has; equal symbols mean equal programs.
std::string kernelName(const DecodeSpec &spec, const DecodeTuning &tuning);

/// The same kernel, with the default for each fact that its family ignores.
DecodeSpec canonical(DecodeSpec spec);

/// The shape and gate of a shipped model on one rank. `model` is one of
/// qwen3-next, qwen3.5-27b, qwen3.5-397b (GDN), kimi-linear, kimi-k3,
/// ling-flash (KDA); heads are split over `tensorParallel` ranks.
Result<DecodeSpec> modelPreset(const std::string &model, int tensorParallel);

/// True if a launch reads tokens: q, k, v and gates.
constexpr bool hasTokens(const DecodeSpec &spec) {
  return spec.family == Family::Replay || spec.family == Family::Packed;
}

/// True if a launch works on cursors and indices, and on no state.
constexpr bool isPlan(const DecodeSpec &spec) {
  return spec.family == Family::PlanBegin || spec.family == Family::PlanCommit;
}

/// The spec of a plan for the kernels of `pool`.
DecodeSpec planSpec(const DecodeSpec &pool, Family family);

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

} // namespace replayjit::internal

#endif
