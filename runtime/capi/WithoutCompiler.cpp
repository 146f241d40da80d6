//===- WithoutCompiler.cpp - The C API of a build for cached kernels ------===//

#include "replayjit/replayjit.h"
#include "runtime/capi/Compiler.h"

int32_t replayjit_has_compiler() { return 0; }

replayjit::Result<replayjit::CompileFn>
replayjit::capi::makeCompiler(const replayjit_jit_options_t &) {
  return CompileFn();
}
