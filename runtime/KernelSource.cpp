//===- KernelSource.cpp - The one way to a kernel's code ------------------===//

#include "runtime/KernelSource.h"

#include <fmt/format.h>

namespace replayjit::internal {

Result<CompileOnce::Answer> KernelSource::find(CompileRequest request) {
  if (Status status = validate(request.spec, request.tuning, request.target);
      !status)
    return status;
  request.spec = canonical(request.spec);
  if (!request.forHost)
    return once.findOrCompile(
        CacheKey::of(request.spec, request.tuning, request.target),
        compile ? [&] { return compile(request); }
                : std::function<Result<CompiledKernel>()>());
  if (!compile)
    return Status::error(
        StatusCode::Unsupported,
        fmt::format("emulation: '{}' cannot be compiled: this program has no "
                    "compiler",
                    kernelName(request.spec, request.tuning)));
  Result<CompiledKernel> kernel = compile(request);
  if (!kernel)
    return kernel.status();
  return CompileOnce::Answer{std::move(*kernel), true};
}

} // namespace replayjit::internal
