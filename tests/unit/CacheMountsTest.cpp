//===- CacheMountsTest.cpp - Full and read-only disks, foreign owners -----===//
//
// Each of these needs a right that not every machine gives; a check that cannot
// run is shown as skipped.
//
//===----------------------------------------------------------------------===//

#include "runtime/cache/CompileOnce.h"
#include "tests/unit/CacheTestSupport.h"
#include "tests/unit/Skip.h"

#include <cerrno>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>

using namespace replayjit::internal;
using namespace replayjit::internal::test;

namespace {

/// Mounts an empty file system at `path`, for this process alone.
bool mountPrivately(const std::string &path, const char *options) {
  if (unshare(CLONE_NEWNS) != 0) {
    // A user may in a user namespace, where the kernel lets him have one.
    const uid_t user = geteuid();
    const gid_t group = getegid();
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0)
      return false;
    spit("/proc/self/uid_map", "0 " + std::to_string(user) + " 1");
    spit("/proc/self/setgroups", "deny");
    spit("/proc/self/gid_map", "0 " + std::to_string(group) + " 1");
  }
  return mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         mount("tmpfs", path.c_str(), "tmpfs", 0, options) == 0;
}

/// Runs `body` in a child; false if it had to be skipped.
template <typename Body> void runOrSkip(const char *what, Body body) {
  const int status = inChild(body);
  if (status == exitSkipped)
    skip(std::string(what) + ": this process may not mount a file system");
  else
    CHECK(status == 0);
}

Result<CompiledKernel> bigKernel(int n) { return kernelOf(keyOf(n), 30'000); }

} // namespace

TEST_CASE("a full disk is a clear error, and recovers") {
  TestFolder folder;
  runOrSkip("full disk", [&]() -> int {
    if (!mountPrivately(folder.path, "size=160k,mode=0700"))
      return exitSkipped;
    auto heard = std::make_shared<std::vector<std::string>>();
    const DiskCache cache = openAt(folder.path, heard);
    int stored = 0;
    while (stored < 100 && cache.publish(keyOf(stored), *bigKernel(stored)))
      ++stored;
    EXPECT(stored > 0 && stored < 10);
    auto published = cache.publish(keyOf(stored), *bigKernel(stored));
    EXPECT(published.status().code == StatusCode::StorageFailed);
    EXPECT(published.status().message.find("No space left on device") !=
           std::string::npos);
    EXPECT(count(folder.path, ".tmp-") == 0);
    EXPECT(int(cache.list().size()) == stored);
    for (const CacheEntry &entry : cache.verify())
      EXPECT(entry.status);

    // The kernel itself is there all the same.
    heard->clear();
    CompileOnce once(cache, {});
    auto answer =
        once.findOrCompile(keyOf(stored), [&] { return bigKernel(stored); });
    EXPECT(answer && answer->isCompiled);
    EXPECT(isSame(answer->kernel, *bigKernel(stored)));
    EXPECT(!heard->empty());
    EXPECT(heard->back().find("this kernel is not kept") != std::string::npos);

    // Not a byte is free, and old entries can go.
    spit(folder / "filler", std::string(1 << 20, 'x'));
    EXPECT(cache.prune(0));
    EXPECT(cache.list().empty());
    fs::remove(folder / "filler");
    EXPECT(cache.publish(keyOf(stored), *bigKernel(stored)));
    EXPECT(cache.find(keyOf(stored)));
    return 0;
  });
}

TEST_CASE("a read-only file system is read") {
  TestFolder folder;
  runOrSkip("read-only file system", [&]() -> int {
    if (!mountPrivately(folder.path, "size=1m,mode=0700"))
      return exitSkipped;
    EXPECT(openAt(folder.path).publish(keyOf(0), kernelOf(keyOf(0))));
    if (mount(nullptr, folder.path.c_str(), nullptr, MS_REMOUNT | MS_RDONLY,
              nullptr) != 0)
      return exitSkipped;
    auto heard = std::make_shared<std::vector<std::string>>();
    const DiskCache cache = openAt(folder.path, heard);
    EXPECT(heard->size() == 1);
    EXPECT(heard->front().find("Read-only file system") != std::string::npos);
    EXPECT(isSame(*cache.find(keyOf(0)), kernelOf(keyOf(0))));
    auto published = cache.publish(keyOf(1), kernelOf(keyOf(1)));
    EXPECT(published.status().code == StatusCode::StorageFailed);
    EXPECT(published.status().message.find("Read-only file system") !=
           std::string::npos);
    EXPECT(!cache.prune(0));
    EXPECT(isSame(*cache.find(keyOf(0)), kernelOf(keyOf(0))));
    CompileOnce once(cache, {});
    for (int i = 0; i < 2; ++i) {
      auto answer = once.findOrCompile(keyOf(1), [] { return bigKernel(1); });
      EXPECT(answer && answer->isCompiled);
    }
    EXPECT(
        !once.findOrCompile(keyOf(0), [] { return bigKernel(0); })->isCompiled);
    return 0;
  });
}

TEST_CASE("an entry that belongs to someone else is not loaded") {
  if (geteuid() != 0) {
    skip("foreign owners: only root can give a file away");
    return;
  }
  TestFolder folder;
  auto heard = std::make_shared<std::vector<std::string>>();
  const DiskCache cache = openAt(folder.path, heard);
  const CacheKey key = keyOf(0);
  for (const char *file :
       {"", "/kernel.json", "/kernel.ptx", "/kernel.cubin"}) {
    CAPTURE(file);
    auto published = cache.publish(key, kernelOf(key));
    REQUIRE(published);
    CHECK(*published == DiskCache::Published::Stored);
    REQUIRE(cache.find(key));
    heard->clear();
    REQUIRE(chown((folder / key.digest + file).c_str(), 12345, 0) == 0);
    CHECK_FALSE(cache.find(key));
    REQUIRE(heard->size() == 1);
    CHECK_THAT(heard->front(), Catch::Matchers::Contains(
                                   "belongs to user 12345, not to this user"));
  }
}

TEST_CASE("a user reads root's entries and cannot write among them") {
  if (geteuid() != 0) {
    skip("root's entries: this user cannot become another");
    return;
  }
  TestFolder folder;
  const DiskCache cache = openAt(folder / "root");
  REQUIRE(cache.publish(keyOf(0), kernelOf(keyOf(0))));
  fs::permissions(folder.path, fs::perms(0755));
  for (const auto &entry : fs::recursive_directory_iterator(folder.path))
    fs::permissions(entry, fs::perms(entry.is_directory() ? 0755 : 0644));
  CHECK(inChild([&] {
          EXPECT(setgid(12345) == 0 && setuid(12345) == 0);
          auto heard = std::make_shared<std::vector<std::string>>();
          const DiskCache theirs = openAt(folder / "root", heard);
          EXPECT(heard->size() == 1);
          EXPECT(heard->front().find("Permission denied") != std::string::npos);
          EXPECT(isSame(*theirs.find(keyOf(0)), kernelOf(keyOf(0))));
          EXPECT(theirs.publish(keyOf(1), kernelOf(keyOf(1))).status().code ==
                 StatusCode::StorageFailed);
          EXPECT(!theirs.prune(0));
          return 0;
        }) == 0);
}
