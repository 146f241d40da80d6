//===- WithoutCompiler.cpp - The engine's tests without LLVM --------------===//

#include "tests/engine/Compiler.h"

replayjit::internal::CompileFn replayjit::internal::engine::compiler() {
  return nullptr;
}
