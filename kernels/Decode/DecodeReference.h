//===- DecodeReference.h - The decode step in fp64 --------------*- C++ -*-===//
//
// Two oracles that share only the reading of a token (R4 to R6).
// `DecodeRecurrence` knows no ring: it steps a plain state token by token and
// says what is true. `replayStep` does what a kernel does to memory, ring by
// ring, rounding where it stores; so does `materializeLaunch`.
//
// They take the arguments of a launch with *host* addresses in place of device
// addresses. The rules of the operator contract (SGLang pull request #28451,
// circular rings after #37739) are numbered here, those of several tokens a row
// in Verify/VerifyReference.h; the source names them where it obeys them.
//
//  R1 A row whose state slot is null (NullSlot) writes zeros to its output and
//     touches nothing else. Its other indices are not looked at.
//  R2 So does a row with an index or cursor that ErrorKind lists as not
//     allowed, which is also reported (R17). What a spec does not have is not
//     looked at; dst and track slots are, whether or not the row flushes.
//  R3 With m = write_pos, a row flushes if m == L-1 or its force_flush is not
//     zero. Ring rows >= m are never read, also when the flush is forced.
//     Family::Packed has no cursor and flushes at every token.
//  R4 beta = sigmoid(b); Beta::TwiceSigmoid: 2 sigmoid(b); with betaRound,
//     rounded to b's type. Beta::Given: beta = b. Beta::One: beta = 1.
//     Beta::Step: the step of R5.
//  R5 With x = a + dt_bias: g = -exp(A_log) softplus(x),
//     softplus(x) = x > 20 ? x : log(1 + exp(x)). Gate::LowerBound:
//     g = lower_bound sigmoid(exp(A_log) x). GDN has one x and so one g for a
//     value head, KDA one for each of its K channels. An A_log beyond 87 or -87
//     (mostLogRate) counts as that, so that exp(A_log) is neither infinite nor
//     zero: an x of plus infinity forgets all, one of minus infinity nothing.
//     Gate::LogDecay: g = a, and there is neither A_log nor dt_bias.
//     Gate::Fixed: g = A_log, and there is neither a nor dt_bias. Of the first,
//     softplus(x) is the step, which hasStepLimits cuts to step_min, and then
//     to step_max; Gate::Rate: g = A times the step, where A stands in the
//     place of A_log and is not cut.
//  R6 q and k are divided by sqrt(sum x^2 + 1e-6) over K if qkL2Norm; then q
//     is multiplied by scale. Kernels take the sum in fp32, which x below 1e18
//     fits: a vector whose sum is infinite there becomes zero.
//  R7 Value head hv reads key head hv / (HV/H).
//  R8 S = S0 diag(exp(sum of all g)) + sum_j d_j (exp(sum of g after j) k_j)^T,
//     a product of vectors being that of their channels.
//  R9 alpha = exp(g); d = beta (v - S diag(alpha) k);
//     o = S diag(alpha) q + d (k . q); S' = S diag(alpha) + d k^T.
//     Rule::Additive: d = beta v. With skip, D v is then added to o, and with
//     hasOutGate the sum is multiplied by silu(z) = z / (1 + exp(-z)).
//  R10 A row that flushes writes S' and appends nothing (but see R14).
//  R11 A row that does not appends at ring row m: d, k (normalized, unscaled,
//     one per key head) and g (KDA: K of them). The cursor is never written.
//  R12 RingFormat::Prefix: g_ring row j holds P_j, the sum of g_0 to g_j, in
//     place of g_j; the sum of g after j is P_{m-1} - P_j.
//  R13 RingFormat::Predecayed: R12, and k_ring row j holds k_j exp(-P_j), so
//     that exp(P_{m-1}) times it is the weighted k of R8.
//  R14 Circular: ring row j lives at (ring_base + j) mod L. A row that flushes
//     because m == L-1 writes S, without the current token, and appends that
//     token as the first of a new ring (P = g, k exp(-g)) at (base + m) mod L.
//     A forced flush is as in R10.
//  R15 Checkpoint and ring belong to state_indices; the ring to ring_indices
//     and the slot that a flush writes to dst_indices, where the spec has them.
//  R16 A row with a track slot that is not null stores S', current token
//     included, there too, whether or not it flushes.
//  R17 Each bad row of R2 adds 1 to ErrorWord::count. The first to do so fills
//     in the rest with the first of its ErrorKinds. Materialize: each bad row
//     does so in each layer.
//  R18 What is stored in fp16 (out, S, d, k) saturates: a finite number that
//     would round to infinity becomes 65504 or -65504. A row in which that
//     happens is reported (Overflow) like a bad row, perhaps more often than
//     once, and is no padding; LaunchAbi::Triton reports nothing. Infinities
//     and NaN are stored as they are. bf16 has the range of fp32, in which all
//     is computed: what rounds to infinity there (from 3.39e38 on) does so.
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_KERNELS_DECODE_DECODEREFERENCE_H
#define REPLAYJIT_KERNELS_DECODE_DECODEREFERENCE_H

