//===- ModelKernels.h - All kernels that serve a model ----------*- C++ -*-===//
#ifndef REPLAYJIT_RUNTIME_AOT_MODELKERNELS_H
#define REPLAYJIT_RUNTIME_AOT_MODELKERNELS_H

#include "runtime/Jit.h"
#include "runtime/cache/TuningTable.h"

#include <vector>

namespace replayjit::internal {

/// The specs of one layer shape: decode with and without force_flush, packed
/// decode, and for pools of either materialize, with and without a mask, and
/// the plans of a step. `model` gives sizes, types and arguments, each as far
/// as a family has it; its family, hasForceFlush and hasMask do not count. A
/// spec of LaunchAbi::Triton is for decode alone.
std::vector<DecodeSpec> specsOfModel(const DecodeSpec &model);

/// What to hand to Jit::prepareAll before serving up to `maxRows` requests at
/// once on a GPU of type `target` with `multiprocessors` SMs: each kernel that
/// Jit::prepare can pick there for 1 to maxRows rows, or for a large batch, is
/// asked for once, by the smallest number of rows that picks it. `measured` is
/// the Jit's table, or null.
std::vector<KernelRequest>
requestsOfModel(const DecodeSpec &model, int maxRows, const Target &target,
                int multiprocessors, const TuningTable *measured = nullptr);

/// Which tensors a bundle serves.
enum class Pointers {
  Any,     ///< Also those that are aligned to their elements alone.
  Aligned, ///< Those of the model's own DecodeSpec::alignment.
};

/// The distinct kernels behind these requests on any of several GPUs of one
/// type, which differ in their SMs; for Pointers::Any those of alignment 0 too,
/// but for LaunchAbi::Triton.
std::vector<CompileRequest>
kernelsOfModel(const DecodeSpec &model, int maxRows, const Target &target,
               const std::vector<int> &multiprocessors,
               Pointers pointers = Pointers::Any,
               const TuningTable *measured = nullptr);

} // namespace replayjit::internal

#endif
