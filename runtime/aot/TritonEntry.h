//===- TritonEntry.h - Entries of Triton's cache ----------------*- C++ -*-===//
//
// An entry of $TRITON_CACHE_DIR is a folder, named by the base 32 of a SHA-256,
// that holds FILE.cubin, FILE.ptx, FILE.json and __grp__FILE.json, which has
// the paths of the others; FILE is the Python function's name. Written off
// Triton 3.6. Unlike an entry of our cache it cannot be moved, and nothing
// tells whether its files belong together.
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_RUNTIME_AOT_TRITONENTRY_H
#define REPLAYJIT_RUNTIME_AOT_TRITONENTRY_H

#include "base/CompiledKernel.h"

#include <string>

namespace replayjit::internal {

struct TritonExport {
  std::string cacheFolder; ///< What $TRITON_CACHE_DIR will be.
  /// 64 hexadecimal digits. The hash that Triton computes for a function, its
  /// types and options makes Triton take this kernel for it.
  std::string hash;
  /// Of the files, no path; empty: the kernel's name, cut to 150 letters.
  std::string file;
};

/// Writes an entry for a kernel of LaunchAbi::Triton and returns its folder,
/// which must not be there or be empty. It appears as a whole.
Result<std::string> exportToTriton(const CompiledKernel &kernel,
                                   const TritonExport &options);

/// The kernel of the one entry in `folder`: code, dynamic shared memory and
/// threads as Triton recorded them, parameters as its PTX declares them.
/// Unsupported if a launch needs what we do not give: scratch memory, clusters,
/// cooperative launches, or descriptors made by the host.
Result<CompiledKernel> importFromTriton(const std::string &folder);

} // namespace replayjit::internal

#endif
