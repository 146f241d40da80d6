//===- CompileReports.cpp - Tables about a compilation --------------------===//

#include "tools/CompileReports.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

using namespace replayjit::internal;

std::string replayjit::internal::timingTable(
    const std::vector<std::vector<StageTime>> &runs, double startUp) {
  std::vector<std::string> stages;
  std::map<std::string, std::vector<double>> times; ///< Of each run.
  for (const std::vector<StageTime> &run : runs) {
    double total = 0;
    auto add = [&](const std::string &stage, double milliseconds) {
      if (!times.contains(stage))
        stages.push_back(stage);
      times[stage].push_back(milliseconds);
    };
    for (const StageTime &time : run) {
      add(time.stage, time.milliseconds);
      total += time.milliseconds;
      if (time.stage == "emit PTX")
        add("= spec to PTX", total);
      if (time.stage == "assemble")
        add("= spec to cubin", total);
    }
  }
  std::string text = fmt::format("{:<18}{:>10}", "stage", "first, ms");
  if (runs.size() > 1)
    text += fmt::format("  median of the other {}", runs.size() - 1);
  text += fmt::format("\n{:<18}{:>10.2f}\n", "start-up", startUp);
  for (const std::string &stage : stages) {
    std::vector<double> later = times[stage];
    text += fmt::format("{:<18}{:>10.2f}", stage, later.front());
    later.erase(later.begin());
    if (!later.empty()) {
      auto middle = later.begin() + later.size() / 2;
      std::nth_element(later.begin(), middle, later.end());
      text += fmt::format("{:>12.2f}", *middle);
    }
    text += "\n";
  }
  return text;
}

std::string replayjit::internal::summaryTable(const CompiledKernel &kernel) {
  auto number = [](int value, const char *unit = "") {
    return value < 0 ? std::string("unknown")
                     : fmt::format("{}{}", value, unit);
  };
  const ResourceUsage &usage = kernel.resources;
  const LaunchConfig &launch = kernel.launch;
  const std::pair<const char *, std::string> lines[] = {
      {"name", kernel.name},
      {"target", kernel.target.chip},
      {"blocks per row", number(launch.blocksPerRow)},
      {"threads", number(launch.threads)},
      {"registers", number(usage.registers)},
      {"spills", number(usage.spillStoreBytes, " bytes") + " stored, " +
                     number(usage.spillLoadBytes) + " loaded"},
      {"stack", number(usage.stackBytes, " bytes")},
      {"shared", number(launch.sharedBytes, " bytes dynamic, ") +
                     number(usage.staticSharedBytes) + " static"},
      {"PTX", number(kernel.ptx.size(), " bytes")},
      {"cubin", number(kernel.cubin.size(), " bytes")},
      {"assembler", kernel.assembler.empty() ? "none" : kernel.assembler},
  };
  std::string text;
  for (const auto &[name, value] : lines)
    text += fmt::format("{:<16}{}\n", name, value);
  return text;
}

Status replayjit::internal::checkSpills(const CompiledKernel &kernel) {
  const ResourceUsage &usage = kernel.resources;
  if (usage.spillStoreBytes < 0 || usage.spillLoadBytes < 0 ||
      usage.stackBytes < 0)
    return Status::error(StatusCode::Unsupported,
                         fmt::format("fail-on-spill: {} did not report the "
                                     "spills of {}",
                                     kernel.assembler, kernel.name));
  if (usage.spillStoreBytes + usage.spillLoadBytes + usage.stackBytes == 0)
    return Status::ok();
  return Status::error(
      StatusCode::AssembleFailed,
      fmt::format("fail-on-spill: {} spills {} bytes stored and {} loaded, "
                  "with {} bytes of stack; none are allowed",
                  kernel.name, usage.spillStoreBytes, usage.spillLoadBytes,
                  usage.stackBytes));
}
