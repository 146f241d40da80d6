//===- CudaContext.h - The context of a device and its kernels --*- C++ -*-===//
//
// Private to runtime/cuda, as are the scopes in which driver calls are made.
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_RUNTIME_CUDA_CUDACONTEXT_H
#define REPLAYJIT_RUNTIME_CUDA_CUDACONTEXT_H

#include "runtime/cuda/DriverApi.h"

#include <memory>

namespace replayjit::internal::cuda {

/// A context, shared by a device and the kernels loaded into it. Immutable.
class CudaContext {
public:
  using Ptr = std::shared_ptr<const CudaContext>;

  /// The primary context of `device`, retained as long as this lives.
  static Result<Ptr> retainPrimary(const DriverApi &api, CUdevice device);
  /// What is current in the calling thread, which stays the caller's.
  /// InvalidArgument if nothing is.
  static Result<Ptr> current(const DriverApi &api);
  ~CudaContext();

  const DriverApi &api() const { return driver; }
  CUdevice device() const { return owner; }
  CUcontext handle() const { return context; }
  /// Of all contexts of the process, also those that are gone.
  unsigned long long identity() const { return id; }
  /// False once its owner has destroyed it, also if another one has its address
  /// by now. What was in it is gone with it.
  bool isAlive() const;

private:
  explicit CudaContext(const DriverApi &api) : driver(api) {}

  DriverApi driver;
  CUdevice owner = 0;
  CUcontext context = nullptr;
  unsigned long long id = 0;
  bool isRetained = false;
};

/// Makes `context` current until the end of the scope, unless it is; leaves the
/// caller's context as it was. DriverError if it is gone.
class ContextScope {
public:
  explicit ContextScope(const CudaContext &context);
  ContextScope(const ContextScope &) = delete;
  ~ContextScope();
  const Status &status() const { return made; }

private:
  const DriverApi &api;
  bool isPushed = false;
  Status made;
};

/// Until the end of the scope the thread may make calls that a capture of
/// another stream would else forbid, and that would else invalidate it: loading
/// and allocating.
class RelaxedCaptureScope {
public:
  explicit RelaxedCaptureScope(const DriverApi &api);
  RelaxedCaptureScope(const RelaxedCaptureScope &) = delete;
  ~RelaxedCaptureScope();

private:
  const DriverApi &api;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED; ///< The other one.
};

} // namespace replayjit::internal::cuda

#endif
