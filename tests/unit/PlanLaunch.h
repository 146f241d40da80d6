//===- PlanLaunch.h - A plan in host memory ---------------------*- C++ -*-===//
//
// The arrays of one small plan with one group, for tests of begin and commit.
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_TESTS_UNIT_PLANLAUNCH_H
#define REPLAYJIT_TESTS_UNIT_PLANLAUNCH_H

#include "kernels/Plan/PlanReference.h"

#include <algorithm>
#include <random>
#include <vector>

namespace replayjit::internal::test {

using ints = std::vector<int32_t>;

template <typename T> uint64_t addressOf(const std::vector<T> &array) {
  return reinterpret_cast<uint64_t>(array.data());
}

/// L = 8; the rest of a plan's spec is the default.
inline DecodeSpec planSpec() {
  DecodeSpec spec;
  spec.ringDepth = 8;
  return spec;
}

/// `keys` and `state` are inputs; ring, dst and track once their `in` is set.
struct PlanLaunch {
  PlanLaunch(const DecodeSpec &spec, int batch, int live)
      : spec(spec), writePos(batch, 99), ringBase(batch, 99),
        forceFlush(batch, 99), rowKeys(batch, 99), stateOut(batch, 99),
        ringOut(batch, 99), dstOut(batch, 99), trackOut(batch, 99),
        pending(batch, 99), bases(3) {
    args.batch = batch;
    args.live = live;
    args.numGroups = 1;
    args.groups[0].slots = 10;
    args.groups[0].ringSlots = 10;
    args.errorWord = reinterpret_cast<uint64_t>(&error);
  }
  PlanLaunch(const PlanLaunch &) = delete;

  /// Arrays may have been assigned to: their addresses are taken anew.
  void bind() {
    if (spec.indexType == DataType::I32) {
      args.keys = addressOf(keys);
      args.groups[0].state.in = addressOf(state);
      args.groups[0].state.out = addressOf(stateOut);
      args.groups[0].ring.out = addressOf(ringOut);
      args.groups[0].dst.out = addressOf(dstOut);
      args.groups[0].track.out = addressOf(trackOut);
    }
    args.cursors = addressOf(cursors);
    args.bases = addressOf(bases);
    args.numKeys = int32_t(cursors.size());
    args.writePos = addressOf(writePos);
    args.ringBase = addressOf(ringBase);
    args.forceFlush = addressOf(forceFlush);
    args.rowKeys = addressOf(rowKeys);
    args.pending = addressOf(pending);
    bases.resize(cursors.size());
    args.bases = addressOf(bases);
  }
  void begin(int64_t step) {
    bind();
    args.step = step;
    planBeginHost(spec, args);
  }
  void commit(int64_t step) {
    bind();
    args.step = step;
    planCommitHost(spec, args);
  }

  DecodeSpec spec;
  PlanArgs args;
  ints keys, state, ring, dst, track, dropNewest;
  ints writePos, ringBase, forceFlush, rowKeys;
  ints stateOut, ringOut, dstOut, trackOut;
  std::vector<int64_t> pending;
  ints cursors, bases;
  ErrorWord error;
};

} // namespace replayjit::internal::test

#endif
