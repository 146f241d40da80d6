//===- PlanReference.h - Begin and commit on the host -----------*- C++ -*-===//
//
// For engines that plan on the CPU, and the oracle of the kernels. The
// addresses in PlanArgs are those of host memory here; it is the caller's.
//
//  B1 A row is padding, without a report, if it is row `live` or later, if its
//     key is negative, or if its state index is null in any group.
//  B2 A row whose key, cursor, ring base or any index is not allowed is padding
//     in all groups, so that its cursor and its states stay together. It is
//     reported once, by the first of: CursorKey, WritePos, RingBase,
//     NotFlushed, FlushedTooFar (layer -1); then group by group (`layer` is the
//     group) StateSlot, RingSlot, DstSlot, TrackSlot.
//  B3 The cursor is that of the key, or 0 where `fresh` says so; the table is
//     then not read.
//  B4 A row is forced to flush by its mask or by forceAll, which is for steps
//     without tokens.
//  B5 A row that would flush, and so fold more tokens than noFlushPast allows,
//     is padding without a report: its token is past the end of the request.
//     A circular ring that is full folds one token less than seqLen.
//  B6 dropNewest is taken from the cursor, and must leave 0 or more: else the
//     row is FlushedTooFar, by as many tokens as the value says.
//  B7 A live row's buffers hold its cursor, base, force, key, indices and the
//     step; a padding row's hold 0, key -1 and null slots.
//  B8 Where the cursor (B6) is 0 and no token is fed, since begin only looks
//     (step 0) or forceAll is set, no ring is used: its slot may be any number.
//  C1 Where `pending` is the step (and not 0), the cursor of the row's key
//     becomes advance() of what begin found, and `pending` 0: a second commit
//     of the step does nothing. Rows of one key store one value.
//  C2 A row whose advanceBy is not allowed is reported (AdvanceBy, layer -1)
//     and keeps its cursor.
//  C3 Without a commit nothing has changed but the buffers. A flush that was
//     launched in between, though, stays: take back only steps that flush to
//     other slots (dst_indices), or none.
//  C4 A row that began another step than the one to commit, neither being 0, is
//     reported (StepMismatch, layer -1) and stays as it is.
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_KERNELS_PLAN_PLANREFERENCE_H
#define REPLAYJIT_KERNELS_PLAN_PLANREFERENCE_H

#include "kernels/Plan/PlanArgs.h"

namespace replayjit::internal {

/// What begin finds out about a row.
struct PlanRow {
  bool isLive = false;
  RingCursor cursor; ///< After B6.
  bool forced = false;
  int32_t key = -1;
  ErrorKind error = ErrorKind::None;
  int32_t layer = -1;   ///< What the report calls it: the group, or -1.
  int64_t badValue = 0; ///< What `error` is about.
};

PlanRow readRow(const DecodeSpec &spec, const PlanArgs &args, int row);

/// Begin. `spec` gives ring depth, circularity, null rule and index type.
void planBeginHost(const DecodeSpec &spec, const PlanArgs &args);

/// Commit.
void planCommitHost(const DecodeSpec &spec, const PlanArgs &args);

/// Rows that have a token, as the header says if there is one.
int32_t liveRows(const PlanArgs &args);

/// Whether live rows of a begin share slots that they must not share (see
/// SlotConflicts.h) in what follows: a step, or a materialize.
Status checkSlots(const DecodeSpec &spec, const PlanArgs &args);

} // namespace replayjit::internal

#endif
