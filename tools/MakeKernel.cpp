//===- MakeKernel.cpp - Kernels for a measurement -------------------------===//

#include "tools/MakeKernel.h"

#include "checks/DecodeCheck.h"
#include "kernels/FamilyBuilder.h"

#include <fmt/format.h>

using namespace replayjit::internal;

KernelMaker::KernelMaker(Device &device) : device(device) {
  options.assemble = AssembleOptions::fromEnvironment();
  if (options.assemble.preference == AssembleOptions::Preference::Driver)
    options.last = Stage::PTX;
}

Result<MadeKernel> KernelMaker::make(const Compiler::Builder &build) {
  return load([&] {
    const Target target = device.target();
    return device.isEmulation()
               ? compiler.compileForHost(build, target, options)
               : compiler.compile(build, target, options);
  });
}

Result<MadeKernel> KernelMaker::make(const DecodeSpec &spec,
                                     const DecodeTuning &tuning) {
  return load([&] {
    return compileKernel(compiler, spec, tuning, device.target(), options,
                         device.isEmulation());
  });
}

Result<MadeKernel> KernelMaker::load(const CompileFn &compile) {
  Result<CompiledKernel> kernel = compile();
  const bool isAny =
      options.assemble.preference == AssembleOptions::Preference::Any;
  if (!kernel && kernel.status().code == StatusCode::NotFound && isAny &&
      options.last == Stage::Cubin) {
    options.last = Stage::PTX;
    kernel = compile();
  }
  if (!kernel)
    return kernel.status();
  if (!device.isEmulation() && kernel->cubin.empty())
    if (Status status = device.assemble(*kernel); !status)
      return status;
  Result<std::unique_ptr<LoadedKernel>> loaded = device.load(*kernel);
  if (!loaded)
    return loaded.status();
  ResourceUsage resources = kernel->resources;
  if (resources.registers < 0)
    resources = (*loaded)->resources();
  return MadeKernel{kernel->launch, resources, kernel->assembler,
                    std::move(*loaded)};
}

Result<MadeKernel> KernelMaker::makeChecked(const DecodeSpec &spec,
                                            const DecodeTuning &tuning) {
  Result<MadeKernel> kernel = make(spec, tuning);
  const std::string name = kernelName(spec, tuning);
  if (!kernel || checked.contains(name))
    return kernel;
  DecodeProblem problem;
  problem.spec = spec;
  problem.tuning = tuning;
  problem.batch = 2;
  problem.slots = 3;
  problem.steps = spec.ringDepth + 2;
  Result<CheckReport> report =
      checkDecode(device, *kernel->loaded, kernel->launch, problem);
  if (!report)
    return report.status();
  if (const Verdict verdict = judge(*report, spec, tuning); !verdict)
    return Status::error(StatusCode::Internal,
                         fmt::format("'{}' computes wrongly and is not timed: "
                                     "{}",
                                     name, verdict.why));
  checked.insert(name);
  return kernel;
}
