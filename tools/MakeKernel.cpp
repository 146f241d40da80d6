//===- MakeKernel.cpp - Kernels for a measurement -------------------------===//

#include "tools/MakeKernel.h"

#include "kernels/FamilyBuilder.h"

#include <fmt/format.h>

using namespace replayjit::internal;

using Preference = AssembleOptions::Preference;

KernelMaker::KernelMaker(Device &device)
    : device(device), assemble(AssembleOptions::fromEnvironment()),
      hasNoAssembler(assemble.preference == Preference::Driver) {}

template <typename Compile>
Result<CompiledKernel> KernelMaker::assembled(Compile compile) {
  CompileOptions options;
  options.assemble = assemble;
  if (!hasNoAssembler) {
    Result<CompiledKernel> kernel = compile(options);
    if (kernel || kernel.status().code != StatusCode::NotFound ||
        assemble.preference != Preference::Any)
      return kernel;
    hasNoAssembler = true;
  }
  options.last = Stage::PTX;
  return compile(options);
}

Result<CompiledKernel> KernelMaker::compile(Compiler &compiler,
                                            const Compiler::Builder &build) {
  return assembled([&](const CompileOptions &options) {
    const Target target = device.target();
    return device.isEmulation()
               ? compiler.compileForHost(build, target, options)
               : compiler.compile(build, target, options);
  });
}

Result<CompiledKernel> KernelMaker::compile(Compiler &compiler,
                                            const DecodeSpec &spec,
                                            const DecodeTuning &tuning) {
  return assembled([&](const CompileOptions &options) {
    return compileKernel(compiler, spec, tuning, device.target(), options,
                         device.isEmulation());
  });
}

Result<MadeKernel> KernelMaker::load(CompiledKernel kernel) {
  if (!device.isEmulation() && kernel.cubin.empty())
    if (Status status = device.assemble(kernel); !status)
      return status;
  Result<std::unique_ptr<LoadedKernel>> loaded = device.load(kernel);
  if (!loaded)
    return loaded.status();
  ResourceUsage resources = kernel.resources;
  if (resources.registers < 0)
    resources = (*loaded)->resources();
  return MadeKernel{kernel.launch, resources, kernel.assembler,
                    std::move(*loaded)};
}

Result<CheckReport> KernelMaker::check(MadeKernel &kernel,
                                       const DecodeSpec &spec,
                                       const DecodeTuning &tuning) {
  DecodeProblem problem;
  problem.spec = spec;
  problem.tuning = tuning;
  problem.batch = 2;
  problem.slots = 3;
  problem.steps = spec.ringDepth + 2;
  Result<CheckReport> report =
      checkDecode(device, *kernel.loaded, kernel.launch, problem);
  if (!report)
    return report;
  if (const Verdict verdict = judge(*report, spec, tuning); !verdict)
    return Status::error(StatusCode::Internal,
                         fmt::format("'{}' computes wrongly: {}",
                                     kernelName(spec, tuning), verdict.why));
  return report;
}
