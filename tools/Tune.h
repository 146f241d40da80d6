//===- Tune.h - The fastest tunings on this GPU -----------------*- C++ -*-===//
#ifndef REPLAYJIT_TOOLS_TUNE_H
#define REPLAYJIT_TOOLS_TUNE_H

#include "runtime/Device.h"
#include "runtime/cache/TuningTable.h"
#include "tools/Progress.h"

#include <functional>
#include <string>
#include <vector>

namespace replayjit::internal {

struct TuneOptions {
  /// All are tuned, each by itself.
  std::vector<DecodeSpec> specs;
  std::vector<int> batches = {1, 4, 16, 64, 256};
  /// The most that the outputs of a short run may differ from fp64, relative
  /// to their norm; a spec of which no kernel is that exact is left out. 0: what
  /// is right for the spec's own types.
  double maxError = 0;
  double seconds = 20; ///< For a spec and a batch; then its search ends.
  int repeats = 5;     ///< Replays of each graph of launches.
  int threads = 1;     ///< That compile while this one measures.
  bool again = false;  ///< Also what the table has.
};

/// Measures what `table` has not, and calls `save` each time that it has more.
/// The result is compared with fp64 before it goes into the table. Prints a
/// line for each spec and batch.
Status tune(Device &device, const TuneOptions &options, TuningTable &table,
            const std::function<Status()> &save, Progress &progress);

} // namespace replayjit::internal

#endif
