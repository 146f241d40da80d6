//===- StatePool.h - The states of all layers of a model --------*- C++ -*-===//
//
// Says where states and rings are and where each request's ring stands; holds
// no state of its own. The engine's memory is adopted, cursors included, and
// the engine decides which slot and which cursor a request has: a cursor is
// found by a *key*, which may be a request, a ring slot or a block. One logical
// cursor serves all layers of a row; groups of layers have index arrays of
// their own. What is done to slots from step to step is in StepPlan.h.
//
// One thread at a time uses a pool and its plans, but for pollErrors and
// clearErrors. Nothing here creates a context: the Jit's device says where
// memory is.
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_RUNTIME_STATE_STATEPOOL_H
#define REPLAYJIT_RUNTIME_STATE_STATEPOOL_H

#include "kernels/Plan/PlanArgs.h"
#include "runtime/Jit.h"

#include <memory>
#include <vector>

namespace replayjit::internal {

/// Layers of one shape that share index arrays. Layers of two shapes that share
/// them are two groups that are given the same arrays. All groups of a pool
/// agree in ringDepth, isCircular, indexType, nullSlot and trapOnError.
struct PoolGroup {
  /// Of its decode kernels: Family::Replay or Packed, LaunchAbi::Native.
  DecodeSpec spec;
  /// Device addresses, element pitches; 1 to maxGroupLayers.
  std::vector<ReplayLayer> layers;
  int32_t slots = 0;     ///< States of each layer.
  int32_t ringSlots = 0; ///< Rings; as many as slots unless hasRingIndices.
  /// Which of the model's key heads this rank holds: spec.numKeyHeads of them
  /// from keyHeadBegin, of keyHeadTotal (0: it holds all). Value heads follow.
  int32_t keyHeadBegin = 0, keyHeadTotal = 0;
};

/// The most layers of one group.
inline constexpr int32_t maxGroupLayers = 4096;

/// The cursor of each key, in device memory. All zero at first.
struct CursorTable {
  uint64_t writePos = 0; ///< [numKeys] int32
  uint64_t ringBase = 0; ///< [numKeys] int32, if the rings are circular
  int32_t numKeys = 0;
};

/// An ErrorWord that the device writes and the host reads, zero at first.
struct SharedErrorWord {
  ErrorWord *host = nullptr;
  uint64_t device = 0;
};

struct PoolOptions {
  /// The engine's, such as one for all of its pools; else, if neither address
  /// is given, the pool makes one.
  SharedErrorWord errorWord;
  /// One variant of a kernel for every batch size, so that bits do not depend
  /// on it; else each size has its fastest. Bits depend on the ring's phase
  /// either way, within the bounds of the spec's readout and ring format.
  bool batchInvariant = false;
  /// For debugging: a begin checks that no two of its rows share a slot that
  /// one of them writes (ArgsCheck::Rows), which waits for the stream.
  bool checkRows = false;
};

/// What an ErrorWord says, in one sentence; empty if it says nothing. Rows and
/// layers are those of the launch that reported.
std::string describe(const ErrorWord &word);

class StatePool {
public:
  /// Over the engine's memory, which outlives the pool, as does `jit`.
  /// Prepares the pool's own kernels, so never under stream capture: while
  /// `stream`, where the caller launches, is (see Device::checkNoCapture) it is
  /// InvalidArgument, before anything is done. `layers` tables (some bytes a
  /// layer) and, unless given, the error word are allocated.
  static Result<std::unique_ptr<StatePool>>
  adopt(Jit &jit, std::vector<PoolGroup> groups, CursorTable cursors,
        PoolOptions options = {}, void *stream = nullptr);

  /// Over memory that the pool owns: as many layers as each group lists, whose
  /// addresses and pitches are filled in. States and cursors start as zero.
  /// Under capture as adopt.
  static Result<std::unique_ptr<StatePool>>
  allocate(Jit &jit, std::vector<PoolGroup> groups, int32_t numKeys,
           PoolOptions options = {}, void *stream = nullptr);

  ~StatePool(); ///< After its plans.
  StatePool(const StatePool &) = delete;
  StatePool &operator=(const StatePool &) = delete;

  const std::vector<PoolGroup> &groups() const { return groupList; }
  const CursorTable &cursors() const { return cursorTable; }
  Device &device() const { return jit.device(); }
  /// What all groups agree in.
  const DecodeSpec &spec() const { return groupList.front().spec; }

  /// The decode kernel of a group for `rows` requests at once; see
  /// Jit::prepare, also for `stream`, and PoolOptions::batchInvariant.
  Result<KernelHandle> prepareDecode(int group, int rows,
                                     void *stream = nullptr);

  /// The state, rings, slot counts and error word of a layer that exists, in
  /// the arguments of a launch. Layers are numbered through all groups in
  /// reports.
  DecodeArgs layerArgs(int group, int layer) const;

  /// What kernels and plans found wrong since the last clear. Does not wait for
  /// the device: what still runs is not in it. `kind` is None where nothing is
  /// wrong or the report is being written. From any thread.
  ErrorWord pollErrors() const;
  /// Once the device is idle. From any thread.
  void clearErrors();
  uint64_t errorWord() const { return errors.device; }

  /// All cursors and bases become 0 and no step that has begun can be
  /// committed, in the order of `stream`. States stay: a slot's next row is
  /// fresh, or its engine zeroes it.
  Status resetAll(void *stream);

private:
  friend class StepPlan;
  StatePool(Jit &jit, std::vector<PoolGroup> groups, CursorTable cursors);

  Status setUp(const PoolOptions &options);
  Status allocateLayers(PoolGroup &group);
  Result<uint64_t> own(size_t bytes, const char *name);

  Jit &jit;
  std::vector<PoolGroup> groupList;
  CursorTable cursorTable;
  SharedErrorWord errors;
  bool ownsErrors = false, batchInvariant = false;
  ArgsCheck check = ArgsCheck::Full; ///< Of a begin.
  std::vector<uint64_t> memory;          ///< Freed with the pool.
  std::vector<uint64_t> layerTables;     ///< [ReplayLayer] of each group
  std::vector<KernelHandle> materialize; ///< Of each group.
  std::vector<KernelHandle> planKernels; ///< Begin, commit.
  std::vector<class StepPlan *> plans;   ///< Those that exist.
};

} // namespace replayjit::internal

#endif
