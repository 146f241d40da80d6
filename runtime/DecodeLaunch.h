//===- DecodeLaunch.h - A launch in the ABI of its kernel -------*- C++ -*-===//
#ifndef REPLAYJIT_RUNTIME_DECODELAUNCH_H
#define REPLAYJIT_RUNTIME_DECODELAUNCH_H

#include "base/CompiledKernel.h"
#include "kernels/Decode/TritonArgs.h"
#include "kernels/Families.h"

namespace replayjit::internal {

/// LaunchAbi::Triton, which kernels that take DecodeArgs may have.
inline bool isTriton(const DecodeSpec &spec) {
  return spec.abi == LaunchAbi::Triton && traitsOf(spec).triton;
}

/// The blocks that serve `rows` rows: one dimension, or Triton's (V tiles, B,
/// HV). Their number fits in 32 bits.
inline Grid gridOf(const DecodeSpec &spec, const LaunchConfig &launch,
                   uint32_t rows) {
  if (!isTriton(spec))
    return rows * launch.blocksPerRow;
  const uint32_t heads = spec.numValueHeads;
  return {launch.blocksPerRow / heads, rows, heads};
}

/// Bytes of the parameter buffer of a kernel of `spec`.
inline size_t paramBytesOf(const DecodeSpec &spec) {
  return isTriton(spec) ? sizeof(TritonArgs)
                        : familyOf(spec.family).args->bytes;
}

/// Returns launch(params, bytes) for the parameter buffer that a kernel of
/// `spec` takes; it lives as long as the call. `args` are of its family.
template <typename Launch>
Status withParams(const DecodeSpec &spec, LaunchArgs args, Launch launch) {
  if (!isTriton(spec))
    return launch(args.data, args.type->bytes);
  const TritonArgs params =
      toTritonArgs(*static_cast<const DecodeArgs *>(args.data));
  return launch(static_cast<const void *>(&params), sizeof(params));
}

} // namespace replayjit::internal

#endif
