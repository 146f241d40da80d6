//===- ToolProcess.cpp - Running an external tool -------------------------===//

#include "compiler/NVPTX/ToolProcess.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace replayjit::internal {

namespace fs = std::filesystem;

Result<ScratchFolder> ScratchFolder::create(const std::string &parent) {
  std::string path = parent + "/replayjit-XXXXXX";
  if (!mkdtemp(path.data()))
    return Status::error(StatusCode::NotFound,
                         fmt::format("cannot make a temporary folder in '{}': "
                                     "{}; set TMPDIR to a writable folder",
                                     parent, strerror(errno)));
  return ScratchFolder(std::move(path));
}

ScratchFolder::ScratchFolder(ScratchFolder &&other) noexcept
    : path(std::move(other.path)) {
  other.path.clear();
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  if (!path.empty())
    fs::remove_all(path, ignored);
}

std::string ScratchFolder::file(std::string_view name) const {
  return fmt::format("{}/{}", path, name);
}

std::string ScratchFolder::withoutPath(std::string text) const {
  std::string prefix = path + "/";
  for (size_t at = 0; (at = text.find(prefix, at)) != std::string::npos;)
    text.erase(at, prefix.size());
  return text;
}

Status writeFile(const std::string &path, std::string_view bytes) {
  FILE *file = fopen(path.c_str(), "wb");
  bool written =
      file && fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
  // A full disk may show only when the buffer is flushed.
  if (file && fclose(file) != 0)
    written = false;
  if (!written)
    return Status::error(
        StatusCode::NotFound,
        fmt::format("cannot write '{}': {}", path, strerror(errno)));
  return Status::ok();
}

Result<std::string> readFile(const std::string &path) {
  FILE *file = fopen(path.c_str(), "rb");
  if (!file)
    return Status::error(
        StatusCode::NotFound,
        fmt::format("cannot read '{}': {}", path, strerror(errno)));
  std::string bytes;
  char buffer[16384];
  while (size_t count = fread(buffer, 1, sizeof(buffer), file))
    bytes.append(buffer, count);
  bool failed = ferror(file);
  fclose(file);
  if (failed)
    return Status::error(StatusCode::NotFound,
                         fmt::format("cannot read '{}' to its end", path));
  return bytes;
}

std::string findExecutable(std::string_view name,
                           const std::vector<std::string> &folders) {
  for (const std::string &folder : folders) {
    std::string path = fmt::format("{}/{}", folder, name);
    struct stat info;
    if (stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) &&
        access(path.c_str(), X_OK) == 0)
      return path;
  }
  return {};
}

/// Starts `command` as the leader of a process group, with its output in
/// `outputPath`; an errno value.
static int spawn(const std::vector<std::string> &command,
                 const std::string &outputPath, pid_t &process) {
  std::vector<char *> argv;
  for (const std::string &argument : command)
    argv.push_back(const_cast<char *>(argument.c_str()));
  argv.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  if (int error = posix_spawn_file_actions_init(&actions))
    return error;
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, outputPath.c_str(),
                                   O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  posix_spawnattr_t attributes;
  int error = posix_spawnattr_init(&attributes);
  if (!error) {
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    posix_spawnattr_setpgroup(&attributes, 0);
    error = posix_spawn(&process, argv[0], &actions, &attributes, argv.data(),
                        environ);
    posix_spawnattr_destroy(&attributes);
  }
  posix_spawn_file_actions_destroy(&actions);
  return error;
}

/// As waitpid does, but 0 if the process has not ended after `limit`.
static pid_t waitFor(pid_t process, int &state,
                     std::chrono::milliseconds limit) {
  using namespace std::chrono_literals;
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  for (;;) {
    const pid_t waited = waitpid(process, &state, WNOHANG);
    const Clock::duration spent = Clock::now() - start;
    if (waited != 0 || spent >= limit)
      return waited;
    // In steps that are short beside what was waited already.
    std::this_thread::sleep_for(
        std::clamp<Clock::duration>(spent / 16, 200us, 20ms));
  }
}

Result<ToolOutcome> runTool(const std::vector<std::string> &command,
                            const ScratchFolder &scratch,
                            std::chrono::milliseconds limit) {
  std::string outputPath = scratch.file("output.txt");
  pid_t process = 0;
  if (int error = spawn(command, outputPath, process))
    return Status::error(
        StatusCode::NotFound,
        fmt::format("cannot run '{}': {}", command[0], strerror(error)));

  int state = 0;
  const pid_t waited = waitFor(process, state, limit);
  if (waited == 0) {
    (void)kill(-process, SIGKILL);
    while (waitpid(process, &state, 0) < 0 && errno == EINTR)
      continue;
    return Status::error(
        StatusCode::AssembleFailed,
        fmt::format("'{}' has not ended after {} and was killed; "
                    "REPLAYJIT_ASSEMBLER_SECONDS says how long it may take",
                    command[0], limit));
  }
  if (waited < 0)
    // A host that ignores SIGCHLD lets the kernel reap our child.
    return Status::error(
        StatusCode::AssembleFailed,
        fmt::format("cannot learn how '{}' ended: {}; does this process ignore "
                    "SIGCHLD?",
                    command[0], strerror(errno)));

  Result<std::string> output = readFile(outputPath);
  if (!output)
    return output.status();
  ToolOutcome outcome;
  outcome.output = scratch.withoutPath(std::move(*output));
  outcome.succeeded = WIFEXITED(state) && WEXITSTATUS(state) == 0;
  outcome.ending = WIFEXITED(state)
                       ? fmt::format("exit code {}", WEXITSTATUS(state))
                       : fmt::format("signal {}", WTERMSIG(state));
  return outcome;
}

} // namespace replayjit::internal
