//===- KernelTable.h - Prepared kernels, found without a lock ---*- C++ -*-===//
//
// Private to Jit.cpp. Kernels are only ever added, so a reader needs no lock:
// each bucket is a list whose head is one atomic pointer.
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_RUNTIME_KERNELTABLE_H
#define REPLAYJIT_RUNTIME_KERNELTABLE_H

#include "runtime/KernelHandle.h"

#include <array>
#include <atomic>
#include <deque>

namespace replayjit::internal {

/// What a kernel of one device is found by.
struct KernelTableKey {
  DecodeSpec spec;
  DecodeTuning tuning;
  bool operator==(const KernelTableKey &) const = default;

  /// Of the facts in which the kernels of one process usually differ; equality
  /// compares all.
  uint64_t hash() const {
    const int facts[] = {
        int(spec.family),   spec.isKda,          spec.numKeyHeads,
        spec.numValueHeads, spec.headDimK,       spec.headDimV,
        spec.ringDepth,     int(spec.stateType), int(spec.ringType),
        tuning.blockV,      tuning.numWarps,     tuning.maxRegisters};
    uint64_t value = 0;
    for (int fact : facts)
      value = (value ^ uint32_t(fact)) * 0x9e3779b97f4a7c15u;
    return value ^ value >> 32;
  }
};

class KernelTable {
public:
  /// The kernel of `key`, or null. From any thread, at any time.
  const KernelHandle *find(const KernelTableKey &key) const {
    const Node *node = headOf(key.hash()).load(std::memory_order_acquire);
    while (node && !(node->key == key))
      node = node->next;
    return node ? &node->kernel : nullptr;
  }

  /// Adds a kernel that is not there; one thread at a time.
  void add(const KernelTableKey &key, KernelHandle kernel) {
    std::atomic<const Node *> &head =
        const_cast<std::atomic<const Node *> &>(headOf(key.hash()));
    nodes.push_back(
        {key, std::move(kernel), head.load(std::memory_order_relaxed)});
    head.store(&nodes.back(), std::memory_order_release);
  }

private:
  struct Node {
    KernelTableKey key;
    KernelHandle kernel;
    const Node *next;
  };
  const std::atomic<const Node *> &headOf(uint64_t hash) const {
    return heads[hash % heads.size()];
  }

  std::array<std::atomic<const Node *>, 512> heads{};
  std::deque<Node> nodes; ///< Its elements never move.
};

} // namespace replayjit::internal

#endif
