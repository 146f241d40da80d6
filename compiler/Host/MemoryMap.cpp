//===- MemoryMap.cpp - Sorted by address, with the last hit kept ----------===//

#include "compiler/Host/MemoryMap.h"

#include <algorithm>

namespace replayjit::internal::host {

size_t MemoryMap::after(uint64_t address) const {
  return std::upper_bound(allocations.begin(), allocations.end(), address,
                          [](uint64_t value, const Allocation &allocation) {
                            return value < allocation.base;
                          }) -
         allocations.begin();
}

bool MemoryMap::add(std::string name, const void *base, uint64_t bytes) {
  uint64_t begin = reinterpret_cast<uint64_t>(base);
  size_t at = after(begin);
  if (at > 0) {
    const Allocation &below = allocations[at - 1];
    if (below.base == begin || begin - below.base < below.bytes)
      return false;
  }
  if (at < allocations.size() && allocations[at].base - begin < bytes)
    return false;
  allocations.insert(allocations.begin() + at,
                     Allocation{std::move(name), begin, bytes});
  return true;
}

bool MemoryMap::remove(const void *base) {
  uint64_t begin = reinterpret_cast<uint64_t>(base);
  size_t at = after(begin);
  if (at == 0 || allocations[at - 1].base != begin)
    return false;
  allocations.erase(allocations.begin() + (at - 1));
  lastHit = 0;
  return true;
}

const MemoryMap::Allocation *MemoryMap::find(uint64_t address,
                                             uint64_t count) const {
  if (lastHit < allocations.size() &&
      allocations[lastHit].holds(address, count))
    return &allocations[lastHit];
  size_t at = after(address);
  if (at == 0 || !allocations[at - 1].holds(address, count))
    return nullptr;
  lastHit = at - 1;
  return &allocations[lastHit];
}

const MemoryMap::Allocation *MemoryMap::nearest(uint64_t address) const {
  size_t at = after(address);
  if (at == 0)
    return allocations.empty() ? nullptr : &allocations[0];
  const Allocation &below = allocations[at - 1];
  if (at == allocations.size() || address - below.base < below.bytes)
    return &below;
  uint64_t toBelow = address - (below.base + below.bytes);
  return allocations[at].base - address < toBelow ? &allocations[at] : &below;
}

} // namespace replayjit::internal::host
