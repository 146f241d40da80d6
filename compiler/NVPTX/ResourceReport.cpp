//===- ResourceReport.cpp - Registers and spills out of a log -------------===//

#include "compiler/NVPTX/ResourceReport.h"

#include <charconv>

namespace replayjit::internal {

/// The number right before `label` in `line`, or -1: the log puts every
/// quantity before its name ("8 bytes stack frame").
static int numberBefore(std::string_view line, std::string_view label) {
  size_t end = line.find(label);
  if (end == std::string_view::npos)
    return -1;
  size_t begin = end;
  while (begin > 0 && line[begin - 1] >= '0' && line[begin - 1] <= '9')
    --begin;
  int value = -1;
  std::from_chars(line.data() + begin, line.data() + end, value);
  return value;
}

/// The function that `line` names after `label`, quotes removed; empty if the
/// line does not have the label.
static std::string_view nameAfter(std::string_view line,
                                  std::string_view label) {
  size_t at = line.find(label);
  if (at == std::string_view::npos)
    return {};
  std::string_view name = line.substr(at + label.size());
  bool quoted = !name.empty() && name.front() == '\'';
  if (quoted)
    name.remove_prefix(1);
  return name.substr(0, name.find_first_of(quoted ? "'" : " :\r"));
}

ResourceUsage parseResourceReport(std::string_view log,
                                  std::string_view kernelName) {
  ResourceUsage usage;
  std::string_view entry;    // The entry being compiled.
  std::string_view function; // The function the next properties belong to.
  while (!log.empty()) {
    size_t end = log.find('\n');
    std::string_view line = log.substr(0, end);
    log.remove_prefix(end == std::string_view::npos ? log.size() : end + 1);

    if (auto name = nameAfter(line, "Compiling entry function ");
        !name.empty()) {
      entry = name;
      function = {};
    } else if (name = nameAfter(line, "Function properties for ");
               !name.empty()) {
      function = name;
    } else if (function == kernelName &&
               line.find("bytes stack frame") != line.npos) {
      usage.stackBytes = numberBefore(line, " bytes stack frame");
      usage.spillStoreBytes = numberBefore(line, " bytes spill stores");
      usage.spillLoadBytes = numberBefore(line, " bytes spill loads");
    } else if (entry == kernelName && line.find(": Used ") != line.npos) {
      usage.registers = numberBefore(line, " registers");
      // ptxas leaves out what is zero.
      int shared = numberBefore(line, " bytes smem");
      usage.staticSharedBytes = shared < 0 ? 0 : shared;
    } else if (function == kernelName && line.find(": used ") != line.npos &&
               usage.registers < 0) {
      // nvJitLink's summary of the linked kernel counts only where the compile
      // step said nothing: it has no spills, and its shared memory includes
      // what the hardware reserves.
      usage.registers = numberBefore(line, " registers");
      usage.stackBytes = numberBefore(line, " stack,");
    }
  }
  return usage;
}

} // namespace replayjit::internal
