//===- WithCompiler.cpp - The C API of a build that compiles --------------===//

#include "replayjit/replayjit.h"
#include "runtime/CompileOnMiss.h"
#include "runtime/capi/Compiler.h"

int32_t replayjit_has_compiler() { return 1; }

namespace replayjit::capi {

CompileFn makeCompiler(bool usesEnvironment, const char *ptxasPath,
                       const char *nvJitLinkPath) {
  AssembleOptions options =
      usesEnvironment ? AssembleOptions::fromEnvironment() : AssembleOptions();
  // A path of the caller's goes before both of the environment's.
  if (ptxasPath || nvJitLinkPath) {
    options.ptxasPath = ptxasPath ? ptxasPath : "";
    options.nvJitLinkPath = nvJitLinkPath ? nvJitLinkPath : "";
  }
  return compileOnMiss(std::move(options));
}

} // namespace replayjit::capi
