//===- Target.cpp - The table of GPUs -------------------------------------===//

#include "base/Target.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace replayjit::internal {

// Shared memory per block: CUDA C++ Programming Guide, "Technical
// Specifications per Compute Capability" (opt-in maximum).
static const std::vector<Target> &table() {
  static const std::vector<Target> targets = {
      {"sm_80", 80, 70, 163 * 1024, false},
      {"sm_86", 86, 71, 99 * 1024, false},
      {"sm_89", 89, 78, 99 * 1024, false},
      {"sm_90", 90, 80, 227 * 1024, true},
      {"sm_90a", 90, 80, 227 * 1024, true},
      {"sm_100", 100, 87, 227 * 1024, true},
      {"sm_100a", 100, 87, 227 * 1024, true},
      {"sm_103a", 103, 88, 227 * 1024, true},
      {"sm_120", 120, 88, 99 * 1024, true},
      {"sm_120a", 120, 88, 99 * 1024, true},
  };
  return targets;
}

const std::vector<std::string> &Target::names() {
  static const std::vector<std::string> all = [] {
    std::vector<std::string> chips;
    for (const Target &target : table())
      chips.push_back(target.chip);
    return chips;
  }();
  return all;
}

Result<Target> Target::parse(std::string_view chip) {
  for (const Target &target : table())
    if (target.chip == chip)
      return target;
  return Status::invalid(fmt::format("target: '{}' is unknown; allowed are {}",
                                     chip, fmt::join(names(), ", ")));
}

} // namespace replayjit::internal
