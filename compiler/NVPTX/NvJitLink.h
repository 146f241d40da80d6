//===- NvJitLink.h - The nvJitLink library, opened at run time --*- C++ -*-===//
//
// Private to compiler/NVPTX: the library behind one function per verb. No CUDA
// header is needed; the few prototypes are in the source file.
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_COMPILER_NVPTX_NVJITLINK_H
#define REPLAYJIT_COMPILER_NVPTX_NVJITLINK_H

#include "base/Status.h"

#include <string>
#include <string_view>
#include <vector>

namespace replayjit::internal {

/// The entry points of one loaded library. Lives as long as the process.
class NvJitLink {
public:
  /// The library at `path`, or if that is empty the first of the usual names
  /// found by the dynamic loader or in `folders`. Opened once per process and
  /// path; thread-safe. NotFound says what was tried.
  static Result<const NvJitLink *>
  open(const std::string &path, const std::vector<std::string> &folders);

  /// "nvJitLink 13.0"
  const std::string &version() const { return versionText; }

  struct Output {
    std::vector<char> cubin;
    std::string log;
  };
  /// Links `ptx` for `chip` into a cubin; `name` appears in messages. An error
  /// (AssembleFailed) has the library's log. Thread-safe.
  Result<Output> link(std::string_view ptx, const std::string &chip,
                      const std::string &name) const;

private:
  struct Functions;
  const Functions *functions = nullptr;
  std::string versionText;
};

} // namespace replayjit::internal

#endif
