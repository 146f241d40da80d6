//===- Clocks.cpp - Joining what lanes know -------------------------------===//

#include "compiler/Host/Clocks.h"

#include <algorithm>
#include <numeric>

namespace replayjit::internal::host {

static void maximum(uint32_t *into, const uint32_t *from, size_t count) {
  for (size_t i = 0; i < count; ++i)
    into[i] = std::max(into[i], from[i]);
}

bool Clocks::beginBlock(uint32_t count) {
  // A block moves the stamps by far less than this margin.
  bool wrapped = latest > firstAsyncStamp - (1u << 28) ||
                 latestAsync > UINT32_MAX - (1u << 28);
  if (wrapped) {
    latest = 0;
    latestAsync = firstAsyncStamp;
  }
  blockBase = ++latest;
  blockAsyncBase = ++latestAsync;
  versions = 0;
  acquiredFrom = acquiredWith = acquiredTo = 0;
  asyncUsed = false;
  if (laneCount != count) {
    laneCount = count;
    stride = count + maxMbarriers;
    rows.resize(size_t(count) * stride);
    joined.resize(stride);
    everyLane.resize(maxLanes);
    std::iota(everyLane.begin(), everyLane.end(), 0);
  }
  lanes.assign(count, Lane{blockBase, blockBase, blockBase, 0});
  return !wrapped;
}

uint32_t *Clocks::row(uint32_t lane) {
  uint32_t *begin = &rows[size_t(lane) * stride];
  if (!lanes[lane].version)
    std::fill_n(begin, stride, 0);
  return begin;
}

void Clocks::joinRows(std::span<const uint16_t> group) {
  uint32_t first = lanes[group[0]].version;
  if (std::all_of(group.begin(), group.end(),
                  [&](uint16_t lane) { return lanes[lane].version == first; }))
    return;
  std::fill(joined.begin(), joined.end(), 0);
  for (uint16_t lane : group)
    if (lanes[lane].version)
      maximum(joined.data(), row(lane), stride);
  uint32_t version = newVersion();
  for (uint16_t lane : group) {
    std::copy(joined.begin(), joined.end(), row(lane));
    lanes[lane].version = version;
  }
}

void Clocks::meetBlock() {
  uint32_t now = 0;
  for (const Lane &lane : lanes)
    now = std::max(now, lane.now);
  ++now;
  latest = std::max(latest, now);
  // The new limit covers whatever rows say about lanes, not about copies.
  if (asyncUsed)
    joinRows({everyLane.data(), laneCount});
  for (Lane &lane : lanes)
    lane = {now, now, now, asyncUsed ? lane.version : 0};
}

void Clocks::meetWarp(uint32_t warp) {
  uint32_t begin = warp * 32, end = std::min(begin + 32, laneCount);
  uint32_t now = 0, blockKnown = 0, versionsSeen = 0;
  for (uint32_t i = begin; i < end; ++i) {
    now = std::max(now, lanes[i].now);
    blockKnown = std::max(blockKnown, lanes[i].blockKnown);
    versionsSeen |= lanes[i].version;
  }
  ++now;
  latest = std::max(latest, now);
  if (versionsSeen)
    joinRows({everyLane.data() + begin, end - begin});
  for (uint32_t i = begin; i < end; ++i)
    lanes[i] = {now, blockKnown, now, lanes[i].version};
}

void Clocks::meet(std::span<const uint16_t> group) {
  uint32_t now = 0, blockKnown = 0;
  std::fill(joined.begin(), joined.end(), 0);
  for (uint16_t index : group) {
    const Lane &lane = lanes[index];
    now = std::max(now, lane.now);
    blockKnown = std::max(blockKnown, lane.blockKnown);
    if (lane.version)
      maximum(joined.data(), row(index), stride);
    uint32_t begin = index & ~31u, end = std::min(begin + 32, laneCount);
    for (uint32_t i = begin; i < end; ++i)
      joined[i] = std::max(joined[i], lane.warpKnown);
  }
  ++now;
  latest = std::max(latest, now);
  for (uint16_t index : group)
    joined[index] = now;
  uint32_t version = newVersion();
  for (uint16_t index : group) {
    std::copy(joined.begin(), joined.end(), row(index));
    lanes[index] = {now, blockKnown, lanes[index].warpKnown, version};
  }
}

void Clocks::release(uint32_t index, Release &release) {
  Lane &lane = lanes[index];
  release.row.resize(stride);
  release.blockKnown = std::max(release.blockKnown, lane.blockKnown);
  if (lane.version)
    maximum(release.row.data(), row(index), stride);
  uint32_t begin = index & ~31u, end = std::min(begin + 32, laneCount);
  for (uint32_t i = begin; i < end; ++i)
    release.row[i] = std::max(release.row[i], lane.warpKnown);
  release.row[index] = step(index);
  release.version = newVersion();
}

uint32_t Clocks::step(uint32_t index) {
  Lane &lane = lanes[index];
  latest = std::max(latest, ++lane.now);
  return lane.now;
}

void Clocks::release(uint32_t index, uint32_t stamp, Release &release) {
  release.row.resize(stride);
  release.row[index] = std::max(release.row[index], stamp);
  release.version = newVersion();
}

void Clocks::releaseAsync(uint32_t slot, Release &release) {
  release.row.resize(stride);
  release.row[laneCount + slot] = nextAsyncStamp();
  release.version = newVersion();
  asyncUsed = true;
}

void Clocks::acquire(uint32_t index, const Release &release) {
  Lane &lane = lanes[index];
  lane.blockKnown = std::max(lane.blockKnown, release.blockKnown);
  if (release.row.empty())
    return;
  maximum(row(index), release.row.data(), stride);
  if (lane.version != acquiredFrom || release.version != acquiredWith ||
      !acquiredTo) {
    acquiredFrom = lane.version;
    acquiredWith = release.version;
    acquiredTo = newVersion();
  }
  lane.version = acquiredTo;
}

} // namespace replayjit::internal::host
