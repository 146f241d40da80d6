//===- StageDump.h - Every stage of a compilation, numbered -----*- C++ -*-===//
#ifndef REPLAYJIT_COMPILER_SUPPORT_STAGEDUMP_H
#define REPLAYJIT_COMPILER_SUPPORT_STAGEDUMP_H

#include "base/CompiledKernel.h"

#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace replayjit::internal {

/// Sees each stage's artifact as it is made: a name such as "replay.mlir".
using StageObserver =
    std::function<void(const std::string &file, const std::string &text)>;

/// An observer that writes `directory`/NN-NAME.FILE, creating the directory. A
/// file that cannot be written is reported in `error`, once.
StageObserver dumpStagesTo(std::string directory, std::string kernel,
                           std::string *error);

/// Times consecutive stages.
class StageClock {
public:
  /// Ends the stage that ran since the last call and names it.
  void mark(std::string stage) {
    auto now = Clock::now();
    times.push_back(
        {std::move(stage),
         std::chrono::duration<double, std::milli>(now - last).count()});
    last = now;
  }
  std::vector<StageTime> times;

private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point last = Clock::now();
};

} // namespace replayjit::internal

#endif
