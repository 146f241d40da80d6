//===- Block.h - The block that is being emulated ---------------*- C++ -*-===//
//
// Private to the emulator: what its calls act on. Two sides use it. The
// scheduler (Block.cpp) resumes lanes; a lane, on its own stack, comes in
// through EmulatorCalls.cpp, and at a collective either completes it or
// suspends until another lane does.
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_COMPILER_HOST_BLOCK_H
#define REPLAYJIT_COMPILER_HOST_BLOCK_H

#include "compiler/Host/Clocks.h"
#include "compiler/Host/Emulator.h"
#include "compiler/Host/EmulatorCalls.h"
#include "compiler/Host/Fiber.h"
#include "compiler/Host/Hazards.h"
#include "compiler/Host/Mma.h"

#include <array>
#include <random>
#include <string>
#include <vector>

namespace replayjit::internal::host {

constexpr uint32_t maxSharedBytes = 256 * 1024;

class Block {
public:
  /// Prepares for the blocks of one grid; false if stacks cannot be had. Both
  /// arguments outlive the runs.
  bool beginGrid(const GridLaunch &launch, const MemoryMap &memory);
  /// Runs block `index`; false after a fault, which `failure` describes.
  bool run(uint32_t index);
  const std::string &failure() const { return failureText; }

  /// The block whose lane is running; null outside of `run`.
  static Block *running;

  // What lanes call: the bodies of the functions of EmulatorCalls.h.
  int32_t sreg(int32_t which) const;
  void checkGlobal(const void *address, uint32_t bytes, int32_t site,
                   const char *what);
  void readGlobal(const void *address, uint32_t bytes, int32_t space,
                  int32_t site, const char *what = "load");
  void writeGlobal(const void *address, uint32_t bytes, int32_t site);
  /// The half of an atomic operation that writes.
  void writeAtomic(const void *address, uint32_t bytes, int32_t site);
  uint32_t checkShared(const void *address, uint32_t bytes, int32_t site,
                       const char *what);
  void readShared(const void *address, uint32_t bytes, int32_t site);
  void writeShared(const void *address, uint32_t bytes, int32_t site);
  int32_t shuffle(uint32_t mask, int32_t value, int32_t offset, int32_t kind,
                  int32_t site);
  int32_t ballot(uint32_t mask, bool predicate, int32_t site);
  void mma(int32_t kind, const MmaFragments &fragments, int32_t site);
  void warpBarrier(uint32_t mask, int32_t site);
  void barrier(int32_t id, int32_t threads, int32_t site);
  void asyncCopy(void *shared, const void *global, int32_t bytes, int32_t site);
  void asyncCommit();
  void asyncWait(int32_t pending);
  /// The kernel ends the launch.
  [[noreturn]] void trap(int32_t site) {
    fail("trap", site, "the kernel ended the launch");
  }
  void mbarrierInit(void *mbarrier, int32_t count, int32_t site);
  void mbarrierArrive(void *mbarrier, int32_t bytes, int32_t site);
  void mbarrierWait(void *mbarrier, int32_t parity, int32_t site);
  void bulkCopy(void *shared, const void *global, int32_t bytes, void *mbarrier,
                int32_t space, int32_t site);
  void startEarly(int32_t site);
  void awaitPredecessor() { lanes[current].isEarly = false; }

private:
  enum class Wait {
    None,
    Shuffle,
    Ballot,
    Mma,
    WarpBarrier,
    Barrier,
    Mbarrier
  };

  struct Copy {
    uint32_t offset = 0; ///< In shared memory.
    uint32_t bytes = 0;
    uint32_t lane = 0; ///< That issued it.
    const void *source = nullptr;
    int32_t site = -1;
    uint32_t readUntil = 0; ///< Of a bulk copy: stamps of its reads are below.
  };

  struct Lane {
    bool exited = false;
    bool isEarly = false; ///< It has yet to wait for the kernel before.
    Wait wait = Wait::None;
    int32_t site = -1;
    uint32_t mask = 0;  ///< Of the warp collective it waits at.
    int32_t detail = 0; ///< Shuffle or MMA kind, barrier, or parity.
    uint32_t slot = 0;  ///< The mbarrier it waits for.
    int32_t value = 0;  ///< Operand, then result, of a shuffle or vote.
    int32_t offset = 0;
    MmaFragments fragments;
    std::vector<Copy> copies; ///< cp.async not yet waited for, oldest first.
    std::vector<uint32_t> groups; ///< Committed: ends in `copies`.
    uint32_t groupsDone = 0, copiesDone = 0;
  };

