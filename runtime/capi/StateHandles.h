//===- StateHandles.h - Handles of pools and plans --------------*- C++ -*-===//
//
// Private to runtime/capi.
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_RUNTIME_CAPI_STATEHANDLES_H
#define REPLAYJIT_RUNTIME_CAPI_STATEHANDLES_H

#include "replayjit/replayjit_state.h"
#include "runtime/capi/Handles.h"
#include "runtime/state/StepPlan.h"

/// Keeps the Jit, and that its device.
struct replayjit_pool_t : replayjit::internal::capi::Counted<replayjit_pool_t> {
  explicit replayjit_pool_t(replayjit_jit_t *jit) : jit(jit) {
    replayjit::internal::capi::retain(jit);
  }
  ~replayjit_pool_t() {
    pool.reset();
    replayjit::internal::capi::release(jit);
  }
  replayjit_jit_t *const jit;
  std::unique_ptr<replayjit::internal::StatePool> pool;
  void *stream = nullptr; ///< Under whose capture nothing is prepared.
};

/// Keeps the pool.
struct replayjit_plan_t : replayjit::internal::capi::Counted<replayjit_plan_t> {
  explicit replayjit_plan_t(replayjit_pool_t *pool) : pool(pool) {
    replayjit::internal::capi::retain(pool);
  }
  ~replayjit_plan_t() {
    plan.reset();
    replayjit::internal::capi::release(pool);
  }
  replayjit_pool_t *const pool;
  std::unique_ptr<replayjit::internal::StepPlan> plan;
};

namespace replayjit::internal::capi {

/// What is wrong with the number of a group of `pool`, or of a layer of it.
Status checkLayer(const replayjit_pool_t *pool, int32_t group, int32_t layer);

} // namespace replayjit::internal::capi

#endif
