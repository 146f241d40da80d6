//===- Tools.h - What the tools share ---------------------------*- C++ -*-===//
#ifndef REPLAYJIT_TOOLS_TOOLS_H
#define REPLAYJIT_TOOLS_TOOLS_H

#include <cstdio>
#include <string>

namespace replayjit::internal {

/// The tools. Each returns its exit status.
int replayOpt(int argc, char **argv);
int replayCompile(int argc, char **argv);
int replayBundle(int argc, char **argv); ///< replay-compile bundle
int replayRun(int argc, char **argv);
int replayCache(int argc, char **argv);
int replayBench(int argc, char **argv);

inline constexpr int exitFailure = 1; ///< What was asked for did not work.
inline constexpr int exitUsage = 2;   ///< The command line makes no sense.

/// Reports one sentence and returns `code`.
inline int fail(const std::string &sentence, int code = exitFailure) {
  std::fflush(stdout); // keeps the order where both go to one file
  std::fprintf(stderr, "error: %s\n", sentence.c_str());
  return code;
}

/// Reports one sentence about what is wrong but stops nothing.
inline void warn(const std::string &sentence) {
  std::fflush(stdout);
  std::fprintf(stderr, "warning: %s\n", sentence.c_str());
}

} // namespace replayjit::internal

#endif
