//===- Hazards.cpp - Checks of accesses by who came before ----------------===//

#include "compiler/Host/Hazards.h"

#include <algorithm>
#include <bit>

namespace replayjit::internal::host {

static uint16_t packSite(int32_t site) {
  return uint16_t(std::min(site + 1, 0xffff));
}
static int32_t unpackSite(uint16_t site) { return int32_t(site) - 1; }

void Shadow::beginBlock(uint32_t bytes, bool forget) {
  found = {};
  for (uint32_t granule : splitGranules)
    granules[granule] = {};
  splitGranules.clear();
  if (forget)
    granules.clear();
  grow(bytes);
  parts.clear();
  parts.emplace_back();
  reads.clear();
  reads.emplace_back();
  freeReads = 0;
}

void Shadow::grow(uint32_t bytes) {
  granules.resize(std::max<size_t>(granules.size(), (bytes + 15) / 16));
}

uint32_t Shadow::split(Cell cell) {
  uint32_t first = parts.size();
  for (int quarter = 0; quarter < 4; ++quarter) {
    Cell part = cell;
    // Chains have one owner: each part gets its own copy.
    part.moreReads = 0;
    uint32_t node = cell.readStamp < clocks.base() ? 0 : cell.moreReads;
    while (node) {
      Reads copy = reads[node];
      node = copy.next;
      copy.next = part.moreReads;
      part.moreReads = newNode(copy);
    }
    parts.push_back(part);
  }
  return first;
}

// Calls visitCell on the cells of the range, as large as they can be; stops at
// the first that is wrong and notes its offset.
template <typename Visit>
bool Shadow::visit(uint32_t offset, uint32_t bytes, Visit visitCell) {
  uint32_t end = offset + bytes;
  auto check = [&](Cell &cell, uint32_t next) {
    if (!visitCell(cell)) [[unlikely]] {
      found.offset = offset;
      return false;
    }
    offset = next;
    return true;
  };
  while (offset < end) {
    uint32_t index = offset / 16;
    uint32_t stop = std::min(end, index * 16 + 16);
    Cell &granule = granules[index];
    if (!granule.split) {
      if (stop - offset == 16) {
        if (!check(granule, stop))
          return false;
        continue;
      }
      granule.split = split(granule);
      splitGranules.push_back(index);
    }
    while (offset < stop) {
      uint32_t word = granule.split + offset % 16 / 4;
      uint32_t next = std::min(stop, (offset | 3) + 1);
      if (!parts[word].split) {
        if (next - offset == 4) {
          if (!check(parts[word], next))
            return false;
          continue;
        }
        uint32_t first = split(parts[word]); // which moves them
        parts[word].split = first;
      }
      while (offset < next)
        if (!check(parts[parts[word].split + offset % 4], offset + 1))
          return false;
    }
  }
  return true;
}

// Whether the last write of the cell is ordered before `lane`.
bool Shadow::checkWriter(const Cell &cell, uint32_t lane, bool isRead) {
  uint32_t stamp = cell.writeStamp;
  bool async = stamp >= Clocks::firstAsyncStamp;
  if (stamp < (async ? clocks.asyncBase() : clocks.base())) {
    if (!isRead || isKept)
      return true;
    found.kind = Hazard::Kind::Unwritten;
    return false;
  }
  if (async && cell.writer == inFlight) {
    found.kind = Hazard::Kind::InFlight;
  } else {
    uint32_t slot = cell.writer - firstSlot;
    if (async ? clocks.orderedAsync(lane, slot, stamp)
              : cell.writer == lane || clocks.ordered(lane, cell.writer, stamp))
      return true;
    found.kind = Hazard::Kind::Race;
  }
  found.otherWrote = true;
  found.otherIsCopy = async;
  found.otherLane = cell.writer;
  found.otherSite = unpackSite(cell.writeSite);
  return false;
}

uint32_t Shadow::unordered(uint32_t lane, const Reads &entry) const {
  if (entry.stamp < clocks.lane(lane).blockKnown)
    return none;
  for (uint32_t mask = entry.mask; mask; mask &= mask - 1) {
    uint32_t reader = entry.warp * 32 + std::countr_zero(mask);
    if (reader != lane && !clocks.ordered(lane, reader, entry.stamp))
      return reader;
  }
  return none;
}

// Whether all reads since the last write are ordered before `lane`.
bool Shadow::checkReaders(const Cell &cell, uint32_t lane) {
  for (Reads entry = firstReads(cell);; entry = reads[entry.next]) {
    uint32_t reader = unordered(lane, entry);
    if (reader != none) {
      found = {Hazard::Kind::Race,    0, false, false, reader,
               unpackSite(entry.site)};
      return false;
    }
    if (!entry.next)
      return true;
  }
}

uint32_t Shadow::newNode(const Reads &entry) {
  uint32_t node = freeReads;
  if (!node) {
    reads.push_back(entry);
    return reads.size() - 1;
  }
  freeReads = reads[node].next;
  reads[node] = entry;
  return node;
}

void Shadow::dropReaders(Cell &cell) {
  for (uint32_t node = cell.moreReads; node;) {
    uint32_t next = reads[node].next;
    reads[node].next = freeReads;
    freeReads = node;
    node = next;
  }
  cell.moreReads = 0;
}

void Shadow::setReader(Cell &cell, uint32_t lane, int32_t site) const {
  cell.readStamp = clocks.lane(lane).now;
  cell.readWarp = lane / 32;
  cell.readMask = 1u << lane % 32;
  cell.readSite = packSite(site);
}

// Notes that `lane` reads, after others in this block. Reads ordered before it
// are dropped: a write that races with one of them races with this one as well,
// or comes after both.
void Shadow::addReader(Cell &cell, uint32_t lane, int32_t site) {
  uint32_t stamp = clocks.lane(lane).now;
  uint16_t warp = lane / 32;
  uint32_t bit = 1u << lane % 32;
  if (cell.moreReads || cell.readStamp >= clocks.lane(lane).blockKnown) {
    for (uint32_t *link = &cell.moreReads; *link;) {
      uint32_t node = *link;
      Reads &entry = reads[node];
      if (entry.warp == warp && entry.stamp == stamp) {
        entry.mask |= bit;
        return;
      }
      if (unordered(lane, entry) != none) {
        link = &entry.next;
        continue;
      }
      *link = entry.next;
      entry.next = freeReads;
      freeReads = node;
    }
    // The new read takes the cell's own place.
    if (Reads first = firstReads(cell); unordered(lane, first) != none)
      cell.moreReads = newNode(first);
  }
  setReader(cell, lane, site);
}

bool Shadow::read(uint32_t lane, uint32_t offset, uint32_t bytes,
                  int32_t site) {
  const Clocks::Lane &clock = clocks.lane(lane);
  // What is older than the base counts as later than all that is known, unless
  // it may be read as it is.
  uint32_t base = isKept ? 0 : clocks.base();
  uint32_t known = clock.blockKnown - base;
  uint32_t now = clock.now;
  uint32_t warp = lane / 32;
  uint32_t bit = 1u << lane % 32;
  return visit(offset, bytes, [&](Cell &cell) {
    // Ordered by the last barrier: the common case.
    if (cell.writeStamp - base >= known && !checkWriter(cell, lane, true))
      return false;
    if (cell.readStamp == now && cell.readWarp == warp) {
      cell.readMask |= bit;
    } else if (cell.readStamp < clocks.base()) { // The first of this block.
      cell.moreReads = 0;
      setReader(cell, lane, site);
    } else {
      addReader(cell, lane, site);
    }
    return true;
  });
}

bool Shadow::access(uint32_t lane, uint32_t offset, uint32_t bytes,
                    int32_t site, uint16_t newWriter, uint32_t newStamp) {
  uint32_t base = clocks.base();
  uint32_t known = clocks.lane(lane).blockKnown;
  return visit(offset, bytes, [&](Cell &cell) {
    if (cell.writeStamp >= known && !checkWriter(cell, lane, false))
      return false;
    if (cell.readStamp >= base) {
      if ((cell.readStamp >= known || cell.moreReads) &&
          !checkReaders(cell, lane))
        return false;
      dropReaders(cell);
    }
    cell.readStamp = 0;
    cell.writer = newWriter;
    cell.writeStamp = newStamp;
    cell.writeSite = packSite(site);
    return true;
  });
}

bool Shadow::write(uint32_t lane, uint32_t offset, uint32_t bytes,
                   int32_t site) {
  return access(lane, offset, bytes, site, lane, clocks.lane(lane).now);
}

bool Shadow::beginCopy(uint32_t lane, uint32_t offset, uint32_t bytes,
                       int32_t site) {
  return access(lane, offset, bytes, site, inFlight, clocks.asyncBase());
}

void Shadow::endCopy(uint32_t lane, uint32_t offset, uint32_t bytes) {
  visit(offset, bytes, [&](Cell &cell) {
    cell.writer = lane;
    cell.writeStamp = clocks.lane(lane).now;
    return true;
  });
}

void Shadow::endBulkCopy(uint32_t slot, uint32_t stamp, uint32_t offset,
                         uint32_t bytes) {
  visit(offset, bytes, [&](Cell &cell) {
    cell.writer = firstSlot + slot;
    cell.writeStamp = stamp;
    return true;
  });
}

//===----------------------------------------------------------------------===//
// Global memory
//===----------------------------------------------------------------------===//

void GlobalShadow::beginBlock(bool forget) {
  shadow.beginBlock(0, forget);
  pages.clear();
  recent.fill({});
}

uint32_t GlobalShadow::offsetOf(uint64_t page) {
  Page &known = recent[page % recent.size()];
  if (known.number == page)
    return known.offset;
  auto [found, isNew] = pages.try_emplace(page, pages.size() * pageBytes);
  if (isNew)
    shadow.grow(pages.size() * pageBytes);
  known = {page, found->second};
  return found->second;
}

// Calls access(offset, bytes) for the part of the range in each page.
template <typename Access>
bool GlobalShadow::visit(uint64_t address, uint32_t bytes, Access access) {
  while (bytes > 0) {
    uint32_t inPage = address % pageBytes;
    uint32_t part = std::min(bytes, pageBytes - inPage);
    uint32_t offset = offsetOf(address / pageBytes) + inPage;
    if (!access(offset, part)) [[unlikely]] {
      wrongAddress = address + (shadow.hazard().offset - offset);
      return false;
    }
    address += part;
    bytes -= part;
  }
  return true;
}

bool GlobalShadow::read(uint32_t lane, uint64_t address, uint32_t bytes,
                        int32_t site) {
  return visit(address, bytes, [&](uint32_t offset, uint32_t part) {
    return shadow.read(lane, offset, part, site);
  });
}

bool GlobalShadow::write(uint32_t lane, uint64_t address, uint32_t bytes,
                         int32_t site) {
  return visit(address, bytes, [&](uint32_t offset, uint32_t part) {
    return shadow.write(lane, offset, part, site);
  });
}

} // namespace replayjit::internal::host
