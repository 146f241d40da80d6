//===- EntryFolder.cpp - One kernel on disk -------------------------------===//

#include "runtime/cache/EntryFolder.h"

#include "runtime/cache/Digest.h"
#include "runtime/cache/FileSystem.h"

#include <algorithm>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

namespace replayjit::internal {

static constexpr const char *recordFile = "kernel.json";
static constexpr const char *ptxFile = "kernel.ptx";
static constexpr const char *cubinFile = "kernel.cubin";
static constexpr uint64_t recordLimit = 1 << 20;

namespace {
/// All of one folder.
struct Contents {
  std::string json, ptx, cubin;
  EntryRecord record;
};
} // namespace

static Result<std::string> readJson(int folder, EntryRecord &record) {
  Result<std::string> json = readPrivateFile(folder, recordFile, recordLimit);
  if (!json)
    return json;
  Result<EntryRecord> parsed = readEntryRecord(*json);
  if (!parsed)
    return parsed.status();
  record = std::move(*parsed);
  return json;
}

static Result<std::string> readChecked(int folder, const char *name,
                                       uint64_t bytes,
                                       const std::string &digest) {
  Result<std::string> text = readPrivateFile(folder, name, bytes);
  if (!text)
    return text;
  if (text->size() != bytes)
    return Status::invalid(fmt::format("'{}' has {} bytes instead of {}", name,
                                       text->size(), bytes));
  if (digestOf(*text) != digest)
    return Status::invalid(
        fmt::format("'{}' does not match its checksum", name));
  return text;
}

static Result<Contents> readContents(int folder) {
  Contents contents;
  Result<std::string> json = readJson(folder, contents.record);
  if (!json)
    return json.status();
  contents.json = std::move(*json);
  const EntryRecord &record = contents.record;
  Result<std::string> ptx =
      readChecked(folder, ptxFile, record.ptxBytes, record.ptxDigest);
  if (!ptx)
    return ptx.status();
  Result<std::string> cubin =
      readChecked(folder, cubinFile, record.cubinBytes, record.cubinDigest);
  if (!cubin)
    return cubin.status();
  contents.ptx = std::move(*ptx);
  contents.cubin = std::move(*cubin);
  return contents;
}

/// Calls `use` with the open folder. If it fails, and another folder or none
/// is at the path by then, the entry was replaced or pruned under our hands.
template <typename Use>
static auto withFolder(const std::string &path, Use use) -> decltype(use(0)) {
  constexpr int mostTries = 64; // A slow reader loses several in a row.
  for (int tries = 1;; ++tries) {
    Result<Descriptor> folder = openPrivateFolder(path);
    if (!folder)
      return folder.status();
    auto result = use(folder->get());
    if (result || tries == mostTries ||
        identityOf(folder->get()) == identityOf(path)) {
      // NotFound is for the entry; a file that lacks is damage.
      if (!result && result.status().code == StatusCode::NotFound)
        return Status::invalid(result.status().message);
      return result;
    }
  }
}

Result<CompiledKernel> loadEntry(const std::string &path, const CacheKey &key,
                                 bool marksUse) {
  return withFolder(path, [&](int folder) -> Result<CompiledKernel> {
    Result<Contents> contents = readContents(folder);
    if (!contents)
      return contents.status();
    if (contents->record.keyText != key.text)
      return Status::invalid("kernel.json is of another key");
    Result<KernelRecord> record = readRecord(contents->json);
    if (!record)
      return record.status();
    if (record->spec != key.spec || record->tuning != key.tuning ||
        record->kernel.target.chip != key.target.chip)
      return Status::invalid("kernel.json contradicts its own key");
    CompiledKernel kernel = std::move(record->kernel);
    kernel.ptx = std::move(contents->ptx);
    kernel.cubin.assign(contents->cubin.begin(), contents->cubin.end());
    if (marksUse)
      (void)utimensat(folder, recordFile, nullptr, AT_SYMLINK_NOFOLLOW);
    return kernel;
  });
}

Result<EntryRecord> peekEntry(const std::string &path) {
  return withFolder(path, [](int folder) -> Result<EntryRecord> {
    EntryRecord record;
    Result<std::string> json = readJson(folder, record);
    if (!json)
      return json.status();
    return record;
  });
}

/// True if this version makes keys of the same facts.
static bool hasOurFacts(std::string_view keyText) {
  static const std::string ours = CacheKey::of({}, {}, {}).text;
  const auto theirs = factsOf(keyText), mine = factsOf(ours);
  auto sameName = [](std::string_view a, std::string_view b) {
    return a.substr(0, a.find(' ')) == b.substr(0, b.find(' '));
  };
  return std::equal(theirs.begin(), theirs.end(), mine.begin(), mine.end(),
                    sameName) &&
         theirs.front() == mine.front(); // the generator's version
}

Status verifyEntry(const std::string &path) {
  Result<bool> verified = withFolder(path, [&](int folder) -> Result<bool> {
    Result<Contents> contents = readContents(folder);
    if (!contents)
      return contents.status();
    const std::string &keyText = contents->record.keyText;
    if (digestOf(keyText) != path.substr(path.rfind('/') + 1))
      return Status::invalid("its name is not the digest of its key");
    // The rest only the version that wrote it can judge.
    if (!hasOurFacts(keyText))
      return true;
    Result<KernelRecord> record = readRecord(contents->json);
    if (!record)
      return record.status();
    return true;
  });
  return verified ? Status::ok() : verified.status();
}

Status writeEntry(const std::string &path, const CompiledKernel &kernel,
                  const std::string &json) {
  Result<Descriptor> folder = openPrivateFolder(path);
  if (!folder)
    return folder.status();
  for (auto [name, bytes] :
       {std::pair<const char *, std::string_view>{
            cubinFile, {kernel.cubin.data(), kernel.cubin.size()}},
        {ptxFile, kernel.ptx},
        {recordFile, json}})
    if (Status status = writePrivateFile(folder->get(), name, bytes); !status)
      return status;
  if (fsync(folder->get()) != 0)
    return storageError(fmt::format("write '{}'", path));
  return Status::ok();
}

EntryUse entryUse(const std::string &path) {
  EntryUse use;
  for (const char *name : {recordFile, ptxFile, cubinFile}) {
    struct stat info;
    if (lstat(fmt::format("{}/{}", path, name).c_str(), &info) != 0)
      continue;
    use.bytes += info.st_size;
    if (name == recordFile)
      use.lastUsed =
          info.st_mtim.tv_sec * 1'000'000'000ll + info.st_mtim.tv_nsec;
  }
  return use;
}

} // namespace replayjit::internal
