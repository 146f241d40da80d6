//===- CompileOnceTest.cpp - From the cache, or compiled once -------------===//

#include "runtime/cache/CompileOnce.h"
#include "runtime/cache/CompileLock.h"
#include "tests/unit/CacheTestSupport.h"

#include <atomic>
#include <cerrno>
#include <sys/file.h>
#include <thread>

using namespace replayjit::internal;
using namespace replayjit::internal::test;
using namespace std::chrono_literals;
using Catch::Matchers::Contains;

namespace {

std::function<Result<CompiledKernel>()> compiles(const CacheKey &key,
                                                 std::atomic<int> &count) {
  return [&count, key]() -> Result<CompiledKernel> {
    ++count;
    return kernelOf(key);
  };
}

template <int code> int failing(int, int) {
  errno = code;
  return -1;
}

} // namespace

TEST_CASE("a miss compiles, then everyone hits") {
  TestFolder folder;
  const CacheKey key = keyOf(0);
  std::atomic<int> count = 0;
  CompileOnce once(openAt(folder.path), {});
  auto answer = once.findOrCompile(key, compiles(key, count));
  REQUIRE(answer);
  CHECK(answer->isCompiled);
  CHECK(isSame(answer->kernel, kernelOf(key)));
  answer = once.findOrCompile(key, compiles(key, count));
  REQUIRE(answer);
  CHECK_FALSE(answer->isCompiled);
  CHECK(isSame(answer->kernel, kernelOf(key)));
  CompileOnce other(openAt(folder.path), {});
  CHECK(other.findOrCompile(key, compiles(key, count)));
  CHECK(count == 1);
  CHECK(once.counters().hits == 1);
  CHECK(once.counters().misses == 1);
  CHECK(once.counters().compiles == 1);
  CHECK(once.counters().waits == 0);
  CHECK(other.counters().hits == 1);
  // No lock stays behind.
  CHECK(fs::is_empty(folder / ".locks"));
}

TEST_CASE("threads that ask for one key share one compilation") {
  TestFolder folder;
  CompileOnce once(openAt(folder.path), {});
  const CacheKey key = keyOf(0);
  std::atomic<int> count = 0, right = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&] {
      auto answer = once.findOrCompile(key, [&]() -> Result<CompiledKernel> {
        ++count;
        std::this_thread::sleep_for(50ms);
        return kernelOf(key);
      });
      right += answer && isSame(answer->kernel, kernelOf(key));
    });
  for (std::thread &thread : threads)
    thread.join();
  CHECK(count == 1);
  CHECK(right == 8);
  CHECK(once.counters().compiles == 1);
  CHECK(once.counters().hits == 7);
}

TEST_CASE("an error of the compiler reaches all who asked, and is not kept") {
  TestFolder folder;
  CompileOnce once(openAt(folder.path), {});
  const CacheKey key = keyOf(0);
  std::atomic<int> told = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      auto answer = once.findOrCompile(key, []() -> Result<CompiledKernel> {
        std::this_thread::sleep_for(20ms);
        return Status::error(StatusCode::AssembleFailed, "no");
      });
      told += answer.status().code == StatusCode::AssembleFailed;
    });
  for (std::thread &thread : threads)
    thread.join();
  CHECK(told == 4);
  std::atomic<int> count = 0;
  CHECK(once.findOrCompile(key, compiles(key, count)));
  CHECK(count == 1);
}

TEST_CASE("mustHit names key, nearest entry and difference") {
  TestFolder folder;
  std::atomic<int> count = 0;
  const CacheKey key = keyOf(0);
  CompileOnceOptions options;
  CompileOnce filler(openAt(folder.path), options);
  REQUIRE(filler.findOrCompile(keyOf(3), compiles(keyOf(3), count)));
  options.mustHit = true;
  CompileOnce once(openAt(folder.path), options);
  CHECK(once.findOrCompile(keyOf(3), compiles(keyOf(3), count)));
  auto answer = once.findOrCompile(key, compiles(key, count));
  CHECK(answer.status().code == StatusCode::NotFound);
  CHECK_THAT(answer.status().message,
             Contains(kernelName(key.spec, key.tuning) + " for sm_90a") &&
                 Contains("REPLAYJIT_MUST_HIT") && Contains(key.digest) &&
                 Contains("nearest entry is " + keyOf(3).digest) &&
                 Contains("spec.ringDepth: 2 is asked for; the entry has 5"));
  CHECK(count == 1);
}

TEST_CASE("without a compiler nothing counts as compiled") {
  TestFolder folder;
  CompileOnceOptions options;
  options.alwaysCompile = GENERATE(false, true);
  CompileOnce once(openAt(folder.path), options);
  auto answer = once.findOrCompile(keyOf(0), nullptr);
  CHECK(answer.status().code == StatusCode::NotFound);
  CHECK_THAT(answer.status().message,
             Contains("is not cached, and this program has no compiler: "));
  CHECK(once.counters().compiles == 0);
  CHECK_FALSE(fs::exists(folder / ".locks"));
}

