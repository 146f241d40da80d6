//===- Sizing.h - What a pool costs, and which kernels to run ---*- C++ -*-===//
//
// Plain arithmetic before there is any memory: bytes, slots for a budget, and
// what was measured about packed and replay decode.
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_RUNTIME_STATE_SIZING_H
#define REPLAYJIT_RUNTIME_STATE_SIZING_H

#include "kernels/Decode/DecodeArgs.h"
#include "runtime/cache/TuningTable.h"

#include <span>

namespace replayjit::internal {

/// Elements from one slot to the next in a pool that StatePool allocates: the
/// slot's own, rounded up to 16 bytes. Zero for the rings of a pool without.
struct SlotPitches {
  int64_t state = 0, dRing = 0, kRing = 0, gRing = 0;
};
SlotPitches slotPitches(const DecodeSpec &spec);

/// Bytes of one state and of one ring of one layer.
int64_t stateBytes(const DecodeSpec &spec);
int64_t ringBytes(const DecodeSpec &spec);

/// So many layers of one shape.
struct LayerCount {
  DecodeSpec spec;
  int32_t layers = 0;
};

/// The bytes of all states, rings and cursors, to the byte. Rings are as many
/// as requests that run at once; cached prefixes are states without one. A spec
/// that is not valid, a negative count, or 2^63 bytes and more are
/// InvalidArgument.
Result<int64_t> poolBytes(std::span<const LayerCount> layers, int64_t states,
                          int64_t rings, int64_t numKeys);

/// The most states that fit into `budget` bytes beside `rings` rings and
/// `numKeys` cursors, below 2^31; an error if there is no room for one, and
/// where poolBytes has one.
Result<int64_t> statesForBudget(std::span<const LayerCount> layers,
                                int64_t rings, int64_t numKeys, int64_t budget);

/// Whether kernels for `spec` can be made for `target`, or in one sentence why
/// not. Compiles nothing.
Status supports(const DecodeSpec &spec, const Target &target);

/// How to decode: packed and L = 1, or replay and its L and ring.
struct Recommendation {
  Family family = Family::Replay;
  int ringDepth = 16;
  DataType ringType = DataType::F32; ///< That of the spec unless measured.
  bool operator==(const Recommendation &) const = default;
};

/// For `rows` requests at once. Of what `measured` has of such a spec (may be
/// null; whoever measured chose which depths and ring types may be), the
/// fastest. Without that, packed where it was faster on an H200 (tests/perf);
/// else the ring depth that moves the fewest bytes a token, a multiple of 4. Of
/// `spec`, family and ringDepth do not count. `lowerBound` limits predecayed
/// rings; see validateLowerBound, which judges it for two rows. InvalidArgument
/// if it, `rows` or the spec is not legal.
Result<Recommendation> recommend(const DecodeSpec &spec, int rows,
                                 float lowerBound = -5.0f,
                                 const TuningTable *measured = nullptr);

} // namespace replayjit::internal

#endif
