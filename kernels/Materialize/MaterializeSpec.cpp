//===- MaterializeSpec.cpp - Of the kernel that folds rings ---------------===//

#include "kernels/Materialize/MaterializeSpec.h"

namespace replayjit::internal {

DecodeSpec materializeSpec(const DecodeSpec &pool) {
  DecodeSpec spec = pool;
  spec.family = Family::Materialize;
  // How a token is read and launched is no matter of the pool.
  const DecodeSpec usual;
  spec.readout = usual.readout;
  spec.abi = usual.abi;
  spec.programmaticLaunch = usual.programmaticLaunch;
  spec.hasDstIndices = spec.hasTrackIndices = false; // Rows have destinations.
  spec.hasMask = false; // Rows to skip have null slots.
  return canonical(spec);
}

} // namespace replayjit::internal