TEST_CASE("a damaged entry is told once") {
  TestFolder folder;
  auto heard = std::make_shared<std::vector<std::string>>();
  std::atomic<int> count = 0;
  const CacheKey key = keyOf(0);
  CompileOnce once(openAt(folder.path, heard), {});
  REQUIRE(once.findOrCompile(key, compiles(key, count)));
  spit(folder / key.digest + "/kernel.cubin", "damaged");
  auto answer = once.findOrCompile(key, compiles(key, count));
  REQUIRE(answer);
  CHECK(answer->isCompiled);
  CHECK(count == 2);
  REQUIRE(heard->size() == 1);
  CHECK_THAT(heard->front(), Contains("is not used"));
}

TEST_CASE("alwaysCompile replaces what is there") {
  TestFolder folder;
  std::atomic<int> count = 0;
  const CacheKey key = keyOf(0);
  CompiledKernel stale = kernelOf(key);
  stale.ptx = "// stale\n";
  REQUIRE(openAt(folder.path).publish(key, stale));
  CompileOnceOptions options;
  options.alwaysCompile = true;
  CompileOnce once(openAt(folder.path), options);
  for (int i = 0; i < 2; ++i) {
    auto answer = once.findOrCompile(key, compiles(key, count));
    REQUIRE(answer);
    CHECK(answer->isCompiled);
  }
  CHECK(count == 2);
  CHECK(isSame(*openAt(folder.path).find(key), kernelOf(key)));
}

TEST_CASE("switches of the environment") {
  auto read = [](const char *mustHit, const char *always) {
    setenv("REPLAYJIT_MUST_HIT", mustHit, 1);
    setenv("REPLAYJIT_ALWAYS_COMPILE", always, 1);
    auto options = CompileOnceOptions::fromEnvironment();
    unsetenv("REPLAYJIT_MUST_HIT");
    unsetenv("REPLAYJIT_ALWAYS_COMPILE");
    return options;
  };
  CHECK(read("1", "")->mustHit);
  CHECK(read("0", "1")->alwaysCompile);
  CHECK_FALSE(read("0", "")->mustHit);
  CHECK_FALSE(CompileOnceOptions::fromEnvironment()->mustHit);
  CHECK(read("yes", "").status().message ==
        "REPLAYJIT_MUST_HIT: 'yes' is not allowed; it must be 0 or 1");
  CHECK_THAT(read("1", "1").status().message, Contains("exclude each other"));
}

TEST_CASE("without a folder, everything is compiled") {
  std::atomic<int> count = 0;
  const CacheKey key = keyOf(0);
  CompileOnce once(*DiskCache::open(DiskCacheOptions()), {});
  for (int i = 0; i < 2; ++i)
    CHECK(once.findOrCompile(key, compiles(key, count))->isCompiled);
  CHECK(count == 2);
}

TEST_CASE("where locks do not work one goes on without") {
  TestFolder folder;
  for (CompileLock::Flock flock :
       {failing<ENOLCK>, failing<EOPNOTSUPP>, failing<EIO>, failing<ENOSYS>}) {
    Result<CompileLock> lock =
        CompileLock::acquire(folder / "locks", "a", 10'000ms, flock);
    CHECK(lock.status().code == StatusCode::StorageFailed);
  }
  // No lock can even be made.
  auto heard = std::make_shared<std::vector<std::string>>();
  const DiskCache cache = openAt(folder / "root", heard);
  spit(folder / "root/.locks", "");
  std::atomic<int> count = 0;
  CompileOnce once(cache, {});
  auto answer = once.findOrCompile(keyOf(0), compiles(keyOf(0), count));
  REQUIRE(answer);
  CHECK(isSame(answer->kernel, kernelOf(keyOf(0))));
  CHECK(cache.find(keyOf(0)));
  REQUIRE(heard->size() == 1);
  CHECK_THAT(heard->front(), Contains("this process compiles for itself"));
}

static std::atomic<int> refusals = 0; ///< By flock(2), of countedFlock.

static int countedFlock(int descriptor, int operation) {
  const int result = flock(descriptor, operation);
  refusals += result != 0;
  return result;
}

TEST_CASE("a lock held too long is given up") {
  TestFolder folder;
  Result<CompileLock> holder = CompileLock::acquire(folder.path, "key", 1000ms);
  REQUIRE(holder);
  CHECK_FALSE(holder->waited());
  // Another lock is free.
  CHECK(CompileLock::acquire(folder.path, "other", 0ms));
  Result<CompileLock> second = CompileLock::acquire(folder.path, "key", 80ms);
  CHECK(second.status().code == StatusCode::NotFound);
  CHECK_THAT(second.status().message, Contains("for 80 ms"));

  // One who waits gets it, on a new file of the same name.
  refusals = 0;
  std::thread releaser([&] {
    while (refusals == 0)
      std::this_thread::yield();
    CompileLock dropped = std::move(*holder);
  });
  Result<CompileLock> third =
      CompileLock::acquire(folder.path, "key", 60'000ms, countedFlock);
  releaser.join();
  REQUIRE(third);
  CHECK(third->waited());
}
