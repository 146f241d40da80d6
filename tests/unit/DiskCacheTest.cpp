//===- DiskCacheTest.cpp - Kernels on disk, whole and damaged -------------===//

#include "runtime/cache/DiskCache.h"
#include "tests/unit/CacheTestSupport.h"

#include <fcntl.h>
#include <sys/stat.h>

using namespace replayjit::internal;
using namespace replayjit::internal::test;
using Catch::Matchers::Contains;
using Published = DiskCache::Published;

namespace {

const char *const fileNames[] = {"kernel.json", "kernel.ptx", "kernel.cubin"};

void store(const DiskCache &cache, const CacheKey &key) {
  Result<Published> published = cache.publish(key, kernelOf(key));
  REQUIRE(published.status().message == "");
  REQUIRE(*published == Published::Stored);
}

bool finds(const DiskCache &cache, const CacheKey &key) {
  std::optional<CompiledKernel> kernel = cache.find(key);
  return kernel && isSame(*kernel, kernelOf(key));
}

mode_t modeOf(const std::string &path) {
  struct stat info;
  REQUIRE(lstat(path.c_str(), &info) == 0);
  return info.st_mode & 07777;
}

void setUse(const std::string &entry, int seconds) {
  const timespec times[] = {{seconds, 0}, {seconds, 0}};
  REQUIRE(utimensat(AT_FDCWD, (entry + "/kernel.json").c_str(), times, 0) == 0);
}

} // namespace

TEST_CASE("what is published is found, by another process's cache too") {
  TestFolder folder;
  const DiskCache cache = openAt(folder / "deep/root");
  CHECK_FALSE(cache.find(keyOf(0)));
  store(cache, keyOf(0));
  CHECK(finds(cache, keyOf(0)));
  CHECK(finds(openAt(folder / "deep/root"), keyOf(0)));
  CHECK_FALSE(cache.find(keyOf(1)));

  SECTION("a second publish keeps what is there") {
    CompiledKernel other = kernelOf(keyOf(0));
    other.ptx = "// another\n";
    Result<Published> published = cache.publish(keyOf(0), other);
    REQUIRE(published);
    CHECK(*published == Published::WasThere);
    CHECK(finds(cache, keyOf(0)));
  }
  SECTION("unless it is told to replace it") {
    CompiledKernel other = kernelOf(keyOf(0));
    other.ptx = "// another\n";
    CHECK(cache.publish(keyOf(0), other, DiskCache::Replace::Always));
    CHECK(cache.find(keyOf(0))->ptx == "// another\n");
  }
  CHECK(count(folder / "deep/root", ".tmp-") == 0);
}

TEST_CASE("an entry may lack a cubin or PTX, not both") {
  TestFolder folder;
  const DiskCache cache = openAt(folder.path);
  CompiledKernel kernel = kernelOf(keyOf(0));
  kernel.cubin.clear();
  CHECK(cache.publish(keyOf(0), kernel));
  CHECK(isSame(*cache.find(keyOf(0)), kernel));
  kernel.ptx.clear();
  CHECK_THAT(cache.publish(keyOf(0), kernel).status().message,
             Contains("neither PTX nor cubin"));
  kernel.ptx = "x";
  kernel.target = *Target::parse("sm_80");
  CHECK_THAT(cache.publish(keyOf(0), kernel).status().message,
             Contains("is made for sm_80; the key asks for sm_90a"));
}

TEST_CASE("an entry is three private files without a path") {
  TestFolder folder;
  const mode_t old = umask(0);
  const DiskCache cache = openAt(folder / "root");
  CompiledKernel kernel = kernelOf(keyOf(0));
  kernel.assemblerLog = "in " + folder.path;
  REQUIRE(cache.publish(keyOf(0), kernel));
  umask(old);
  const std::string entry = folder / "root/" + keyOf(0).digest;
  CHECK(modeOf(folder / "root") == 0700);
  CHECK(modeOf(entry) == 0700);
  CHECK(count(entry, "") == 3);
  for (const char *name : fileNames) {
    CAPTURE(name);
    CHECK(modeOf(entry + "/" + name) == 0600);
    CHECK_THAT(slurp(entry + "/" + name), !Contains(folder.path));
  }
  CHECK_THAT(slurp(entry + "/kernel.json"), !Contains("\"/"));

  SECTION("a stricter umask leaves it usable") {
    umask(0777);
    Result<Published> published = cache.publish(keyOf(1), kernelOf(keyOf(1)));
    umask(old);
    CHECK(published);
    CHECK(modeOf(folder / "root/" + keyOf(1).digest + "/kernel.ptx") == 0600);
  }
}

