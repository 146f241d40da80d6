//===- Jit.h - From a spec to a kernel that launches ------------*- C++ -*-===//
//
// Memory, then disk, then the compiler (KernelSource); then the device. No LLVM
// behind it: a program without a compiler runs what a cache holds.
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_RUNTIME_JIT_H
#define REPLAYJIT_RUNTIME_JIT_H

#include "runtime/KernelHandle.h"
#include "runtime/KernelSource.h"

#include <functional>
#include <memory>
#include <vector>

namespace replayjit::internal {

struct JitOptions {
  /// Roots and bound; its `diagnose` hears all that is wrong but stops nothing.
  /// The default keeps nothing on disk.
  DiskCacheOptions cache;
  CompileOnceOptions once; ///< mustHit, alwaysCompile, patience.
  /// Null: what is not cached is an error. Of a kernel with PTX and no cubin
  /// the Jit has the device's driver make one.
  CompileFn compile;
  /// Of tunings that were measured; "": tuning.json of the cache's roots, if
  /// there is one (see TuningTable.h).
  std::string tuningFile;
  /// Kernels that prepareAll makes at once; 0: one per processor, at most 16.
  int workers = 0;

  /// `cache`, `once` and `tuningFile` from the environment, and no compiler.
  static Result<JitOptions> fromEnvironment();
};

/// What to prepare: see chooseTuning for `rows`.
struct KernelRequest {
  DecodeSpec spec;
  int rows = 0;
};

/// The kernels of one device. All functions may be called from any thread, but
/// see Device for what others may do with the device meanwhile. Under emulation
/// kernels are compiled in memory and the disk cache is not used.
class Jit {
public:
  /// The Jit and every handle that comes from it share `device`. mustHit is
  /// InvalidArgument under emulation, whose kernels have no form on disk.
  static Result<std::unique_ptr<Jit>> create(std::shared_ptr<Device> device,
                                             JitOptions options);
  /// The same, but `device` is the caller's, who keeps it until the last of
  /// them is gone.
  static Result<std::unique_ptr<Jit>> create(Device &device,
                                             JitOptions options);
  ~Jit();
  Jit(const Jit &) = delete;
  Jit &operator=(const Jit &) = delete;

  /// The tuning that `prepare` takes for `rows` requests.
  DecodeTuning choose(const DecodeSpec &spec, int rows) const;

  /// The kernel for `rows` requests that decode together (0: a large batch). A
  /// kernel that is in memory is found without a lock. Else it is looked up or
  /// compiled, and loaded, once however many threads ask; all get the one
  /// error if it fails, and the next call tries again.
  ///
  /// `stream` is where the caller is about to launch. While it is under capture
  /// (see Device::checkNoCapture, also for a stream that is not named) only
  /// what is in memory is had: all else is InvalidArgument, before anything is
  /// done that would spoil the capture.
  Result<KernelHandle> prepare(const DecodeSpec &spec, int rows,
                               void *stream = nullptr);
  /// The same with a tuning of the caller's.
  Result<KernelHandle> prepare(const DecodeSpec &spec,
                               const DecodeTuning &tuning,
                               void *stream = nullptr);

  /// Hears of each request when it is done: how many are, of how many, and the
  /// outcome of this one. From one thread at a time, though not always the
  /// same.
  using Progress = std::function<void(size_t done, size_t total,
                                      const Result<KernelHandle> &)>;

  /// Prepares all in parallel, for an engine's start; `stream` as in prepare.
  /// Returns the outcome of each, in the order of the requests. `progress` may
  /// be null.
  std::vector<Result<KernelHandle>>
  prepareAll(const std::vector<KernelRequest> &requests,
             const Progress &progress = nullptr, void *stream = nullptr);

  Device &device() const;

  /// What the disk cache was asked; memory hits are not counted.
  CacheCounters counters() const;

private:
  class State;
  explicit Jit(std::unique_ptr<State> state);
  std::unique_ptr<State> state;
};

} // namespace replayjit::internal

#endif
