//===- DecodeLaunch.h - A launch in the ABI of its kernel -------*- C++ -*-===//
#ifndef REPLAYJIT_RUNTIME_DECODELAUNCH_H
#define REPLAYJIT_RUNTIME_DECODELAUNCH_H

#include "base/CompiledKernel.h"
#include "kernels/Decode/TritonArgs.h"
#include "kernels/Plan/PlanArgs.h"

namespace replayjit::internal {

/// The blocks that serve `rows` rows: one dimension, or Triton's (V tiles, B,
/// HV). Their number fits in 32 bits.
inline Grid gridOf(const DecodeSpec &spec, const LaunchConfig &launch,
                   uint32_t rows) {
  if (spec.abi == LaunchAbi::Native)
    return rows * launch.blocksPerRow;
  const uint32_t heads = spec.numValueHeads;
  return {launch.blocksPerRow / heads, rows, heads};
}

/// Bytes of the parameter buffer of a kernel of `spec`.
constexpr size_t paramBytesOf(const DecodeSpec &spec) {
  if (isPlan(spec))
    return sizeof(PlanArgs);
  if (!hasTokens(spec))
    return sizeof(MaterializeArgs);
  return spec.abi == LaunchAbi::Triton ? sizeof(TritonArgs)
                                       : sizeof(DecodeArgs);
}

/// Returns launch(params, bytes) for the parameter buffer that a kernel of
/// `spec` takes; it lives as long as the call.
template <typename Launch>
Status withParams(const DecodeSpec &spec, const DecodeArgs &args,
                  Launch launch) {
  if (spec.abi == LaunchAbi::Native)
    return launch(static_cast<const void *>(&args), sizeof(args));
  const TritonArgs params = toTritonArgs(args);
  return launch(static_cast<const void *>(&params), sizeof(params));
}
template <typename Args, typename Launch>
Status withParams(const DecodeSpec &, const Args &args, Launch launch) {
  return launch(static_cast<const void *>(&args), sizeof(args));
}

} // namespace replayjit::internal

#endif
