//===- SlotConflicts.h - Two rows of one launch on one slot -----*- C++ -*-===//
//
// The rows of a launch run in any order and at once. No two may meet in a slot
// that one of them writes; two that only read it may, such as forks that share
// a checkpoint until they flush to slots of their own. Plain C++.
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_KERNELS_DECODE_SLOTCONFLICTS_H
#define REPLAYJIT_KERNELS_DECODE_SLOTCONFLICTS_H

#include "kernels/Decode/DecodeArgs.h"

#include <string>
#include <vector>

namespace replayjit::internal {

/// The slots of the states, or of the rings, of one pool and who uses them.
class SlotUses {
public:
  void read(int row, int64_t slot) { uses.push_back({slot, row, false}); }
  void write(int row, int64_t slot) { uses.push_back({slot, row, true}); }

  /// InvalidArgument if two rows meet where one writes. `what` names the slots:
  /// "state slot".
  Status check(const std::string &what) const;

private:
  struct Use {
    int64_t slot;
    int row;
    bool writes;
  };
  std::vector<Use> uses;
};

/// Whether rows that are live share slots that they must not share. Addresses
/// of indices, cursors and flags are those of host memory, and the arguments
/// legal (validateArgs); nothing else is looked at.
Status checkSlots(const DecodeSpec &spec, const DecodeArgs &args);

} // namespace replayjit::internal

#endif
