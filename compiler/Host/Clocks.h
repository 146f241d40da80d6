//===- Clocks.h - What each lane is ordered after ---------------*- C++ -*-===//
//
// Every access carries a stamp: the time of its lane when it happened. A lane
// knows, for each other lane, up to which stamp its accesses are ordered before
// the lane's own next step. (Vector clocks, stored as two limits that most
// synchronization is made of, and a row per lane only for the rest.)
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_COMPILER_HOST_CLOCKS_H
#define REPLAYJIT_COMPILER_HOST_CLOCKS_H

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace replayjit::internal::host {

class Clocks {
public:
  static constexpr uint32_t maxLanes = 1024;
  /// Mbarriers of a block. A row has an entry for each: bulk copies are
  /// ordered by the phase they complete, not by the lane that issued them.
  static constexpr uint32_t maxMbarriers = 64;
  /// Stamps of asynchronous writes begin here; those of lanes stay below.
  static constexpr uint32_t firstAsyncStamp = 0x80000000u;

  struct Lane {
    uint32_t now = 0;        ///< The stamp of what the lane does next.
    uint32_t blockKnown = 0; ///< Smaller stamps of any lane are ordered before.
    uint32_t warpKnown = 0;  ///< The same for lanes of its own warp.
    uint32_t version = 0;    ///< Equal versions are equal rows; 0 is no row.
  };

  /// What the arrivals at an mbarrier hand to those who wait for it.
  struct Release {
    std::vector<uint32_t> row;
    uint32_t blockKnown = 0;
    uint32_t version = 0;
  };

  /// Begins a block. Stamps go on rising, so what earlier blocks left behind
  /// is older than `base`. False if the stamps ran out and began anew: then
  /// whoever keeps stamps must forget them.
  bool beginBlock(uint32_t laneCount);

  const Lane &lane(uint32_t index) const { return lanes[index]; }
  uint32_t base() const { return blockBase; }
  uint32_t asyncBase() const { return blockAsyncBase; }

  /// Whether what `other` did at `stamp` comes before `lane`'s next step.
  bool ordered(uint32_t lane, uint32_t other, uint32_t stamp) const {
    const Lane &self = lanes[lane];
    return stamp < self.blockKnown ||
           ((lane ^ other) < 32 && stamp < self.warpKnown) ||
           (self.version && stamp < rows[lane * stride + other]);
  }
  /// The same for a bulk copy that completed on mbarrier `slot`.
  bool orderedAsync(uint32_t lane, uint32_t slot, uint32_t stamp) const {
    return lanes[lane].version &&
           stamp < rows[lane * stride + laneCount + slot];
  }

  void meetBlock();                           ///< All lanes of the block meet.
  void meetWarp(uint32_t warp);               ///< All lanes of one warp.
  void meet(std::span<const uint16_t> group); ///< Any lanes, at least one.

  /// `lane` arrives: adds what it did and knows to `release`.
  void release(uint32_t lane, Release &release);
  void acquire(uint32_t lane, const Release &release);

  /// Ends a step of `lane`: what it did so far has stamps below the result.
  uint32_t step(uint32_t lane);
  /// Adds to `release` what `lane` did at stamps below `stamp`.
  void release(uint32_t lane, uint32_t stamp, Release &release);

  /// The stamp of the next asynchronous write or completion.
  uint32_t nextAsyncStamp() { return latestAsync++; }
  /// Orders asynchronous writes of `slot` so far before whoever acquires.
  void releaseAsync(uint32_t slot, Release &release);

private:
  /// Gives all of `group` the union of their rows.
  void joinRows(std::span<const uint16_t> group);
  uint32_t *row(uint32_t lane); ///< Made if there is none.
  uint32_t newVersion() { return ++versions; }

  uint32_t laneCount = 0;
  uint32_t stride = 0;
  uint32_t blockBase = 0, latest = 0;
  uint32_t blockAsyncBase = firstAsyncStamp, latestAsync = firstAsyncStamp;
  uint32_t versions = 0;
  bool asyncUsed = false; ///< Some release of this block holds an async stamp.
  std::vector<Lane> lanes;
  std::vector<uint32_t> rows; ///< laneCount x stride.
  std::vector<uint32_t> joined;
  std::vector<uint16_t> everyLane; ///< 0 to maxLanes - 1.
  // The last acquire: lanes that know the same and acquire the same end up
  // with the same version, and need no join when they meet.
  uint32_t acquiredFrom = 0, acquiredWith = 0, acquiredTo = 0;
};

} // namespace replayjit::internal::host

#endif
