//===- CudaError.cpp - CUresult to Status ---------------------------------===//

#include "runtime/cuda/CudaError.h"

#include <fmt/format.h>

namespace replayjit::internal::cuda {

Status toStatus(const DriverApi &api, CUresult result, const char *call) {
  if (result == CUDA_SUCCESS)
    return Status::ok(); // The launch path: nothing is formatted.
  const char *name = nullptr;
  const char *text = nullptr;
  // The driver leaves the pointers null for a code it does not know.
  (void)api.cuGetErrorName(result, &name);
  (void)api.cuGetErrorString(result, &text);
  return Status::error(
      StatusCode::DriverError,
      fmt::format("{}: {} ({}): {}", call, name ? name : "unknown CUDA error",
                  static_cast<int>(result), text ? text : "no description"));
}

Status inContext(Status status, std::string_view what) {
  if (!status)
    status.message = fmt::format("{}: {}", what, status.message);
  return status;
}

} // namespace replayjit::internal::cuda
