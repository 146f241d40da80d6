//===- WithoutCompiler.cpp - The engine's tests without LLVM --------------===//

#include "tests/engine/Compiler.h"

replayjit::CompileFn replayjit::engine::compiler() { return nullptr; }
