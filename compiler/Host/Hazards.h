//===- Hazards.h - Who touched which byte of memory -------------*- C++ -*-===//
//
// A shadow of memory: for each 16 bytes the last write and the reads since then
// that could still race with the next write. Where an access covers only part
// of them, they are split into words for the rest of the block, and these into
// bytes. Shared memory has one from end to end; of global memory a block's own
// is made of the pages that it touches.
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_COMPILER_HOST_HAZARDS_H
#define REPLAYJIT_COMPILER_HOST_HAZARDS_H

#include "compiler/Host/Clocks.h"

#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace replayjit::internal::host {

/// Why an access is wrong, and the other side of it.
struct Hazard {
  enum class Kind {
    None,
    Unwritten, ///< Shared memory that nothing wrote since the block began.
    InFlight,  ///< An asynchronous copy into it has not completed.
    Race,      ///< With the access that `other` describes.
  };
  Kind kind = Kind::None;
  uint32_t offset = 0;      ///< The first wrong byte.
  bool otherWrote = true;   ///< Else it read.
  bool otherIsCopy = false; ///< A bulk copy; `otherLane` is meaningless.
  uint32_t otherLane = 0;
  int32_t otherSite = -1;
};

/// Checks and records accesses. Ranges lie within the shadow's `bytes`.
class Shadow {
public:
  /// `isKept`: the memory held something before, so that a block may read what
  /// it did not write.
  Shadow(const Clocks &clocks, bool isKept) : clocks(clocks), isKept(isKept) {}

  /// Every access of earlier blocks is over. `forget`: see Clocks::beginBlock.
  void beginBlock(uint32_t bytes, bool forget);
  /// Makes it larger within a block.
  void grow(uint32_t bytes);

  /// Each returns true if the access is right; else `hazard` says why not and
  /// nothing more may be asked of this block.
  bool read(uint32_t lane, uint32_t offset, uint32_t bytes, int32_t site);
  bool write(uint32_t lane, uint32_t offset, uint32_t bytes, int32_t site);
  /// An asynchronous copy that `lane` issues begins to write: until its end
  /// nobody may touch the bytes.
  bool beginCopy(uint32_t lane, uint32_t offset, uint32_t bytes, int32_t site);
  /// It ended and counts as a write of `lane`, now.
  void endCopy(uint32_t lane, uint32_t offset, uint32_t bytes);
  /// It ended and counts as completed on mbarrier `slot` at `stamp`.
  void endBulkCopy(uint32_t slot, uint32_t stamp, uint32_t offset,
                   uint32_t bytes);

  const Hazard &hazard() const { return found; }

private:
  /// 16 bytes, or a word or byte of them.
  struct Cell {
    uint32_t writeStamp = 0;
    uint32_t readStamp = 0; ///< Of the lanes of readMask, all in readWarp.
    uint32_t readMask = 0;
    uint32_t moreReads = 0; ///< Chain of reads with other stamps or warps.
    uint32_t split = 0;     ///< Index of the first of its quarters; 0 is whole.
    uint16_t writer = 0;    ///< A lane, or firstSlot + slot, or inFlight.
    uint16_t readWarp = 0;
    uint16_t writeSite = 0; ///< Sites are kept plus one, 0 for none.
    uint16_t readSite = 0;
  };
  struct Reads {
    uint32_t stamp, mask, next;
    uint16_t warp, site;
  };
  static constexpr uint16_t firstSlot = 0x4000;
  static constexpr uint16_t inFlight = 0xffff;
  static constexpr uint32_t none = UINT32_MAX;

  template <typename Visit>
  bool visit(uint32_t offset, uint32_t bytes, Visit visitCell);
  bool access(uint32_t lane, uint32_t offset, uint32_t bytes, int32_t site,
              uint16_t newWriter, uint32_t newStamp);
  bool checkWriter(const Cell &cell, uint32_t lane, bool isRead);
  bool checkReaders(const Cell &cell, uint32_t lane);
  void setReader(Cell &cell, uint32_t lane, int32_t site) const;
  void addReader(Cell &cell, uint32_t lane, int32_t site);
  void dropReaders(Cell &cell);
  uint32_t newNode(const Reads &entry);
  /// One of the lanes that is not ordered before `lane`, or `none`.
  uint32_t unordered(uint32_t lane, const Reads &entry) const;
  static Reads firstReads(const Cell &cell) {
    return {cell.readStamp, cell.readMask, cell.moreReads, cell.readWarp,
            cell.readSite};
  }
  /// Where the quarters of `cell` are from now on.
  uint32_t split(Cell cell);

  const Clocks &clocks;
  const bool isKept;
  Hazard found;
  std::vector<Cell> granules; ///< One per 16 bytes.
  std::vector<Cell> parts;    ///< Four by four; entry 0 is unused.
  std::vector<uint32_t> splitGranules;
  std::vector<Reads> reads; ///< Nodes of chains; entry 0 is unused.
  uint32_t freeReads = 0;
};

/// Checks and records the accesses of one block to global memory.
class GlobalShadow {
public:
  explicit GlobalShadow(const Clocks &clocks)
      : shadow(clocks, /*isKept=*/true) {}

  void beginBlock(bool forget);

  /// As those of Shadow.
  bool read(uint32_t lane, uint64_t address, uint32_t bytes, int32_t site);
  bool write(uint32_t lane, uint64_t address, uint32_t bytes, int32_t site);

  /// Its offset means nothing here.
  const Hazard &hazard() const { return shadow.hazard(); }
  /// The first wrong byte.
  uint64_t hazardAddress() const { return wrongAddress; }

private:
  static constexpr uint32_t pageBytes = 4096;
  struct Page {
    uint64_t number = UINT64_MAX;
    uint32_t offset = 0; ///< In the shadow.
  };

  template <typename Access>
  bool visit(uint64_t address, uint32_t bytes, Access access);
  uint32_t offsetOf(uint64_t page);

  Shadow shadow;
  std::unordered_map<uint64_t, uint32_t> pages; ///< Number to offset.
  std::array<Page, 64> recent; ///< Some of them, by the number's last bits.
  uint64_t wrongAddress = 0;
};

} // namespace replayjit::internal::host

#endif
