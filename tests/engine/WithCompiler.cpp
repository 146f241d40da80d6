//===- WithCompiler.cpp - The engine's tests with LLVM --------------------===//

#include "runtime/CompileOnMiss.h"
#include "tests/engine/Compiler.h"

replayjit::internal::CompileFn replayjit::internal::engine::compiler() {
  return compileOnMiss();
}
