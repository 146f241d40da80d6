//===- DecodeBench.h - How fast decode is on this GPU -----------*- C++ -*-===//
//
// What `replay-bench decode` measures, as one JSON document; the table and the
// page are made of it. Times are in microseconds of one launch. The document:
//
//   tool, device, multiprocessors, target, spec (as in kernel.json), repeats
//   ceilings: {read, copy}: bytes per microsecond of streams of 2 GiB
//   batches: [{batch, kernels: [...], phases: [median at each write_pos]}]
//
// and of each kernel: family, launches ("plain", "programmatic"), tuning,
// registers, spillBytes, assembler, bytes (moved by a launch, see bytesMoved),
// us {least, median, most}, coldL2, streamUs (the fastest stream of the same
// bytes).
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_TOOLS_DECODEBENCH_H
#define REPLAYJIT_TOOLS_DECODEBENCH_H

#include "kernels/Decode/DecodeSpec.h"
#include "runtime/Device.h"
#include "runtime/cache/TuningTable.h"
#include "tools/Progress.h"

#include <nlohmann/json_fwd.hpp>

#include <vector>

namespace replayjit::internal {

struct DecodeBenchOptions {
  DecodeSpec spec; ///< Of family replay. Packed kernels run beside it.
  std::vector<int> batches = {1, 4, 16, 64, 256};
  int repeats = 20; ///< Replays of each graph of launches.
  bool phases = true;
  const TuningTable *measured = nullptr; ///< Whose tunings count; may be null.
};

/// Each kernel is compared with fp64 before it is timed; one that is wrong is
/// an error.
Result<nlohmann::ordered_json> benchDecode(Device &device,
                                           const DecodeBenchOptions &options,
                                           Progress &progress);

/// The table of a document, as text for a terminal.
std::string benchTable(const nlohmann::ordered_json &document);

/// One HTML page that needs nothing else: plots of the share of the ceiling,
/// of the speed over packed decode, and of the latency by ring phase; and the
/// table. Beside `earlier`, another document or null, each time is compared
/// with the one of the same batch, family and launches, and what is slower by
/// more than `regression` is marked.
std::string benchPage(const nlohmann::ordered_json &document,
                      const nlohmann::ordered_json &earlier);
inline constexpr double regression = 0.03;

/// Says in one sentence what a document lacks; `name` is what it is called.
Status checkDocument(const nlohmann::ordered_json &document,
                     const std::string &name);

/// Lines for times that are slower than those of `earlier`; see benchPage.
std::vector<std::string> regressions(const nlohmann::ordered_json &document,
                                     const nlohmann::ordered_json &earlier);

} // namespace replayjit::internal

#endif
