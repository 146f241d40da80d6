//===- Collectives.cpp - Where lanes meet ---------------------------------===//

#include "compiler/Host/Block.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace replayjit::internal::host {

void Block::meet(Wait wait, uint32_t mask, int32_t detail, int32_t site) {
  uint32_t lane = current;
  Warp &warp = warps[lane / 32];
  uint32_t bit = 1u << lane % 32;
  mask &= warp.lanes;
  if (!(mask & bit))
    fail("wrong mask", site,
         fmt::format("the mask {:#x} of the {} leaves out the lane that runs "
                     "it",
                     mask, waitText(wait)));
  lanes[lane].wait = wait;
  lanes[lane].mask = mask;
  lanes[lane].detail = detail;
  lanes[lane].site = site;

  size_t at = 0;
  for (; at < warp.groups.size(); ++at) {
    const Group &group = warp.groups[at];
    if (group.mask == mask && group.site == site && group.wait == wait &&
        group.detail == detail)
      break;
  }
  if (at == warp.groups.size())
    warp.groups.push_back({wait, detail, mask, site, 0});
  Group &group = warp.groups[at];
  group.arrived |= bit;
  if (group.arrived != mask)
    return suspend();
  Group complete = group;
  warp.groups.erase(warp.groups.begin() + at);
  fire(lane / 32, complete);
  // The lane that came last goes on at once.
  warp.ready &= ~bit;
}

void Block::fire(uint32_t warp, Group group) {
  switch (group.wait) {
  case Wait::Shuffle:
    fireShuffle(warp, group);
    break;
  case Wait::Mma:
    fireMma(warp, group);
    break;
  case Wait::Ballot: {
    int32_t votes = 0;
    for (uint32_t rest = group.mask; rest; rest &= rest - 1) {
      int lane = std::countr_zero(rest);
      votes |= int32_t(uint32_t(lanes[warp * 32 + lane].value) << lane);
    }
    for (uint32_t rest = group.mask; rest; rest &= rest - 1)
      lanes[warp * 32 + std::countr_zero(rest)].value = votes;
    break;
  }
  default:
    break;
  }
  if (group.mask == warps[warp].lanes) {
    clocks.meetWarp(warp);
  } else {
    uint16_t members[32];
    size_t count = 0;
    for (uint32_t rest = group.mask; rest; rest &= rest - 1)
      members[count++] = warp * 32 + std::countr_zero(rest);
    clocks.meet({members, count});
  }
  for (uint32_t rest = group.mask; rest; rest &= rest - 1)
    wake(warp * 32 + std::countr_zero(rest));
}

// The lane that a shuffle reads; the lane itself where PTX says so.
static int sourceLane(int lane, int32_t kind, int32_t offset) {
  int source = lane;
  switch (kind) {
  case Bfly:
    source = lane ^ offset;
    break;
  case Idx:
    source = offset & 31;
    break;
  case Up:
    source = lane - (offset & 31);
    break;
  case Down:
    source = lane + (offset & 31);
    break;
  }
  return source < 0 || source > 31 ? lane : source;
}

void Block::fireShuffle(uint32_t warp, const Group &group) {
  Lane *members = &lanes[warp * 32];
  int32_t results[32];
  for (uint32_t rest = group.mask; rest; rest &= rest - 1) {
    int lane = std::countr_zero(rest);
    int source = sourceLane(lane, group.detail, members[lane].offset);
    if (!(group.mask >> source & 1)) {
      current = warp * 32 + lane; // Whose fault it is.
      fail("divergent shuffle", group.site,
           fmt::format("it reads lane {} of the warp, which takes no part "
                       "(mask {:#x})",
                       source, group.mask));
    }
    results[lane] = members[source].value;
  }
  for (uint32_t rest = group.mask; rest; rest &= rest - 1)
    members[std::countr_zero(rest)].value = results[std::countr_zero(rest)];
}

void Block::fireMma(uint32_t warp, const Group &group) {
  if (group.mask != UINT32_MAX)
    fail("divergent MMA", group.site,
         fmt::format("the warp has only lanes {:#x}", group.mask));
  MmaFragments fragments[32];
  for (int lane = 0; lane < 32; ++lane)
    fragments[lane] = lanes[warp * 32 + lane].fragments;
  multiplyFragments(MmaKind(group.detail), fragments);
}

int32_t Block::shuffle(uint32_t mask, int32_t value, int32_t offset,
                       int32_t kind, int32_t site) {
  Lane &lane = lanes[current];
  lane.value = value;
  lane.offset = offset;
  meet(Wait::Shuffle, mask, kind, site);
  return lane.value;
}

int32_t Block::ballot(uint32_t mask, bool predicate, int32_t site) {
  Lane &lane = lanes[current];
  lane.value = predicate;
  meet(Wait::Ballot, mask, 0, site);
  return lane.value;
}

void Block::mma(int32_t kind, const MmaFragments &fragments, int32_t site) {
  lanes[current].fragments = fragments;
  meet(Wait::Mma, UINT32_MAX, kind, site);
}

void Block::warpBarrier(uint32_t mask, int32_t site) {
  meet(Wait::WarpBarrier, mask, 0, site);
}

void Block::barrier(int32_t id, int32_t threads, int32_t site) {
  if (id < 0 || id >= int32_t(barriers.size()))
    fail("barrier misuse", site,
         fmt::format("barrier {} does not exist, there are {}", id,
                     barriers.size()));
  uint32_t count = threads == -1 ? laneCount : uint32_t(threads);
  if (count != laneCount && (count == 0 || count % 32))
    fail("barrier misuse", site,
         fmt::format("barrier {} is for {} lanes, not a multiple of 32", id,
                     threads));
  Barrier &barrier = barriers[id];
  if (!barrier.waiting.empty() && barrier.count != count)
    fail("barrier misuse", site,
         fmt::format("barrier {} is for {} lanes here and for {} where lane {} "
                     "waits",
                     id, count, barrier.count, barrier.waiting[0]));
  uint32_t lane = current;
  lanes[lane].wait = Wait::Barrier;
  lanes[lane].detail = id;
  lanes[lane].site = site;
  barrier.count = count;
  barrier.waiting.push_back(lane);
  if (barrier.waiting.size() != count)
    return suspend();
  fireBarrier(id, barrier);
  warps[lane / 32].ready &= ~(1u << lane % 32);
}

void Block::fireBarrier(int32_t id, Barrier &barrier) {
  // A barrier instruction is executed by whole warps, at one place each.
  uint32_t arrived[Clocks::maxLanes / 32] = {};
  for (uint16_t lane : barrier.waiting)
    arrived[lane / 32] |= 1u << lane % 32;
  for (uint16_t lane : barrier.waiting) {
    uint32_t warp = lane / 32;
    uint32_t missing = warps[warp].lanes & ~arrived[warp];
    uint32_t first = warp * 32 + std::countr_zero(arrived[warp]);
    uint32_t other = missing ? warp * 32 + std::countr_zero(missing) : first;
    if (missing || lanes[first].site != lanes[lane].site) {
      report("divergent barrier", lane, lanes[lane].site,
             fmt::format("it waits at barrier {}, but lane {} of its warp {}",
                         id, other, describeLane(other)));
      abandon();
    }
  }
  if (barrier.count == laneCount)
    clocks.meetBlock();
  else
    clocks.meet(barrier.waiting);
  for (uint16_t lane : barrier.waiting)
    wake(lane);
  barrier.waiting.clear();
}

} // namespace replayjit::internal::host
