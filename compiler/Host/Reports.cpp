//===- Reports.cpp - The sentences that name a fault ----------------------===//

#include "compiler/Host/Block.h"

#include <fmt/format.h>

#include <cstdlib>

namespace replayjit::internal::host {

std::string Block::siteText(int32_t site) const {
  if (!launch->sites || site < 0 || size_t(site) >= launch->sites->size())
    return "an unnamed operation";
  return fmt::format("'{}'", (*launch->sites)[site]);
}

const char *Block::waitText(Wait wait) const {
  switch (wait) {
  case Wait::None:
    return "nothing";
  case Wait::Shuffle:
    return "shuffle";
  case Wait::Ballot:
    return "vote";
  case Wait::Mma:
    return "MMA";
  case Wait::WarpBarrier:
    return "warp barrier";
  case Wait::Barrier:
    return "barrier";
  case Wait::Mbarrier:
    return "mbarrier";
  }
  return "nothing";
}

void Block::report(const char *kind, uint32_t lane, int32_t site,
                   std::string detail) {
  if (failed)
    return;
  failed = true;
  failureText = fmt::format("{} in block {}, lane {}, at {}: {}", kind, index,
                            lane, siteText(site), detail);
}

void Block::fail(const char *kind, int32_t site, std::string detail) {
  report(kind, current, site, std::move(detail));
  abandon();
}

void Block::abandon() {
  fibers.suspend();
  std::abort(); // The scheduler resumes nobody after a fault.
}

static std::string raceText(const char *what, const std::string &where,
                            const std::string &other, const Hazard &hazard) {
  return fmt::format("the {} touches {}, which {} {}, with nothing that orders "
                     "the two",
                     what, where, other, hazard.otherWrote ? "wrote" : "read");
}

void Block::reportHazard(int32_t site, const char *what) {
  const Hazard &hazard = shadow.hazard();
  std::string where = fmt::format("byte {} of shared memory", hazard.offset);
  std::string otherSite = siteText(hazard.otherSite);
  std::string other =
      hazard.otherIsCopy
          ? fmt::format("the copy {}", otherSite)
          : fmt::format("lane {} at {}", hazard.otherLane, otherSite);
  switch (hazard.kind) {
  case Hazard::Kind::None:
    break;
  case Hazard::Kind::Unwritten:
    report("unwritten shared memory", current, site,
           fmt::format("the {} reads {}, which nothing wrote since the block "
                       "began",
                       what, where));
    break;
  case Hazard::Kind::InFlight:
    report("copy in flight", current, site,
           fmt::format("the {} touches {}, into which {} has not completed",
                       what, where, other));
    break;
  case Hazard::Kind::Race:
    report("shared-memory race", current, site,
           raceText(what, where, other, hazard));
    break;
  }
}

// Of an access inside an allocation.
void Block::reportGlobalRace(int32_t site, const char *what) {
  const Hazard &hazard = globalShadow.hazard();
  uint64_t address = globalShadow.hazardAddress();
  const MemoryMap::Allocation *hit = memory->find(address, 1);
  report(
      "global-memory race", current, site,
      raceText(what,
               fmt::format("byte {} of '{}'", address - hit->base, hit->name),
               fmt::format("lane {} at {}", hazard.otherLane,
                           siteText(hazard.otherSite)),
               hazard));
}

void Block::startEarly(int32_t site) {
  lanes[current].isEarly = true;
  earlySite = site;
}

// Of an access inside an allocation.
void Block::failEarly(const void *address, int32_t site, const char *what,
                      const char *does) {
  const uint64_t begin = reinterpret_cast<uint64_t>(address);
  const MemoryMap::Allocation *hit = memory->find(begin, 1);
  fail("access before the wait", site,
       fmt::format("the {} {} offset {} of '{}', which the kernel before may "
                   "still use",
                   what, does, begin - hit->base, hit->name));
}

void Block::reportGlobal(const void *address, uint32_t bytes, int32_t site,
                         const char *what) {
  uint64_t begin = reinterpret_cast<uint64_t>(address);
  std::string kind = fmt::format("out-of-bounds global {}", what);
  const MemoryMap::Allocation *near = memory->nearest(begin);
  if (!near) {
    report(kind.c_str(), current, site,
           fmt::format("{} bytes at {:#x}, and no memory is allocated", bytes,
                       begin));
    return;
  }
  bool before = begin < near->base;
  report(kind.c_str(), current, site,
         fmt::format("{} bytes at {:#x}, that is at offset {}{} of '{}', which "
                     "has {} bytes",
                     bytes, begin, before ? "-" : "",
                     before ? near->base - begin : begin - near->base,
                     near->name, near->bytes));
}

std::string Block::describeLane(uint32_t index) const {
  const Lane &lane = lanes[index];
  if (lane.exited)
    return "has exited";
  if (lane.wait == Wait::None)
    return "is elsewhere";
  std::string what = waitText(lane.wait);
  if (lane.wait == Wait::Barrier)
    what += fmt::format(" {}", lane.detail);
  return fmt::format("waits at the {} of {}", what, siteText(lane.site));
}

// The first lane that keeps `index` from going on, if one can be named.
bool Block::missingLane(uint32_t index, uint32_t &missing) const {
  const Lane &lane = lanes[index];
  bool isBarrier = lane.wait == Wait::Barrier;
  if (isBarrier && barriers[lane.detail].count != laneCount)
    return false;
  for (uint32_t i = 0; i < laneCount; ++i) {
    const Lane &other = lanes[i];
    bool awaited =
        isBarrier || (i / 32 == index / 32 && (lane.mask >> i % 32 & 1));
    bool present =
        other.wait == lane.wait && other.detail == lane.detail &&
        (isBarrier || (other.mask == lane.mask && other.site == lane.site));
    if (!awaited || (present && !other.exited))
      continue;
    missing = i;
    return true;
  }
  return false;
}

// Reports what `index` waits for, unless the cause is another lane's wait for
// an mbarrier.
bool Block::reportBlocked(uint32_t index) {
  const Lane &lane = lanes[index];
  uint32_t missing = 0;
  bool named = missingLane(index, missing);
  if (named && lanes[missing].wait == Wait::Mbarrier)
    return false;
  std::string but =
      named ? fmt::format(", but lane {} {}", missing, describeLane(missing))
            : "";
  if (lane.wait == Wait::Barrier) {
    const Barrier &barrier = barriers[lane.detail];
    report("incomplete barrier", index, lane.site,
           fmt::format("barrier {} is for {} lanes and {} have come{}",
                       lane.detail, barrier.count, barrier.waiting.size(),
                       but));
    return true;
  }
  std::string kind = fmt::format("divergent {}", waitText(lane.wait));
  report(kind.c_str(), index, lane.site,
         fmt::format("it waits for lanes {:#x} of warp {}{}", lane.mask,
                     index / 32, but));
  return true;
}

// No lane can run. A warp that diverged holds up barriers, and a phase that
// never completes holds up everything, so this looks in that order.
void Block::reportStall() {
  for (bool barrier : {false, true})
    for (uint32_t i = 0; i < laneCount; ++i) {
      Wait wait = lanes[i].wait;
      if (wait != Wait::None && wait != Wait::Mbarrier && !lanes[i].exited &&
          (wait == Wait::Barrier) == barrier && reportBlocked(i))
        return;
    }
  for (uint32_t i = 0; i < laneCount; ++i) {
    const Lane &lane = lanes[i];
    if (lane.wait != Wait::Mbarrier)
      continue;
    const Mbarrier &object = mbarriers[lane.slot];
    report(
        "endless mbarrier wait", i, lane.site,
        fmt::format("phase {} (parity {}) of the mbarrier at shared+{} lacks "
                    "{} arrivals and {} bytes",
                    object.phase, lane.detail, object.offset,
                    object.pendingArrivals, object.pendingBytes));
    return;
  }
}

} // namespace replayjit::internal::host
