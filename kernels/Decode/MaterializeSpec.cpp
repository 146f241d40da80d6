//===- MaterializeSpec.cpp - Of the kernel that folds rings ---------------===//

#include "kernels/Decode/MaterializeSpec.h"

namespace replayjit::internal {

DecodeSpec materializeSpec(const DecodeSpec &pool) {
  DecodeSpec spec;
  spec.family = Family::Materialize;
  spec.isKda = pool.isKda;
  spec.numKeyHeads = pool.numKeyHeads;
  spec.numValueHeads = pool.numValueHeads;
  spec.headDimK = pool.headDimK;
  spec.headDimV = pool.headDimV;
  spec.ringDepth = pool.ringDepth;
  spec.stateType = pool.stateType;
  spec.ringType = pool.ringType;
  spec.indexType = pool.indexType;
  spec.ringFormat = pool.ringFormat;
  spec.isCircular = pool.isCircular;
  spec.hasRingIndices = pool.hasRingIndices;
  spec.hasMask = false; // Rows to skip have null slots.
  spec.trapOnError = pool.trapOnError;
  spec.nullSlot = pool.nullSlot;
  spec.alignment = pool.alignment;
  return spec;
}

} // namespace replayjit::internal
