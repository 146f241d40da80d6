//===- SlotConflicts.cpp - Two rows of one launch on one slot -------------===//

#include "kernels/Decode/SlotConflicts.h"

#include "kernels/Decode/DecodeReference.h"

#include <fmt/format.h>

#include <algorithm>

namespace replayjit::internal {

Status SlotUses::check(const std::string &what) const {
  std::vector<Use> sorted = uses;
  // Of one slot the writes come first.
  std::sort(sorted.begin(), sorted.end(), [](const Use &x, const Use &y) {
    if (x.slot != y.slot)
      return x.slot < y.slot;
    return x.writes != y.writes ? x.writes : x.row < y.row;
  });
  const Use *first = nullptr; // Of a slot.
  for (const Use &use : sorted) {
    if (!first || first->slot != use.slot)
      first = &use;
    if (first->writes && first->row != use.row)
      return Status::invalid(fmt::format(
          "rows {} and {} share {} {}, which row {} writes; the rows of one "
          "launch run at once, so each needs a slot of its own",
          std::min(first->row, use.row), std::max(first->row, use.row), what,
          use.slot, first->row));
  }
  return Status::ok();
}

Status checkSlots(const DecodeSpec &spec, const DecodeArgs &args) {
  SlotUses states, rings;
  for (int i = 0; i < args.batch; ++i) {
    const DecodeRow row = readRow(spec, args, i);
    if (!row.isLive)
      continue;
    states.read(i, row.slot);
    if (row.flushes)
      states.write(i, row.dstSlot);
    if (row.trackSlot >= 0)
      states.write(i, row.trackSlot);
    if (row.cursor.writePos > 0)
      rings.read(i, row.ringSlot);
    if (!row.flushes || row.keepsToken(spec))
      rings.write(i, row.ringSlot);
  }
  if (Status status = states.check("state slot"); !status)
    return status;
  return rings.check("ring slot");
}

} // namespace replayjit::internal
