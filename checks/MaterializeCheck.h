//===- MaterializeCheck.h - A materialize kernel against fp64 ---*- C++ -*-===//
#ifndef REPLAYJIT_CHECKS_MATERIALIZECHECK_H
#define REPLAYJIT_CHECKS_MATERIALIZECHECK_H

#include "checks/DecodeCheck.h"

#include <cstdint>
#include <vector>

namespace replayjit::internal {

/// The launch to make. Everything random follows from `seed`.
struct MaterializeProblem {
  DecodeSpec spec;     ///< Of Family::Materialize.
  DecodeTuning tuning; ///< Of the kernel.
  int numLayers = 3;   ///< Each with pools of its own and its own slot padding.
  int slots = 12;
  int ringSlots = 0; ///< With spec.hasRingIndices; 0: as many as slots.
  uint64_t seed = 1;
  float lowerBound = -5;

  /// A row of the launch. What is not legal makes it skipped or bad. No slot
  /// may be the dst of two rows, or of one and the src of another. Several rows
  /// may have the same src.
  struct Row {
    int64_t src, dst;
    int32_t writePos = 0, base = 0; ///< base: with spec.isCircular.
    int64_t ringSlot = 0;           ///< With hasRingIndices; any if writePos 0.
    bool masked = false;            ///< To be skipped; needs spec.hasMask.
  };
  std::vector<Row> rows;

  // As in DecodeProblem.
  int firstSlot = 0;
  Poison poison = Poison::NaN;
  bool hasErrorWord = true;
  int slotPadding = 0;
  int indexStride = 1;
  bool misaligned = false;

  int64_t slotNumber(int64_t slot) const {
    return slot < 0 ? slot : slot + firstSlot;
  }
  int ringSlotCount() const {
    return spec.hasRingIndices && ringSlots > 0 ? ringSlots : slots;
  }
};

/// Says in one sentence (field, value, what is allowed) what is wrong.
Status validateProblem(const MaterializeProblem &problem);

/// Makes one launch of rows.size() * numLayers * blocksPerRow blocks, compares
/// each dst with the fp64 sum of checkpoint and ring, and everything else bit
/// by bit. States, rings and slots that must not be read hold poison. Of the
/// report, state fields and flags are filled in; a row and layer is a live row.
/// Otherwise as checkDecode.
Result<CheckReport> checkMaterialize(Device &device, LoadedKernel &kernel,
                                     const LaunchConfig &launch,
                                     const MaterializeProblem &problem);

} // namespace replayjit::internal

#endif
