//===- CommandLine.h - Flags, and sentences for wrong ones ------*- C++ -*-===//
//
// CLI11 with messages like ours: the flag, the value found, what is allowed.
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_TOOLS_COMMANDLINE_H
#define REPLAYJIT_TOOLS_COMMANDLINE_H

#include <CLI/CLI.hpp>

#include <optional>
#include <string>
#include <vector>

namespace replayjit::internal {

/// Parses the command line; a value is the status to exit with at once.
std::optional<int> parse(CLI::App &app, int argc, char **argv);

/// Accepts the words of a list.
CLI::Validator oneOf(std::vector<std::string> allowed);

/// Accepts integers from `low` to `high`.
CLI::Validator within(int low, int high);

} // namespace replayjit::internal

#endif
