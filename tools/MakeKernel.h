//===- MakeKernel.h - Kernels for a measurement -----------------*- C++ -*-===//
#ifndef REPLAYJIT_TOOLS_MAKEKERNEL_H
#define REPLAYJIT_TOOLS_MAKEKERNEL_H

#include "checks/DecodeCheck.h"
#include "compiler/Compiler.h"
#include "kernels/Decode/DecodeSpec.h"
#include "runtime/Device.h"

#include <atomic>
#include <memory>

namespace replayjit::internal {

/// A kernel on a device.
struct MadeKernel {
  LaunchConfig launch;
  ResourceUsage resources;
  std::string assembler; ///< Which one made the cubin.
  std::unique_ptr<LoadedKernel> loaded;
};

/// Compiles, loads and checks. Where no assembler is installed, the driver's
/// own is taken. The device is the caller's and outlives this.
class KernelMaker {
public:
  explicit KernelMaker(Device &device);

  /// From any thread, each with its own compiler.
  Result<CompiledKernel> compile(Compiler &compiler,
                                 const Compiler::Builder &build);
  Result<CompiledKernel> compile(Compiler &compiler, const DecodeSpec &spec,
                                 const DecodeTuning &tuning);
  Result<MadeKernel> load(CompiledKernel kernel);
  /// A short run beside fp64, or an error if it does not agree.
  Result<CheckReport> check(MadeKernel &kernel, const DecodeSpec &spec,
                            const DecodeTuning &tuning);

private:
  template <typename Compile> Result<CompiledKernel> assembled(Compile compile);

  Device &device;
  const AssembleOptions assemble;
  std::atomic<bool> hasNoAssembler;
};

} // namespace replayjit::internal

#endif