#include "kernels/Decode/DecodeArgs.h"
#include "kernels/Families.h"

#include <cstdint>
#include <vector>

namespace replayjit::internal {

/// A view of rows in host memory: `pitch` elements from one to the next.
struct HostTensor {
  DataType type = DataType::F32;
  uint64_t address = 0;
  int64_t pitch = 0;

  double get(int64_t row, int64_t index) const {
    return loadElement(type, reinterpret_cast<const void *>(address),
                       row * pitch + index);
  }
  void set(int64_t row, int64_t index, double value) const {
    storeElement(type, reinterpret_cast<void *>(address), row * pitch + index,
                 value);
  }
  /// R18: the same for what a launch computes; the magnitude of what was too
  /// large is kept in `overflow`.
  void store(int64_t row, int64_t index, double value, double &overflow) const;
};

/// The arguments of a launch as typed views. A view's row is a batch row or a
/// slot; parameters have the single row 0. The caller owns the memory.
struct DecodeTensors {
  DecodeTensors(const DecodeSpec &spec, const DecodeArgs &args);

  HostTensor mixedQkv; ///< All of q, k and v, unless hasSeparateQkv.
  HostTensor q, k, v;  ///< [H, K], [H, K] and [HV, V] a row.
  HostTensor a, b, aLog, dtBias, out;
  HostTensor skip, outGate;
  HostTensor state, dRing, kRing, gRing;
  HostTensor stateIndices, ringIndices, dstIndices, trackIndices;
  HostTensor writePos, forceFlush, ringBase;
  HostTensor tokenCounts, tokenOffsets;
};

/// What one token of one row means, with every head's values side by side.
struct DecodeToken {
  std::vector<double> q;    ///< [H, K] after R6
  std::vector<double> k;    ///< [H, K] after R6
  std::vector<double> v;    ///< [HV, V]
  std::vector<double> beta; ///< [HV], R4
  std::vector<double> g;    ///< GDN [HV]; KDA [HV, K], R5
  std::vector<double> skip; ///< [HV, V], D v; zeros without a skip
  std::vector<double> outGate; ///< [HV, V], silu(z); ones without a gate
};

/// R5, for x = a + dt_bias; of Gate::LogDecay, x = a; of Gate::Fixed, any x.
/// Steps are cut as `args` says, whose lowerBound counts too.
double gateOf(const DecodeSpec &spec, const DecodeArgs &args, double aLog,
              double x);

/// exp of the `gateWidth` gates at `gates`, one for each of K channels.
std::vector<double> decayOf(const DecodeSpec &spec, const double *gates);

/// Reads the token at `place` in the lists of tokens: that of a batch row,
/// where each has one (R4 to R6).
DecodeToken readToken(const DecodeSpec &spec, const DecodeArgs &args,
                      int64_t place);

/// What a launch does with a batch row (R1 to R3, R14 to R16).
struct DecodeRow {
  bool isLive = false; ///< Else it is padding, and only `error` says more.
  bool forced = false;
  bool flushes = false;
  int64_t slot = 0, ringSlot = 0;
  int64_t dstSlot = 0;    ///< Where a flush writes.
  int64_t trackSlot = -1; ///< -1: none
  RingCursor cursor;      ///< Family::Packed: zeros.
  int64_t firstToken = 0; ///< In the lists of tokens.
  int64_t numTokens = 1;  ///< Of a row that is no padding 1 or more.
  int64_t numPlaces = 1;  ///< Outputs from firstToken on that are its own, R23.
  ErrorKind error = ErrorKind::None;
  int64_t badValue = 0; ///< What `error` is about.

