//===- MaterializeReference.h - Materialize in fp64 -------------*- C++ -*-===//
//
// R1 to R18 are the rules listed in DecodeReference.h.
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_KERNELS_MATERIALIZE_MATERIALIZEREFERENCE_H
#define REPLAYJIT_KERNELS_MATERIALIZE_MATERIALIZEREFERENCE_H

#include "kernels/Decode/DecodeReference.h"
#include "kernels/Materialize/MaterializeArgs.h"

namespace replayjit::internal {

/// What a launch does with a batch row.
struct MaterializeRow {
  bool isLive = false; ///< Else it is skipped.
  int64_t src = 0, ringSlot = 0, dst = 0;
  RingCursor cursor;
  ErrorKind error = ErrorKind::None;
  int64_t badValue = 0;
};

/// R1, R2: a row whose mask is 0 or whose src or dst is null is skipped without
/// a look at the rest. A ring that is empty may have any slot.
MaterializeRow readRow(const DecodeSpec &spec, const MaterializeArgs &args,
                       int row);

/// Runs a launch on host memory.
void materializeLaunch(const DecodeSpec &spec, const MaterializeArgs &args);

/// As that of DecodeArgs, in SlotConflicts.h.
Status checkSlots(const DecodeSpec &spec, const MaterializeArgs &args);

} // namespace replayjit::internal

#endif
