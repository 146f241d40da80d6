//===- DiskCache.cpp - Compiled kernels on disk ---------------------------===//

#include "runtime/cache/DiskCache.h"

#include "runtime/cache/CompileLock.h"
#include "runtime/cache/Digest.h"
#include "runtime/cache/EntryFolder.h"
#include "runtime/cache/FileSystem.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

namespace replayjit::internal {

namespace fs = std::filesystem;

//===----------------------------------------------------------------------===//
// Options
//===----------------------------------------------------------------------===//

static std::string_view variable(const char *name) {
  const char *value = getenv(name);
  return value ? value : "";
}

std::vector<std::string> DiskCacheOptions::rootsFromEnvironment() {
  std::vector<std::string> roots;
  if (std::string_view list = variable("REPLAYJIT_CACHE_DIR"); !list.empty()) {
    while (!list.empty()) {
      const size_t end = std::min(list.find(':'), list.size());
      if (end > 0)
        roots.emplace_back(list.substr(0, end));
      list.remove_prefix(std::min(end + 1, list.size()));
    }
  } else if (std::string_view xdg = variable("XDG_CACHE_HOME"); !xdg.empty()) {
    roots.push_back(fmt::format("{}/replayjit", xdg));
  } else if (std::string_view home = variable("HOME"); !home.empty()) {
    roots.push_back(fmt::format("{}/.cache/replayjit", home));
  }
  return roots;
}

Result<uint64_t> DiskCacheOptions::maxBytesFromEnvironment() {
  uint64_t bytes = DiskCacheOptions().maxBytes;
  const std::string_view text = variable("REPLAYJIT_CACHE_MAX_BYTES");
  if (text.empty())
    return bytes;
  const char *end = text.data() + text.size();
  auto [stop, code] = std::from_chars(text.data(), end, bytes);
  if (code != std::errc() || stop != end)
    return Status::invalid(fmt::format(
        "REPLAYJIT_CACHE_MAX_BYTES: '{}' is not allowed; it must be a number "
        "of bytes, or 0 for no bound",
        text));
  return bytes;
}

Result<DiskCacheOptions> DiskCacheOptions::fromEnvironment() {
  const Result<uint64_t> maxBytes = maxBytesFromEnvironment();
  if (!maxBytes)
    return maxBytes.status();
  DiskCacheOptions options;
  options.roots = rootsFromEnvironment();
  options.maxBytes = *maxBytes;
  return options;
}

//===----------------------------------------------------------------------===//
// Opening
//===----------------------------------------------------------------------===//

void DiskCache::report(const std::string &sentence) const {
  if (options_.diagnose)
    options_.diagnose(sentence);
}

std::string DiskCache::lockFolder() const {
  return options_.roots.empty() ? "" : options_.roots.front() + "/.locks";
}

static std::string entryPath(const std::string &root,
                             const std::string &digest) {
  return fmt::format("{}/{}", root, digest);
}

Result<DiskCache> DiskCache::open(DiskCacheOptions options) {
  for (std::string &root : options.roots) {
    std::error_code code;
    // The process may change its folder later.
    fs::path path = fs::absolute(root, code).lexically_normal();
    if (!path.has_filename())
      path = path.parent_path();
    root = path.string();
    const fs::file_status found = fs::status(root, code);
    if (fs::exists(found) && !fs::is_directory(found))
      return Status::invalid(
          fmt::format("cache: '{}' is no folder; it must be one, or a path "
                      "where one can be made",
                      root));
  }
  DiskCache cache(std::move(options));
  if (cache.options_.roots.empty()) {
    cache.report("cache: there is no folder for it, so no kernel is kept; set "
                 "REPLAYJIT_CACHE_DIR, XDG_CACHE_HOME or HOME");
    return cache;
  }
  if (!cache.keeps())
    return cache;
  const std::string &first = cache.options_.roots.front();
  Status status = makePrivateFolders(first);
  if (status &&
      faccessat(AT_FDCWD, first.c_str(), W_OK | X_OK, AT_EACCESS) != 0)
    status = storageError(fmt::format("write to '{}'", first));
  if (status)
    removeLitter(first);
  else
    cache.report("cache: " + status.message + "; kernels are not kept");
  return cache;
}

//===----------------------------------------------------------------------===//
// Finding
//===----------------------------------------------------------------------===//

std::optional<CompiledKernel> DiskCache::find(const CacheKey &key,
                                              Faults faults) const {
  bool isFirstDamaged = false;
  for (const std::string &root : options_.roots) {
    const bool isFirst = &root == &options_.roots.front();
    Result<CompiledKernel> kernel = loadEntry(entryPath(root, key.digest), key,
                                              /*marksUse=*/isFirst && keeps());
    if (kernel) {
      if (isFirstDamaged && keeps())
        if (auto repaired = publish(key, *kernel); !repaired)
          report(repaired.status().message + "; the damaged entry stays");
      return std::move(*kernel);
    }
    if (kernel.status().code == StatusCode::NotFound)
      continue;
    isFirstDamaged |= isFirst;
    if (faults == Faults::Told)
      report(fmt::format("cache: entry {} of '{}' is not used: {}", key.digest,
                         root, kernel.status().message));
  }
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Publishing
//===----------------------------------------------------------------------===//

static Status cannotChange() {
  return Status::error(StatusCode::StorageFailed,
                       "cache: it has no folder, or was opened to be read");
}

static Status checkKernel(const CacheKey &key, const CompiledKernel &kernel) {
  if (kernel.target.chip != key.target.chip)
    return Status::invalid(fmt::format("cache: {} is made for {}; the key asks "
                                       "for {}",
                                       kernel.name, kernel.target.chip,
                                       key.target.chip));
  if (kernel.ptx.empty() && kernel.cubin.empty())
    return Status::invalid(
        fmt::format("cache: {} has neither PTX nor cubin", kernel.name));
  return Status::ok();
}

namespace {
enum class Placed { Yes, WasThere, FolderIsGone };
} // namespace

/// One rename puts the full `folder` at `path`.
static Result<Placed> place(const std::string &root, const std::string &folder,
                            const std::string &path, const CacheKey &key,
                            DiskCache::Replace replace) {
  constexpr int mostTries = 16; // of others that come and go at the path
  for (int tries = 0; tries < mostTries; ++tries) {
    if (rename(folder.c_str(), path.c_str()) == 0)
      return Placed::Yes;
    if (errno == ENOENT)
      return Placed::FolderIsGone;
    if (errno != ENOTEMPTY && errno != EEXIST && errno != ENOTDIR)
      break;
    if (replace == DiskCache::Replace::Damaged &&
        loadEntry(path, key, /*marksUse=*/false))
      return Placed::WasThere;
    // Atomic where the file system can; the old one is then our litter.
    if (renameat2(AT_FDCWD, folder.c_str(), AT_FDCWD, path.c_str(),
                  RENAME_EXCHANGE) == 0)
      return Placed::Yes;
    if (errno == ENOENT)
      continue;
    if (Status status = discard(root, path); !status)
      return status;
  }
  return storageError(fmt::format("put an entry at '{}'", path));
}

Result<DiskCache::Published> DiskCache::publish(const CacheKey &key,
                                                const CompiledKernel &kernel,
                                                Replace replace) const {
  if (Status status = checkKernel(key, kernel); !status)
    return status;
  if (!keeps())
    return cannotChange();
  const std::string &root = options_.roots.front();
  auto failed = [&root](const Status &status) {
    return Status::error(status.code,
                         fmt::format("cache '{}': {}", root, status.message));
  };
  const std::string json = toEntryJson(kernel, key);
  const uint64_t bytes = json.size() + kernel.ptx.size() + kernel.cubin.size();
  if (options_.maxBytes && bytes > options_.maxBytes)
    return failed(Status::error(
        StatusCode::StorageFailed,
        fmt::format("an entry of {} bytes does not fit into its bound of {}",
                    bytes, options_.maxBytes)));

  constexpr int mostTries = 3; // of others that take our folder for litter
  for (int tries = 0; tries < mostTries; ++tries) {
    Result<TemporaryFolder> folder = TemporaryFolder::create(root);
    if (!folder)
      return failed(folder.status());
    if (Status status = writeEntry(folder->path(), kernel, json); !status)
      return failed(status);
    Result<Placed> placed =
        place(root, folder->path(), entryPath(root, key.digest), key, replace);
    if (!placed)
      return failed(placed.status());
    if (*placed == Placed::FolderIsGone)
      continue;
    if (*placed == Placed::WasThere)
      return Published::WasThere;
    syncFolder(root);
    if (options_.maxBytes)
      if (auto pruned = prune(options_.maxBytes, key.digest); !pruned)
        report(failed(pruned.status()).message);
    return Published::Stored;
  }
  return failed(Status::error(StatusCode::StorageFailed,
                              "something keeps removing folders from it"));
}

//===----------------------------------------------------------------------===//
// Looking after it
//===----------------------------------------------------------------------===//

static std::vector<std::string> digestsIn(const std::string &root) {
  Result<std::vector<std::string>> names = namesIn(root);
  if (!names)
    return {};
  std::erase_if(*names,
                [](const std::string &name) { return !isDigest(name); });
  std::sort(names->begin(), names->end());
  return std::move(*names);
}

std::vector<CacheEntry> DiskCache::entriesOf(const std::string &root) const {
  std::vector<CacheEntry> entries;
  for (const std::string &digest : digestsIn(root)) {
    CacheEntry entry;
    entry.root = root;
    entry.digest = digest;
    const std::string path = entryPath(root, digest);
    const EntryUse use = entryUse(path);
    entry.bytes = use.bytes;
    entry.lastUsed = use.lastUsed;
    if (Result<EntryRecord> record = peekEntry(path)) {
      entry.name = record->name;
      entry.keyText = record->keyText;
    } else if (record.status().code == StatusCode::NotFound) {
      continue; // pruned since
    } else {
      entry.status = record.status();
    }
    entries.push_back(std::move(entry));
  }
  return entries;
}

std::vector<CacheEntry> DiskCache::list() const {
  std::vector<CacheEntry> entries;
  for (const std::string &root : options_.roots)
    for (CacheEntry &entry : entriesOf(root))
      entries.push_back(std::move(entry));
  return entries;
}

std::vector<CacheEntry> DiskCache::verify() const {
  std::vector<CacheEntry> entries = list();
  std::erase_if(entries, [](CacheEntry &entry) {
    if (entry.status)
      entry.status = verifyEntry(entryPath(entry.root, entry.digest));
    return entry.status.code == StatusCode::NotFound; // pruned since
  });
  return entries;
}

Result<DiskCache::PruneReport> DiskCache::prune(uint64_t maxBytes) const {
  if (!keeps())
    return cannotChange();
  removeLitter(options_.roots.front());
  CompileLock::removeUnused(lockFolder());
  return prune(maxBytes, /*keep=*/"");
}

Result<DiskCache::PruneReport> DiskCache::prune(uint64_t maxBytes,
                                                const std::string &keep) const {
  const std::string &root = options_.roots.front();
  struct Candidate {
    std::string digest;
    EntryUse use;
  };
  std::vector<Candidate> candidates;
  PruneReport report;
  for (std::string &digest : digestsIn(root)) {
    const EntryUse use = entryUse(entryPath(root, digest));
    ++report.kept;
    report.keptBytes += use.bytes;
    if (digest != keep)
      candidates.push_back({std::move(digest), use});
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate &a, const Candidate &b) {
                     return a.use.lastUsed < b.use.lastUsed;
                   });
  for (const Candidate &candidate : candidates) {
    if (report.keptBytes <= maxBytes)
      break;
    if (Status status = discard(root, entryPath(root, candidate.digest));
        !status)
      return status;
    --report.kept;
    ++report.removed;
    report.keptBytes -= candidate.use.bytes;
    report.removedBytes += candidate.use.bytes;
  }
  return report;
}

Result<DiskCache::PruneReport> DiskCache::pruneDamaged() const {
  if (!keeps())
    return cannotChange();
  PruneReport report;
  for (const CacheEntry &entry : verify()) {
    if (entry.root != options_.roots.front())
      continue;
    if (entry.status) {
      ++report.kept;
      report.keptBytes += entry.bytes;
      continue;
    }
    if (Status status =
            discard(entry.root, entryPath(entry.root, entry.digest));
        !status)
      return status;
    ++report.removed;
    report.removedBytes += entry.bytes;
  }
  return report;
}

std::vector<std::string> DiskCache::explain(const CacheKey &key) const {
  std::vector<std::string> sentences;
  for (const std::string &root : options_.roots) {
    Result<CompiledKernel> kernel =
        loadEntry(entryPath(root, key.digest), key, /*marksUse=*/false);
    if (kernel) {
      sentences.push_back(
          fmt::format("entry {} of '{}' is used", key.digest, root));
      return sentences;
    }
    if (kernel.status().code != StatusCode::NotFound)
      sentences.push_back(fmt::format("entry {} of '{}' is not used: {}",
                                      key.digest, root,
                                      kernel.status().message));
  }
  if (sentences.empty())
    sentences.push_back(fmt::format("no entry has the key {}", key.digest));

  const CacheEntry *nearest = nullptr;
  std::vector<std::string> fewest;
  const std::vector<CacheEntry> entries = list();
  for (const CacheEntry &entry : entries) {
    if (!entry.status || entry.digest == key.digest)
      continue;
    std::vector<std::string> found = differences(key.text, entry.keyText);
    if (!nearest || found.size() < fewest.size()) {
      nearest = &entry;
      fewest = std::move(found);
    }
  }
  if (!nearest) {
    sentences.push_back(
        fmt::format("no other entry is in {}", fmt::join(options_.roots, ":")));
    return sentences;
  }
  sentences.push_back(
      fmt::format("the nearest entry is {} of '{}', {}; it "
                  "differs in {}:",
                  nearest->digest, nearest->root, nearest->name,
                  fewest.size() == 1 ? std::string("one fact")
                                     : fmt::format("{} facts", fewest.size())));
  sentences.insert(sentences.end(), fewest.begin(), fewest.end());
  return sentences;
}

} // namespace replayjit::internal
