//===- DriverTypes.h - The driver's types that we use -----------*- C++ -*-===//
//
// Declared here so that no CUDA toolkit is needed to build. Values and layouts
// are the driver's ABI. They are in a namespace of our own, so they do not
// clash with those of a host that includes cuda.h.
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_RUNTIME_CUDA_DRIVERTYPES_H
#define REPLAYJIT_RUNTIME_CUDA_DRIVERTYPES_H

#include <cstddef>

namespace replayjit::internal::cuda {

enum CUresult : int {
  CUDA_SUCCESS = 0,
  CUDA_ERROR_INVALID_VALUE = 1,
  CUDA_ERROR_NO_BINARY_FOR_GPU = 209,
  CUDA_ERROR_JIT_COMPILER_NOT_FOUND = 221,
  CUDA_ERROR_UNSUPPORTED_PTX_VERSION = 222,
  CUDA_ERROR_STREAM_CAPTURE_IMPLICIT = 906,
};

using CUdevice = int;
using CUdeviceptr = unsigned long long;
using CUcontext = struct ContextOpaque *;
using CUstream = struct StreamOpaque *;
using CUevent = struct EventOpaque *;
using CUmodule = struct ModuleOpaque *;
using CUfunction = struct FunctionOpaque *;
using CUgraph = struct GraphOpaque *;
using CUgraphExec = struct GraphExecOpaque *;
using CUlinkState = struct LinkStateOpaque *;

enum CUdevice_attribute : int {
  CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
  CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97,
};

enum CUpointer_attribute : int {
  CU_POINTER_ATTRIBUTE_DEVICE_POINTER = 3, ///< A CUdeviceptr.
  CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL = 9, ///< An int; -1: of no device.
};

enum CUfunction_attribute : int {
  CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 0,
  CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES = 1,
  CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES = 3,
  CU_FUNC_ATTRIBUTE_NUM_REGS = 4,
  CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,
};

enum CUjit_option : int {
  CU_JIT_INFO_LOG_BUFFER = 3,
  CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES = 4,
  CU_JIT_ERROR_LOG_BUFFER = 5,
  CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6,
  CU_JIT_LOG_VERBOSE = 12,
};

enum CUjitInputType : int { CU_JIT_INPUT_PTX = 1 };

enum CUstreamCaptureMode : int {
  CU_STREAM_CAPTURE_MODE_THREAD_LOCAL = 1,
  CU_STREAM_CAPTURE_MODE_RELAXED = 2,
};
enum CUstreamCaptureStatus : int { CU_STREAM_CAPTURE_STATUS_NONE = 0 };

inline constexpr unsigned CU_STREAM_DEFAULT = 0;
inline constexpr unsigned CU_STREAM_NON_BLOCKING = 1;
inline constexpr unsigned CU_EVENT_DEFAULT = 0;
inline constexpr unsigned CU_MEMHOSTALLOC_PORTABLE = 1;
inline constexpr unsigned CU_MEMHOSTALLOC_DEVICEMAP = 2;

/// Keys of the `extra` array of a launch; in cuda.h they are macros.
inline void *const launchParamEnd = nullptr;
inline void *const launchParamBufferPointer = reinterpret_cast<void *>(1);
inline void *const launchParamBufferSize = reinterpret_cast<void *>(2);

enum CUlaunchAttributeID : int {
  CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION = 6,
};

struct CUlaunchAttribute {
  CUlaunchAttributeID id;
  char pad[8 - sizeof(CUlaunchAttributeID)];
  union {
    char pad[64];
    int programmaticStreamSerializationAllowed;
  } value;
};
static_assert(sizeof(CUlaunchAttribute) == 72);

struct CUlaunchConfig {
  unsigned gridDimX, gridDimY, gridDimZ;
  unsigned blockDimX, blockDimY, blockDimZ;
  unsigned sharedMemBytes;
  CUstream hStream;
  CUlaunchAttribute *attrs;
  unsigned numAttrs;
};

} // namespace replayjit::internal::cuda

#endif
