//===- CompileOnMiss.h - The runtime's one door to the compiler -*- C++ -*-===//
//
// A library of its own, ReplayCompileOnMiss: a program that links it links
// LLVM; one that does not runs cached kernels.
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_RUNTIME_COMPILEONMISS_H
#define REPLAYJIT_RUNTIME_COMPILEONMISS_H

#include "compiler/NVPTX/AssembleCubin.h"
#include "runtime/Jit.h"

namespace replayjit::internal {

/// For JitOptions::compile. Each thread that compiles at the same time as others
/// has a Compiler of its own; they are kept for later calls. Where the driver is
/// to assemble, the kernel has PTX and no cubin.
CompileFn
compileOnMiss(AssembleOptions assemble = AssembleOptions::fromEnvironment());

} // namespace replayjit::internal

#endif
