//===- EmulatorCalls.cpp - From compiled code to the block ----------------===//

#include "compiler/Host/EmulatorCalls.h"

#include "compiler/Host/Block.h"

#include <fmt/format.h>

#include <cstring>

namespace replayjit::internal::host {

extern "C" {
alignas(1024) unsigned char replayjit_emu_shared[maxSharedBytes];
}

// A copy of constant size is one or two instructions.
static void copySmall(void *dst, const void *src, uint32_t bytes) {
  switch (bytes) {
  case 1:
    std::memcpy(dst, src, 1);
    break;
  case 2:
    std::memcpy(dst, src, 2);
    break;
  case 4:
    std::memcpy(dst, src, 4);
    break;
  case 8:
    std::memcpy(dst, src, 8);
    break;
  case 16:
    std::memcpy(dst, src, 16);
    break;
  default:
    std::memcpy(dst, src, bytes);
  }
}

static bool isMisaligned(const void *address, uint32_t bytes) {
  bool isVector = bytes <= 16 && (bytes & (bytes - 1)) == 0;
  return isVector && reinterpret_cast<uint64_t>(address) & (bytes - 1);
}

int32_t Block::sreg(int32_t which) const {
  switch (which) {
  case TidX:
    return current;
  case LaneId:
    return current % 32;
  case CtaIdX:
    return index % launch->blocks.x;
  case CtaIdY:
    return index / launch->blocks.x % launch->blocks.y;
  case CtaIdZ:
    return index / launch->blocks.x / launch->blocks.y;
  case NCtaIdX:
    return launch->blocks.x;
  case WarpId:
    return current / 32;
  default:
    return 0;
  }
}

void Block::checkGlobal(const void *address, uint32_t bytes, int32_t site,
                        const char *what) {
  uint64_t begin = reinterpret_cast<uint64_t>(address);
  size_t known = size_t(site) + 1 < siteHits.size() ? size_t(site) + 1 : 0;
  const MemoryMap::Allocation *&hit = siteHits[known];
  if (!hit || !hit->holds(begin, bytes)) [[unlikely]] {
    const MemoryMap::Allocation *found = memory->find(begin, bytes);
    if (!found) {
      reportGlobal(address, bytes, site, what);
      abandon();
    }
    hit = found;
  }
  if (isMisaligned(address, bytes) && launch->checkAlignment) [[unlikely]]
    fail("misaligned global access", site,
         fmt::format("the {} of {} bytes at {:#x}, offset {} of '{}'", what,
                     bytes, begin, begin - hit->base, hit->name));
}

void Block::readGlobal(const void *address, uint32_t bytes, int32_t space,
                       int32_t site, const char *what) {
  checkGlobal(address, bytes, site, what);
  if (space == GlobalDependent && lanes[current].isEarly) [[unlikely]]
    failEarly(address, site, what, "reads");
  uint64_t begin = reinterpret_cast<uint64_t>(address);
  if (!globalShadow.read(current, begin, bytes, site)) [[unlikely]] {
    reportGlobalRace(site, what);
    abandon();
  }
}

void Block::writeGlobal(const void *address, uint32_t bytes, int32_t site) {
  checkGlobal(address, bytes, site, "store");
  if (lanes[current].isEarly) [[unlikely]]
    failEarly(address, site, "store", "writes");
  uint64_t begin = reinterpret_cast<uint64_t>(address);
  if (!globalShadow.write(current, begin, bytes, site)) [[unlikely]] {
    reportGlobalRace(site, "store");
    abandon();
  }
}

void Block::writeAtomic(const void *address, uint32_t bytes, int32_t site) {
  checkGlobal(address, bytes, site, "atomic");
  if (lanes[current].isEarly) [[unlikely]]
    failEarly(address, site, "atomic", "writes");
}

uint32_t Block::checkShared(const void *address, uint32_t bytes, int32_t site,
                            const char *what) {
  uint64_t offset = reinterpret_cast<uint64_t>(address) -
                    reinterpret_cast<uint64_t>(replayjit_emu_shared);
  uint32_t limit = launch->sharedBytes;
  if (offset >= limit || limit - offset < bytes) [[unlikely]]
    fail("out-of-bounds shared access", site,
         fmt::format("the {} of {} bytes at offset {} of shared memory, which "
                     "has {} bytes",
                     what, bytes, int64_t(offset), limit));
  if (isMisaligned(address, bytes) && launch->checkAlignment) [[unlikely]]
    fail("misaligned shared access", site,
         fmt::format("the {} of {} bytes at offset {}", what, bytes, offset));
  return offset;
}

void Block::readShared(const void *address, uint32_t bytes, int32_t site) {
  uint32_t offset = checkShared(address, bytes, site, "load");
  if (!shadow.read(current, offset, bytes, site)) [[unlikely]] {
    reportHazard(site, "load");
    abandon();
  }
}

void Block::writeShared(const void *address, uint32_t bytes, int32_t site) {
  uint32_t offset = checkShared(address, bytes, site, "store");
  if (!shadow.write(current, offset, bytes, site)) [[unlikely]] {
    reportHazard(site, "store");
    abandon();
  }
}

extern "C" {

int32_t replayjit_emu_sreg(int32_t sreg) { return Block::running->sreg(sreg); }

void replayjit_emu_load(void *dst, const void *src, int32_t bytes,
                        int32_t space, int32_t site) {
  if (space == Shared)
    Block::running->readShared(src, bytes, site);
  else if (space == GlobalAtomic)
    Block::running->checkGlobal(src, bytes, site, "atomic");
  else
    Block::running->readGlobal(src, bytes, space, site);
  copySmall(dst, src, bytes);
}

void replayjit_emu_store(void *dst, const void *src, int32_t bytes,
                         int32_t space, int32_t site) {
  if (space == Shared)
    Block::running->writeShared(dst, bytes, site);
  else if (space == GlobalAtomic)
    Block::running->writeAtomic(dst, bytes, site);
  else
    Block::running->writeGlobal(dst, bytes, site);
  copySmall(dst, src, bytes);
}

int32_t replayjit_emu_shuffle(int32_t mask, int32_t value, int32_t offset,
                              int32_t kind, int32_t site) {
  return Block::running->shuffle(mask, value, offset, kind, site);
}

int32_t replayjit_emu_ballot(int32_t mask, int32_t predicate, int32_t site) {
  return Block::running->ballot(mask, predicate != 0, site);
}

void replayjit_emu_mma(int32_t kind, const void *a, const void *b,
                       const void *c, void *d, int32_t site) {
  Block::running->mma(kind, {a, b, c, d}, site);
}

void replayjit_emu_barrier(int32_t id, int32_t threads, int32_t site) {
  Block::running->barrier(id, threads, site);
}

void replayjit_emu_warp_barrier(int32_t mask, int32_t site) {
  Block::running->warpBarrier(mask, site);
}

void replayjit_emu_async_copy(void *shared, const void *global, int32_t bytes,
                              int32_t site) {
  Block::running->asyncCopy(shared, global, bytes, site);
}

void replayjit_emu_async_commit(int32_t site) { Block::running->asyncCommit(); }

void replayjit_emu_async_wait(int32_t pending, int32_t site) {
  Block::running->asyncWait(pending);
}

void replayjit_emu_mbarrier_init(void *mbarrier, int32_t count, int32_t site) {
  Block::running->mbarrierInit(mbarrier, count, site);
}

void replayjit_emu_mbarrier_arrive(void *mbarrier, int32_t site) {
  Block::running->mbarrierArrive(mbarrier, 0, site);
}

void replayjit_emu_mbarrier_expect(void *mbarrier, int32_t bytes,
                                   int32_t site) {
  Block::running->mbarrierArrive(mbarrier, bytes, site);
}

void replayjit_emu_mbarrier_wait(void *mbarrier, int32_t parity, int32_t site) {
  Block::running->mbarrierWait(mbarrier, parity, site);
}

void replayjit_emu_bulk_copy(void *shared, const void *global, int32_t bytes,
                             void *mbarrier, int32_t space, int32_t site) {
  Block::running->bulkCopy(shared, global, bytes, mbarrier, space, site);
}

void replayjit_emu_start_early(int32_t site) {
  Block::running->startEarly(site);
}

void replayjit_emu_await_predecessor(int32_t site) {
  Block::running->awaitPredecessor();
}

void replayjit_emu_trap(int32_t site) { Block::running->trap(site); }
}

} // namespace replayjit::internal::host
