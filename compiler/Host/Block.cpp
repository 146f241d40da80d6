//===- Block.cpp - The scheduler of a block's lanes -----------------------===//

#include "compiler/Host/Block.h"

#include <algorithm>
#include <bit>

namespace replayjit::internal::host {

Block *Block::running = nullptr;

bool Block::beginGrid(const GridLaunch &newLaunch, const MemoryMap &newMemory) {
  launch = &newLaunch;
  memory = &newMemory;
  siteHits.assign(launch->sites ? launch->sites->size() + 1 : 1, nullptr);
  laneCount = launch->threads;
  lanes.resize(laneCount);
  warps.resize((laneCount + 31) / 32);
  random.seed(launch->order.seed);
  return fibers.reserve(laneCount);
}

void Block::enterLane(void *argument) {
  auto *block = static_cast<Block *>(argument);
  block->launch->entry(block->launch->params);
  Lane &lane = block->lanes[block->current];
  if (lane.isEarly) [[unlikely]]
    block->fail("missing wait", block->earlySite,
                "the lane ends, but the kernel before may still run");
  lane.exited = true;
  --block->live;
}

void Block::begin(uint32_t newIndex) {
  index = newIndex;
  live = laneCount;
  failed = false;
  failureText.clear();
  bool forget = !clocks.beginBlock(laneCount);
  shadow.beginBlock(launch->sharedBytes, forget);
  globalShadow.beginBlock(forget);
  for (uint32_t i = 0; i < laneCount; ++i) {
    Lane &lane = lanes[i];
    lane.exited = lane.isEarly = false;
    lane.wait = Wait::None;
    lane.copies.clear();
    lane.groups.clear();
    lane.groupsDone = lane.copiesDone = 0;
    fibers.start(i, enterLane, this);
  }
  for (uint32_t i = 0; i < warps.size(); ++i) {
    uint32_t count = std::min(laneCount - i * 32, 32u);
    warps[i].lanes = warps[i].ready = UINT32_MAX >> (32 - count);
    warps[i].groups.clear();
  }
  for (Barrier &barrier : barriers)
    barrier.waiting.clear();
  mbarriers.clear();
}

uint32_t Block::nextLane() {
  uint32_t lane = passWarp * 32 + pass[passNext++];
  warps[passWarp].ready &= ~(1u << lane % 32);
  current = lane;
  return lane;
}

void Block::suspend() {
  if (passNext < passCount && !failed)
    fibers.hop(nextLane());
  else
    fibers.suspend();
}

// Runs each ready lane of the warp once; false if there was none.
bool Block::runWarp(uint32_t warp) {
  if (!warps[warp].ready)
    return false;
  passWarp = warp;
  passNext = passCount = 0;
  for (uint32_t rest = warps[warp].ready; rest; rest &= rest - 1)
    pass[passCount++] = std::countr_zero(rest);
  if (launch->order.kind == LaneOrder::Kind::Reverse)
    std::reverse(pass, pass + passCount);
  if (launch->order.kind == LaneOrder::Kind::Shuffled)
    for (uint32_t i = passCount; i > 1; --i)
      std::swap(pass[i - 1], pass[shuffledIndex(i)]);
  while (passNext < passCount && !failed)
    fibers.resume(nextLane());
  return true;
}

bool Block::run(uint32_t newIndex) {
  begin(newIndex);
  running = this;
  LaneOrder::Kind kind = launch->order.kind;
  uint32_t warpCount = warps.size();
  while (live && !failed) {
    bool progress = false;
    for (uint32_t i = 0; i < warpCount && !failed; ++i) {
      if (kind == LaneOrder::Kind::Shuffled) {
        // Interleaves the warps: any one takes a step.
        progress |= runWarp(shuffledIndex(warpCount));
        continue;
      }
      // Else a warp runs as far as it can, while its stacks are in the cache.
      uint32_t warp = kind == LaneOrder::Kind::Forward ? i : warpCount - 1 - i;
      while (!failed && runWarp(warp))
        progress = true;
    }
    if (progress || failed || !live)
      continue;
    if (std::any_of(warps.begin(), warps.end(),
                    [](const Warp &warp) { return warp.ready; }))
      continue; // Shuffled did not pick it.
    // As late as possible: a lane that does not wait finds no data yet.
    if (!completeBulkCopies())
      reportStall();
  }
  running = nullptr;
  return !failed && checkBulkCopiesDone();
}

} // namespace replayjit::internal::host
