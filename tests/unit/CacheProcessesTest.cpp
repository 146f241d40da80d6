//===- CacheProcessesTest.cpp - Many processes, some of them killed -------===//

#include "runtime/cache/CompileOnce.h"
#include "tests/unit/CacheTestSupport.h"
#include "tests/unit/Skip.h"

#include <atomic>
#include <csignal>
#include <cstddef>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <thread>

using namespace replayjit::internal;
using namespace replayjit::internal::test;
using namespace std::chrono_literals;

namespace {

constexpr int keys = 4;

/// What processes tell each other.
struct Board {
  std::atomic<bool> go;
  std::atomic<int> waiting;
  std::atomic<int> compiles[keys];
};

/// Asks for every key, beginning at a different one in each process.
int askForAll(CompileOnce &once, Board &board, int first,
              std::chrono::milliseconds compileTime) {
  for (int i = 0; i < keys; ++i) {
    const int n = (first + i) % keys;
    auto answer = once.findOrCompile(keyOf(n), [&]() -> Result<CompiledKernel> {
      ++board.compiles[n];
      std::this_thread::sleep_for(compileTime);
      return kernelOf(keyOf(n));
    });
    EXPECT(answer);
    EXPECT(isSame(answer->kernel, kernelOf(keyOf(n))));
  }
  return 0;
}

/// From here on a system call of this process fails with `code`, as on a file
/// system that lacks it. False if this kernel cannot do that.
bool forbid(int number, int code) {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, unsigned(number), 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | unsigned(code)),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const sock_fprog filter = {4, program};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

void checkAllClean(const std::string &root) {
  const DiskCache cache = openAt(root);
  for (const CacheEntry &entry : cache.verify())
    CHECK(entry.status.message == "");
  CHECK(count(root, ".tmp-") == 0);
}

} // namespace

TEST_CASE("16 processes on one empty cache compile each key once") {
  for (int round = 0; round < 3; ++round) {
    TestFolder folder;
    Shared<Board> board;
    std::vector<pid_t> children;
    for (int i = 0; i < 16; ++i)
      children.push_back(startChild([&, i] {
        while (!board->go)
          std::this_thread::yield();
        CompileOnce once(openAt(folder / "root"), {});
        return askForAll(once, *board.operator->(), i, 30ms);
      }));
    board->go = true;
    for (pid_t child : children)
      CHECK(finish(child) == 0);
    for (int n = 0; n < keys; ++n)
      CHECK(board->compiles[n] == 1);
    CHECK(openAt(folder / "root").list().size() == keys);
    CHECK(fs::is_empty(folder / "root/.locks"));
    checkAllClean(folder / "root");
  }
}

TEST_CASE("16 processes without file locks end with the same kernels") {
  TestFolder folder;
  Shared<Board> board;
  std::vector<pid_t> children;
  for (int i = 0; i < 16; ++i)
    children.push_back(startChild([&, i]() -> int {
      if (!forbid(SYS_flock, ENOLCK))
        return exitSkipped;
      while (!board->go)
        std::this_thread::yield();
      auto heard = std::make_shared<std::vector<std::string>>();
      CompileOnce once(openAt(folder.path, heard), {});
      EXPECT(askForAll(once, *board.operator->(), i, 5ms) == 0);
      for (const std::string &sentence : *heard)
        EXPECT(sentence.find("No locks available") != std::string::npos);
      return 0;
    }));
  board->go = true;
  for (pid_t child : children) {
    const int status = finish(child);
    if (status == exitSkipped)
      return skip("no file locks: system calls cannot be filtered here");
    CHECK(status == 0);
  }
  CHECK(openAt(folder.path).list().size() == keys);
  checkAllClean(folder.path);
}

TEST_CASE("a file system that cannot exchange two names") {
  TestFolder folder;
  const int status = inChild([&]() -> int {
    if (!forbid(SYS_renameat2, EINVAL))
      return exitSkipped;
    const DiskCache cache = openAt(folder.path);
    const CacheKey key = keyOf(0);
    const std::string entry = folder / key.digest;
    EXPECT(cache.publish(key, kernelOf(key)));
    spit(entry + "/kernel.ptx", "damage");
    EXPECT(!cache.find(key));
    EXPECT(cache.publish(key, kernelOf(key)));
    EXPECT(cache.find(key));
    EXPECT(cache.publish(key, kernelOf(key), DiskCache::Replace::Always));
    EXPECT(cache.find(key));
    fs::remove_all(entry);
    spit(entry, "no folder");
    EXPECT(cache.publish(key, kernelOf(key)));
    fs::remove_all(entry);
    fs::create_symlink("nothing", entry);
    EXPECT(cache.publish(key, kernelOf(key)));
    EXPECT(isSame(*cache.find(key), kernelOf(key)));
    return 0;
  });
  if (status == exitSkipped)
    return skip("no exchange of names: system calls cannot be filtered here");
  CHECK(status == 0);
  checkAllClean(folder.path);
}

