//===- CompileLock.h - One process compiles a key ---------------*- C++ -*-===//
//
// Saves work and nothing else: the cache is correct without it. A lock is a
// file per key under flock, which the kernel drops when its holder dies.
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_RUNTIME_CACHE_COMPILELOCK_H
#define REPLAYJIT_RUNTIME_CACHE_COMPILELOCK_H

#include "runtime/cache/FileSystem.h"

#include <chrono>
#include <string>

namespace replayjit::internal {

/// Held from `acquire` until it is destroyed; then the file is removed.
class CompileLock {
public:
  /// flock(2), or a test's stand-in.
  using Flock = int (*)(int descriptor, int operation);

  /// The lock `name` in `folder`, which is made if missing. Another holder is
  /// waited for as long as `patience`. An error says why there is no lock:
  /// StorageFailed where files cannot be made or locked, NotFound where the
  /// holder took longer. The caller then goes on without.
  static Result<CompileLock> acquire(const std::string &folder,
                                     const std::string &name,
                                     std::chrono::milliseconds patience,
                                     Flock flock = nullptr);
  CompileLock(CompileLock &&) = default;
  CompileLock &operator=(CompileLock &&) = delete;
  ~CompileLock();

  /// Another holder was waited for.
  bool waited() const { return hasWaited; }

  /// Removes lock files that nobody holds, as killed holders leave them.
  static void removeUnused(const std::string &folder);

private:
  CompileLock(Descriptor file, std::string path, bool hasWaited)
      : file(std::move(file)), path(std::move(path)), hasWaited(hasWaited) {}
  Descriptor file;
  std::string path;
  bool hasWaited;
};

} // namespace replayjit::internal

#endif
