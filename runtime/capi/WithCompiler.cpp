//===- WithCompiler.cpp - The C API of a build that compiles --------------===//

#include "replayjit/replayjit.h"
#include "runtime/CompileOnMiss.h"
#include "runtime/capi/Compiler.h"

#include <fmt/format.h>

#include <string_view>

int32_t replayjit_has_compiler() { return 1; }

namespace replayjit::internal::capi {

static Result<AssembleOptions::Preference>
preferenceFrom(std::string_view name) {
  using Preference = AssembleOptions::Preference;
  if (name.empty())
    return Preference::Any;
  if (name == "nvjitlink")
    return Preference::NvJitLink;
  if (name == "ptxas")
    return Preference::Ptxas;
  if (name == "driver")
    return Preference::Driver;
  return Status::invalid(fmt::format("assembler: '{}' is not allowed; allowed "
                                     "are nvjitlink, ptxas, driver",
                                     name));
}

Result<CompileFn> makeCompiler(const replayjit_jit_options_t &options) {
  AssembleOptions assemble = options.use_environment
                                 ? AssembleOptions::fromEnvironment()
                                 : AssembleOptions();
  // Each option goes before its own variable and before no other.
  if (options.assembler) {
    Result<AssembleOptions::Preference> preference =
        preferenceFrom(options.assembler);
    if (!preference)
      return preference.status();
    assemble.preference = *preference;
    assemble.fault = Status::ok(); // Of that variable, which does not count.
  }
  if (options.ptxas_path)
    assemble.ptxasPath = options.ptxas_path;
  if (options.nvjitlink_path)
    assemble.nvJitLinkPath = options.nvjitlink_path;
  return compileOnMiss(std::move(assemble));
}

} // namespace replayjit::internal::capi
