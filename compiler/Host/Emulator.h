//===- Emulator.h - Runs a grid of a thread program on the CPU --*- C++ -*-===//
//
// The lanes of a block are fibers. They run one after another and meet at
// shuffles, votes, MMA, barriers and mbarrier waits, where the results are
// computed. What a GPU leaves undefined is reported instead of executed.
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_COMPILER_HOST_EMULATOR_H
#define REPLAYJIT_COMPILER_HOST_EMULATOR_H

#include "base/CompiledKernel.h"
#include "base/Status.h"
#include "compiler/Host/HostProgram.h"
#include "compiler/Host/LaneOrder.h"
#include "compiler/Host/MemoryMap.h"

#include <cstdint>
#include <string>
#include <vector>

namespace replayjit::internal::host {

/// One launch of a thread program.
struct GridLaunch {
  HostProgram::Entry entry = nullptr;
  /// HostProgram::sites, or null; outlives the run.
  const std::vector<std::string> *sites = nullptr;
  Grid blocks;              ///< At most 2^31 - 1; faults number them, x first.
  uint32_t threads = 0;     ///< Lanes per block, 1 to 1024.
  uint32_t sharedBytes = 0; ///< Dynamic shared memory, at most 256 KiB.
  const void *params = nullptr; ///< Handed to `entry`.
  LaneOrder order;
  /// Also report an access of 2, 4, 8 or 16 bytes that is not aligned to its
  /// size, which a GPU refuses.
  bool checkAlignment = true;
};

/// Runs the grid, block after block, and stops at the first fault. Faults come
/// back as StatusCode::ExecutionFault with one sentence that names the kind,
/// the block, the lane, the site and the bytes:
///  - a global access outside every allocation of `memory`, or misaligned;
///  - a shared access beyond `sharedBytes`, or misaligned;
///  - a read of shared memory that nothing wrote since the block began;
///  - a race: two lanes of a block touch the same bytes of shared or global
///    memory, one of them writes, and nothing orders the two accesses;
///  - shared memory used while an asynchronous copy into it is in flight, and a
///    bulk copy that outlives its block;
///  - a barrier that not all lanes reach, a wait that never ends;
///  - a shuffle, vote, MMA or warp barrier that part of its lanes never reach;
///  - misuse of an mbarrier;
///  - in a program that waits for the kernel before it (griddepcontrol): before
///    the wait a read of what that one may still write, or any write of global
///    memory; and a lane that ends without a wait.
/// Order comes from block barriers, named barriers, warp barriers, shuffles,
/// votes and MMA (the lanes of the mask; more than the PTX memory model
/// promises for all but the warp barrier) and from mbarriers (a waiter is
/// ordered after the arrivals and bulk copies of the phases it saw complete).
///
/// Blocks are not checked for races with each other, since what requests of one
/// slot write is undefined but no fault. Global atomics race with nothing and
/// order nothing; a read by an asynchronous copy counts when it is issued.
/// Proxy fences are not checked. After a fault the memory holds what ran before
/// it, and the next run starts afresh.
///
/// Any thread may call this; runs of one process take turns, since shared
/// memory is one buffer. `entry` is abandoned where it stands at a fault, so
/// its frames must own nothing. It must not call runGrid.
Status runGrid(const GridLaunch &launch, const MemoryMap &memory);

} // namespace replayjit::internal::host

#endif
