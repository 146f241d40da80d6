//===- CompileReports.h - Tables about a compilation ------------*- C++ -*-===//
#ifndef REPLAYJIT_TOOLS_COMPILEREPORTS_H
#define REPLAYJIT_TOOLS_COMPILEREPORTS_H

#include "base/CompiledKernel.h"

#include <string>
#include <vector>

namespace replayjit::internal {

/// The stages of the first run in the order they ran, with the totals; and the
/// medians of the other runs, if there are any. `startUp` in milliseconds.
std::string timingTable(const std::vector<std::vector<StageTime>> &runs,
                        double startUp);

/// What the kernel is and what it uses, a fact a line.
std::string summaryTable(const CompiledKernel &kernel);

/// An error that names kernel and bytes if it spills or has a stack, or if the
/// assembler did not say.
Status checkSpills(const CompiledKernel &kernel);

} // namespace replayjit::internal

#endif
