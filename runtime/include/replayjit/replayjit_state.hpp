//===- replayjit_state.hpp - Pools and plans, for C++17 ---------*- C++ -*-===//
//
// replayjit_state.h as replayjit.hpp is to replayjit.h. What takes and gives
// plain numbers, such as the sizes, is called in C.
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_REPLAYJIT_STATE_HPP
#define REPLAYJIT_REPLAYJIT_STATE_HPP

#include "replayjit/replayjit.hpp"
#include "replayjit/replayjit_state.h"

#include <string_view>

namespace replayjit {

/// `spec` and `layers` are the caller's, until the pool is made.
struct PoolGroup : replayjit_pool_group_t {
  PoolGroup() { replayjit_pool_group_init(this, sizeof(*this)); }
};
struct Cursors : replayjit_cursors_t {
  Cursors() { replayjit_cursors_init(this, sizeof(*this)); }
};
struct PoolOptions : replayjit_pool_options_t {
  PoolOptions() { replayjit_pool_options_init(this, sizeof(*this)); }
};
struct StepInputs : replayjit_step_inputs_t {
  StepInputs() { replayjit_step_inputs_init(this, sizeof(*this)); }
};

/// Element of the array that StepInputs::groups points to.
struct GroupIndices : replayjit_group_indices_t {
  GroupIndices() { replayjit_group_indices_init(this); }
};

struct TransferRegion : replayjit_region_t {
  TransferRegion() { replayjit_region_init(this, sizeof(*this)); }
};
/// Where a request is in one group.
struct GroupSlot : replayjit_group_slot_t {
  GroupSlot() { replayjit_group_slot_init(this); }
  GroupSlot(int64_t state, int64_t ring)
      : replayjit_group_slot_t{state, ring} {}
};
enum class ImageForm : int32_t {
  Folded = REPLAYJIT_IMAGE_FOLDED,
  WithRing = REPLAYJIT_IMAGE_WITH_RING,
};

/// Whether a snapshot is due after the step; see replayjit_should_flush.
inline bool shouldFlush(int64_t seqLen, int64_t interval) {
  return replayjit_should_flush(seqLen, interval) != 0;
}
/// Ring rows to leave out; see replayjit_tokens_to_drop.
inline int64_t tokensToDrop(int64_t committedLen, int64_t fedLen) {
  return replayjit_tokens_to_drop(committedLen, fedLen);
}

class StatePool {
public:
  StatePool() = default;
  static Result<StatePool> adopt(const Jit &jit,
                                 const std::vector<PoolGroup> &groups,
                                 const Cursors &cursors,
                                 const PoolOptions &options = PoolOptions()) {
    const auto all = pointers(groups);
    replayjit_pool_t *pool = nullptr;
    Status status = Status::take(replayjit_pool_adopt(
        jit.get(), all.data(), all.size(), &cursors, &options, &pool));
    return status ? Result<StatePool>(StatePool(pool)) : status;
  }
  static Result<StatePool>
  allocate(const Jit &jit, const std::vector<PoolGroup> &groups, int numKeys,
           const PoolOptions &options = PoolOptions()) {
    const auto all = pointers(groups);
    replayjit_pool_t *pool = nullptr;
    Status status = Status::take(replayjit_pool_allocate(
        jit.get(), all.data(), all.size(), numKeys, &options, &pool));
    return status ? Result<StatePool>(StatePool(pool)) : status;
  }

  Result<Kernel> prepareDecode(int group, int rows) {
    replayjit_kernel_t *kernel = nullptr;
    Status status = Status::take(
        replayjit_pool_prepare(handle.get(), group, rows, &kernel));
    return status ? Result<Kernel>(Kernel(kernel)) : status;
  }
  ErrorWord pollErrors() const {
    ErrorWord word;
    replayjit_error_destroy(replayjit_pool_poll_errors(handle.get(), &word));
    return word;
  }
  void clearErrors() {
    replayjit_error_destroy(replayjit_pool_clear_errors(handle.get()));
  }
  Status resetAll(void *stream) {
    return Status::take(replayjit_pool_reset(handle.get(), stream));
  }
  /// Where the cursors are.
  Cursors cursors() const {
    Cursors cursors;
    replayjit_error_destroy(replayjit_pool_cursors(handle.get(), &cursors));
    return cursors;
  }

