//===- DecodeArgs.h - The arguments of one launch ---------------*- C++ -*-===//
//
// The parameter buffers of the decode kernels, the word in which a kernel
// reports bad indices, and how cursors move between launches. Plain C++.
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_KERNELS_DECODE_DECODEARGS_H
#define REPLAYJIT_KERNELS_DECODE_DECODEARGS_H

#include "kernels/Decode/DecodeSpec.h"

#include <string>
#include <vector>

namespace replayjit::internal {

/// The arguments of one launch of Family::Replay or Packed. This struct is the
/// kernel's parameter buffer, byte for byte. Pointers are device addresses
/// owned by the caller; strides and pitches count elements. Inner dimensions
/// are dense. What a spec does not have is ignored. The order is that of need:
/// each 64 bytes are one line of the constant cache, and a block waits for the
/// first line before it can ask for anything else.
struct DecodeArgs {
  uint64_t stateIndices = 0; ///< [B]
  int64_t stateIndexStride = 1;
  int32_t batch = 0; ///< Rows of this launch; 0 is a valid no-op.
  int32_t slots = 0;
  uint64_t writePos = 0;  ///< [B] int32
  uint64_t state = 0;     ///< [slots, HV, V, K], read and written in place
  int64_t statePitch = 0; ///< >= HV*V*K
  uint64_t q = 0; ///< [B, 2*H*K + HV*V], q then k then v; or q alone, [B, H, K]
  int64_t qStride = 0; ///< Of a row of q, or of q, k and v together

  uint64_t a = 0; ///< GDN [B, HV]; KDA [B, HV, K]
  int64_t aStride = 0;
  uint64_t b = 0; ///< [B, HV]
  int64_t bStride = 0;
  uint64_t aLog = 0;   ///< [HV]
  uint64_t dtBias = 0; ///< GDN [HV]; KDA [HV, K]
  uint64_t out = 0;    ///< [B, HV, V]
  int64_t outStride = 0;

  uint64_t dRing = 0; ///< [ringSlots, HV, L, V]
  int64_t dPitch = 0;
  uint64_t kRing = 0; ///< [ringSlots, H, L, K]
  int64_t kPitch = 0;
  uint64_t gRing = 0; ///< GDN [ringSlots, HV, L]; KDA [ringSlots, HV, L, K]
  int64_t gPitch = 0;
  uint64_t forceFlush = 0;  ///< [B] int32, if hasForceFlush
  float scale = 1.0f;       ///< Multiplies q after normalization.
  float lowerBound = -5.0f; ///< Of Gate::LowerBound: finite, negative.

