//===- TritonArgs.h - The arguments of a launch, as Triton's --------------===//
//
// LaunchAbi::Triton: the entry point that Triton makes of the replay decode
// kernel. Its pointers come in the order of the Python signature, then the
// scale, then two pointers to scratch memory that every Triton kernel has. So
// such a cubin runs under Triton's launcher, and under ours.
//
// What the native ABI takes at run time is compiled in: all tensors are dense,
// and indices are contiguous. What it checks at run time is the caller's duty:
// slots lie in the pool, and the grid is exactly (V tiles, B, HV). Rows with a
// null slot or a cursor outside 0..L-1 are padding; there is no error word.
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_KERNELS_DECODE_TRITONARGS_H
#define REPLAYJIT_KERNELS_DECODE_TRITONARGS_H

#include "kernels/Decode/DecodeArgs.h"

namespace replayjit::internal {

/// The parameter buffer of a kernel with LaunchAbi::Triton, byte for byte.
/// Members are those of DecodeArgs, and a few more.
struct TritonArgs {
  uint64_t q = 0; ///< mixed_qkv
  uint64_t a = 0, b = 0, aLog = 0, dtBias = 0;
  uint64_t out = 0;
  uint64_t state = 0;      ///< h0: checkpoints are read here,
  uint64_t finalState = 0; ///< ht: and flushed here; usually the same.
  uint64_t dRing = 0, kRing = 0, gRing = 0;
  uint64_t stateIndices = 0, writePos = 0;
  uint64_t forceFlush = 0; ///< Any address if the spec has none; not read.
  float scale = 1;
  uint64_t globalScratch = 0, profileScratch = 0; ///< Not read.
};

/// What each member is; see Arguments.h.
ArgumentTable tritonArguments();

/// What the second dimension of a grid holds.
inline constexpr int32_t maxTritonRows = 65535;

/// Elements from one batch row, or one slot, to the next where nothing lies
/// between.
struct DenseStrides {
  int64_t q, a, b, out;   ///< Of a batch row.
  int64_t state, d, k, g; ///< Of a slot.
};
DenseStrides denseStrides(const DecodeSpec &spec);

/// The same launch as `args`, which validateArgs allows for a spec with
/// LaunchAbi::Triton.
TritonArgs toTritonArgs(const DecodeArgs &args);

} // namespace replayjit::internal

#endif
