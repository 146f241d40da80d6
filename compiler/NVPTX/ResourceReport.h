//===- ResourceReport.h - Registers and spills out of a log -----*- C++ -*-===//
//
// ptxas and nvJitLink report what a kernel uses only as text.
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_COMPILER_NVPTX_RESOURCEREPORT_H
#define REPLAYJIT_COMPILER_NVPTX_RESOURCEREPORT_H

#include "base/CompiledKernel.h"

#include <string_view>

namespace replayjit::internal {

/// What the verbose log of ptxas or nvJitLink says of the entry `kernelName`.
/// Other entries and device functions in the log are ignored. A field is -1
/// where the log does not mention it.
ResourceUsage parseResourceReport(std::string_view log,
                                  std::string_view kernelName);

} // namespace replayjit::internal

#endif