  /// R14: the flush folds the history and leaves the token in the ring.
  bool keepsToken(const DecodeSpec &spec) const {
    return spec.isCircular && flushes &&
           (!forced || traitsOf(spec).drafts); // R22
  }
  /// Where the token is appended, if it is.
  RingCursor end(const DecodeSpec &spec) const {
    if (!flushes)
      return cursor;
    return {0, (cursor.base + cursor.writePos) % spec.ringDepth};
  }
};

DecodeRow readRow(const DecodeSpec &spec, const DecodeArgs &args, int row);

/// False for the padding of R1 and R2.
bool isLive(const DecodeSpec &spec, const DecodeArgs &args, int row);

/// R3, for a live row.
bool flushes(const DecodeSpec &spec, const DecodeArgs &args, int row);

/// R17 for one bad row. `address` is that of an ErrorWord, or 0.
void reportError(uint64_t address, ErrorKind kind, int row, int layer,
                 int64_t value);

/// R18, where a row of a launch had to saturate: `overflow` is above 0.
void reportOverflow(uint64_t address, int row, int layer, double overflow);

/// Where a state and its ring are, as typed views of host memory.
struct ReplayTensors {
  ReplayTensors(const DecodeSpec &spec, const ReplayLayer &layer);
  ReplayTensors(const DecodeSpec &spec, const DecodeArgs &args);

  HostTensor state, dRing, kRing, gRing;
};

/// R14: the place of logical ring row `j`.
constexpr int ringRow(const DecodeSpec &spec, RingCursor cursor, int j) {
  return (cursor.base + j) % spec.ringDepth;
}

/// R8: S [V, K], K fastest, of the checkpoint in `slot` plus the rows of the
/// ring in `ringSlot` that `cursor` counts.
std::vector<double> materialize(const DecodeSpec &spec,
                                const ReplayTensors &tensors, int64_t slot,
                                int64_t ringSlot, int valueHead,
                                RingCursor cursor);

/// The same for a ring with the slot of its state and base 0.
std::vector<double> materialize(const DecodeSpec &spec, const DecodeArgs &args,
                                int64_t slot, int valueHead, int ringRows);

/// A token of value head `hv` becomes the ring row after those that `cursor`
/// counts (R11 to R14). `gates` are its own.
struct RingRecord {
  int hv;
  const double *d, *k, *gates;
};
void appendRecord(const DecodeSpec &spec, const DecodeTensors &tensors,
                  int64_t ringSlot, RingCursor cursor, const RingRecord &record,
                  double &overflow);

/// Runs a launch of one token a row on host memory: writes out, state,
/// rings and error word as the rules say, computing in fp64 and rounding to the
/// storage type what is stored.
void replayStep(const DecodeSpec &spec, const DecodeArgs &args);

/// The recurrence R9 on plain fp64 states, one per slot. No ring, no rounding.
class DecodeRecurrence {
public:
  DecodeRecurrence(const DecodeSpec &spec, int slots)
      : spec(spec), states(slots) {}

  /// S of every value head of a slot, [HV, V, K], zero at first.
  std::vector<double> &state(int64_t slot);

  /// What a step returns, and what it would append to the ring.
  struct Step {
    std::vector<double> out; ///< [HV, V]
    std::vector<double> d;   ///< [HV, V]
  };

  /// Advances a slot by one token.
  Step step(int64_t slot, const DecodeToken &token);

private:
  DecodeSpec spec;
  std::vector<std::vector<double>> states; ///< Allocated at first use.
};

} // namespace replayjit::internal

#endif
