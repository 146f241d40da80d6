//===- MemoryMap.h - The live global allocations ----------------*- C++ -*-===//
#ifndef REPLAYJIT_COMPILER_HOST_MEMORYMAP_H
#define REPLAYJIT_COMPILER_HOST_MEMORYMAP_H

#include <cstdint>
#include <string>
#include <vector>

namespace replayjit::internal::host {

/// The memory that a thread program may touch as global memory. It describes
/// memory and does not own it. Not thread-safe.
class MemoryMap {
public:
  struct Allocation {
    std::string name; ///< As reports call it.
    uint64_t base = 0;
    uint64_t bytes = 0;

    bool holds(uint64_t address, uint64_t count) const {
      uint64_t offset = address - base;
      return offset < bytes && bytes - offset >= count;
    }
  };

  /// Adds memory; false if it overlaps what is there. An allocation of no
  /// bytes is allowed and holds nothing.
  bool add(std::string name, const void *base, uint64_t bytes);
  /// Removes the allocation that begins at `base`; false if there is none.
  bool remove(const void *base);

  /// The allocation that holds all of the `count` > 0 bytes at `address`, or
  /// null. The pointer is valid until the next `add` or `remove`.
  const Allocation *find(uint64_t address, uint64_t count) const;
  /// The allocation whose bytes are closest to `address`; null if none is live.
  const Allocation *nearest(uint64_t address) const;

private:
  /// The first allocation that begins after `address`.
  size_t after(uint64_t address) const;

  std::vector<Allocation> allocations; ///< In ascending order of base.
  mutable size_t lastHit = 0;          ///< Index of what `find` found last.
};

} // namespace replayjit::internal::host

#endif
