//===- Files.h - Whole files that people name -------------------*- C++ -*-===//
//
// For what a user reads and writes by path; runtime/cache has its own, which
// trust nobody.
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_BASE_FILES_H
#define REPLAYJIT_BASE_FILES_H

#include "base/Status.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace replayjit::internal {

/// The most bytes of a file that makes a kernel. The largest kernel has less
/// than one MiB; a device or pipe that never ends is given up here.
inline constexpr uint64_t mostFileBytes = uint64_t(64) << 20;

/// Writes a file, or replaces it: all of it, or nothing and the reason. What is
/// no plain file, such as /dev/stdout or a pipe, is written where it is.
Status writeBytes(const std::string &path, std::string_view bytes);

/// All bytes of a file, a pipe too, if there are at most `limit`.
Result<std::string> readBytes(const std::string &path,
                              uint64_t limit = mostFileBytes);

/// Makes a folder and those above it.
Status makeFolders(const std::string &path);

/// InvalidArgument unless `name`, which comes from outside, is that of a file
/// in the folder it is put after: no path, not "..". `what` is who says so.
Status checkFileName(std::string_view what, std::string_view name);

} // namespace replayjit::internal

#endif
