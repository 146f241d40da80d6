//===- CompileAhead.cpp - Compiling while others measure ------------------===//

#include "tools/CompileAhead.h"

#include <algorithm>

using namespace replayjit::internal;

CompileAhead::CompileAhead(std::vector<Job> given, int numThreads)
    : jobs(std::move(given)), results(jobs.size()) {
  const size_t count = std::min<size_t>(std::max(1, numThreads), jobs.size());
  for (size_t i = 0; i < count; ++i)
    threads.emplace_back([this] { work(); });
}

CompileAhead::~CompileAhead() {
  {
    std::lock_guard lock(mutex);
    begun = jobs.size();
  }
  for (std::thread &thread : threads)
    thread.join();
}

void CompileAhead::work() {
  Compiler compiler;
  std::unique_lock lock(mutex);
  while (begun < jobs.size()) {
    const size_t i = begun++;
    lock.unlock();
    Result<CompiledKernel> result = jobs[i](compiler);
    lock.lock();
    results[i] = std::move(result);
    isDone.notify_one();
  }
}

Result<CompiledKernel> CompileAhead::take() {
  std::unique_lock lock(mutex);
  const size_t i = taken++;
  isDone.wait(lock, [&] { return results[i].has_value(); });
  Result<CompiledKernel> result = std::move(*results[i]);
  results[i].reset();
  return result;
}
