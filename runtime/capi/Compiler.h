//===- Compiler.h - The compiler, where this build has one ------*- C++ -*-===//
#ifndef REPLAYJIT_RUNTIME_CAPI_COMPILER_H
#define REPLAYJIT_RUNTIME_CAPI_COMPILER_H

#include "replayjit/replayjit.h"
#include "runtime/Jit.h"

namespace replayjit::internal::capi {

/// For JitOptions::compile; null in a build without the compiler. Of `options`
/// it takes the assembler and the paths; InvalidArgument for an assembler that
/// there is not.
Result<CompileFn> makeCompiler(const replayjit_jit_options_t &options);

} // namespace replayjit::internal::capi

#endif
