//===- WithoutCompiler.cpp - The C API of a build for cached kernels ------===//

#include "replayjit/replayjit.h"
#include "runtime/capi/Compiler.h"

int32_t replayjit_has_compiler() { return 0; }

replayjit::CompileFn replayjit::capi::makeCompiler(bool, const char *,
                                                   const char *) {
  return nullptr;
}