  /// Lanes of a warp that wait at one collective.
  struct Group {
    Wait wait;
    int32_t detail;
    uint32_t mask;
    int32_t site;
    uint32_t arrived;
  };

  struct Warp {
    uint32_t lanes = 0; ///< Those that exist.
    uint32_t ready = 0; ///< Those that can run.
    std::vector<Group> groups;
  };

  struct Barrier {
    uint32_t count = 0;
    std::vector<uint16_t> waiting;
  };

  struct Mbarrier {
    uint32_t offset = 0;
    int32_t count = 0;
    int32_t pendingArrivals = 0;
    int64_t pendingBytes = 0;
    uint32_t phase = 0; ///< How many have completed.
    uint32_t waiters = 0;
    bool copied = false;      ///< A bulk copy has used it.
    std::vector<Copy> copies; ///< Bulk copies in flight, oldest first.
    Clocks::Release arriving, completed;
  };

  // Block.cpp: the scheduler.
  void begin(uint32_t index);
  bool runWarp(uint32_t warp);
  uint32_t nextLane(); ///< Of the pass; it is about to run.
  /// Leaves the running lane until it is woken; the next one goes on.
  void suspend();
  static void enterLane(void *block);
  uint32_t shuffledIndex(uint32_t bound) { return random() % bound; }

  // Collectives.cpp
  /// The running lane comes to a warp collective; returns once it has fired.
  void meet(Wait wait, uint32_t mask, int32_t detail, int32_t site);
  void fire(uint32_t warp, Group group);
  void fireShuffle(uint32_t warp, const Group &group);
  void fireMma(uint32_t warp, const Group &group);
  void fireBarrier(int32_t id, Barrier &barrier);
  void wake(uint32_t lane) {
    lanes[lane].wait = Wait::None;
    warps[lane / 32].ready |= 1u << lane % 32;
  }

  // AsyncCopies.cpp
  Mbarrier &mbarrierAt(const void *address, int32_t site, const char *what);
  void tryCompletePhase(uint32_t slot);
  /// Performs bulk copies that somebody waits for; false if there are none.
  bool completeBulkCopies();
  bool checkBulkCopiesDone();

  // Reports.cpp
  void report(const char *kind, uint32_t lane, int32_t site,
              std::string detail);
  void reportHazard(int32_t site, const char *what);
  void reportGlobalRace(int32_t site, const char *what);
  void reportGlobal(const void *address, uint32_t bytes, int32_t site,
                    const char *what);
  [[noreturn]] void failEarly(const void *address, int32_t site,
                              const char *what, const char *does);
  void reportStall();
  bool reportBlocked(uint32_t lane);
  bool missingLane(uint32_t lane, uint32_t &missing) const;
  std::string siteText(int32_t site) const;
  std::string describeLane(uint32_t lane) const;
  const char *waitText(Wait wait) const;
  /// Reports for the running lane and leaves it for good. The caller's frame
  /// is abandoned: it may own nothing that needs a destructor.
  [[noreturn]] void fail(const char *kind, int32_t site, std::string detail);
  [[noreturn]] void abandon();

  const GridLaunch *launch = nullptr;
  const MemoryMap *memory = nullptr;
  /// Per site plus one: the allocation that its last access hit. A site
  /// keeps to one tensor, so this nearly always hits.
  std::vector<const MemoryMap::Allocation *> siteHits;
  uint32_t index = 0; ///< Of the block, x running fastest.
  uint32_t laneCount = 0;
  uint32_t current = 0; ///< The running lane.
  // A pass runs some lanes of a warp, each until it suspends.
  uint8_t pass[32];
  uint32_t passWarp = 0, passNext = 0, passCount = 0;
  uint32_t live = 0; ///< Lanes that have not exited.
  int32_t earlySite = -1; ///< Of the lanes' start, if that is early.
  bool failed = false;
  std::string failureText;
  std::vector<Lane> lanes;
  std::vector<Warp> warps;
  std::array<Barrier, 16> barriers;
  std::vector<Mbarrier> mbarriers;
  Clocks clocks;
  Shadow shadow{clocks, /*isKept=*/false}; ///< Of shared memory.
  GlobalShadow globalShadow{clocks};
  FiberSet fibers;
  std::minstd_rand random;
};

} // namespace replayjit::internal::host

#endif
