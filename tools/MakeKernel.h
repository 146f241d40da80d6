//===- MakeKernel.h - Kernels for a measurement -----------------*- C++ -*-===//
#ifndef REPLAYJIT_TOOLS_MAKEKERNEL_H
#define REPLAYJIT_TOOLS_MAKEKERNEL_H

#include "compiler/Compiler.h"
#include "kernels/Decode/DecodeSpec.h"
#include "runtime/Device.h"

#include <functional>
#include <memory>
#include <set>
#include <string>

namespace replayjit::internal {

/// A kernel on a device.
struct MadeKernel {
  LaunchConfig launch;
  ResourceUsage resources;
  std::string assembler; ///< Which one made the cubin.
  std::unique_ptr<LoadedKernel> loaded;
};

/// Compiles and loads. Where no assembler is installed, the driver's own is
/// taken. The device is the caller's.
class KernelMaker {
public:
  explicit KernelMaker(Device &device);

  Result<MadeKernel> make(const Compiler::Builder &build);
  Result<MadeKernel> make(const DecodeSpec &spec, const DecodeTuning &tuning);
  /// The same, and an error unless a short run agrees with fp64. A kernel is
  /// run once.
  Result<MadeKernel> makeChecked(const DecodeSpec &spec,
                                 const DecodeTuning &tuning);

private:
  using CompileFn = std::function<Result<CompiledKernel>()>;
  Result<MadeKernel> load(const CompileFn &compile);

  Device &device;
  Compiler compiler;
  CompileOptions options;
  std::set<std::string> checked; ///< Names of kernels that are right.
};

} // namespace replayjit::internal

#endif
