//===- BenchCommands.h - Subcommands of replay-bench ------------*- C++ -*-===//
#ifndef REPLAYJIT_TOOLS_BENCHCOMMANDS_H
#define REPLAYJIT_TOOLS_BENCHCOMMANDS_H

#include "tools/DecodeBench.h"
#include "tools/SpecOptions.h"
#include "tools/Tune.h"

#include <string>

namespace replayjit::internal {

/// Where a measurement goes, and what it is compared with.
struct BenchOutput {
  std::string json, html, against;

  void addTo(CLI::App &app);
};

/// replay-bench decode: measures.
class DecodeCommand {
public:
  explicit DecodeCommand(CLI::App &app);
  int run();
  CLI::App *app;

private:
  SpecOptions kernel;
  DecodeBenchOptions bench;
  BenchOutput output;
  int ordinal = 0;
  bool noPhases = false;
};

/// replay-bench page: shows what was measured before.
class PageCommand {
public:
  explicit PageCommand(CLI::App &app);
  int run();
  CLI::App *app;

private:
  std::string file;
  BenchOutput output;
};

/// replay-bench tune: looks for the fastest tunings.
class TuneCommand {
public:
  explicit TuneCommand(CLI::App &app);
  int run();
  CLI::App *app;

private:
  /// Packed, and replay for each depth and ring type.
  std::vector<DecodeSpec> specsOf(const DecodeSpec &spec) const;

  SpecOptions kernel;
  TuneOptions options;
  std::vector<int> depths;
  std::vector<std::string> ringTypes;
  std::string file;
  int ordinal = 0;
};

} // namespace replayjit::internal

#endif