  /// The bytes of a request; see replayjit_pool_export. slots[g] for each
  /// group.
  Result<std::string> exportSlot(void *stream,
                                 const std::vector<GroupSlot> &slots, int key,
                                 ImageForm form) {
    char *image = nullptr;
    size_t bytes = 0;
    Status status =
        Status::take(replayjit_pool_export(handle.get(), stream, slots.data(),
                                           key, int32_t(form), &image, &bytes));
    if (!status)
      return status;
    std::string copy(image, bytes);
    replayjit_image_destroy(image);
    return copy;
  }
  /// Puts a request into slots of this pool; see replayjit_pool_import.
  Status importSlot(void *stream, const std::vector<GroupSlot> &slots, int key,
                    const std::vector<std::string_view> &images) {
    std::vector<const char *> starts;
    std::vector<size_t> bytes;
    for (std::string_view image : images) {
      starts.push_back(image.data());
      bytes.push_back(image.size());
    }
    return Status::take(replayjit_pool_import(handle.get(), stream,
                                              slots.data(), key, starts.data(),
                                              bytes.data(), images.size()));
  }
  /// All tensors of all layers, for RDMA.
  std::vector<TransferRegion> regions() const {
    std::vector<TransferRegion> all(replayjit_pool_region_count(handle.get()));
    for (size_t i = 0; i < all.size(); ++i)
      replayjit_error_destroy(replayjit_pool_region(handle.get(), i, &all[i]));
    return all;
  }
  replayjit_pool_t *get() const { return handle.get(); }

private:
  explicit StatePool(replayjit_pool_t *pool) : handle(pool) {}
  static std::vector<const replayjit_pool_group_t *>
  pointers(const std::vector<PoolGroup> &groups) {
    std::vector<const replayjit_pool_group_t *> all;
    for (const PoolGroup &group : groups)
      all.push_back(&group);
    return all;
  }
  detail::Handle<replayjit_pool_t, replayjit_pool_retain,
                 replayjit_pool_release>
      handle;
};

class StepPlan {
public:
  StepPlan() = default;
  /// Buffers in `memory` (see replayjit_plan_bytes), or of the plan's own.
  static Result<StepPlan> create(const StatePool &pool, int maxRows,
                                 uint64_t memory = 0) {
    replayjit_plan_t *plan = nullptr;
    Status status =
        Status::take(replayjit_plan_create(pool.get(), maxRows, memory, &plan));
    return status ? Result<StepPlan>(StepPlan(plan)) : status;
  }

  Status begin(void *stream, int64_t step, const StepInputs &inputs) {
    return Status::take(
        replayjit_plan_begin(handle.get(), stream, step, &inputs));
  }
  Status commit(void *stream, int64_t step, uint64_t advanceBy = 0) {
    return Status::take(
        replayjit_plan_commit(handle.get(), stream, step, advanceBy));
  }
  Status beginCaptured(void *stream, const StepInputs &inputs) {
    return Status::take(
        replayjit_plan_begin_captured(handle.get(), stream, &inputs));
  }
  Status commitCaptured(void *stream, uint64_t advanceBy = 0) {
    return Status::take(
        replayjit_plan_commit_captured(handle.get(), stream, advanceBy));
  }
  Status setStep(void *stream, int64_t step, int live) {
    return Status::take(
        replayjit_plan_set_step(handle.get(), stream, step, live));
  }
  Result<DecodeArgs> argsFor(int group, int layer, int rowBegin,
                             int rowCount) const {
    DecodeArgs args;
    Status status = Status::take(replayjit_plan_layer_args(
        handle.get(), group, layer, rowBegin, rowCount, &args));
    return status ? Result<DecodeArgs>(args) : status;
  }

  Status materialize(void *stream, const StepInputs &inputs) {
    return Status::take(
        replayjit_plan_materialize(handle.get(), stream, &inputs));
  }
  Status copy(void *stream, const StepInputs &inputs) {
    return Status::take(replayjit_plan_copy(handle.get(), stream, &inputs));
  }
  Status prepareExtend(void *stream, const StepInputs &inputs) {
    return Status::take(
        replayjit_plan_prepare_extend(handle.get(), stream, &inputs));
  }
  Status requireFlushed(void *stream, const StepInputs &inputs) {
    return Status::take(
        replayjit_plan_require_flushed(handle.get(), stream, &inputs));
  }
  replayjit_plan_t *get() const { return handle.get(); }

private:
  explicit StepPlan(replayjit_plan_t *plan) : handle(plan) {}
  detail::Handle<replayjit_plan_t, replayjit_plan_retain,
                 replayjit_plan_release>
      handle;
};

} // namespace replayjit

#endif
