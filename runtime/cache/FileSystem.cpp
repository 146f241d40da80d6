//===- FileSystem.cpp - Folders that others may touch ---------------------===//

#include "runtime/cache/FileSystem.h"

#include "base/Exceptions.h"
#include "runtime/cache/Digest.h"

#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <memory>
#include <sys/stat.h>
#include <unistd.h>

namespace replayjit::internal {

namespace fs = std::filesystem;

Status storageError(std::string_view what) {
  const int code = errno;
  return Status::error(StatusCode::StorageFailed,
                       fmt::format("cannot {}: {}", what, strerror(code)));
}

Descriptor &Descriptor::operator=(Descriptor &&other) noexcept {
  std::swap(number, other.number);
  return *this;
}

Descriptor::~Descriptor() { close(); }

bool Descriptor::close() {
  const int old = std::exchange(number, -1);
  return old < 0 || ::close(old) == 0;
}

static FileIdentity identityOf(const struct stat &info) {
  return {info.st_dev, info.st_ino};
}

FileIdentity identityOf(const std::string &path) {
  struct stat info;
  return lstat(path.c_str(), &info) == 0 ? identityOf(info) : FileIdentity();
}

FileIdentity identityOf(int descriptor) {
  struct stat info;
  return fstat(descriptor, &info) == 0 ? identityOf(info) : FileIdentity();
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

/// Root may own what we load: it can change anything anyway, and an image that
/// ships a cache is made by it.
static Status checkPrivate(const struct stat &info, std::string_view name) {
  if (info.st_uid != geteuid() && info.st_uid != 0)
    return Status::invalid(fmt::format("'{}' belongs to user {}, not to this "
                                       "user ({}) or root",
                                       name, info.st_uid, geteuid()));
  if (info.st_mode & (S_IWGRP | S_IWOTH))
    return Status::invalid(fmt::format("'{}' has mode {:04o}: others can write "
                                       "it",
                                       name, info.st_mode & 07777));
  return Status::ok();
}

Result<Descriptor> openPrivateFolder(const std::string &path) {
  Descriptor folder(
      open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  const std::string name = path.substr(path.rfind('/') + 1);
  if (!folder && errno == ENOENT)
    return Status::error(StatusCode::NotFound,
                         fmt::format("there is no '{}'", name));
  if (!folder && (errno == ENOTDIR || errno == ELOOP))
    return Status::invalid(fmt::format("'{}' is no folder", name));
  struct stat info;
  if (!folder || fstat(folder.get(), &info) != 0)
    return storageError(fmt::format("open '{}'", name));
  if (Status status = checkPrivate(info, name); !status)
    return status;
  return folder;
}

Result<std::string> readPrivateFile(int folder, const char *name,
                                    uint64_t limit) {
  // O_NONBLOCK: opening a pipe must not wait for a writer.
  Descriptor file(
      openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!file && errno == ENOENT)
    return Status::error(StatusCode::NotFound,
                         fmt::format("'{}' is missing", name));
  if (!file && errno == ELOOP)
    return Status::invalid(fmt::format("'{}' is a symbolic link", name));
  struct stat info;
  if (!file || fstat(file.get(), &info) != 0)
    return storageError(fmt::format("open '{}'", name));
  if (!S_ISREG(info.st_mode))
    return Status::invalid(fmt::format("'{}' is no plain file", name));
  if (Status status = checkPrivate(info, name); !status)
    return status;
  if (uint64_t(info.st_size) > limit)
    return Status::invalid(fmt::format("'{}' has {} bytes; at most {} are "
                                       "expected",
                                       name, info.st_size, limit));
  std::string bytes(info.st_size, '\0');
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t count =
        ::read(file.get(), bytes.data() + done, bytes.size() - done);
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      return storageError(fmt::format("read '{}'", name));
    if (count == 0)
      break; // cut short meanwhile: its digest will tell
    done += count;
  }
  bytes.resize(done);
  return bytes;
}

Result<std::vector<std::string>> namesIn(const std::string &path) {
  const std::unique_ptr<DIR, int (*)(DIR *)> folder(opendir(path.c_str()),
                                                    closedir);
  if (!folder)
    return storageError(fmt::format("open '{}'", path));
  std::vector<std::string> names;
  errno = 0;
  while (const dirent *entry = readdir(folder.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..")
      names.emplace_back(name);
  }
  if (errno != 0)
    return storageError(fmt::format("list '{}'", path));
  return names;
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

Status writePrivateFile(int folder, const char *name, std::string_view bytes) {
  const std::string what = fmt::format("write '{}'", name);
  Descriptor file(openat(folder, name,
                         O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                         0600));
  // The umask may have taken bits away.
  if (!file || fchmod(file.get(), 0600) != 0)
    return storageError(what);
  while (!bytes.empty()) {
    const ssize_t count = ::write(file.get(), bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      return storageError(what);
    bytes.remove_prefix(count);
  }
  // Some file systems report a full disk only here.
  if (fsync(file.get()) != 0 || !file.close())
    return storageError(what);
  return Status::ok();
}

void syncFolder(const std::string &path) {
  Descriptor folder(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder)
    (void)fsync(folder.get());
}

Status makePrivateFolders(const std::string &path) {
  struct stat info;
  if (stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode))
    return Status::ok();
  if (const size_t slash = path.rfind('/'); slash != path.npos && slash > 0)
    if (Status status = makePrivateFolders(path.substr(0, slash)); !status)
      return status;
  if (mkdir(path.c_str(), 0700) == 0 && chmod(path.c_str(), 0700) == 0)
    return Status::ok(); // chmod: against the umask
  if (errno == EEXIST && stat(path.c_str(), &info) == 0) {
    if (S_ISDIR(info.st_mode)) // another process made it
      return Status::ok();
    errno = ENOTDIR;
  }
  return storageError(fmt::format("make the folder '{}'", path));
}

//===----------------------------------------------------------------------===//
// Temporary folders
//===----------------------------------------------------------------------===//

static constexpr std::string_view litterIntro = ".tmp-";
static constexpr size_t machineDigits = 16;
static constexpr int64_t litterSeconds = 3600;

/// Processes with the same text see each other under the same numbers: one
/// boot of one machine, one namespace of processes.
static const std::string &machine() {
  static const std::string text = [] {
    std::string facts;
    char buffer[256] = {};
    if (gethostname(buffer, sizeof(buffer) - 1) == 0)
      facts += buffer;
    ssize_t count = readlink("/proc/self/ns/pid", buffer, sizeof(buffer));
    facts.append(buffer, count > 0 ? count : 0);
    Descriptor boot(
        open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
    count = boot ? read(boot.get(), buffer, sizeof(buffer)) : 0;
    facts.append(buffer, count > 0 ? count : 0);
    return digestOf(facts).substr(0, machineDigits);
  }();
  return text;
}

Result<TemporaryFolder> TemporaryFolder::create(const std::string &root) {
  std::string path =
      fmt::format("{}/{}{}-{}-XXXXXX", root, litterIntro, machine(), getpid());
  if (!mkdtemp(path.data()))
    return storageError(fmt::format("make a folder in '{}'", root));
  TemporaryFolder folder(std::move(path));
  if (chmod(folder.path().c_str(), 0700) != 0) // against the umask
    return storageError(fmt::format("make a folder in '{}'", root));
  return folder;
}

static void removeAll(const std::string &path) {
  // What stays, also for want of memory, is litter, which others remove.
  (void)withoutThrowing([&] {
    std::error_code ignored;
    fs::remove_all(path, ignored);
    return Status::ok();
  });
}

TemporaryFolder::~TemporaryFolder() {
  if (!folder.empty())
    removeAll(folder);
}

/// `name` is what follows the intro: MACHINE-PROCESS-XXXXXX.
static bool ownerIsGone(std::string_view name) {
  if (!name.starts_with(machine()))
    return false;
  name.remove_prefix(std::min(machineDigits + 1, name.size()));
  int process = 0;
  std::from_chars(name.data(), name.data() + name.size(), process);
  return process > 0 && kill(process, 0) != 0 && errno == ESRCH;
}

void removeLitter(const std::string &root) {
  Result<std::vector<std::string>> names = namesIn(root);
  if (!names)
    return;
  for (std::string_view name : *names) {
    if (!name.starts_with(litterIntro))
      continue;
    const std::string path = fmt::format("{}/{}", root, name);
    name.remove_prefix(litterIntro.size());
    struct stat info;
    if (lstat(path.c_str(), &info) != 0)
      continue;
    const bool isOld = time(nullptr) - info.st_mtim.tv_sec > litterSeconds;
    if (ownerIsGone(name) || (isOld && !name.starts_with(machine())))
      (void)discard(root, path);
  }
}

Status discard(const std::string &root, const std::string &path) {
  // A rename first: nobody may find half an entry. It stays in its folder, and
  // takes no space, so that this works on a full disk.
  static std::atomic<unsigned> count = 0;
  const std::string aside = fmt::format(
      "{}/{}{}-{}-{}.{}", root, litterIntro, machine(), getpid(), ++count,
      std::chrono::system_clock::now().time_since_epoch().count());
  if (rename(path.c_str(), aside.c_str()) != 0) {
    if (errno == ENOENT)
      return Status::ok();
    return storageError(fmt::format("remove '{}'", path));
  }
  removeAll(aside);
  return Status::ok();
}

} // namespace replayjit::internal
