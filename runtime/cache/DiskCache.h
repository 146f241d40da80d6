//===- DiskCache.h - Compiled kernels on disk -------------------*- C++ -*-===//
//
// Folders ("roots") of entries. An entry is put in place by one rename and
// holds checksums of all its files, so a reader sees a whole entry or none,
// with or without file locks, over network file systems too. It holds no path:
// a root may be copied or shipped, and moved.
//
// An entry counts only if it and its files belong to this user or to root, and
// no one else can write them. Anything that is wrong with an entry makes it a
// miss, which is reported and, in the first root, repaired by the next publish,
// or by `find` from a later root.
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_RUNTIME_CACHE_DISKCACHE_H
#define REPLAYJIT_RUNTIME_CACHE_DISKCACHE_H

#include "base/CompiledKernel.h"
#include "runtime/cache/CacheKey.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace replayjit::internal {

struct DiskCacheOptions {
  /// Searched in this order. The first is written to and made if missing; the
  /// others are only read. Empty: nothing is ever found or kept.
  std::vector<std::string> roots;
  /// Bytes that the first root may hold; 0: any number.
  uint64_t maxBytes = uint64_t(1) << 30;
  /// The first root is only read too, and not made: nothing is kept.
  bool isReadOnly = false;
  /// Hears one sentence about each thing that is wrong but does not stop the
  /// work, from any thread. May be null.
  std::function<void(const std::string &)> diagnose;

  /// Roots from REPLAYJIT_CACHE_DIR (divided by ':'), else
  /// $XDG_CACHE_HOME/replayjit, else ~/.cache/replayjit; the bound from
  /// REPLAYJIT_CACHE_MAX_BYTES. The only place where the cache reads the
  /// environment. InvalidArgument for a bound that is no number.
  static Result<DiskCacheOptions> fromEnvironment();
  /// Each by itself, for who has the other from elsewhere.
  static std::vector<std::string> rootsFromEnvironment();
  static Result<uint64_t> maxBytesFromEnvironment();
};

/// One entry, as `list` and `verify` show it.
struct CacheEntry {
  std::string root, digest;
  std::string name;     ///< The kernel's; empty if it cannot be read.
  std::string keyText;  ///< Empty if it cannot be read.
  uint64_t bytes = 0;   ///< Of its files.
  int64_t lastUsed = 0; ///< Nanoseconds since 1970; known for the first root.
  Status status;        ///< Why it does not count, if it does not.
};

/// A value; copies stand for the same folders. All functions may be called from
/// any thread, and while other processes use the same roots.
class DiskCache {
public:
  /// Makes the first root if it is missing and removes what killed processes
  /// left in it. A first root that cannot be made or written is reported, and
  /// then publishing fails; so the error here is only a root that is no folder.
  static Result<DiskCache> open(DiskCacheOptions options);

  enum class Faults { Told, NotTold };
  /// The kernel of the first entry with this key, or nothing. Its log, stage
  /// times and host program are empty. If it comes from a later root and what
  /// the first one has is damaged, it is put there instead. What is wrong with
  /// entries `diagnose` hears unless `faults` is NotTold.
  std::optional<CompiledKernel> find(const CacheKey &key,
                                     Faults faults = Faults::Told) const;

  enum class Replace { Damaged, Always };
  enum class Published { Stored, WasThere };
  /// Puts an entry into the first root, and prunes that to its bound. A whole
  /// entry that is already there is kept unless `replace` is Always; WasThere
  /// then says that `find` has another process's kernel. On an error nothing is
  /// left behind; the kernel can be used all the same.
  Result<Published> publish(const CacheKey &key, const CompiledKernel &kernel,
                            Replace replace = Replace::Damaged) const;

  /// Every entry of every root, in the order of roots and digests.
  std::vector<CacheEntry> list() const;

  /// The same after reading all files and comparing all checksums.
  std::vector<CacheEntry> verify() const;

  struct PruneReport {
    uint64_t removed = 0, removedBytes = 0;
    uint64_t kept = 0, keptBytes = 0;
  };
  /// Removes entries of the first root, least recently used first, until at
  /// most `maxBytes` are left.
  Result<PruneReport> prune(uint64_t maxBytes) const;

  /// Removes the entries of the first root that `verify` finds fault with.
  Result<PruneReport> pruneDamaged() const;

  /// Why `find` finds this key or does not, in sentences: the entry, or what is
  /// wrong with it, or the nearest entry and each fact in which it differs.
  std::vector<std::string> explain(const CacheKey &key) const;

  /// False if publishing can do nothing: there is no root, or it is read-only
  /// by the options.
  bool keeps() const { return !options_.roots.empty() && !options_.isReadOnly; }

  /// Tells `DiskCacheOptions::diagnose`.
  void report(const std::string &sentence) const;

  /// Where locks of the first root's keys lie; empty without a root.
  std::string lockFolder() const;

  const DiskCacheOptions &options() const { return options_; }

private:
  explicit DiskCache(DiskCacheOptions options) : options_(std::move(options)) {}
  std::vector<CacheEntry> entriesOf(const std::string &root) const;
  Result<PruneReport> prune(uint64_t maxBytes, const std::string &keep) const;

  DiskCacheOptions options_;
};

} // namespace replayjit::internal

#endif
