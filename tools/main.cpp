//===- main.cpp - All tools in one binary ---------------------------------===//
//
// One copy of LLVM serves every tool. The name under which the binary is called
// picks the tool; called as replayjit-tools, its first argument does.
//
//===----------------------------------------------------------------------===//

#include "tools/Tools.h"

#ifdef REPLAYJIT_COMPILER
#include "llvm/Support/ErrorHandling.h"
#endif

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <string>
#include <string_view>

namespace {
struct Tool {
  std::string_view name;
  int (*run)(int argc, char **argv);
};
constexpr Tool tools[] = {
#ifdef REPLAYJIT_COMPILER
    {"replay-opt", replayjit::internal::replayOpt},
    {"replay-compile", replayjit::internal::replayCompile},
    {"replay-run", replayjit::internal::replayRun},
    {"replay-bench", replayjit::internal::replayBench},
#endif
    {"replay-cache", replayjit::internal::replayCache}};

const Tool *find(std::string_view path) {
  std::string_view name = path.substr(path.rfind('/') + 1);
  for (const Tool &tool : tools)
    if (tool.name == name)
      return &tool;
  return nullptr;
}
} // namespace

#ifdef REPLAYJIT_COMPILER
/// LLVM's back end can only end the process: then with a sentence.
static void onFatalError(void *, const char *reason, bool) {
  std::string text = reason;
  text.resize(std::min(text.size(), text.find('\n')));
  std::_Exit(replayjit::internal::fail("LLVM: " + text));
}
#endif

/// Success is success only if what was printed has gone somewhere.
static int afterFlush(int status) {
  errno = 0;
  if ((std::fflush(stdout) == 0 && !std::ferror(stdout)) || status != 0)
    return status;
  std::string reason = errno ? std::string(": ") + std::strerror(errno) : "";
  return replayjit::internal::fail("output: cannot write to stdout" + reason);
}

int main(int argc, char **argv) {
  const Tool *tool = argc > 0 ? find(argv[0]) : nullptr;
  if (!tool && argc > 1 && (tool = find(argv[1]))) {
    --argc;
    ++argv;
  }
  if (!tool) {
    std::string names;
    for (const Tool &each : tools)
      names += (names.empty() ? "" : "|") + std::string(each.name);
    std::fprintf(
        stderr,
        "usage: replayjit-tools %s [flags]; --help after a tool's name "
        "explains it\n",
        names.c_str());
    return replayjit::internal::exitUsage;
  }
#ifdef REPLAYJIT_COMPILER
  llvm::install_fatal_error_handler(onFatalError);
#endif
  try {
    return afterFlush(tool->run(argc, argv));
  } catch (const std::bad_alloc &) {
    return replayjit::internal::fail("out of memory");
  } catch (const std::exception &problem) { // of CLI11, fmt or the JSON library
    return std::ferror(stdout) ? afterFlush(0)
                               : replayjit::internal::fail(problem.what());
  }
}
