//===- ToolProcess.h - Running an external tool -----------------*- C++ -*-===//
//
// Private to compiler/NVPTX: ptxas and the disassemblers read and write files,
// so each run has a folder of its own that does not outlive it.
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_COMPILER_NVPTX_TOOLPROCESS_H
#define REPLAYJIT_COMPILER_NVPTX_TOOLPROCESS_H

#include "base/Status.h"

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace replayjit::internal {

/// A private folder (mode 0700), removed with its files on destruction.
class ScratchFolder {
public:
  /// A new folder inside `parent`.
  static Result<ScratchFolder> create(const std::string &parent);
  ScratchFolder(ScratchFolder &&other) noexcept;
  ScratchFolder &operator=(ScratchFolder &&) = delete;
  ~ScratchFolder();

  std::string file(std::string_view name) const;
  /// `text` with the folder's path taken out, so that a log that is kept does
  /// not name a folder that is gone.
  std::string withoutPath(std::string text) const;

private:
  explicit ScratchFolder(std::string path) : path(std::move(path)) {}
  std::string path;
};

Status writeFile(const std::string &path, std::string_view bytes);
Result<std::string> readFile(const std::string &path);

/// The first executable file called `name` in `folders`; empty if none.
std::string findExecutable(std::string_view name,
                           const std::vector<std::string> &folders);

/// How a process ended and what it printed (stdout and stderr together).
struct ToolOutcome {
  bool succeeded = false; ///< Exit code 0.
  std::string ending;     ///< "exit code 255" or "signal 11"
  std::string output;
};

/// Runs `command[0]`, a path, and waits for it. Standard input is empty; the
/// output passes through a file in `scratch`, so no pipe can fill up. An error
/// only if the process could not be started or waited for, or has not ended
/// after `limit`: then it and what it started are killed. For that it has a
/// process group of its own, which a terminal's Ctrl-C does not reach.
Result<ToolOutcome> runTool(const std::vector<std::string> &command,
                            const ScratchFolder &scratch,
                            std::chrono::milliseconds limit);

} // namespace replayjit::internal

#endif
