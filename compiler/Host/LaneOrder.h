//===- LaneOrder.h - In which order lanes run -------------------*- C++ -*-===//
#ifndef REPLAYJIT_COMPILER_HOST_LANEORDER_H
#define REPLAYJIT_COMPILER_HOST_LANEORDER_H

#include <cstdint>

namespace replayjit::internal::host {

/// The order in which the emulation runs what a GPU runs at once: the lanes of
/// a warp, the warps of a block and the blocks of a grid. A correct program
/// gives the same result in each.
struct LaneOrder {
  enum class Kind { Forward, Reverse, Shuffled };
  Kind kind = Kind::Forward;
  uint32_t seed = 0; ///< Of Shuffled; a run with the same seed repeats exactly.

  static LaneOrder forward() { return {Kind::Forward, 0}; }
  static LaneOrder reverse() { return {Kind::Reverse, 0}; }
  static LaneOrder shuffled(uint32_t seed) { return {Kind::Shuffled, seed}; }
};

} // namespace replayjit::internal::host

#endif
