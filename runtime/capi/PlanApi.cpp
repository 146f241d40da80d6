//===- PlanApi.cpp - Steps of the C API -----------------------------------===//

#include "runtime/capi/StateHandles.h"
#include "runtime/capi/Structs.h"

#include <fmt/format.h>

#include <cstddef>

using namespace replayjit::internal;
using namespace replayjit::internal::capi;

static replayjit_step_inputs_t defaultInputs() {
  replayjit_step_inputs_t inputs = {};
  inputs.struct_size = sizeof inputs;
  inputs.key_stride = 1;
  return inputs;
}

void replayjit_step_inputs_init(replayjit_step_inputs_t *inputs,
                                size_t struct_size) {
  writeStruct(inputs, struct_size, defaultInputs());
}

void replayjit_group_indices_init(replayjit_group_indices_t *indices) {
  if (indices)
    *indices = {.state_stride = 1,
                .ring_stride = 1,
                .dst_stride = 1,
                .track_stride = 1};
}

replayjit_error_t *replayjit_plan_bytes(const replayjit_pool_t *pool,
                                        int32_t max_rows, size_t *bytes) try {
  for (auto [pointer, name] :
       {std::pair<const void *, const char *>(pool, "pool"), {bytes, "bytes"}})
    if (Status status = need(pointer, name); !status)
      return toError(status);
  const Result<size_t> needed = StepPlan::bytesFor(*pool->pool, max_rows);
  if (needed)
    *bytes = *needed;
  return toError(needed.status());
} catch (...) {
  return caught();
}

replayjit_error_t *replayjit_plan_create(replayjit_pool_t *pool,
                                         int32_t max_rows, uint64_t memory,
                                         replayjit_plan_t **plan) try {
  for (auto [pointer, name] :
       {std::pair<const void *, const char *>(pool, "pool"), {plan, "plan"}})
    if (Status status = need(pointer, name); !status)
      return toError(status);
  Result<std::unique_ptr<StepPlan>> made =
      memory ? StepPlan::adopt(*pool->pool, max_rows, memory, pool->stream)
             : StepPlan::create(*pool->pool, max_rows, pool->stream);
  if (!made)
    return toError(made.status());
  auto *handle = new replayjit_plan_t(pool);
  handle->plan = std::move(*made);
  *plan = handle;
  return nullptr;
} catch (...) {
  return caught();
}

void replayjit_plan_retain(replayjit_plan_t *plan) { retain(plan); }
void replayjit_plan_release(replayjit_plan_t *plan) { release(plan); }

// An array of the caller's is used where it lies, since a step allocates
// nothing.
static_assert(sizeof(replayjit_group_indices_t) == sizeof(GroupIndices));
#define SAME_PLACE(c, cpp)                                                     \
  static_assert(offsetof(replayjit_group_indices_t, c) ==                      \
                offsetof(GroupIndices, cpp))
SAME_PLACE(state_stride, stateStride);
SAME_PLACE(ring, ring);
SAME_PLACE(ring_stride, ringStride);
SAME_PLACE(dst, dst);
SAME_PLACE(dst_stride, dstStride);
SAME_PLACE(track, track);
SAME_PLACE(track_stride, trackStride);
#undef SAME_PLACE

/// Calls run(plan, inputs).
template <typename Run>
static replayjit_error_t *withInputs(replayjit_plan_t *plan,
                                     const replayjit_step_inputs_t *given,
                                     Run run) {
  if (Status status = need(plan, "plan"); !status)
    return toError(status);
  Result<replayjit_step_inputs_t> c =
      readStruct(given, defaultInputs(), "inputs");
  if (!c)
    return toError(c.status());
  if (Status status = need(c->groups, "groups"); !status)
    return toError(status);
  StepInputs inputs;
  inputs.live = c->live;
  inputs.keys = c->keys;
  inputs.keyStride = c->key_stride;
  inputs.groups = {reinterpret_cast<const GroupIndices *>(c->groups),
                   plan->pool->pool->groups().size()};
  inputs.flushMask = c->flush_mask;
  inputs.fresh = c->fresh;
  inputs.seqLen = c->seq_len;
  inputs.noFlushPast = c->no_flush_past;
  inputs.dropNewest = c->drop_newest;
  return toError(run(*plan->plan, inputs));
}

