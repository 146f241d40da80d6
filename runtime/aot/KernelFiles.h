//===- KernelFiles.h - A kernel as three files ------------------*- C++ -*-===//
#ifndef REPLAYJIT_RUNTIME_AOT_KERNELFILES_H
#define REPLAYJIT_RUNTIME_AOT_KERNELFILES_H

#include "base/CompiledKernel.h"
#include "base/Files.h"

#include <string>
#include <string_view>

namespace replayjit::internal {

/// The bytes of a cubin as text.
std::string_view bytesOf(const std::vector<char> &bytes);

/// Writes NAME.cubin, NAME.ptx and NAME.json, `record`, into a folder, which is
/// made. NAME is the kernel's, which must be that of a file. See toJson for the
/// record.
Status writeKernelFiles(const std::string &folder, const CompiledKernel &kernel,
                        const std::string &record);

/// The kernel of `base`.json with `base`.cubin, and `base`.ptx if it is there.
/// Other than in a cache, nothing but their sizes is checked: trust the files.
Result<CompiledKernel> readKernelFiles(const std::string &base);

} // namespace replayjit::internal

#endif
