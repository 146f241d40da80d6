//===- Pages.h - Memory of an engine for a pool to adopt --------*- C++ -*-===//
#ifndef REPLAYJIT_TESTS_ENGINE_PAGES_H
#define REPLAYJIT_TESTS_ENGINE_PAGES_H

#include "runtime/state/StepPlan.h"
#include "tests/engine/RowArrays.h"

namespace replayjit::internal::engine {

/// States and rings of all layers as a paged engine lays them out: a page for
/// each slot, with the states of all layers of a group after each other, and a
/// page for each ring, with their rings. Cursors and the buffers of plans are
/// the engine's as well.
class Pages {
public:
  /// Fills in the layers of `groups`. States and cursors start as zero, what
  /// lies between and in the rings as not-a-number.
  Pages(Device &device, std::vector<PoolGroup> &groups, int keys);

  CursorTable cursors() const { return table; }
  /// Memory for a plan, for as long as these pages live.
  uint64_t planBuffers(size_t bytes);

private:
  /// Pages of the given bytes; the address of the first.
  uint64_t allocate(int64_t count, int64_t pageBytes, uint32_t word);

  Device &device;
  std::vector<Memory> memory;
  CursorTable table;
};

} // namespace replayjit::internal::engine

#endif
