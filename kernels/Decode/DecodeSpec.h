//===- DecodeSpec.h - One ReplaySSM decode kernel ---------------*- C++ -*-===//
//
// The compile-time facts of a decode kernel (DecodeSpec) and our choices for it
// (DecodeTuning). DecodeFacts.cpp says of each what it is, which families have
// it and what is allowed; DecodeArgs.h has the arguments of a launch. Plain
// C++.
//
// The operator is the decode step of SGLang pull request #28451
// (fused_recurrent_linear_replayssm_decode). One token of one value head:
//     alpha = exp(g)
//     d  = beta * (v - (S diag(alpha)) k)
//     o  = (S diag(alpha)) q + d (k . q)
//     S' = S diag(alpha) + d k^T          written only when the row flushes
// (Rule::Additive: d = beta v)
// where S = S0 diag(A) + sum_j d_j (W_j k_j)^T over the ring's first write_pos
// rows, A = exp(sum_i g_i) and W_j = exp(sum of the gates after j).
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_KERNELS_DECODE_DECODESPEC_H
#define REPLAYJIT_KERNELS_DECODE_DECODESPEC_H

#include "base/DataType.h"
#include "base/Target.h"
#include "base/Words.h"
#include "kernels/Family.h"

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace replayjit::internal {

/// The largest sizes of a spec.
inline constexpr int maxHeads = 1024, maxHeadDim = 256, maxRingDepth = 64,
                     maxTokens = 16;
/// A tile row narrower than this has no tensor-core fragment.
inline constexpr int minDotWidth = 16;

/// What a ring row of Kimi Delta Attention holds beside d. P_j is the sum of
/// the gates since the checkpoint up to row j.
enum class RingFormat : uint8_t {
  Raw,        ///< g_j and k_j
  Prefix,     ///< P_j and k_j: the newest row has the sum of all gates.
  Predecayed, ///< P_j and k_j exp(-P_j): one exp a channel serves all rows.
};
template <>
inline constexpr std::array<std::string_view, 3> wordsOf<RingFormat> = {
    "raw", "prefix", "predecayed"};

/// How an output is read from checkpoint and ring.
enum class Readout : uint8_t {
  OutputOnly, ///< Products of the parts with a vector; the state is not formed.
  Rebuild,    ///< Each K tile of the state is formed by a tensor-core dot.
};
template <>
inline constexpr std::array<std::string_view, 2> wordsOf<Readout> = {
    "outputOnly", "rebuild"};

/// Which state slots mean "no request here".
enum class NullSlot : uint8_t {
  Negative,    ///< slot < 0
  NonPositive, ///< slot <= 0 (vLLM reserves block 0)
};
template <>
inline constexpr std::array<std::string_view, 2> wordsOf<NullSlot> = {
    "negative", "nonPositive"};

/// How the decay's logarithm g follows from a, and x = a + dt_bias.
enum class Gate : uint8_t {
  Softplus,   ///< g = -exp(A_log) softplus(x)
  LowerBound, ///< g = lower_bound sigmoid(exp(A_log) x); KDA's "safe gate"
  LogDecay,   ///< g = a; there is no A_log and no dt_bias
  Fixed,      ///< g = A_log; there is no a and no dt_bias
  Rate,       ///< g = A_log softplus(x): what is there is A = -exp(A_log)
};
template <>
inline constexpr std::array<std::string_view, 5> wordsOf<Gate> = {
    "softplus", "lowerBound", "logDecay", "fixed", "rate"};

/// What a token adds to the state along its key.
enum class Rule : uint8_t {
  Delta,    ///< d = beta (v - S diag(alpha) k): what the state lacks of v.
  Additive, ///< d = beta v
};
template <>
inline constexpr std::array<std::string_view, 2> wordsOf<Rule> = {"delta",
                                                                  "additive"};

/// How beta follows from b.
enum class Beta : uint8_t {
  Sigmoid,
  TwiceSigmoid, ///< Up to 2: eigenvalues of the step may be negative.
  Given,        ///< beta = b
  Step,         ///< beta = softplus(x), as in the gate; there is no b
  One,          ///< beta = 1; there is no b
};
template <>
inline constexpr std::array<std::string_view, 5> wordsOf<Beta> = {
    "sigmoid", "twiceSigmoid", "given", "step", "one"};

/// What of v goes past the state into the output: o += D v.
enum class Skip : uint8_t {
  None,
  Head,    ///< D has a number for each value head,
  Channel, ///< or one for each of its V rows.
};
template <>
inline constexpr std::array<std::string_view, 3> wordsOf<Skip> = {
    "none", "head", "channel"};

/// Which tokens a row of several has, among those of all rows.
enum class TokenRows : uint8_t {
  Full,    ///< numTokens, behind those of the row before.
  Counted, ///< The same places, of which token_counts says how many count.
  Ragged,  ///< Those from one of token_offsets to the next.
};
template <>
inline constexpr std::array<std::string_view, 3> wordsOf<TokenRows> = {
    "full", "counted", "ragged"};

/// Whether a kernel may be launched before the one before it on the stream ends
/// (LaunchOrder), which it then waits for itself; and where it lets the next
/// programmatic launch start. replayjit_launch.h says what an engine sees to.
enum class ProgrammaticLaunch : uint8_t {
  None,
  Late, ///< After its own wait: all kernels before it have ended then.
  Early ///< At its start: kernels before it may still run.
};
template <>
inline constexpr std::array<std::string_view, 3> wordsOf<ProgrammaticLaunch> = {
    "none", "late", "early"};

/// What a programmatic launch reads only after its wait.
enum class Dependents : uint8_t {
  Token, ///< q, k, v, a and b. All else is read before.
  All,
};
template <>
inline constexpr std::array<std::string_view, 2> wordsOf<Dependents> = {"token",
                                                                        "all"};

/// How a launch hands over its arguments.
enum class LaunchAbi : uint8_t {
  Native, ///< DecodeArgs: run-time strides, slot bounds, error word, any grid.
  Triton, ///< TritonArgs: dense, a grid of three dimensions.
};
template <>
inline constexpr std::array<std::string_view, 2> wordsOf<LaunchAbi> = {
    "native", "triton"};

/// What a kernel is specialized on, as the rows of decodeFacts() say. Strides,
/// pitches, batch and slot counts are run-time arguments and never part of it.
/// What a family does not have is ignored.
struct DecodeSpec {
  Family family = Family::Replay;
  bool isKda = false;
  int numKeyHeads = 16;
  int numValueHeads = 32; ///< A multiple of numKeyHeads.
  int headDimK = 128;
  int headDimV = 128;
  int ringDepth = 16; ///< L = 1 flushes at every step.

  DataType actType = DataType::BF16;  ///< mixed_qkv
  DataType gateType = DataType::BF16; ///< a
  DataType betaType = DataType::BF16; ///< b
  DataType paramType = DataType::F32; ///< A_log
  DataType biasType = DataType::F32;  ///< dt_bias and D
  DataType outType = DataType::BF16;
  DataType stateType = DataType::F32;
  DataType ringType = DataType::F32; ///< d_ring and k_ring; g_ring is F32
  DataType indexType = DataType::I32;

  bool qkL2Norm = true;
  Gate gate = Gate::Softplus;
  bool betaRound = false;
  bool hasForceFlush = true;
  /// All but Raw need KDA with Gate::LowerBound; Predecayed also H = HV, keys
  /// of a norm of 1 or less (qkL2Norm or hasUnitKeys) and an fp32 or bf16 ring.
  RingFormat ringFormat = RingFormat::Raw;
  /// Logical row j lives at (ring_base + j) mod L, and a natural flush folds
  /// the history alone (SGLang PR #37739). L >= 2.
  bool isCircular = false;
  bool hasSeparateQkv = false;
  bool hasRingIndices = false;
  bool hasDstIndices = false;
  bool hasTrackIndices = false;
  bool hasMask = true;
  bool trapOnError = false;
  ProgrammaticLaunch programmaticLaunch = ProgrammaticLaunch::None;
  NullSlot nullSlot = NullSlot::Negative;
  Readout readout = Readout::OutputOnly;
  int alignment = 16;
  /// Triton needs what its kernel has: a raw ring, the softplus gate, packed
  /// q, k and v, one index array (see TritonArgs.h).
  LaunchAbi abi = LaunchAbi::Native;
  Beta beta = Beta::Sigmoid;
  /// The caller's word for what qkL2Norm would see to. No code depends on it.
  bool hasUnitKeys = false;
  int numTokens = 1; ///< T, the most that a row has.
  TokenRows tokenRows = TokenRows::Full;
  Dependents dependents = Dependents::Token;
  Rule rule = Rule::Delta; ///< Additive: raw rings only.
  Skip skip = Skip::None;
  bool hasOutGate = false;    ///< z: o = o silu(z), after the skip.
  bool hasStepLimits = false; ///< Of Beta::Step.

  bool operator==(const DecodeSpec &) const = default;
};

/// Our choices: they change speed, and bits only within the stated bounds.
struct DecodeTuning {
  int blockV = 32;
  int blockK = 128; ///< Divides nextPowerOfTwo(headDimK).
  int numWarps = 4;
  int flushRows = 4; ///< 0: all at once, by exact products on tensor cores.
  int maxRegisters = 0;
  /// Views that hold as many bytes come through shared memory; 0: none.
  int stageBytes = 0;
  /// Products of a 16-bit checkpoint, and a ring, with the token's vectors are
  /// exact ones of tensor cores.
  bool splitVectors = false;

  bool operator==(const DecodeTuning &) const = default;
};

/// The tables: a row for each member, in their order.
std::span<const Fact<DecodeSpec>> decodeFacts();
std::span<const Fact<DecodeTuning>> tuningFacts();

/// Says in one sentence (field, value, what is allowed) what is wrong.
Status validate(const DecodeSpec &spec, const DecodeTuning &tuning,
                const Target &target);

/// The choice for `spec` when `rows` requests decode together on a GPU of type
/// `target` with `multiprocessors` SMs. rows = 0 asks for the large-batch
/// variant. Any spec gets an answer; `validate` says whether it is legal.
DecodeTuning chooseTuning(const DecodeSpec &spec, int rows,
                          const Target &target, int multiprocessors = 132);

/// A symbol such as "gdn_decode_h16_hv32_k128_v128_l16_..." that names every
/// specialized fact the family has; equal symbols mean equal programs.
std::string kernelName(const DecodeSpec &spec, const DecodeTuning &tuning);

/// The same kernel, with the default for each fact that its family ignores.
DecodeSpec canonical(DecodeSpec spec);

/// The shape and the rule of a shipped model on one rank: ModelPresets.cpp has
/// the list. Heads are split over `tensorParallel` ranks.
Result<DecodeSpec> modelPreset(const std::string &model, int tensorParallel);
/// "qwen3-next, qwen3.5-27b, ..."
std::string modelNames();

/// What the dot of Readout::Rebuild rounds its operands to: the type of the
/// outputs; or tf32, written as F32, which has the digits of fp16, where a ring
/// may hold numbers beyond the range of fp16.
constexpr DataType readoutType(const DecodeSpec &spec) {
  const bool fits = spec.ringType == DataType::F16;
  return spec.outType == DataType::F16 && !fits ? DataType::F32 : spec.outType;
}

/// What A_log is cut to, either way: exp of it is then a normal number of fp32,
/// neither zero nor infinite, whatever it is multiplied with.
inline constexpr double mostLogRate = 87;

// Which inputs a token's gate and beta are made of.
constexpr bool hasGateInput(const DecodeSpec &spec) { // a
  return spec.gate != Gate::Fixed;
}
constexpr bool hasBetaInput(const DecodeSpec &spec) { // b
  return spec.beta != Beta::Step && spec.beta != Beta::One;
}
constexpr bool hasLogRate(const DecodeSpec &spec) { // A_log
  return spec.gate != Gate::LogDecay;
}
constexpr bool hasBias(const DecodeSpec &spec) { // dt_bias
  return hasGateInput(spec) && hasLogRate(spec);
}

/// True if a launch stores something in fp16, which ends at 65504.
bool storesF16(const DecodeSpec &spec);

// What families of states share; see FamilyDescriptor.

/// The rules of facts, tiles and target, and in their order, among those of
/// facts, what `checkOwn` says.
Status validatePool(const DecodeSpec &spec, const DecodeTuning &tuning,
                    const Target &target,
                    Status (*checkOwn)(const DecodeSpec &spec));
/// A circular ring has two rows or more.
Status checkCircularDepth(const DecodeSpec &spec);
DecodeTuning choosePoolTuning(const DecodeSpec &spec, int rows,
                              const Target &target, int multiprocessors);
/// "FIELD: true is not allowed for WHY; it must be false"
Status mustBeFalse(const char *field, const char *why);

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
