//===- Compiler.h - Whether this build has one ------------------*- C++ -*-===//
#ifndef REPLAYJIT_TESTS_ENGINE_COMPILER_H
#define REPLAYJIT_TESTS_ENGINE_COMPILER_H

#include "runtime/Jit.h"

namespace replayjit::internal::engine {

/// Null in a build without LLVM (WithoutCompiler.cpp).
CompileFn compiler();

} // namespace replayjit::internal::engine

#endif
