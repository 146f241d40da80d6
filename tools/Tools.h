//===- Tools.h - What the tools share ---------------------------*- C++ -*-===//
#ifndef REPLAYJIT_TOOLS_TOOLS_H
#define REPLAYJIT_TOOLS_TOOLS_H

#include <CLI/CLI.hpp>

#include <cstdio>
#include <optional>
#include <string>

namespace replayjit {

/// The tools. Each returns its exit status.
int replayOpt(int argc, char **argv);
int replayCompile(int argc, char **argv);
int replayRun(int argc, char **argv);

inline constexpr int exitFailure = 1; ///< What was asked for did not work.
inline constexpr int exitUsage = 2;   ///< The command line makes no sense.

/// Reports one sentence and returns `code`.
inline int fail(const std::string &sentence, int code = exitFailure) {
  std::fflush(stdout); // keeps the order where both go to one file
  std::fprintf(stderr, "error: %s\n", sentence.c_str());
  return code;
}

/// Parses the command line; a value is the status to exit with at once.
inline std::optional<int> parse(CLI::App &app, int argc, char **argv) {
  try {
    app.parse(argc, argv);
    return std::nullopt;
  } catch (const CLI::Success &help) {
    return app.exit(help);
  } catch (const CLI::ParseError &problem) {
    std::string sentence = problem.what();
    if (size_t line = sentence.find('\n'); line != std::string::npos)
      sentence.resize(line);
    return fail(sentence, exitUsage);
  }
}

} // namespace replayjit

#endif
