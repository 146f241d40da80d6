//===- CompileAhead.h - Compiling while others measure ----------*- C++ -*-===//
#ifndef REPLAYJIT_TOOLS_COMPILEAHEAD_H
#define REPLAYJIT_TOOLS_COMPILEAHEAD_H

#include "compiler/Compiler.h"

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace replayjit::internal {

/// Does jobs on threads of its own, each with a compiler, in their order.
class CompileAhead {
public:
  using Job = std::function<Result<CompiledKernel>(Compiler &)>;

  CompileAhead(std::vector<Job> jobs, int numThreads);
  /// Waits for the jobs that have begun; the others are not done.
  ~CompileAhead();
  CompileAhead(const CompileAhead &) = delete;

  /// What the next job gave, in their order; waits for it. One thread calls,
  /// once for each job at most.
  Result<CompiledKernel> take();

private:
  void work();

  const std::vector<Job> jobs;
  std::mutex mutex; ///< Of all below but the threads.
  std::condition_variable isDone;
  std::vector<std::optional<Result<CompiledKernel>>> results;
  size_t begun = 0, taken = 0;
  std::vector<std::thread> threads; ///< Last: they use all the others.
};

} // namespace replayjit::internal

#endif
