//===- RowArrays.h - What an engine says of the rows of a step --*- C++ -*-===//
#ifndef REPLAYJIT_TESTS_ENGINE_ROWARRAYS_H
#define REPLAYJIT_TESTS_ENGINE_ROWARRAYS_H

#include "runtime/state/StepPlan.h"
#include "tests/engine/Model.h"

namespace replayjit::internal::engine {

/// Device memory, freed with this.
class Memory {
public:
  Memory(Device &device, size_t bytes, const char *name);
  Memory(Memory &&other) : device(other.device), address(other.address) {
    other.address = 0;
  }
  ~Memory();

  Device &device;
  uint64_t address;
};

/// One row; of each group an index of each kind.
struct Row {
  int32_t key = -1;
  std::vector<int32_t> state, ring, dst, track;
  int32_t flush = 0, fresh = 0, seqLen = 0, noFlushPast = -1, drop = 0;
  int32_t advance = 1;
};

/// The arrays of up to maxRows rows, on the device and on the host, at
/// addresses that never change. The indices of a group are columns of a table
/// [maxRows, 4], as they are in an engine's block table.
class RowArrays {
public:
  RowArrays(Device &device, const Model &model, int maxRows);

  /// Writes the rows, the others being left as they are.
  void set(const std::vector<Row> &rows);
  /// What a step is told.
  StepInputs step() const;
  /// What prepareExtend and requireFlushed are told.
  StepInputs inPlace() const;
  /// What copy is told.
  StepInputs slots() const;
  /// What materialize is told.
  StepInputs donation() const;
  /// What commit is told, [maxRows].
  uint64_t advanceBy() const;
  /// Device address of the state indices of a group, whose stride is 4.
  uint64_t states(int group) const { return memory.address + tableAt(group); }
  /// What a step is told, as host addresses; the rest is not filled in.
  PlanArgs host() const;

private:
  size_t keysAt() const { return 0; }
  size_t tableAt(int group) const;
  size_t flagsAt(int which) const;

  const int rows, numGroups;
  const DataType type;
  std::vector<char> bytes;
  Memory memory;
  std::vector<GroupIndices> groups;                ///< Of a step.
  std::vector<GroupIndices> slotGroups, ownGroups; ///< Without track; nor dst.
  int live = 0;
};

} // namespace replayjit::internal::engine

#endif
