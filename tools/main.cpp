//===- main.cpp - All tools in one binary ---------------------------------===//
//
// One copy of LLVM serves every tool. The name under which the binary is called
// picks the tool; called as replayjit-tools, its first argument does.
//
//===----------------------------------------------------------------------===//

#include "tools/Tools.h"

#include "llvm/Support/ErrorHandling.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <string_view>

namespace {
struct Tool {
  std::string_view name;
  int (*run)(int argc, char **argv);
};
constexpr Tool tools[] = {{"replay-opt", replayjit::replayOpt},
                          {"replay-compile", replayjit::replayCompile},
                          {"replay-run", replayjit::replayRun},
                          {"replay-cache", replayjit::replayCache},
                          {"replay-bench", replayjit::replayBench}};

const Tool *find(std::string_view path) {
  std::string_view name = path.substr(path.rfind('/') + 1);
  for (const Tool &tool : tools)
    if (tool.name == name)
      return &tool;
  return nullptr;
}
} // namespace

/// LLVM's back end can only end the process: then with a sentence.
static void onFatalError(void *, const char *reason, bool) {
  std::string text = reason;
  text.resize(std::min(text.size(), text.find('\n')));
  std::_Exit(replayjit::fail("LLVM: " + text));
}

int main(int argc, char **argv) {
  const Tool *tool = argc > 0 ? find(argv[0]) : nullptr;
  if (!tool && argc > 1 && (tool = find(argv[1]))) {
    --argc;
    ++argv;
  }
  if (!tool) {
    std::fputs("usage: replayjit-tools replay-opt|replay-compile|replay-run|"
               "replay-cache|replay-bench [flags]; --help after a tool's name "
               "explains it\n",
               stderr);
    return replayjit::exitUsage;
  }
  llvm::install_fatal_error_handler(onFatalError);
  try {
    return tool->run(argc, argv);
  } catch (const std::exception &problem) { // of CLI11 or the JSON library
    return replayjit::fail(problem.what());
  }
}