replayjit_error_t *
replayjit_plan_begin(replayjit_plan_t *plan, void *stream, int64_t step,
                     const replayjit_step_inputs_t *inputs) try {
  return withInputs(plan, inputs, [&](StepPlan &to, const StepInputs &with) {
    return to.begin(stream, step, with);
  });
} catch (...) {
  return caught();
}

replayjit_error_t *replayjit_plan_commit(replayjit_plan_t *plan, void *stream,
                                         int64_t step,
                                         uint64_t advance_by) try {
  if (Status status = need(plan, "plan"); !status)
    return toError(status);
  return toError(plan->plan->commit(stream, step, advance_by));
} catch (...) {
  return caught();
}

replayjit_error_t *
replayjit_plan_begin_captured(replayjit_plan_t *plan, void *stream,
                              const replayjit_step_inputs_t *inputs) try {
  return withInputs(plan, inputs, [&](StepPlan &to, const StepInputs &with) {
    return to.beginCaptured(stream, with);
  });
} catch (...) {
  return caught();
}

replayjit_error_t *replayjit_plan_commit_captured(replayjit_plan_t *plan,
                                                  void *stream,
                                                  uint64_t advance_by) try {
  if (Status status = need(plan, "plan"); !status)
    return toError(status);
  return toError(plan->plan->commitCaptured(stream, advance_by));
} catch (...) {
  return caught();
}

replayjit_error_t *replayjit_plan_set_step(replayjit_plan_t *plan, void *stream,
                                           int64_t step, int32_t live) try {
  if (Status status = need(plan, "plan"); !status)
    return toError(status);
  return toError(plan->plan->setStep(stream, step, live));
} catch (...) {
  return caught();
}

replayjit_error_t *
replayjit_plan_layer_args(const replayjit_plan_t *plan, int32_t group,
                          int32_t layer, int32_t row_begin, int32_t row_count,
                          replayjit_decode_args_t *args) try {
  if (Status status = need(plan, "plan"); !status)
    return toError(status);
  if (Status status = checkLayer(plan->pool, group, layer); !status)
    return toError(status);
  const int32_t rows = plan->plan->maxRows();
  if (row_begin < 0 || row_count < 0 || row_begin > rows ||
      row_count > rows - row_begin)
    return toError(Status::invalid(
        fmt::format("row_begin: {} rows from {} are not allowed; the plan has "
                    "{}",
                    row_count, row_begin, rows)));
  return toError(fillInArgs(
      args, plan->plan->argsFor(group, layer, row_begin, row_count)));
} catch (...) {
  return caught();
}

replayjit_error_t *
replayjit_plan_materialize(replayjit_plan_t *plan, void *stream,
                           const replayjit_step_inputs_t *inputs) try {
  return withInputs(plan, inputs, [&](StepPlan &to, const StepInputs &with) {
    return to.materialize(stream, with);
  });
} catch (...) {
  return caught();
}

replayjit_error_t *
replayjit_plan_copy(replayjit_plan_t *plan, void *stream,
                    const replayjit_step_inputs_t *inputs) try {
  return withInputs(plan, inputs, [&](StepPlan &to, const StepInputs &with) {
    return to.copy(stream, with);
  });
} catch (...) {
  return caught();
}

replayjit_error_t *
replayjit_plan_prepare_extend(replayjit_plan_t *plan, void *stream,
                              const replayjit_step_inputs_t *inputs) try {
  return withInputs(plan, inputs, [&](StepPlan &to, const StepInputs &with) {
    return to.prepareExtend(stream, with);
  });
} catch (...) {
  return caught();
}

replayjit_error_t *
replayjit_plan_require_flushed(replayjit_plan_t *plan, void *stream,
                               const replayjit_step_inputs_t *inputs) try {
  return withInputs(plan, inputs, [&](StepPlan &to, const StepInputs &with) {
    return to.requireFlushed(stream, with);
  });
} catch (...) {
  return caught();
}
