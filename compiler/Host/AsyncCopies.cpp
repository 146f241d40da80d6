//===- AsyncCopies.cpp - cp.async, bulk copies and mbarriers --------------===//
//
// A copy moves its bytes as late as the PTX rules allow: at the wait that
// covers it. Until then its destination is in flight, and touching it a fault.
//
//===----------------------------------------------------------------------===//

#include "compiler/Host/Block.h"

#include <fmt/format.h>

#include <cstring>

namespace replayjit::internal::host {

void Block::asyncCopy(void *shared, const void *global, int32_t bytes,
                      int32_t site) {
  if (bytes != 4 && bytes != 8 && bytes != 16)
    fail("cp.async misuse", site,
         fmt::format("it copies {} bytes; allowed are 4, 8 and 16", bytes));
  readGlobal(global, bytes, Global, site, "asynchronous copy");
  uint32_t offset = checkShared(shared, bytes, site, "asynchronous copy");
  if (!shadow.beginCopy(current, offset, bytes, site)) {
    reportHazard(site, "asynchronous copy");
    abandon();
  }
  lanes[current].copies.push_back(
      {offset, uint32_t(bytes), current, global, site});
}

void Block::asyncCommit() {
  Lane &lane = lanes[current];
  lane.groups.push_back(lane.copies.size());
}

void Block::asyncWait(int32_t pending) {
  Lane &lane = lanes[current];
  while (int32_t(lane.groups.size() - lane.groupsDone) > pending) {
    uint32_t end = lane.groups[lane.groupsDone++];
    for (; lane.copiesDone < end; ++lane.copiesDone) {
      const Copy &copy = lane.copies[lane.copiesDone];
      std::memcpy(replayjit_emu_shared + copy.offset, copy.source, copy.bytes);
      shadow.endCopy(current, copy.offset, copy.bytes);
    }
  }
}

void Block::mbarrierInit(void *mbarrier, int32_t count, int32_t site) {
  uint32_t offset = checkShared(mbarrier, 8, site, "mbarrier");
  if (count < 1)
    fail("mbarrier misuse", site,
         fmt::format("it is initialized for {} arrivals", count));
  if (!shadow.write(current, offset, 8, site)) {
    reportHazard(site, "mbarrier initialization");
    abandon();
  }
  uint32_t slot = 0;
  while (slot < mbarriers.size() && mbarriers[slot].offset != offset)
    ++slot;
  if (slot == Clocks::maxMbarriers)
    fail("mbarrier misuse", site,
         fmt::format("the emulation has only {} mbarriers in a block",
                     Clocks::maxMbarriers));
  if (slot == mbarriers.size())
    mbarriers.emplace_back();
  Mbarrier &object = mbarriers[slot];
  if (object.waiters || !object.copies.empty())
    fail("mbarrier misuse", site,
         fmt::format("the mbarrier at shared+{} is initialized again while it "
                     "is in use",
                     offset));
  object = {};
  object.offset = offset;
  object.count = object.pendingArrivals = count;
}

// The mbarrier at `address`, whose initialization must be ordered before the
// running lane.
Block::Mbarrier &Block::mbarrierAt(const void *address, int32_t site,
                                   const char *what) {
  uint32_t offset = checkShared(address, 8, site, what);
  if (!shadow.read(current, offset, 8, site)) {
    reportHazard(site, what);
    abandon();
  }
  for (Mbarrier &object : mbarriers)
    if (object.offset == offset)
      return object;
  fail("mbarrier misuse", site,
       fmt::format("there is no mbarrier at shared+{}", offset));
}

void Block::mbarrierArrive(void *mbarrier, int32_t bytes, int32_t site) {
  Mbarrier &object = mbarrierAt(mbarrier, site, "mbarrier arrival");
  if (!object.pendingArrivals)
    fail("mbarrier misuse", site,
         fmt::format("phase {} of the mbarrier at shared+{} has had all its {} "
                     "arrivals",
                     object.phase, object.offset, object.count));
  --object.pendingArrivals;
  object.pendingBytes += bytes;
  clocks.release(current, object.arriving);
  tryCompletePhase(&object - mbarriers.data());
}

void Block::tryCompletePhase(uint32_t slot) {
  Mbarrier &object = mbarriers[slot];
  if (object.pendingArrivals || object.pendingBytes)
    return;
  if (object.copied)
    clocks.releaseAsync(slot, object.arriving);
  object.completed = object.arriving;
  object.pendingArrivals = object.count;
  ++object.phase;
  if (!object.waiters)
    return;
  for (uint32_t i = 0; i < laneCount; ++i) {
    const Lane &lane = lanes[i];
    if (lane.wait != Wait::Mbarrier || lane.slot != slot ||
        lane.detail == int32_t(object.phase & 1))
      continue;
    clocks.acquire(i, object.completed);
    --object.waiters;
    wake(i);
  }
}

void Block::mbarrierWait(void *mbarrier, int32_t parity, int32_t site) {
  Mbarrier &object = mbarrierAt(mbarrier, site, "mbarrier wait");
  parity &= 1;
  if (int32_t(object.phase & 1) != parity) {
    clocks.acquire(current, object.completed);
    return;
  }
  Lane &lane = lanes[current];
  lane.wait = Wait::Mbarrier;
  lane.detail = parity;
  lane.site = site;
  lane.slot = &object - mbarriers.data();
  ++object.waiters;
  suspend();
}

void Block::bulkCopy(void *shared, const void *global, int32_t bytes,
                     void *mbarrier, int32_t space, int32_t site) {
  if (bytes <= 0 || bytes % 16)
    fail("bulk copy misuse", site,
         fmt::format("it copies {} bytes, not a multiple of 16", bytes));
  Mbarrier &object = mbarrierAt(mbarrier, site, "mbarrier of a bulk copy");
  readGlobal(global, bytes, space, site, "bulk copy");
  uint32_t offset = checkShared(shared, bytes, site, "bulk copy");
  if (!shadow.beginCopy(current, offset, bytes, site)) {
    reportHazard(site, "bulk copy");
    abandon();
  }
  object.copied = true;
  // Who sees it complete is ordered after its reads; what the lane did since
  // its arrival passes for ordered too.
  object.copies.push_back(
      {offset, uint32_t(bytes), current, global, site, clocks.step(current)});
}

bool Block::completeBulkCopies() {
  bool any = false;
  for (uint32_t slot = 0; slot < mbarriers.size(); ++slot) {
    Mbarrier &object = mbarriers[slot];
    uint32_t phase = object.phase;
    size_t done = 0;
    // What is left once the phase completes belongs to the next one.
    while (object.waiters && done < object.copies.size() &&
           object.phase == phase) {
      const Copy &copy = object.copies[done++];
      std::memcpy(replayjit_emu_shared + copy.offset, copy.source, copy.bytes);
      shadow.endBulkCopy(slot, clocks.nextAsyncStamp(), copy.offset,
                         copy.bytes);
      clocks.release(copy.lane, copy.readUntil, object.arriving);
      object.pendingBytes -= copy.bytes;
      tryCompletePhase(slot);
    }
    object.copies.erase(object.copies.begin(), object.copies.begin() + done);
    any |= done != 0;
  }
  return any;
}

// Whether no bulk copy outlives the block that owns its destination.
bool Block::checkBulkCopiesDone() {
  for (const Mbarrier &object : mbarriers) {
    if (object.copies.empty())
      continue;
    report("unfinished bulk copy", object.copies[0].lane, object.copies[0].site,
           fmt::format("the block ended and nothing waited for the copy on the "
                       "mbarrier at shared+{}",
                       object.offset));
    return false;
  }
  return true;
}

} // namespace replayjit::internal::host
