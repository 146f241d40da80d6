//===- DecodeReference.h - The decode step in fp64 --------------*- C++ -*-===//
//
// Two oracles that share only the reading of a token (R4 to R6).
// `DecodeRecurrence` knows no ring: it steps a plain state token by token and
// says what is true. `replayStep` does what a kernel does to memory, ring by
// ring, rounding where it stores.
//
// Both take the arguments of a launch, DecodeArgs, with *host* addresses in
// place of device addresses. The rules of the operator contract (SGLang pull
// request #28451) are numbered here; the source names them where it obeys them.
//
//  R1 A row whose slot is null (NullSlot) writes zeros to its output and
//     touches nothing else.
//  R2 slot >= slots, or write_pos outside 0..L-1: as R1.
//  R3 With m = write_pos, a row flushes if m == L-1 or its force_flush is not
//     zero. Ring rows >= m are never read, also when the flush is forced.
//  R4 beta = sigmoid(b); with betaRound, rounded to b's type.
//  R5 With x = a + dt_bias: g = -exp(A_log) softplus(x),
//     softplus(x) = x > 20 ? x : log(1 + exp(x)). Gate::LowerBound:
//     g = lower_bound sigmoid(exp(A_log) x). GDN has one x and so one g for a
//     value head, KDA one for each of its K channels.
//  R6 q and k are divided by sqrt(sum x^2 + 1e-6) over K if qkL2Norm; then q
//     is multiplied by scale.
//  R7 Value head hv reads key head hv / (HV/H).
//  R8 S = S0 diag(exp(sum of all g)) + sum_j d_j (exp(sum of g after j) k_j)^T,
//     a product of vectors being that of their channels.
//  R9 alpha = exp(g); d = beta (v - S diag(alpha) k);
//     o = S diag(alpha) q + d (k . q); S' = S diag(alpha) + d k^T.
//  R10 A row that flushes writes S' and appends nothing.
//  R11 A row that does not appends at ring row m: d, k (normalized, unscaled,
//     one per key head) and g (KDA: K of them). The cursor is never written.
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_KERNELS_DECODE_DECODEREFERENCE_H
#define REPLAYJIT_KERNELS_DECODE_DECODEREFERENCE_H

#include "kernels/Decode/DecodeArgs.h"

#include <cstdint>
#include <vector>

namespace replayjit {

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
};

/// The arguments of a launch as typed views. A view's row is a batch row or a
/// slot; parameters have the single row 0. The caller owns the memory.
struct DecodeTensors {
  DecodeTensors(const DecodeSpec &spec, const DecodeArgs &args);

  HostTensor mixedQkv, a, b, aLog, dtBias, out;
  HostTensor state, dRing, kRing, gRing;
  HostTensor stateIndices, writePos, forceFlush;
};

/// What one token of one row means, with every head's values side by side.
struct DecodeToken {
  std::vector<double> q;    ///< [H, K] after R6
  std::vector<double> k;    ///< [H, K] after R6
  std::vector<double> v;    ///< [HV, V]
  std::vector<double> beta; ///< [HV], R4
  std::vector<double> g;    ///< GDN [HV]; KDA [HV, K], R5
};

/// R5, for x = a + dt_bias.
double gateOf(const DecodeSpec &spec, double lowerBound, double aLog, double x);

/// Reads the token of batch row `row` (R4 to R6).
DecodeToken readToken(const DecodeSpec &spec, const DecodeArgs &args, int row);

/// False for the padding of R1 and R2.
bool isLive(const DecodeSpec &spec, const DecodeArgs &args, int row);

/// R3, for a live row.
bool flushes(const DecodeSpec &spec, const DecodeArgs &args, int row);

/// R8: S [V, K], K fastest, of checkpoint plus the first `ringRows` ring rows.
std::vector<double> materialize(const DecodeSpec &spec, const DecodeArgs &args,
                                int64_t slot, int valueHead, int ringRows);

/// Runs a launch on host memory: writes out, state and rings as R1 to R11 say,
/// computing in fp64 and rounding to the storage type what is stored.
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

} // namespace replayjit

#endif
