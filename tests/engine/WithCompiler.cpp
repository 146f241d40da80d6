//===- WithCompiler.cpp - The engine's tests with LLVM --------------------===//

#include "runtime/CompileOnMiss.h"
#include "tests/engine/Compiler.h"

replayjit::CompileFn replayjit::engine::compiler() { return compileOnMiss(); }
