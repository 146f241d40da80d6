//===- CudaContext.cpp - The context of a device and its kernels ----------===//

#include "runtime/cuda/CudaContext.h"
#include "runtime/cuda/CudaError.h"

namespace replayjit::internal::cuda {

Result<CudaContext::Ptr> CudaContext::retainPrimary(const DriverApi &api,
                                                    CUdevice device) {
  std::shared_ptr<CudaContext> made(new CudaContext(api));
  made->owner = device;
  REPLAYJIT_CU_RETURN(api, cuDevicePrimaryCtxRetain, &made->context, device);
  made->isRetained = true;
  REPLAYJIT_CU_RETURN(api, cuCtxGetId, made->context, &made->id);
  return Ptr(std::move(made));
}

Result<CudaContext::Ptr> CudaContext::current(const DriverApi &api) {
  std::shared_ptr<CudaContext> made(new CudaContext(api));
  REPLAYJIT_CU_RETURN(api, cuCtxGetCurrent, &made->context);
  if (!made->context)
    return Status::invalid(
        "no CUDA context is current in this thread; make one current, as any "
        "call of the CUDA runtime does, or name a device");
  REPLAYJIT_CU_RETURN(api, cuCtxGetDevice, &made->owner);
  REPLAYJIT_CU_RETURN(api, cuCtxGetId, made->context, &made->id);
  return Ptr(std::move(made));
}

CudaContext::~CudaContext() {
  if (isRetained)
    (void)driver.cuDevicePrimaryCtxRelease(owner);
}

bool CudaContext::isAlive() const {
  unsigned long long now = 0;
  return driver.cuCtxGetId(context, &now) == CUDA_SUCCESS && now == id;
}

ContextScope::ContextScope(const CudaContext &context) : api(context.api()) {
  CUcontext current = nullptr;
  const bool isCurrent = api.cuCtxGetCurrent(&current) == CUDA_SUCCESS &&
                         current == context.handle();
  // A later context may have the handle of one that is gone, and the driver
  // pushes that one, too.
  if (!context.isAlive()) {
    made = Status::error(StatusCode::DriverError,
                         "the CUDA context has been destroyed");
    return;
  }
  if (isCurrent)
    return;
  made = REPLAYJIT_CU(api, cuCtxPushCurrent, context.handle());
  isPushed = made.isOk();
}

ContextScope::~ContextScope() {
  CUcontext popped = nullptr;
  if (isPushed)
    (void)api.cuCtxPopCurrent(&popped);
}

RelaxedCaptureScope::RelaxedCaptureScope(const DriverApi &api) : api(api) {
  (void)api.cuThreadExchangeStreamCaptureMode(&mode);
}

RelaxedCaptureScope::~RelaxedCaptureScope() {
  (void)api.cuThreadExchangeStreamCaptureMode(&mode);
}

} // namespace replayjit::internal::cuda
