//===- CompileOnce.cpp - From the cache, or compiled once -----------------===//

#include "runtime/cache/CompileOnce.h"

#include "base/Exceptions.h"
#include "runtime/cache/CompileLock.h"

#include <cstdlib>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace replayjit::internal {

static Result<bool> readSwitch(const char *name) {
  const char *text = getenv(name);
  const std::string_view found = text ? text : "";
  if (found.empty() || found == "0" || found == "1")
    return found == "1";
  return Status::invalid(
      fmt::format("{}: '{}' is not allowed; it must be 0 or 1", name, found));
}

Result<bool> CompileOnceOptions::mustHitFromEnvironment() {
  return readSwitch("REPLAYJIT_MUST_HIT");
}

Result<bool> CompileOnceOptions::alwaysCompileFromEnvironment() {
  return readSwitch("REPLAYJIT_ALWAYS_COMPILE");
}

Result<CompileOnceOptions> CompileOnceOptions::fromEnvironment() {
  const Result<bool> mustHit = mustHitFromEnvironment();
  if (!mustHit)
    return mustHit.status();
  const Result<bool> alwaysCompile = alwaysCompileFromEnvironment();
  if (!alwaysCompile)
    return alwaysCompile.status();
  CompileOnceOptions options;
  options.mustHit = *mustHit;
  options.alwaysCompile = *alwaysCompile;
  if (options.mustHit && options.alwaysCompile)
    return Status::invalid("REPLAYJIT_MUST_HIT and REPLAYJIT_ALWAYS_COMPILE "
                           "exclude each other; unset one");
  return options;
}

CompileOnce::CompileOnce(DiskCache cache, CompileOnceOptions options)
    : cache(std::move(cache)), options(options) {}

CacheCounters CompileOnce::counters() const {
  std::lock_guard lock(mutex);
  return counts;
}

void CompileOnce::count(uint64_t CacheCounters::*counter) {
  std::lock_guard lock(mutex);
  ++(counts.*counter);
}

Result<CompileOnce::Answer> CompileOnce::findOrCompile(
    const CacheKey &key,
    const std::function<Result<CompiledKernel>()> &compile) {
  auto flight = std::make_shared<Flight>();
  {
    std::unique_lock lock(mutex);
    auto [place, isFirst] = flights.try_emplace(key.digest, flight);
    if (!isFirst) {
      flight = place->second;
      ++counts.waits;
      landed.wait(lock, [&] { return flight->isDone; });
      Result<Answer> answer = flight->answer;
      if (answer) {
        answer->isCompiled = false;
        ++counts.hits;
      }
      return answer;
    }
  }
  Result<Answer> answer =
      withoutThrowing([&] { return lookUp(key, compile); }); // Others wait.
  {
    std::lock_guard lock(mutex);
    flight->answer = std::move(answer);
    flight->isDone = true;
    flights.erase(key.digest);
  }
  landed.notify_all();
  return flight->answer;
}

Result<CompileOnce::Answer>
CompileOnce::lookUp(const CacheKey &key,
                    const std::function<Result<CompiledKernel>()> &compile) {
  constexpr std::string_view noCompiler = "this program has no compiler";
  if (options.alwaysCompile)
    return compile ? compileAndPublish(key, compile)
                   : Result<Answer>(missing(key, noCompiler));
  using Faults = DiskCache::Faults;
  auto find = [&](Faults faults) -> std::optional<Answer> {
    std::optional<CompiledKernel> kernel = cache.find(key, faults);
    if (!kernel)
      return std::nullopt;
    count(&CacheCounters::hits);
    return Answer{std::move(*kernel), false};
  };
  if (std::optional<Answer> hit = find(Faults::Told))
    return std::move(*hit);
  count(&CacheCounters::misses);
  if (options.mustHit)
    return missing(key, "REPLAYJIT_MUST_HIT forbids to compile it");
  if (!compile)
    return missing(key, noCompiler);
  if (!cache.keeps())
    return compileAndPublish(key, compile);

  Result<CompileLock> lock =
      CompileLock::acquire(cache.lockFolder(), key.digest, options.patience);
  if (!lock)
    cache.report("cache: " + lock.status().message +
                 "; this process compiles for itself");
  if (lock ? lock->waited() : lock.status().code == StatusCode::NotFound)
    count(&CacheCounters::waits);
  // Another may have published since the first look, whether we waited or not.
  // What is damaged the first look has told.
  if (std::optional<Answer> hit = find(Faults::NotTold))
    return std::move(*hit);
  return compileAndPublish(key, compile);
}

Result<CompileOnce::Answer> CompileOnce::compileAndPublish(
    const CacheKey &key,
    const std::function<Result<CompiledKernel>()> &compile) {
  count(&CacheCounters::compiles);
  Result<CompiledKernel> kernel = compile();
  if (!kernel)
    return kernel.status();
  if (!cache.keeps())
    return Answer{std::move(*kernel), true};
  using Replace = DiskCache::Replace;
  Result<DiskCache::Published> published = cache.publish(
      key, *kernel, options.alwaysCompile ? Replace::Always : Replace::Damaged);
  if (!published)
    cache.report(published.status().message + "; this kernel is not kept");
  else if (*published == DiskCache::Published::WasThere)
    // All processes of a host had better run the same bytes.
    if (std::optional<CompiledKernel> winner = cache.find(key))
      return Answer{std::move(*winner), true};
  return Answer{std::move(*kernel), true};
}

Status CompileOnce::missing(const CacheKey &key,
                            std::string_view reason) const {
  return Status::error(StatusCode::NotFound,
                       fmt::format("{} for {} is not cached, and {}: {}",
                                   kernelName(key.spec, key.tuning),
                                   key.target.chip, reason,
                                   fmt::join(cache.explain(key), "\n  ")));
}

} // namespace replayjit::internal