  uint64_t k = 0; ///< [B, H, K], if hasSeparateQkv
  int64_t kStride = 0;
  uint64_t v = 0; ///< [B, HV, V], if hasSeparateQkv
  int64_t vStride = 0;
  uint64_t ringBase = 0;    ///< [B] int32, if isCircular
  uint64_t ringIndices = 0; ///< [B], if hasRingIndices; else stateIndices
  int64_t ringIndexStride = 1;
  uint64_t dstIndices = 0; ///< [B], if hasDstIndices; else stateIndices
  int64_t dstIndexStride = 1;
  uint64_t trackIndices = 0; ///< [B], if hasTrackIndices; null slots: none
  int64_t trackIndexStride = 1;
  uint64_t errorWord = 0; ///< An ErrorWord, or 0
  int32_t ringSlots = 0;  ///< If hasRingIndices; else slots.
  int32_t layer = 0;      ///< What an ErrorWord calls this launch.
};

/// One layer of a launch of Family::Materialize, in device memory.
struct ReplayLayer {
  uint64_t state = 0, dRing = 0, kRing = 0, gRing = 0; ///< As in DecodeArgs.
  int64_t statePitch = 0, dPitch = 0, kPitch = 0, gPitch = 0;
};

/// The arguments of one launch of Family::Materialize: for each row and layer,
/// the state of slot dst becomes checkpoint plus ring of slot src. A row whose
/// src or dst is a null slot is skipped. Where src = dst the caller sets the
/// cursor to 0 afterwards. A slot that is the dst of one row and the src of
/// another, or the dst of two, ends undefined.
struct MaterializeArgs {
  uint64_t layers = 0;     ///< [numLayers] ReplayLayer
  uint64_t srcIndices = 0; ///< [B], of states and, unless hasRingIndices, rings
  uint64_t dstIndices = 0; ///< [B]
  uint64_t ringIndices = 0; ///< [B], if hasRingIndices; any if writePos is 0
  uint64_t writePos = 0;    ///< [B] int32, the source's cursor
  uint64_t ringBase = 0;    ///< [B] int32, if isCircular
  uint64_t mask = 0;        ///< [B] int32, if hasMask: 0 skips the row
  uint64_t errorWord = 0;   ///< An ErrorWord, or 0
  int64_t srcIndexStride = 1;
  int64_t dstIndexStride = 1;
  int64_t ringIndexStride = 1;
  int32_t batch = 0;
  int32_t numLayers = 0;
  int32_t slots = 0;
  int32_t ringSlots = 0; ///< If hasRingIndices; else slots.
};

/// What a kernel found wrong with a row that it then treated as padding.
enum class ErrorKind : uint32_t {
  None = 0,
  StateSlot = 1, ///< state_indices >= slots (src_indices of materialize)
  WritePos = 2,  ///< write_pos outside 0..L-1
  RingSlot = 3,  ///< ring_indices negative or >= ringSlots, of a ring in use
  DstSlot = 4,   ///< dst_indices null or >= slots
  TrackSlot = 5, ///< track_indices >= slots
  RingBase = 6,  ///< ring_base outside 0..L-1
  // Of a step's plan (kernels/Plan):
  CursorKey = 7,     ///< a row's key >= the number of cursors
  NotFlushed = 8,    ///< a cursor other than 0 where a ring must be empty
  FlushedTooFar = 9, ///< tokens to leave out that are folded already
  AdvanceBy = 10,    ///< advance_by beyond the ring, or of a row that flushed
};

/// Memory that the device writes (system scope) and the host may read at any
/// time, such as host-mapped memory. Zero it before use. `count` grows by one
/// for each bad row of each launch, and of each layer of a materialize launch;
/// the first one fills in the rest, `kind` last. Indices are checked whether or
/// not the row flushes, so a bad one makes a live row padding.
struct ErrorWord {
  uint32_t count = 0;
  uint32_t kind = 0; ///< ErrorKind
  int32_t row = 0, layer = 0;
  int64_t value = 0; ///< The index or cursor that is not allowed.
};

/// Where a slot's ring stands between two launches. A tracking slot is another
/// slot than the row's own unless the row is forced to flush: its ring would
/// count twice.
struct RingCursor {
  int32_t writePos = 0; ///< Rows that the ring holds.
  int32_t base = 0;     ///< Physical place of the oldest; 0 unless circular.
  bool operator==(const RingCursor &) const = default;
};

/// True if a launch flushes a row that stands at `cursor`.
constexpr bool flushes(const DecodeSpec &spec, RingCursor cursor, bool forced) {
  return forced || cursor.writePos == spec.ringDepth - 1;
}

/// The cursor after a launch at a legal cursor. The kernels never write it.
constexpr RingCursor nextCursor(const DecodeSpec &spec, RingCursor cursor,
                                bool forced) {
  if (forced || spec.ringDepth == 1)
    return {0, 0};
  if (cursor.writePos < spec.ringDepth - 1)
    return {cursor.writePos + 1, cursor.base};
  if (spec.isCircular) // the current token stays in the ring
    return {1, (cursor.base + cursor.writePos) % spec.ringDepth};
  return {0, 0};
}

/// Says in one sentence what is wrong with arguments that the host can see:
/// null pointers, counts, strides, alignment, lower_bound. Expects a valid
/// spec. A stride or pitch of more than 2^32 bytes either way is refused, so
/// that no offset of a row or slot passes 63 bits.
Status validateArgs(const DecodeSpec &spec, const DecodeArgs &args);
Status validateArgs(const DecodeSpec &spec, const MaterializeArgs &args);

/// The same for a layer before it goes to device memory.
Status validateLayer(const DecodeSpec &spec, const ReplayLayer &layer);

/// A pointer among the arguments of a launch.
struct NamedAddress {
  std::string name;
  uint64_t address = 0;
};

/// The pointers that a launch follows, of arguments that validateArgs finds
/// right: none without a row. Those in a table of layers, which is in device
/// memory, are not among them.
std::vector<NamedAddress> addressesOf(const DecodeSpec &spec,
                                      const DecodeArgs &args);
std::vector<NamedAddress> addressesOf(const DecodeSpec &spec,
                                      const MaterializeArgs &args);

/// Gate::LowerBound: lower_bound must be finite and negative. Predecayed rings
/// grow as exp(-P): (L-1) |lower_bound| may be at most 80.
Status validateLowerBound(const DecodeSpec &spec, float lowerBound);

} // namespace replayjit::internal

#endif
