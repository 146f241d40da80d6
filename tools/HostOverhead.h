//===- HostOverhead.h - What the host side of a step costs ------*- C++ -*-===//
//
// The measurements of `replay-bench runtime`: one CPU thread (two where a name
// says so), nothing of the GPU's own time.
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_TOOLS_HOSTOVERHEAD_H
#define REPLAYJIT_TOOLS_HOSTOVERHEAD_H

#include "runtime/Device.h"
#include "runtime/Jit.h"

#include <optional>
#include <string>
#include <vector>

namespace replayjit::internal {

/// Nanoseconds per call: order statistics over `repeats` runs of `calls` calls.
struct Spread {
  int repeats = 0, calls = 0;
  double least = 0, lowerQuartile = 0, median = 0, upperQuartile = 0;
};

/// One line of the table.
struct Overhead {
  std::string name;
  Spread time;
  /// False: no driver has a part in it, on whatever machine.
  bool isOnGpu = false;
  std::optional<double> mostNanoseconds; ///< The goal, where it is a time.
  /// Of launches beside a bare driver call: its median, and the goal for how
  /// many times as long ours may take.
  std::optional<double> bareNanoseconds, mostTimesBare;

  /// Whether the goal is met; nothing if there is none.
  std::optional<bool> isMet() const;
};

struct OverheadOptions {
  int ordinal = 0;
  int repeats = 21;
  CompileFn compile; ///< For the kernel that a GPU launches.
};

/// Over a device that does nothing and a compiler that makes kernels up: the
/// runtime's own work.
Result<std::vector<Overhead>> overheadAlone(const OverheadOptions &options);

/// On `device`, which is GPU `options.ordinal`: a hit on disk up to a loaded
/// function, and launches beside the driver's call with the same arguments.
Result<std::vector<Overhead>>
overheadBesideDriver(Device &device, const OverheadOptions &options);

} // namespace replayjit::internal

#endif
