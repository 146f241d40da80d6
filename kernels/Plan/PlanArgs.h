//===- PlanArgs.h - Before and after the launches of one step ---*- C++ -*-===//
//
// A step is a transaction. Begin looks up the cursor of every row of a batch,
// judges its indices and fills the buffers that the kernels of all layers read;
// commit moves the cursors. Both are one small launch, or plain C++ on the host
// (PlanReference.h, which has the rules). Plain C++.
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_KERNELS_PLAN_PLANARGS_H
#define REPLAYJIT_KERNELS_PLAN_PLANARGS_H

#include "kernels/Decode/DecodeArgs.h"

#include <optional>

namespace replayjit::internal {

/// The most groups of layers, each with index arrays of its own, in one plan.
inline constexpr int maxPlanGroups = 8;

/// One kind of index of one group: what the engine says and where it goes.
struct PlanIndices {
  uint64_t in = 0;    ///< [live] of DecodeSpec::indexType, or 0: the default
  int64_t stride = 1; ///< Elements from one row's index to the next.
  uint64_t out = 0;   ///< [batch], dense, the same type, or 0: not wanted
};

/// The indices of the layers of one group. The defaults: ring and dst are the
/// state index, track is none. `state.in` is needed. Ring: see also B8.
struct PlanGroup {
  PlanIndices state, ring, dst, track;
  int32_t slots = 0;
  int32_t ringSlots = 0; ///< Rings; as many as slots where there are no others.
};

/// What a captured begin or commit reads in place of an argument, so that a
/// graph serves every step. In device memory.
struct PlanHeader {
  int64_t step = 0; ///< Zero: no row is live.
  int32_t live = 0;
  int32_t reserved = 0;
};

/// The arguments of Family::PlanBegin and PlanCommit, byte for byte the
/// kernel's parameter buffer. Pointers are device addresses, or host addresses
/// for PlanReference; those of rows are dense arrays. Commit looks at the
/// fields marked (c) and no others.
struct PlanArgs {
  uint64_t keys = 0; ///< [live] of DecodeSpec::indexType; negative: padding
  int64_t keyStride = 1;
  uint64_t cursors = 0; ///< (c) [numKeys] int32, the write_pos of each key
  uint64_t bases = 0;   ///< (c) [numKeys] int32, if isCircular
  uint64_t header = 0; ///< (c) PlanHeader to use instead of step and live, or 0
  int64_t step = 0;    ///< (c) The step's id, positive; 0: begin only looks
  int32_t live = 0;    ///< Rows that have a token, 0..batch
  int32_t batch = 0;   ///< (c) Rows of the buffers that are filled.
  int32_t numKeys = 0;
  int32_t numGroups = 0;
  int32_t forceAll = 0;       ///< Not 0: rings are folded; no token is fed.
  int32_t requireFlushed = 0; ///< Not 0: a cursor other than 0 is an error.

  // [live] int32 each, or 0: not given.
  uint64_t flushMask = 0;   ///< Not 0: the row is forced to flush.
  uint64_t fresh = 0;       ///< Not 0: the row's cursor counts as 0.
  uint64_t seqLen = 0;      ///< Tokens fed to the row, this step's included.
  uint64_t noFlushPast = 0; ///< The most tokens to fold; negative: any number
  uint64_t dropNewest = 0;  ///< Ring rows not to count, from the newest.
  uint64_t advanceBy = 0;   ///< (c) [batch]: ring rows that count; else 1

  // (c) [batch] each: what begin fills in, and commit needs.
  uint64_t writePos = 0;   ///< int32
  uint64_t ringBase = 0;   ///< int32, if isCircular
  uint64_t forceFlush = 0; ///< int32
  uint64_t rowKeys = 0;    ///< int32
  uint64_t pending = 0;    ///< int64: the step to commit, 0 in padding rows
  uint64_t errorWord = 0;  ///< (c) An ErrorWord, or 0

  PlanGroup groups[maxPlanGroups];
};

/// What an index array of a padding row holds.
constexpr int64_t nullSlotOf(const DecodeSpec &spec) {
  return spec.nullSlot == NullSlot::Negative ? -1 : 0;
}

/// The cursor after a step that used `cursor` and of whose ring rows
/// `advanceBy` count: 1 for one token, 0 where the token is taken back, more
/// where drafts were accepted. What a flush has folded cannot be taken back.
/// None if advanceBy is negative, or above 1 for a row that flushes or has not
/// so many ring rows left.
constexpr std::optional<RingCursor> advance(const DecodeSpec &spec,
                                            RingCursor cursor, bool forced,
                                            int32_t advanceBy) {
  if (advanceBy < 0)
    return std::nullopt;
  if (!flushes(spec, cursor, forced)) {
    if (advanceBy > spec.ringDepth - 1 - cursor.writePos)
      return std::nullopt;
    return RingCursor{cursor.writePos + advanceBy, cursor.base};
  }
  if (advanceBy > 1)
    return std::nullopt;
  RingCursor next = nextCursor(spec, cursor, forced);
  // Of a circular ring that was full the token is the one row of the new ring.
  if (advanceBy == 0)
    next.writePos = 0;
  return next;
}

/// Says in one sentence what is wrong with arguments that the host can see.
/// `spec` is of family PlanBegin or PlanCommit.
Status validateArgs(const DecodeSpec &spec, const PlanArgs &args);

/// The pointers that a launch of them follows; see DecodeArgs.h.
std::vector<NamedAddress> addressesOf(const DecodeSpec &spec,
                                      const PlanArgs &args);

} // namespace replayjit::internal

#endif
