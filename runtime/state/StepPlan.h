//===- StepPlan.h - One step of a batch, as a transaction -------*- C++ -*-===//
//
// begin, the launches of all layers, commit. A plan has the buffers that the
// kernels read, at addresses that never change. Begin fills them, all maxRows
// rows: what is no live row is padding, so that a graph of any size up to it
// may follow. Commit moves the cursors. Rules: kernels/Plan/PlanReference.h.
// All of it happens on the device in the order of the caller's stream, and
// nothing here waits, locks or allocates, so that a step can be captured into a
// graph. Addresses that a call takes are read on the device, later: the memory
// stays as it is until the stream has passed the call.
//
// A plan has one step at a time: a second begin makes the first one void.
// Plans on several streams must not have the same key in flight.
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_RUNTIME_STATE_STEPPLAN_H
#define REPLAYJIT_RUNTIME_STATE_STEPPLAN_H

#include "runtime/state/StatePool.h"

#include <span>

namespace replayjit::internal {

/// The index arrays of one group, in device memory, of the pool's indexType.
/// An array is [live] with the stride that follows it (a column of a block
/// table). Those that are 0 have their defaults: ring and dst are the state
/// index, track is none.
struct GroupIndices {
  uint64_t state = 0;
  int64_t stateStride = 1;
  uint64_t ring = 0; ///< Between steps any number where the cursor is 0.
  int64_t ringStride = 1;
  uint64_t dst = 0; ///< Where a flush, a materialize or a copy writes.
  int64_t dstStride = 1;
  uint64_t track = 0;
  int64_t trackStride = 1;
};

/// The rows of a step, or of an operation on slots.
struct StepInputs {
  int32_t live = 0;  ///< Rows of the arrays, at most the plan's maxRows.
  uint64_t keys = 0; ///< [live], of the pool's indexType; negative: padding
  int64_t keyStride = 1;
  std::span<const GroupIndices> groups; ///< One for each group of the pool.

  // [live] int32 each, or 0: not given. See PlanArgs.
  uint64_t flushMask = 0; ///< Not 0: flush now. See shouldFlush.
  uint64_t fresh = 0; ///< Not 0: a new request has the slot; its cursor is 0.
  /// A row that would fold more than noFlushPast[row] tokens is padding in this
  /// step. seqLen counts the tokens fed to the row with this step's. For
  /// overlapped scheduling, where a step may run for a request that has ended.
  uint64_t seqLen = 0, noFlushPast = 0;
  /// Materialize only: ring rows to leave out; see tokensToDrop.
  uint64_t dropNewest = 0;
};

/// True at the steps after which a snapshot is due: `seqLen` counts the tokens
/// fed with this step's, as StepInputs::seqLen does.
constexpr bool shouldFlush(int64_t seqLen, int64_t interval) {
  return interval > 0 && seqLen % interval == 0;
}

/// Donation gives away a state that holds `committedLen` tokens, the length of
/// its key: usually one less than prompt plus output, since the token sampled
/// last was never fed. `fedLen` were fed (more, where a step ran for a request
/// that had ended). So many ring rows are left out; more than the ring has are
/// an error, FlushedTooFar, when they are materialized.
constexpr int64_t tokensToDrop(int64_t committedLen, int64_t fedLen) {
  return fedLen - committedLen;
}

class StepPlan {
public:
  /// The bytes of a plan's buffers; maxRows is 1 or more.
  static Result<size_t> bytesFor(const StatePool &pool, int32_t maxRows);
  /// Buffers in the engine's `memory`, device memory of bytesFor bytes,
  /// 256-byte aligned, which outlives the plan. The plan clears it, so never
  /// under stream capture: while `stream`, where the caller launches, is (see
  /// Device::checkNoCapture) it is InvalidArgument, before anything is done.
  static Result<std::unique_ptr<StepPlan>> adopt(StatePool &pool,
                                                 int32_t maxRows,
                                                 uint64_t memory,
                                                 void *stream = nullptr);
  /// Buffers that the plan owns. Under capture as adopt.
  static Result<std::unique_ptr<StepPlan>>
  create(StatePool &pool, int32_t maxRows, void *stream = nullptr);
  ~StepPlan();
  StepPlan(const StepPlan &) = delete;
  StepPlan &operator=(const StepPlan &) = delete;