TEST_CASE("processes that replace and read one entry never see half of it") {
  TestFolder folder;
  const DiskCache cache = openAt(folder.path);
  REQUIRE(cache.publish(keyOf(0), kernelOf(keyOf(0))));
  Shared<Board> board;
  std::vector<pid_t> children;
  for (int i = 0; i < 3; ++i)
    children.push_back(startChild([&] {
      while (!board->go)
        EXPECT(cache.publish(keyOf(0), kernelOf(keyOf(0)),
                             DiskCache::Replace::Always));
      return 0;
    }));
  int wrong = 0;
  for (int i = 0; i < 1000; ++i) {
    std::optional<CompiledKernel> kernel = cache.find(keyOf(0));
    wrong += !kernel || !isSame(*kernel, kernelOf(keyOf(0)));
  }
  board->go = true;
  CHECK(wrong == 0);
  for (pid_t child : children)
    CHECK(finish(child) == 0);
  checkAllClean(folder.path);
}

TEST_CASE("processes that prune while others publish and read") {
  TestFolder folder;
  Shared<Board> board;
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i)
    children.push_back(startChild([&, i] {
      const DiskCache cache = openAt(folder.path);
      for (int round = 0; !board->go; ++round) {
        const CacheKey key = keyOf((round + i) % keys);
        if (std::optional<CompiledKernel> kernel = cache.find(key))
          EXPECT(isSame(*kernel, kernelOf(key)));
        EXPECT(cache.publish(key, kernelOf(key)));
        if (i == 0)
          EXPECT(cache.prune(8000));
      }
      return 0;
    }));
  std::this_thread::sleep_for(500ms);
  board->go = true;
  for (pid_t child : children)
    CHECK(finish(child) == 0);
  checkAllClean(folder.path);
}

/// Runs `body` in a child up to its `stops`th entry into or return from a
/// system call, and kills it there; false if it ended before.
template <typename Body> static bool killedAt(int stops, Body body) {
  const pid_t child = startChild([&] {
    EXPECT(ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) == 0);
    EXPECT(raise(SIGSTOP) == 0);
    return body();
  });
  int state = 0;
  for (int stop = -1; stop < stops; ++stop) { // The first one is its own.
    REQUIRE(waitpid(child, &state, 0) == child);
    if (!WIFSTOPPED(state)) {
      CHECK((WIFEXITED(state) && WEXITSTATUS(state) == 0));
      return false;
    }
    const int signal = stop < 0 || WSTOPSIG(state) == SIGTRAP
                           ? 0
                           : WSTOPSIG(state); // Its own business.
    REQUIRE(ptrace(PTRACE_SYSCALL, child, nullptr, signal) == 0);
  }
  REQUIRE(waitpid(child, &state, 0) == child);
  if (!WIFSTOPPED(state))
    return false;
  REQUIRE(kill(child, SIGKILL) == 0);
  CHECK(finish(child) == 1000 + SIGKILL);
  return true;
}

TEST_CASE("kill -9 at any moment of a publish leaves a miss or the kernel") {
  if (inChild([] {
        return ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) == 0 ? 0
                                                                : exitSkipped;
      }) != 0)
    return skip("kill -9: processes cannot be traced here");
  // What a file system sees of a process are its system calls.
  const CacheKey key = keyOf(0);
  const CompiledKernel kernel = kernelOf(key, 200'000);
  int found = 0, missed = 0, halfway = 0;
  for (int stops = 0;; ++stops) {
    TestFolder folder;
    const bool isKilled = killedAt(stops, [&] {
      const DiskCache cache = openAt(folder.path);
      EXPECT(cache.publish(key, kernel));
      EXPECT(cache.publish(key, kernel, DiskCache::Replace::Always));
      EXPECT(cache.prune(0));
      return 0;
    });
    if (!isKilled)
      break;
    halfway += count(folder.path, ".tmp-") > 0;
    auto heard = std::make_shared<std::vector<std::string>>();
    const DiskCache cache = openAt(folder.path, heard);
    const std::optional<CompiledKernel> seen = cache.find(key);
    ++(seen ? found : missed);
    if (seen)
      CHECK(isSame(*seen, kernel));
    CHECK(heard->empty()); // not even a damaged entry
    checkAllClean(folder.path);
  }
  CHECK(found > 0);
  CHECK(missed > 0);
  CHECK(halfway > 0);
}

