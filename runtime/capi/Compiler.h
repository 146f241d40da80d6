//===- Compiler.h - The compiler, where this build has one ------*- C++ -*-===//
#ifndef REPLAYJIT_RUNTIME_CAPI_COMPILER_H
#define REPLAYJIT_RUNTIME_CAPI_COMPILER_H

#include "runtime/Jit.h"

namespace replayjit::capi {

/// For JitOptions::compile; null in a build without the compiler. The paths may
/// be null. `usesEnvironment`: what they leave open comes from there.
CompileFn makeCompiler(bool usesEnvironment, const char *ptxasPath,
                       const char *nvJitLinkPath);

} // namespace replayjit::capi

#endif
