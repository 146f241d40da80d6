//===- WithoutCompiler.cpp - The C API of a build for cached kernels ------===//

#include "replayjit/replayjit.h"
#include "runtime/capi/Compiler.h"

int32_t replayjit_has_compiler() { return 0; }

replayjit::internal::Result<replayjit::internal::CompileFn>
replayjit::internal::capi::makeCompiler(const replayjit_jit_options_t &) {
  return CompileFn();
}
