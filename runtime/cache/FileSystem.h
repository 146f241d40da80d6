//===- FileSystem.h - Folders that others may touch -------------*- C++ -*-===//
//
// Private to runtime/cache: file operations that go through descriptors, follow
// no symbolic link inside a cache, and check who may write what they open.
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_RUNTIME_CACHE_FILESYSTEM_H
#define REPLAYJIT_RUNTIME_CACHE_FILESYSTEM_H

#include "base/Status.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace replayjit::internal {

/// StorageFailed: "cannot WHAT: " and the text of errno, read at once.
Status storageError(std::string_view what);

/// Owns a file descriptor.
class Descriptor {
public:
  Descriptor() = default;
  explicit Descriptor(int number) : number(number) {}
  Descriptor(Descriptor &&other) noexcept
      : number(std::exchange(other.number, -1)) {}
  Descriptor &operator=(Descriptor &&other) noexcept;
  ~Descriptor();

  explicit operator bool() const { return number >= 0; }
  int get() const { return number; }
  /// Closes it; false if the file system reports a late failure.
  bool close();

private:
  int number = -1;
};

/// Which file a descriptor or path stands for.
struct FileIdentity {
  uint64_t device = 0, inode = 0;
  bool operator==(const FileIdentity &) const = default;
};

/// Of `path` itself, a symbolic link included; zeros if there is none.
FileIdentity identityOf(const std::string &path);
FileIdentity identityOf(int descriptor);

/// Opens a folder by its path, of which the last part is no symbolic link.
/// NotFound if there is none; InvalidArgument if it is something else, belongs
/// to neither this user nor root, or can be written by others.
Result<Descriptor> openPrivateFolder(const std::string &path);

/// Reads file `name` of an open folder, under the same conditions, if it has
/// at most `limit` bytes. NotFound if it is not there.
Result<std::string> readPrivateFile(int folder, const char *name,
                                    uint64_t limit);

/// Writes a new file of mode 0600 into an open folder and brings it to disk.
Status writePrivateFile(int folder, const char *name, std::string_view bytes);

/// Brings the names in a folder to disk, as far as the file system does.
void syncFolder(const std::string &path);

/// Makes a folder of mode 0700, and those above it that are missing.
Status makePrivateFolders(const std::string &path);

/// The names in a folder, but for "." and "..".
Result<std::vector<std::string>> namesIn(const std::string &path);

/// A folder that is not an entry yet, or no longer. Its name says which process
/// of which machine it belongs to, so that others can tell when it is litter.
class TemporaryFolder {
public:
  /// A new one of mode 0700 inside `root`.
  static Result<TemporaryFolder> create(const std::string &root);
  TemporaryFolder(TemporaryFolder &&other) noexcept
      : folder(std::exchange(other.folder, {})) {}
  TemporaryFolder &operator=(TemporaryFolder &&) = delete;
  /// Removes whatever is at the path by then.
  ~TemporaryFolder();

  const std::string &path() const { return folder; }

private:
  explicit TemporaryFolder(std::string path) : folder(std::move(path)) {}
  std::string folder;
};

/// Removes temporary folders of processes that are gone, and those older than
/// an hour of machines unknown here.
void removeLitter(const std::string &root);

/// Takes `path`, a folder or file in `root`, out of sight at once and removes
/// it. No error if there is none.
Status discard(const std::string &root, const std::string &path);

} // namespace replayjit::internal

#endif
