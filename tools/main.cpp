//===- main.cpp - All tools in one binary ---------------------------------===//
//
// One copy of LLVM serves every tool. The name under which the binary is called
// picks the tool; called as replayjit-tools, its first argument does.
//
//===----------------------------------------------------------------------===//

#include "tools/Tools.h"

#include <cstdio>
#include <exception>
#include <string_view>

namespace {
struct Tool {
  std::string_view name;
  int (*run)(int argc, char **argv);
};
constexpr Tool tools[] = {{"replay-opt", replayjit::replayOpt},
                          {"replay-compile", replayjit::replayCompile},
                          {"replay-run", replayjit::replayRun}};

const Tool *find(std::string_view path) {
  std::string_view name = path.substr(path.rfind('/') + 1);
  for (const Tool &tool : tools)
    if (tool.name == name)
      return &tool;
  return nullptr;
}
} // namespace

int main(int argc, char **argv) {
  const Tool *tool = argc > 0 ? find(argv[0]) : nullptr;
  if (!tool && argc > 1 && (tool = find(argv[1]))) {
    --argc;
    ++argv;
  }
  if (!tool) {
    std::fputs("usage: replayjit-tools replay-opt|replay-compile|replay-run "
               "[flags]; --help after a tool's name explains it\n",
               stderr);
    return replayjit::exitUsage;
  }
  try {
    return tool->run(argc, argv);
  } catch (const std::exception &problem) { // of CLI11 or the JSON library
    return replayjit::fail(problem.what());
  }
}
