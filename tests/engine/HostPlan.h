//===- HostPlan.h - The plan of an engine that plans on the CPU -*- C++ -*-===//
//
// Cursors and the buffers of a step in host memory, moved by the rules of
// kernels/Plan/PlanReference.h. Some steps upload what it says; the others
// compare it with what the device has planned.
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_TESTS_ENGINE_HOSTPLAN_H
#define REPLAYJIT_TESTS_ENGINE_HOSTPLAN_H

#include "kernels/Plan/PlanReference.h"
#include "tests/engine/RowArrays.h"

namespace replayjit::internal::engine {

/// What an engine has: blocks of states, rings and cursors, and the batch sizes
/// that steps are padded to, in ascending order.
struct Sizes {
  int states = 0, rings = 0, keys = 0;
  std::vector<int> batches;
};

class HostPlan {
public:
  HostPlan(const Model &model, const Sizes &sizes);

  /// Fills the buffers of a step padded to `batch` rows.
  void begin(const RowArrays &rows, int64_t step, int batch);
  void commit();
  /// Whether a row of the step that began has a token.
  bool isLive(int row) const { return pending[row] != 0; }

  RingCursor cursor(int32_t key) const;
  void setCursor(int32_t key, RingCursor cursor);
  void reset();

  /// What a plan's buffers are to hold: puts it there, or stops at the first
  /// that differs.
  void uploadTo(Device &device, const StepPlan &plan) const;
  void compareWith(Device &device, const StepPlan &plan) const;
  /// The same for the cursors of a pool.
  void uploadTo(Device &device, const CursorTable &table) const;
  void compareWith(Device &device, const CursorTable &table) const;

private:
  template <typename Visit>
  void forEachBuffer(const PlanArgs &device, Visit visit) const;

  DecodeSpec spec;
  PlanArgs args; ///< Of the step that began last.
  ErrorWord errors;
  std::vector<int32_t> cursors, bases, buffers;
  std::vector<int64_t> pending, indices;
};

} // namespace replayjit::internal::engine

#endif
