//===- KernelTime.h - How long a launch takes -------------------*- C++ -*-===//
#ifndef REPLAYJIT_TOOLS_KERNELTIME_H
#define REPLAYJIT_TOOLS_KERNELTIME_H

#include "kernels/Decode/DecodeArgs.h"
#include "runtime/Device.h"

namespace replayjit::internal {

struct LaunchTime {
  double microseconds = 0; ///< Of one launch, the median of graph replays.
  /// No launch finds its states in the L2: those of all launches in between are
  /// several times its size.
  bool coldL2 = false;
};

/// Times `kernel`, made for `spec`, with `batch` rows on a GPU. A graph holds
/// many launches, each on slots of its own, its rows at all ring phases.
/// Kernels of Family::Materialize are not timed.
Result<LaunchTime> timeLaunch(Device &device, LoadedKernel &kernel,
                              const LaunchConfig &launch,
                              const DecodeSpec &spec, int batch);

} // namespace replayjit::internal

#endif
