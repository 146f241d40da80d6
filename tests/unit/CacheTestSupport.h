//===- CacheTestSupport.h - Made-up kernels and other processes -*- C++ -*-===//
#ifndef REPLAYJIT_TESTS_UNIT_CACHETESTSUPPORT_H
#define REPLAYJIT_TESTS_UNIT_CACHETESTSUPPORT_H

#include "runtime/cache/DiskCache.h"

#include <catch2/catch.hpp>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace replayjit::internal::test {

namespace fs = std::filesystem;

/// A folder of mode 0700 that lives as long as this.
class TestFolder {
public:
  TestFolder() {
    char name[] = "/tmp/replayjit-cache-XXXXXX";
    REQUIRE(mkdtemp(name));
    path = name;
  }
  ~TestFolder() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
  std::string operator/(const std::string &name) const {
    return path + "/" + name;
  }
  std::string path;
};

/// The key of the n-th of some specs.
inline CacheKey keyOf(int n) {
  DecodeSpec spec;
  spec.ringDepth = 2 + n;
  return CacheKey::of(spec, DecodeTuning(), *Target::parse("sm_90a"));
}

/// Made-up bytes that depend on the key alone.
inline CompiledKernel kernelOf(const CacheKey &key, size_t cubinBytes = 3000) {
  using Kind = KernelParam::Kind;
  std::seed_seq seed(key.digest.begin(), key.digest.end());
  std::mt19937 random(seed);
  CompiledKernel kernel;
  kernel.name = kernelName(key.spec, key.tuning);
  kernel.target = key.target;
  kernel.signature.params = {{"state", Kind::Pointer, 0},
                             {"batch", Kind::I32, 8},
                             {"scale", Kind::F32, 12},
                             {"pitch", Kind::I64, 16}};
  kernel.signature.bytes = 24;
  kernel.launch = {64, 128, 1024};
  kernel.ptx = "// PTX of " + key.digest + "\n";
  for (int i = 0; i < 100; ++i)
    kernel.ptx += std::to_string(random()) + "\n";
  kernel.cubin.resize(cubinBytes);
  for (char &byte : kernel.cubin)
    byte = static_cast<char>(random());
  kernel.assembler = "ptxas 13.0.88";
  kernel.resources = {64, 0, 0, 0, 256};
  return kernel;
}

inline bool isSame(const CompiledKernel &a, const CompiledKernel &b) {
  auto sameParams = [](const KernelParam &x, const KernelParam &y) {
    return x.name == y.name && x.kind == y.kind && x.offset == y.offset;
  };
  return a.name == b.name && a.target.chip == b.target.chip && a.ptx == b.ptx &&
         a.cubin == b.cubin && a.assembler == b.assembler &&
         a.launch.blocksPerRow == b.launch.blocksPerRow &&
         a.launch.threads == b.launch.threads &&
         a.launch.sharedBytes == b.launch.sharedBytes &&
         a.signature.bytes == b.signature.bytes &&
         std::equal(a.signature.params.begin(), a.signature.params.end(),
                    b.signature.params.begin(), b.signature.params.end(),
                    sameParams) &&
         a.resources.registers == b.resources.registers &&
         a.resources.staticSharedBytes == b.resources.staticSharedBytes;
}

using Sentences = std::shared_ptr<std::vector<std::string>>;

/// `heard` gets what the cache reports.
inline DiskCacheOptions rooted(std::vector<std::string> roots,
                               Sentences heard = nullptr) {
  DiskCacheOptions options;
  options.roots = std::move(roots);
  if (heard)
    options.diagnose = [heard](const std::string &sentence) {
      heard->push_back(sentence);
    };
  return options;
}

inline DiskCache openAt(const std::string &root, Sentences heard = nullptr) {
  Result<DiskCache> cache = DiskCache::open(rooted({root}, heard));
  if (!cache)
    std::abort();
  return *cache;
}

inline std::string slurp(const std::string &path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

inline void spit(const std::string &path, const std::string &bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

/// Names in a folder that begin with `intro`.
inline size_t count(const std::string &folder, const std::string &intro) {
  size_t found = 0;
  for (const auto &entry : fs::directory_iterator(folder))
    found += entry.path().filename().string().starts_with(intro);
  return found;
}

/// Runs `body` in a process of its own, whose exit status it returns. A child
/// that hangs dies by SIGALRM.
template <typename Body> pid_t startChild(Body body) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    alarm(120);
    _exit(body());
  }
  REQUIRE(child > 0);
  return child;
}

/// The exit status, or 1000 plus the signal.
inline int finish(pid_t child) {
  int state = 0;
  if (waitpid(child, &state, 0) != child)
    return -1;
  return WIFEXITED(state) ? WEXITSTATUS(state) : 1000 + WTERMSIG(state);
}

template <typename Body> int inChild(Body body) {
  return finish(startChild(body));
}

/// In a child, where Catch is of no use.
#define EXPECT(condition)                                                      \
  do {                                                                         \
    if (!(condition)) {                                                        \
      std::fprintf(stderr, "%s:%d: in a child: %s\n", __FILE__, __LINE__,      \
                   #condition);                                                \
      return 1;                                                                \
    }                                                                          \
  } while (false)

/// Memory that children share with this process, zeroed.
template <typename T> class Shared {
public:
  Shared()
      : memory(mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {
    REQUIRE(memory != MAP_FAILED);
  }
  ~Shared() { munmap(memory, sizeof(T)); }
  T *operator->() const { return static_cast<T *>(memory); }

private:
  void *memory;
};

} // namespace replayjit::internal::test

#endif
