//===- KernelTime.h - How long a launch takes -------------------*- C++ -*-===//
#ifndef REPLAYJIT_TOOLS_KERNELTIME_H
#define REPLAYJIT_TOOLS_KERNELTIME_H

#include "kernels/Decode/DecodeArgs.h"
#include "runtime/Device.h"

#include <memory>
#include <optional>

namespace replayjit::internal {

/// How launches of kernels of `spec` are timed: each may start before the one
/// before ends, if they can.
inline LaunchOrder orderOf(const DecodeSpec &spec) {
  return spec.programmaticLaunch == ProgrammaticLaunch::None
             ? LaunchOrder::Serial
             : LaunchOrder::Programmatic;
}

/// What stands around each launch, as in a model: kernels of buildCopy with
/// tiles of a row.
struct ChainEnds {
  LoadedKernel &producer; ///< Writes q, or all of q, k and v.
  LoadedKernel &consumer; ///< Reads the output.
};

/// How the launches that are timed differ.
struct LaunchManner {
  /// The write_pos of all rows; none: they stand at all ring phases, one row in
  /// L flushes; with drafts, where random numbers of them that held leave them.
  std::optional<int> cursor = {};
  LaunchOrder order = LaunchOrder::Serial; ///< Of all kernels.
  int repeats = 20;                        ///< Replays of the graph.
  const ChainEnds *ends = nullptr;         ///< None: launches alone.
};

struct LaunchTime {
  Times microseconds; ///< Of one launch, in each replay of the graph.
  /// No launch finds its states in the L2: those of all launches in between are
  /// several times its size.
  bool coldL2 = false;
};

/// Device memory for the launches of a graph, each on slots of its own, with
/// random values. Kernels that read and write the same can take turns on it.
class LaunchTimer {
public:
  /// For launches of `batch` rows. Unsupported unless kernels of `spec` decode
  /// a token. The device is the caller's and outlives this.
  static Result<std::unique_ptr<LaunchTimer>>
  create(Device &device, const DecodeSpec &spec, int batch);
  ~LaunchTimer();

  /// Times `kernel`, which takes the DecodeArgs of the timer's spec.
  Result<LaunchTime> time(LoadedKernel &kernel, const LaunchConfig &launch,
                          const LaunchManner &manner = {});
  /// The same without it: the ends alone, which the manner has.
  Result<LaunchTime> timeEnds(const LaunchManner &manner);

private:
  class Pool;
  explicit LaunchTimer(std::unique_ptr<Pool> pool);
  Result<LaunchTime> time(LoadedKernel *kernel, const LaunchConfig &launch,
                          const LaunchManner &manner);
  std::unique_ptr<Pool> pool;
};

} // namespace replayjit::internal

#endif
