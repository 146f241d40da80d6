//===- MaterializeSpec.h - Of the kernel that folds rings -------*- C++ -*-===//
#ifndef REPLAYJIT_KERNELS_MATERIALIZE_MATERIALIZESPEC_H
#define REPLAYJIT_KERNELS_MATERIALIZE_MATERIALIZESPEC_H

#include "kernels/Decode/DecodeSpec.h"

namespace replayjit::internal {

/// The kernel that folds the rings of layers whose decode spec is `pool`;
/// without a mask, since rows to skip have null slots. See also planSpec.
DecodeSpec materializeSpec(const DecodeSpec &pool);

} // namespace replayjit::internal

#endif
