//===- CudaKernel.h - A module loaded into a context ------------*- C++ -*-===//
//
// Private to runtime/cuda: what loading a CompiledKernel yields, and the facts
// that a launch needs, gathered once.
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_RUNTIME_CUDA_CUDAKERNEL_H
#define REPLAYJIT_RUNTIME_CUDA_CUDAKERNEL_H

#include "runtime/Device.h"
#include "runtime/cuda/CudaContext.h"

namespace replayjit::internal::cuda {

class CudaKernel final : public LoadedKernel {
public:
  /// Loads `kernel` into `context`, which is current: its cubin, or its PTX
  /// through the driver if it has no cubin. `maxSharedBytes` is what a block of
  /// the device may use. Checks the kernel's promises (parameters, block size,
  /// shared memory) against what was loaded.
  static Result<std::unique_ptr<CudaKernel>> load(CudaContext::Ptr context,
                                                  const CompiledKernel &kernel,
                                                  int maxSharedBytes);
  ~CudaKernel() override;

  ResourceUsage resources() const override { return usage; }

  const void *owner() const { return context->handle(); }
  CUfunction function() const { return handle; }
  const std::string &name() const { return symbol; }
  const LaunchConfig &launch() const { return config; }
  /// Bytes of the caller's parameter buffer.
  size_t paramBytes() const { return bufferBytes; }
  /// Bytes of it that the driver gets: it rejects padding after the last
  /// parameter.
  size_t usedParamBytes() const { return usedBytes; }

private:
  CudaKernel(CudaContext::Ptr context, const CompiledKernel &kernel);
  Status loadModule(const CompiledKernel &kernel);
  Status readResources();
  Status checkParameters(const KernelSignature &signature);
  Status prepareBlock(int maxSharedBytes);

  const CudaContext::Ptr context;
  const DriverApi &api; ///< Of the context.
  CUmodule module = nullptr;
  CUfunction handle = nullptr;
  std::string symbol;
  LaunchConfig config;
  size_t bufferBytes;
  size_t usedBytes = 0;
  ResourceUsage usage;
};

} // namespace replayjit::internal::cuda

#endif
