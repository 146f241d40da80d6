//===- CudaError.h - CUresult to Status -------------------------*- C++ -*-===//
//
// How every driver call is made and checked.
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_RUNTIME_CUDA_CUDAERROR_H
#define REPLAYJIT_RUNTIME_CUDA_CUDAERROR_H

#include "runtime/cuda/DriverApi.h"

#include <string_view>

namespace replayjit::internal::cuda {

/// "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY (2): out of memory" with code
/// DriverError; Ok for CUDA_SUCCESS.
Status toStatus(const DriverApi &api, CUresult result, const char *call);

/// Puts "what: " in front of a failure's message; passes success through.
Status inContext(Status status, std::string_view what);

/// Calls the driver function `function` of table `api`; a Status.
#define REPLAYJIT_CU(api, function, ...)                                       \
  ::replayjit::internal::cuda::toStatus((api), (api).function(__VA_ARGS__),    \
                                        #function)

/// The same, returning from the enclosing function on failure.
#define REPLAYJIT_CU_RETURN(api, function, ...)                                \
  do {                                                                         \
    if (::replayjit::internal::Status cuStatus =                               \
            REPLAYJIT_CU(api, function, __VA_ARGS__);                          \
        !cuStatus)                                                             \
      return cuStatus;                                                         \
  } while (false)

} // namespace replayjit::internal::cuda

#endif