TEST_CASE("a killed compiler's lock goes to the next, who compiles") {
  for (int round = 0; round < 10; ++round) {
    TestFolder folder;
    Shared<Board> board;
    const pid_t holder = startChild([&] {
      CompileOnce once(openAt(folder.path), {});
      (void)once.findOrCompile(keyOf(0), [&]() -> Result<CompiledKernel> {
        board->go = true;
        pause();
        return Status::invalid("");
      });
      return 0;
    });
    while (!board->go)
      std::this_thread::sleep_for(1ms);
    std::vector<pid_t> others;
    for (int i = 0; i < 3; ++i)
      others.push_back(startChild([&] {
        CompileOnce once(openAt(folder.path), {});
        ++board->waiting;
        return askForAll(once, *board.operator->(), 0, 1ms);
      }));
    while (board->waiting < 3)
      std::this_thread::sleep_for(1ms);
    std::this_thread::sleep_for(5ms);
    CHECK(board->compiles[0] == 0); // they wait
    REQUIRE(kill(holder, SIGKILL) == 0);
    finish(holder);
    for (pid_t child : others)
      CHECK(finish(child) == 0);
    CHECK(board->compiles[0] == 1);
    checkAllClean(folder.path);
  }
}

TEST_CASE("a compiler that hangs is waited for no longer than asked") {
  TestFolder folder;
  Shared<Board> board;
  const pid_t holder = startChild([&] {
    CompileOnce once(openAt(folder.path), {});
    (void)once.findOrCompile(keyOf(0), [&]() -> Result<CompiledKernel> {
      board->go = true;
      pause();
      return Status::invalid("");
    });
    return 0;
  });
  while (!board->go)
    std::this_thread::sleep_for(1ms);
  CompileOnceOptions options;
  options.patience = 100ms;
  CompileOnce once(openAt(folder.path), options);
  auto answer = once.findOrCompile(
      keyOf(0), []() -> Result<CompiledKernel> { return kernelOf(keyOf(0)); });
  REQUIRE(answer);
  CHECK(isSame(answer->kernel, kernelOf(keyOf(0))));
  CHECK(once.counters().waits == 1);
  CHECK(once.diskCache().find(keyOf(0)));
  kill(holder, SIGKILL);
  finish(holder);
  // Its lock file is swept up by a prune.
  CHECK_FALSE(fs::is_empty(folder / ".locks"));
  REQUIRE(once.diskCache().prune(UINT64_MAX));
  CHECK(fs::is_empty(folder / ".locks"));
}

TEST_CASE("a file that cannot grow leaves nothing behind") {
  TestFolder folder;
  CHECK(inChild([&] {
          const DiskCache cache = openAt(folder.path);
          EXPECT(cache.publish(keyOf(0), kernelOf(keyOf(0))));
          signal(SIGXFSZ, SIG_IGN);
          const rlimit limit = {10'000, 10'000};
          EXPECT(setrlimit(RLIMIT_FSIZE, &limit) == 0);
          auto published = cache.publish(keyOf(1), kernelOf(keyOf(1), 20'000));
          EXPECT(published.status().code == StatusCode::StorageFailed);
          EXPECT(published.status().message ==
                 "cache '" + folder.path +
                     "': cannot write 'kernel.cubin': File too large");
          CompileOnce once(cache, {});
          auto answer =
              once.findOrCompile(keyOf(1), []() -> Result<CompiledKernel> {
                return kernelOf(keyOf(1), 20'000);
              });
          EXPECT(answer && answer->isCompiled);
          EXPECT(isSame(answer->kernel, kernelOf(keyOf(1), 20'000)));
          return 0;
        }) == 0);
  CHECK(count(folder.path, ".tmp-") == 0);
  CHECK(openAt(folder.path).list().size() == 1);
  checkAllClean(folder.path);
}