  //===--- A step ------------------------------------------------------------//

  /// Fills the buffers for step `step`, a number above 0 that the engine does
  /// not use twice. Without a commit nothing else happens: the step is rolled
  /// back, but for what launches have flushed in place.
  Status begin(void *stream, int64_t step, const StepInputs &inputs);

  /// Moves the cursors of the live rows of step `step`, which was the last to
  /// begin, here or in a graph, and is not void: else InvalidArgument.
  /// `advanceBy` is [maxRows] int32, or 0: one token a row. See advance() in
  /// PlanArgs.h. A second commit of a step does nothing.
  Status commit(void *stream, int64_t step, uint64_t advanceBy = 0);

  /// For a graph: as begin and commit, but with the step and the number of live
  /// rows that setStep gave last, 0 at first, so that capture and warm-up move
  /// no cursor. `inputs.live` does not count. A step other than the one that
  /// began is found on the device (StepMismatch).
  Status beginCaptured(void *stream, const StepInputs &inputs);
  Status commitCaptured(void *stream, uint64_t advanceBy = 0);
  /// Before each replay, on its stream; not captured itself.
  Status setStep(void *stream, int64_t step, int32_t live);

  /// The arguments of a layer that exists for rowCount of the plan's rows, from
  /// rowBegin on: pool, cursors and indices. The caller adds q, k, v, a, b, the
  /// parameters, out, scale and lowerBound, offset by the same rows. Between a
  /// begin and a programmatic launch (LaunchOrder) stands another kernel.
  DecodeArgs argsFor(int group, int layer, int32_t rowBegin,
                     int32_t rowCount) const;

  //===--- Slots between steps -----------------------------------------------//
  // Each uses the plan's buffers: a step that has begun is void afterwards.
  // What one does not use is InvalidArgument if it is given: what only a step
  // has (flushMask, seqLen, noFlushPast, track) in all of them, dropNewest in
  // all but materialize, and dst where nothing is written to another slot.
  // A ring index does not count where the cursor is 0: a prefix has no ring.

  /// dst = checkpoint plus ring of state, in all layers; cursors stay, so that
  /// dst, as the slot of another key, is fresh. Serves snapshots, forks,
  /// donation (dropNewest), backup and preemption.
  Status materialize(void *stream, const StepInputs &inputs);
  /// The same for sources whose ring is empty. A row whose cursor is not 0 is
  /// reported (NotFlushed) and not copied.
  Status copy(void *stream, const StepInputs &inputs);
  /// Before rows run anything but replay decode (prefill, a one-token extend,
  /// packed decode): folds their rings into their own states, sets their
  /// cursors to 0. No dst.
  Status prepareExtend(void *stream, const StepInputs &inputs);
  /// For debugging: reports (NotFlushed) the rows whose cursor is not 0. No
  /// dst.
  Status requireFlushed(void *stream, const StepInputs &inputs);

  int32_t maxRows() const { return rows; }
  /// Addresses of the buffers: writePos, ringBase, forceFlush, rowKeys, pending
  /// and `out` of the groups.
  const PlanArgs &buffers() const { return base; }

private:
  friend class StatePool;
  StepPlan(StatePool &pool, int32_t maxRows);
  Status setUp(uint64_t memory);
  Result<PlanArgs> argsOf(const StepInputs &inputs) const;
  Status launchBegin(void *stream, const PlanArgs &args);
  Status launchCommit(void *stream, const PlanArgs &args);
  Status launchMaterialize(void *stream, const PlanArgs &args);

  StatePool &pool;
  const int32_t rows;
  PlanArgs base; ///< Everything that does not change from step to step.
  uint64_t header = 0;
  /// The steps that commit accepts, 0 for none: the one that began last, and
  /// the one that setStep gave last, which a graph may have begun.
  int64_t begun = 0, announced = 0;
  uint64_t owned = 0; ///< The buffers, if the plan allocated them.
};

} // namespace replayjit::internal

#endif
