//===- PtxEntry.h - A kernel out of PTX -------------------------*- C++ -*-===//
#ifndef REPLAYJIT_RUNTIME_AOT_PTXENTRY_H
#define REPLAYJIT_RUNTIME_AOT_PTXENTRY_H

#include "base/CompiledKernel.h"

#include <string_view>

namespace replayjit::internal {

/// The kernel of one entry of a PTX module, whoever wrote it: name, target,
/// parameters and, from .reqntid or else .maxntid, the threads of a block (0 if
/// it has neither). It holds the PTX and no cubin. How much dynamic shared
/// memory a launch needs PTX does not say: launch.sharedBytes is 0, and
/// blocksPerRow 1.
///
/// `entry` may be empty if there is only one. An error is one sentence: there
/// is no such entry, its target or the type of a parameter is none that we
/// know, or its blocks have more than one dimension.
Result<CompiledKernel> kernelFromPtx(std::string_view ptx,
                                     std::string_view entry = {});

} // namespace replayjit::internal

#endif