TEST_CASE("a cache may be moved, and be a second, read-only root") {
  TestFolder folder;
  store(openAt(folder / "built"), keyOf(0));
  fs::rename(folder / "built", folder / "shipped");
  CHECK(finds(openAt(folder / "shipped"), keyOf(0)));

  // As an image has it: readable by all.
  for (const auto &entry : fs::recursive_directory_iterator(folder / "shipped"))
    fs::permissions(entry, fs::perms(entry.is_directory() ? 0555 : 0444));
  setUse(folder / "shipped/" + keyOf(0).digest, 1000);
  auto heard = std::make_shared<std::vector<std::string>>();
  Result<DiskCache> cache =
      DiskCache::open(rooted({folder / "own", folder / "shipped"}, heard));
  REQUIRE(cache);
  CHECK(finds(*cache, keyOf(0)));
  store(*cache, keyOf(1));
  CHECK(finds(*cache, keyOf(1)));
  CHECK(fs::exists(folder / "own/" + keyOf(1).digest));
  CHECK_FALSE(fs::exists(folder / "shipped/" + keyOf(1).digest));
  // Nothing in it was touched.
  CHECK(cache->list().back().lastUsed == 1000'000'000'000);
  CHECK(heard->empty());
  fs::permissions(folder / "shipped/" + keyOf(0).digest, fs::perms(0700));
}

TEST_CASE("a damaged entry is replaced by that of a later root") {
  TestFolder folder;
  const CacheKey key = keyOf(0);
  store(openAt(folder / "own"), key);
  store(openAt(folder / "shipped"), key);
  const std::string file = "/" + key.digest + "/kernel.cubin";
  spit(folder / "own" + file, "damaged");
  auto heard = std::make_shared<std::vector<std::string>>();
  DiskCacheOptions options =
      rooted({folder / "own", folder / "shipped"}, heard);
  SECTION("as far as it may be written") {
    options.isReadOnly = true;
    CHECK(finds(*DiskCache::open(options), key));
    CHECK(slurp(folder / "own" + file) == "damaged");
    return;
  }
  // The first process hears of it, no other.
  CHECK(finds(*DiskCache::open(options), key));
  REQUIRE(heard->size() == 1);
  CHECK_THAT(heard->front(),
             Contains(folder / "own") && Contains("kernel.cubin"));
  CHECK(finds(*DiskCache::open(options), key));
  CHECK(heard->size() == 1);
  CHECK(finds(openAt(folder / "own"), key));

  // One of a later root is left as it is.
  spit(folder / "own" + file, "damaged");
  spit(folder / "shipped" + file, "damaged");
  CHECK_FALSE(DiskCache::open(options)->find(key));
  CHECK(slurp(folder / "shipped" + file) == "damaged");
}

TEST_CASE("a cache opened to be read changes nothing") {
  TestFolder folder;
  DiskCacheOptions options = rooted({folder / "root"});
  options.isReadOnly = true;
  CHECK_FALSE(DiskCache::open(options)->find(keyOf(0)));
  CHECK_FALSE(fs::exists(folder / "root"));
  store(openAt(folder / "root"), keyOf(0));
  setUse(folder / "root/" + keyOf(0).digest, 1000);
  const DiskCache cache = *DiskCache::open(options);
  CHECK(finds(cache, keyOf(0)));
  CHECK(cache.list().front().lastUsed == 1000'000'000'000);
  CHECK_FALSE(cache.publish(keyOf(1), kernelOf(keyOf(1))));
  CHECK_FALSE(cache.prune(0));
  CHECK_FALSE(cache.pruneDamaged());
  CHECK(cache.list().size() == 1);
}

TEST_CASE("any damage is a miss, is reported, and is repaired by a publish") {
  TestFolder folder;
  auto heard = std::make_shared<std::vector<std::string>>();
  const DiskCache cache = openAt(folder / "root", heard);
  const CacheKey key = keyOf(0);
  store(cache, key);
  store(cache, keyOf(1));
  const std::string entry = folder / "root/" + key.digest;
  const std::string other = folder / "root/" + keyOf(1).digest;
  auto isRefused = [&](const std::string &reason) {
    heard->clear();
    CAPTURE(reason);
    CHECK_FALSE(cache.find(key));
    REQUIRE(heard->size() == 1);
    CHECK_THAT(heard->front(),
               Contains("entry " + key.digest) && Contains(reason));
    CHECK_FALSE(cache.explain(key).front().find(reason) == std::string::npos);
    bool isListed = false;
    for (const CacheEntry &found : cache.verify())
      isListed |= found.digest == key.digest && !found.status;
    CHECK(isListed);
    store(cache, key); // Stored: it was replaced
    CHECK(finds(cache, key));
    CHECK(count(folder / "root", ".tmp-") == 0);
  };

  for (const char *name : fileNames) {
    const std::string path = entry + "/" + name;
    const size_t size = fs::file_size(path);
    for (size_t cut : {size_t(0), size_t(1), size / 2, size - 1}) {
      fs::resize_file(path, cut);
      isRefused(name);
    }
    spit(path, slurp(path) + "\n");
    isRefused(name);
    fs::remove(path);
    isRefused("is missing");
    fs::remove(path);
    fs::create_symlink(other + "/" + name, path);
    isRefused("is a symbolic link");
    fs::remove(path);
    REQUIRE(mkfifo(path.c_str(), 0600) == 0);
    isRefused("is no plain file");
    fs::remove(path);
    fs::create_directory(path);
    isRefused("is no plain file");
    fs::permissions(path, fs::perms(0620));
    isRefused("has mode 0620: others can write it");
    fs::permissions(path, fs::perms(0602));
    isRefused("others can write it");
    // A whole file of another entry.
    fs::copy_file(other + "/" + name, path,
                  fs::copy_options::overwrite_existing);
    isRefused("is not used: 'kernel.");
  }
  fs::permissions(entry, fs::perms(0770));
  isRefused("has mode 0770: others can write it");
  fs::permissions(entry, fs::perms(0702));
  isRefused("others can write it");
  fs::remove_all(entry);
  fs::copy(other, entry); // whole, but of another key
  isRefused("is of another key");
  fs::rename(entry, folder / "elsewhere");
  fs::create_directory_symlink(folder / "elsewhere", entry);
  isRefused("is no folder");
  fs::remove_all(entry);
  spit(entry, "a file");
  isRefused("is no folder");
  fs::remove_all(entry);
  fs::create_directory(entry);
  isRefused("kernel.json' is missing");
  // The link's target was not followed to be removed.
  CHECK(fs::exists(folder / "elsewhere"));
  CHECK(finds(cache, keyOf(1)));
}

TEST_CASE("no flipped bit goes unnoticed") {
  TestFolder folder;
  auto heard = std::make_shared<std::vector<std::string>>();
  const DiskCache cache = openAt(folder.path, heard);
  const CacheKey key = keyOf(0);
  store(cache, key);
  size_t flips = 0;
  for (const char *name : fileNames) {
    const std::string path = folder / key.digest + "/" + name;
    const std::string good = slurp(path);
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    auto setByte = [&](size_t at, char byte) {
      file.seekp(at).put(byte).flush();
    };
    for (size_t bit = 0; bit < good.size() * 8; ++bit) {
      setByte(bit / 8, static_cast<char>(good[bit / 8] ^ 1 << bit % 8));
      if (cache.find(key))
        FAIL(name << ": bit " << bit);
      setByte(bit / 8, good[bit / 8]);
      ++flips;
    }
    CHECK(finds(cache, key));
  }
  CHECK(heard->size() == flips);
}

TEST_CASE("the least recently used go first") {
  TestFolder folder;
  const DiskCache cache = openAt(folder.path);
  for (int i = 0; i < 4; ++i) {
    store(cache, keyOf(i));
    setUse(folder / keyOf(i).digest, 1000 + i);
  }
  CHECK(finds(cache, keyOf(0))); // and is now the most recent
  const uint64_t entryBytes = cache.list().front().bytes;

  SECTION("by hand") {
    Result<DiskCache::PruneReport> report = cache.prune(entryBytes * 5 / 2);
    REQUIRE(report);
    CHECK(report->removed == 2);
    CHECK(report->kept == 2);
    CHECK(report->keptBytes <= entryBytes * 5 / 2);
    CHECK_FALSE(cache.find(keyOf(1)));
    CHECK_FALSE(cache.find(keyOf(2)));
    CHECK(finds(cache, keyOf(0)));
    CHECK(finds(cache, keyOf(3)));
    REQUIRE(cache.prune(0));
    CHECK(cache.list().empty());
    CHECK(count(folder.path, ".tmp-") == 0);
  }
  SECTION("by a publish") {
    DiskCacheOptions options = rooted({folder.path});
    options.maxBytes = entryBytes * 7 / 2;
    const DiskCache bounded = *DiskCache::open(options);
    // The newcomer stays, whatever the clocks say.
    setUse(folder / keyOf(0).digest, INT32_MAX);
    store(bounded, keyOf(4));
    CHECK(finds(bounded, keyOf(0)));
    CHECK_FALSE(bounded.find(keyOf(1)));
    CHECK_FALSE(bounded.find(keyOf(2)));
    CHECK(finds(bounded, keyOf(3)));
    CHECK(finds(bounded, keyOf(4)));
  }
  SECTION("an entry that can never fit") {
    DiskCacheOptions options = rooted({folder.path});
    options.maxBytes = 1000;
    const DiskCache tiny = *DiskCache::open(options);
    Result<Published> published = tiny.publish(keyOf(4), kernelOf(keyOf(4)));
    CHECK(published.status().code == StatusCode::StorageFailed);
    CHECK_THAT(published.status().message,
               Contains("does not fit into its bound of 1000"));
    CHECK(tiny.list().size() == 4);
  }
  SECTION("0 is no bound") {
    DiskCacheOptions options = rooted({folder.path});
    options.maxBytes = 0;
    store(*DiskCache::open(options), keyOf(4));
    CHECK(cache.list().size() == 5);
  }
}

TEST_CASE("damaged entries can be removed by name") {
  TestFolder folder;
  const DiskCache cache = openAt(folder.path);
  for (int i = 0; i < 3; ++i)
    store(cache, keyOf(i));
  spit(folder / keyOf(1).digest + "/kernel.cubin", "x");
  Result<DiskCache::PruneReport> report = cache.pruneDamaged();
  REQUIRE(report);
  CHECK(report->removed == 1);
  CHECK(report->kept == 2);
  CHECK(cache.list().size() == 2);
  CHECK_FALSE(fs::exists(folder / keyOf(1).digest));
}

TEST_CASE("the list shows kernels and what is wrong with the rest") {
  TestFolder folder;
  const DiskCache cache = openAt(folder.path);
  CHECK(cache.list().empty());
  store(cache, keyOf(0));
  store(cache, keyOf(1));
  spit(folder / keyOf(1).digest + "/kernel.json", "{}");
  spit(folder / "README", "not ours");
  const std::vector<CacheEntry> entries = cache.list();
  REQUIRE(entries.size() == 2);
  for (const CacheEntry &entry : entries) {
    CHECK(entry.root == folder.path);
    CHECK(entry.lastUsed > 0);
    CHECK(entry.status.isOk() == (entry.digest == keyOf(0).digest));
    if (entry.status) {
      CHECK(entry.name == kernelOf(keyOf(0)).name);
      CHECK(entry.keyText == keyOf(0).text);
      CHECK(entry.bytes > 3000);
    }
  }
}

TEST_CASE("a miss is explained by the nearest entry") {
  TestFolder folder;
  const DiskCache cache = openAt(folder.path);
  CHECK(cache.explain(keyOf(0)) ==
        std::vector<std::string>{"no entry has the key " + keyOf(0).digest,
                                 "no other entry is in " + folder.path});
  store(cache, keyOf(0));
  DecodeSpec far = keyOf(0).spec;
  far.numKeyHeads = 1;
  far.stateType = DataType::BF16;
  store(cache, CacheKey::of(far, {}, keyOf(0).target));
  CHECK(cache.explain(keyOf(0)) ==
        std::vector<std::string>{"entry " + keyOf(0).digest + " of '" +
                                 folder.path + "' is used"});
  CHECK(cache.explain(keyOf(5)) ==
        std::vector<std::string>{
            "no entry has the key " + keyOf(5).digest,
            "the nearest entry is " + keyOf(0).digest + " of '" + folder.path +
                "', " + kernelOf(keyOf(0)).name + "; it differs in one fact:",
            "spec.ringDepth: 7 is asked for; the entry has 2"});
  CHECK(cache
            .explain(CacheKey::of(keyOf(0).spec, {}, keyOf(0).target,
                                  generatorVersion + 1))
            .back() ==
        "generator.version: " + std::to_string(generatorVersion + 1) +
            " is asked for; the entry has " + std::to_string(generatorVersion));
}

TEST_CASE("what killed processes left is removed, what live ones have is not") {
  TestFolder folder;
  // A process that is gone, as seen by its name: killed while it writes.
  const pid_t gone = startChild([&] {
    const DiskCache cache = openAt(folder.path);
    for (;;)
      (void)cache.publish(keyOf(0), kernelOf(keyOf(0), 1 << 20),
                          DiskCache::Replace::Always);
    return 0;
  });
  std::string litter;
  while (litter.empty())
    for (const auto &entry : fs::directory_iterator(folder.path))
      if (entry.path().filename().string().starts_with(".tmp-")) {
        REQUIRE(kill(gone, SIGSTOP) == 0);
        REQUIRE(waitpid(gone, nullptr, WUNTRACED) == gone);
        litter = entry.path().string();
      }
  if (!fs::exists(litter)) // it was faster: any name of its will do
    fs::create_directory(litter);
  (void)openAt(folder.path);
  CHECK(fs::exists(litter)); // stopped, but alive
  kill(gone, SIGKILL);
  finish(gone);
  (void)openAt(folder.path);
  CHECK_FALSE(fs::exists(litter));

  // Of another machine: its age decides.
  const std::string foreign = folder / ".tmp-0123456789abcdef-1-abcdef";
  fs::create_directory(foreign);
  (void)openAt(folder.path);
  CHECK(fs::exists(foreign));
  const timespec old[] = {{1000, 0}, {1000, 0}};
  REQUIRE(utimensat(AT_FDCWD, foreign.c_str(), old, 0) == 0);
  REQUIRE(openAt(folder.path).prune(UINT64_MAX));
  CHECK_FALSE(fs::exists(foreign));
}

TEST_CASE("roots that cannot be used") {
  TestFolder folder;
  spit(folder / "file", "");
  Result<DiskCache> cache = DiskCache::open(rooted({folder / "file"}));
  CHECK(cache.status().code == StatusCode::InvalidArgument);
  CHECK_THAT(cache.status().message, Contains("file' is no folder"));

  auto heard = std::make_shared<std::vector<std::string>>();
  Result<DiskCache> none = DiskCache::open(rooted({}, heard));
  REQUIRE(none);
  CHECK(heard->size() == 1);
  CHECK_FALSE(none->find(keyOf(0)));
  CHECK_FALSE(none->publish(keyOf(0), kernelOf(keyOf(0))));
  CHECK(none->list().empty());
  CHECK_FALSE(none->prune(0));

  // Below a file no folder can be made: reported, not fatal.
  heard->clear();
  const DiskCache below = openAt(folder / "file/below", heard);
  REQUIRE(heard->size() == 1);
  CHECK_THAT(heard->front(), Contains("kernels are not kept"));
  CHECK_FALSE(below.find(keyOf(0)));
  CHECK(below.publish(keyOf(0), kernelOf(keyOf(0))).status().code ==
        StatusCode::StorageFailed);

  // A root named relative to a folder that the process then leaves.
  const fs::path here = fs::current_path();
  fs::current_path(folder.path);
  const DiskCache relative = openAt("relative/");
  fs::current_path(here);
  store(relative, keyOf(0));
  CHECK(fs::exists(folder / "relative/" + keyOf(0).digest));
}

TEST_CASE("the environment names roots and bound") {
  const char *const names[] = {"REPLAYJIT_CACHE_DIR", "XDG_CACHE_HOME", "HOME",
                               "REPLAYJIT_CACHE_MAX_BYTES"};
  std::vector<std::optional<std::string>> before;
  for (const char *name : names) {
    const char *value = getenv(name);
    before.push_back(value ? std::optional<std::string>(value) : std::nullopt);
    unsetenv(name);
  }
  using Roots = std::vector<std::string>;
  auto roots = [] { return DiskCacheOptions::fromEnvironment()->roots; };
  CHECK(roots() == Roots{});
  setenv("HOME", "/home/a", 1);
  CHECK(roots() == Roots{"/home/a/.cache/replayjit"});
  setenv("XDG_CACHE_HOME", "/x", 1);
  CHECK(roots() == Roots{"/x/replayjit"});
  setenv("REPLAYJIT_CACHE_DIR", "", 1);
  CHECK(roots() == Roots{"/x/replayjit"});
  setenv("REPLAYJIT_CACHE_DIR", "/a:/b", 1);
  CHECK(roots() == Roots{"/a", "/b"});
  setenv("REPLAYJIT_CACHE_DIR", ":/a::b:", 1);
  CHECK(roots() == Roots{"/a", "b"});
  CHECK(DiskCacheOptions::fromEnvironment()->maxBytes == 1u << 30);
  setenv("REPLAYJIT_CACHE_MAX_BYTES", "12345", 1);
  CHECK(DiskCacheOptions::fromEnvironment()->maxBytes == 12345);
  for (const char *bad : {"1G", "-1", " 1", "1e9", "99999999999999999999"}) {
    setenv("REPLAYJIT_CACHE_MAX_BYTES", bad, 1);
    CHECK_THAT(DiskCacheOptions::fromEnvironment().status().message,
               Contains(std::string("REPLAYJIT_CACHE_MAX_BYTES: '") + bad +
                        "' is not allowed"));
  }
  for (size_t i = 0; i < before.size(); ++i)
    before[i] ? setenv(names[i], before[i]->c_str(), 1) : unsetenv(names[i]);
}
