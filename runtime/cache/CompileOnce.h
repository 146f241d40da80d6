//===- CompileOnce.h - From the cache, or compiled once ---------*- C++ -*-===//
#ifndef REPLAYJIT_RUNTIME_CACHE_COMPILEONCE_H
#define REPLAYJIT_RUNTIME_CACHE_COMPILEONCE_H

#include "runtime/cache/DiskCache.h"

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

namespace replayjit::internal {

struct CompileOnceOptions {
  bool mustHit = false;       ///< A miss is an error; nothing is compiled.
  bool alwaysCompile = false; ///< What is cached is not looked at but replaced.
  /// How long another process's compilation is waited for. After that this
  /// process compiles for itself.
  std::chrono::milliseconds patience{60'000};

  /// REPLAYJIT_MUST_HIT and REPLAYJIT_ALWAYS_COMPILE: 1, or 0 as if unset.
  /// InvalidArgument for other values, or both.
  static Result<CompileOnceOptions> fromEnvironment();
  /// Each by itself, for who has the other from elsewhere.
  static Result<bool> mustHitFromEnvironment();
  static Result<bool> alwaysCompileFromEnvironment();
};

/// What a CompileOnce has done so far.
struct CacheCounters {
  uint64_t hits = 0;     ///< Answered by an entry, or by another thread's call.
  uint64_t misses = 0;   ///< Of the first look; some become hits by waiting.
  uint64_t compiles = 0; ///< Compilations that a miss of this object started.
  uint64_t waits = 0;    ///< Calls that waited for another thread or process.
};

/// Answers keys from a cache and compiles what is not there: once per key among
/// the threads that share this object and, where file locks work, among the
/// processes that share the first root. Thread-safe. Not copied or moved.
class CompileOnce {
public:
  CompileOnce(DiskCache cache, CompileOnceOptions options);
  CompileOnce(const CompileOnce &) = delete;
  CompileOnce &operator=(const CompileOnce &) = delete;

  struct Answer {
    CompiledKernel kernel;
    bool isCompiled = false; ///< By this very call.
  };
  /// `compile` must not throw, and must not ask for the same key. Its error is
  /// returned as it is, also to those who waited for it. A failure to publish
  /// is reported by the cache's `diagnose` and is no error. With mustHit, or
  /// with a null `compile`, a miss is NotFound, with the nearest entry and what
  /// differs; nobody is waited for.
  Result<Answer>
  findOrCompile(const CacheKey &key,
                const std::function<Result<CompiledKernel>()> &compile);

  CacheCounters counters() const;
  const DiskCache &diskCache() const { return cache; }

private:
  /// One key on its way; later callers wait for it.
  struct Flight {
    bool isDone = false;
    Result<Answer> answer = Status();
  };
  Result<Answer> lookUp(const CacheKey &key,
                        const std::function<Result<CompiledKernel>()> &compile);
  Result<Answer>
  compileAndPublish(const CacheKey &key,
                    const std::function<Result<CompiledKernel>()> &compile);
  Status missing(const CacheKey &key, std::string_view reason) const;
  void count(uint64_t CacheCounters::*counter);

  const DiskCache cache;
  const CompileOnceOptions options;
  mutable std::mutex mutex; ///< Of all below.
  std::condition_variable landed;
  std::map<std::string, std::shared_ptr<Flight>> flights; ///< By digest.
  CacheCounters counts;
};

} // namespace replayjit::internal

#endif
