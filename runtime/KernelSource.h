//===- KernelSource.h - The one way to a kernel's code ----------*- C++ -*-===//
//
// For the Jit, replay-compile and its bundle alike: a request is judged,
// brought to its canonical form, looked up, and compiled once if it is not
// there. No LLVM behind it: the compiler is a function that the caller passes
// (see CompileOnMiss.h).
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_RUNTIME_KERNELSOURCE_H
#define REPLAYJIT_RUNTIME_KERNELSOURCE_H

#include "runtime/cache/CompileOnce.h"

#include <functional>

namespace replayjit::internal {

/// What a compiler is asked for. `forHost`: a host program, for emulation.
struct CompileRequest {
  DecodeSpec spec;
  DecodeTuning tuning;
  Target target;
  bool forHost = false;
};

/// Compiles a valid request in canonical form. Called from several threads at
/// once; does not throw, and asks no KernelSource for anything.
using CompileFn = std::function<Result<CompiledKernel>(const CompileRequest &)>;

/// Answers requests from a cache and a compiler. Thread-safe. Not copied or
/// moved.
class KernelSource {
public:
  /// Without `compile`, what is not cached is an error.
  KernelSource(DiskCache cache, CompileOnceOptions options, CompileFn compile)
      : once(std::move(cache), options), compile(std::move(compile)) {}

  /// InvalidArgument or Unsupported if the request is not legal; else as
  /// CompileOnce says. Host programs have no form on disk: they are compiled.
  Result<CompileOnce::Answer> find(CompileRequest request);

  CacheCounters counters() const { return once.counters(); }

private:
  CompileOnce once;
  const CompileFn compile;
};

} // namespace replayjit::internal

#endif
