//===- EmulatorTestSupport.h - Thread programs written in C++ ---*- C++ -*-===//
//
// Shorter names for the emulator's calls, and a launch with defaults. A fault
// abandons the frames of a thread program: they must own nothing.
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_TESTS_UNIT_EMULATORTESTSUPPORT_H
#define REPLAYJIT_TESTS_UNIT_EMULATORTESTSUPPORT_H

#include "compiler/Host/Emulator.h"
#include "compiler/Host/EmulatorCalls.h"

#include <string>
#include <vector>

namespace replayjit::internal::host::test {

/// Site numbers and their texts.
enum Site : int32_t {
  None = -1,
  LoadX = 0,
  StoreX,
  LoadY,
  StoreY,
  Sync,
  Other
};
inline const std::vector<std::string> &siteTexts() {
  static const std::vector<std::string> texts = {
      "load of x", "store of x", "load of y", "store of y", "sync", "other"};
  return texts;
}

inline int32_t tid() { return replayjit_emu_sreg(TidX); }
inline int32_t laneId() { return replayjit_emu_sreg(LaneId); }
inline int32_t warpId() { return replayjit_emu_sreg(WarpId); }
inline int32_t block() { return replayjit_emu_sreg(CtaIdX); }
inline void barrier(int32_t site = Sync) { replayjit_emu_barrier(0, -1, site); }

template <typename T> T *shared(uint32_t offset = 0) {
  return reinterpret_cast<T *>(replayjit_emu_shared + offset);
}
template <typename T>
T load(const T *from, Space space = Shared, int32_t site = LoadX) {
  T value;
  replayjit_emu_load(&value, from, sizeof(T), space, site);
  return value;
}
template <typename T>
void store(T *to, T value, Space space = Shared, int32_t site = StoreX) {
  replayjit_emu_store(to, &value, sizeof(T), space, site);
}

/// A launch; `memory` is what its threads may touch.
struct TestGrid {
  uint32_t threads = 32;
  uint32_t sharedBytes = 1024;
  Grid blocks = 1;
  LaneOrder order;
  MemoryMap memory;

  Status run(HostProgram::Entry entry, const void *params = nullptr) const {
    GridLaunch launch;
    launch.entry = entry;
    launch.sites = &siteTexts();
    launch.blocks = blocks;
    launch.threads = threads;
    launch.sharedBytes = sharedBytes;
    launch.params = params;
    launch.order = order;
    return runGrid(launch, memory);
  }
};

inline std::vector<LaneOrder> everyOrder() {
  return {LaneOrder::forward(), LaneOrder::reverse(), LaneOrder::shuffled(1),
          LaneOrder::shuffled(77)};
}

} // namespace replayjit::internal::host::test

#endif
