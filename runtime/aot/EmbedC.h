//===- EmbedC.h - A kernel as C source --------------------------*- C++ -*-===//
#ifndef REPLAYJIT_RUNTIME_AOT_EMBEDC_H
#define REPLAYJIT_RUNTIME_AOT_EMBEDC_H

#include "base/CompiledKernel.h"

#include <map>
#include <string>

namespace replayjit::internal {

/// What the header says of parameters, by name.
using ParamDocs = std::map<std::string, std::string>;

struct CSource {
  std::string header, source; ///< Of NAME.h and NAME.c.
};

/// C11 that holds the kernel's cubin and launches it: functions `name`,
/// `name`_load and `name`_unload, explained in the header. They open the CUDA
/// driver at run time, load the kernel once per context, return CUresult codes,
/// and never print or exit. The launch takes stream, grid and the kernel's
/// parameters, but for the scratch pointers of Triton's ABI. Needs -ldl and
/// pthreads, and nothing else of ours. A parameter that `docs` lacks is one
/// without a line in the header.
///
/// InvalidArgument if `name` is no C identifier or one that C, C++ or an
/// included header has, or the kernel has no cubin.
Result<CSource> embedAsC(const CompiledKernel &kernel, const std::string &name,
                         const ParamDocs &docs = {});

} // namespace replayjit::internal

#endif
