//===- CudaDevice.h - A device over a given driver table --------*- C++ -*-===//
//
// For code that already has a driver table (and for tests, which bring one of
// their own). Everyone else calls createCudaDevice(int) of runtime/Device.h.
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_RUNTIME_CUDA_CUDADEVICE_H
#define REPLAYJIT_RUNTIME_CUDA_CUDADEVICE_H

#include "runtime/Device.h"
#include "runtime/cuda/DriverApi.h"

namespace replayjit::internal::cuda {

/// The primary context of CUDA device `ordinal` with one stream of its own.
/// The context is current only inside the device's calls.
Result<std::unique_ptr<Device>> createCudaDevice(const DriverApi &api,
                                                 int ordinal);

/// The same over the context that is current in the calling thread.
Result<std::unique_ptr<Device>>
createCudaDeviceForCurrentContext(const DriverApi &api);

/// The target to compile for on a GPU of compute capability `major.minor`: its
/// own, with architecture-specific features where we use them, else the nearest
/// lower of the same major, whose cubins it runs. Unsupported if there is none.
Result<Target> targetForCapability(int major, int minor);

} // namespace replayjit::internal::cuda

#endif
