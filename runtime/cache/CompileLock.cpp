//===- CompileLock.cpp - One process compiles a key -----------------------===//

#include "runtime/cache/CompileLock.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <thread>
#include <unistd.h>

namespace replayjit::internal {

using Clock = std::chrono::steady_clock;

/// Never blocks: a server that forgets to answer a waiting lock must not stop
/// us. False with errno EWOULDBLOCK if another holds it.
static bool tryLock(CompileLock::Flock flock, int file) {
  int result;
  do
    result = flock(file, LOCK_EX | LOCK_NB);
  while (result != 0 && errno == EINTR);
  return result == 0;
}

Result<CompileLock> CompileLock::acquire(const std::string &folder,
                                         const std::string &name,
                                         std::chrono::milliseconds patience,
                                         Flock flock) {
  if (!flock)
    flock = ::flock;
  if (Status status = makePrivateFolders(folder); !status)
    return status;
  const std::string path = fmt::format("{}/{}", folder, name);
  const Clock::time_point deadline = Clock::now() + patience;
  std::chrono::milliseconds pause(1);
  bool hasWaited = false;
  for (;;) {
    Descriptor file(
        open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!file)
      return storageError(fmt::format("open the lock '{}'", path));
    while (!tryLock(flock, file.get())) {
      if (errno != EWOULDBLOCK)
        return storageError(fmt::format("lock '{}'", path));
      hasWaited = true;
      if (Clock::now() >= deadline)
        return Status::error(
            StatusCode::NotFound,
            fmt::format("another process has held the lock '{}' for {} ms",
                        path, patience.count()));
      std::this_thread::sleep_for(pause);
      pause = std::min(pause * 2, std::chrono::milliseconds(50));
    }
    // The last holder removed the file that we waited on: the lock that counts
    // is that of the file with the name.
    if (identityOf(file.get()) == identityOf(path))
      return CompileLock(std::move(file), path, hasWaited);
    if (Clock::now() >= deadline)
      return Status::error(StatusCode::NotFound,
                           fmt::format("the lock '{}' changes hands for "
                                       "longer than {} ms",
                                       path, patience.count()));
  }
}

CompileLock::~CompileLock() {
  if (!file)
    return;
  unlink(path.c_str()); // while it is held: no one else's can go
  // Children of a fork share the lock; closing alone would leave it to them.
  flock(file.get(), LOCK_UN);
}

void CompileLock::removeUnused(const std::string &folder) {
  Result<std::vector<std::string>> names = namesIn(folder);
  if (!names)
    return;
  for (const std::string &name : *names)
    (void)acquire(folder, name, std::chrono::milliseconds(0));
}

} // namespace replayjit::internal
