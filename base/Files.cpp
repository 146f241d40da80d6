//===- Files.cpp - Whole files that people name ---------------------------===//

#include "base/Files.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <memory>
#include <sys/stat.h>
#include <unistd.h>

namespace replayjit::internal {

namespace fs = std::filesystem;

namespace {

/// Closes a descriptor.
class File {
public:
  File(const char *path, int flags, mode_t mode = 0)
      : number(open(path, flags | O_CLOEXEC, mode)) {}
  File(const File &) = delete;
  ~File() { close(); }

  explicit operator bool() const { return number >= 0; }
  int get() const { return number; }
  /// False if the file system reports a late failure.
  bool close() {
    const int old = std::exchange(number, -1);
    return old < 0 || ::close(old) == 0;
  }

private:
  int number;
};

} // namespace

/// False with an errno.
static bool writeAll(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = write(file, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      return false;
    bytes.remove_prefix(count);
  }
  return true;
}

/// False with an errno. A plain file gets its name when it is whole, so that
/// neither a full disk nor a signal leaves a part of it.
static bool replace(const std::string &path, std::string_view bytes) {
  struct stat old;
  const bool exists = stat(path.c_str(), &old) == 0;
  if (exists && !S_ISREG(old.st_mode)) {
    File file(path.c_str(), O_WRONLY);
    return file && writeAll(file.get(), bytes) && file.close();
  }
  static std::atomic<unsigned> count = 0;
  const std::string draft =
      fs::path(path)
          .replace_filename(fmt::format(".replayjit-{}-{}", getpid(), ++count))
          .string();
  File file(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL, 0666);
  if (!file)
    return false;
  // Some file systems report a full disk only when the bytes are brought to it.
  if ((!exists || fchmod(file.get(), old.st_mode & 07777) == 0) &&
      writeAll(file.get(), bytes) && fsync(file.get()) == 0 && file.close() &&
      rename(draft.c_str(), path.c_str()) == 0)
    return true;
  const int code = errno;
  unlink(draft.c_str());
  errno = code;
  return false;
}

Status writeBytes(const std::string &path, std::string_view bytes) {
  // A link stays, and what it leads to is replaced.
  const std::unique_ptr<char, void (*)(void *)> target(
      realpath(path.c_str(), nullptr), std::free);
  if (!path.empty() && replace(target ? target.get() : path, bytes))
    return Status::ok();
  return Status::error(StatusCode::StorageFailed,
                       fmt::format("output: cannot write '{}': {}", path,
                                   strerror(path.empty() ? ENOENT : errno)));
}

Result<std::string> readBytes(const std::string &path, uint64_t limit) {
  auto failed = [&path] {
    const int code = errno;
    return Status::error(
        StatusCode::NotFound,
        fmt::format("input: cannot read '{}': {}", path, strerror(code)));
  };
  File file(path.c_str(), O_RDONLY);
  if (!file)
    return failed();
  std::string bytes;
  for (;;) {
    constexpr size_t step = 1 << 16;
    const size_t done = bytes.size();
    bytes.resize(done + step);
    const ssize_t count = read(file.get(), bytes.data() + done, step);
    bytes.resize(done + std::max<ssize_t>(count, 0));
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      return failed();
    if (count == 0)
      return bytes;
    if (bytes.size() > limit)
      return Status::invalid(
          fmt::format("input: '{}' has more than {} bytes, which is the most "
                      "that is read",
                      path, limit));
  }
}

Status makeFolders(const std::string &path) {
  std::error_code code;
  fs::create_directories(path, code);
  if (!code)
    return Status::ok();
  return Status::error(
      StatusCode::NotFound,
      fmt::format("output: cannot create '{}' ({})", path, code.message()));
}

Status checkFileName(std::string_view what, std::string_view name) {
  if (!name.empty() && name != "." && name != ".." &&
      name.find_first_of(std::string_view("/\0", 2)) == name.npos)
    return Status::ok();
  return Status::invalid(
      fmt::format("{}: '{}' is not allowed; it must be the name of a file, "
                  "without a '/'",
                  what, name));
}

} // namespace replayjit::internal
