//===- FakeCuda.cpp - A CUDA driver that only pretends --------------------===//
//
// Built as a shared library; lets the driver code run where there is no GPU.
//
//===----------------------------------------------------------------------===//

#include "FakeCuda.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>

using namespace replayjit::internal::cuda;

static FakeCuda state;
static thread_local std::vector<CUcontext> contexts; ///< The last is current.
static thread_local auto mode = CUstreamCaptureMode(0); ///< Global.

/// Of `state`, which several threads may reach.
static std::recursive_mutex mutex;
using Lock = std::lock_guard<std::recursive_mutex>;

static constexpr CUresult invalidContext = CUresult(201);
static constexpr CUresult captureUnsupported = CUresult(900);

/// Records the call and answers with the result that the test ordered.
static CUresult answer(const char *function) {
  Lock lock(mutex);
  state.calls.push_back(function);
  auto found = state.failures.find(function);
  return static_cast<CUresult>(found == state.failures.end() ? 0
                                                             : found->second);
}

static CUcontext currentContext() {
  return contexts.empty() ? nullptr : contexts.back();
}

/// What a call that needs a context answers without one.
static CUresult inContext(const char *function) {
  return currentContext() ? answer(function) : invalidContext;
}

/// The same of a call that a capture forbids to threads of the usual mode.
static CUresult unsafe(const char *function) {
  Lock lock(mutex);
  if (state.capturing.empty() || mode == CU_STREAM_CAPTURE_MODE_RELAXED)
    return inContext(function);
  state.isCaptureSpoiled = true;
  return captureUnsupported;
}

/// On success `object` becomes a live handle.
template <typename T> static CUresult create(CUresult result, T *object) {
  Lock lock(mutex);
  if (result != CUDA_SUCCESS)
    return result;
  *object = reinterpret_cast<T>(uintptr_t(0x1000 + state.calls.size()));
  ++state.liveObjects;
  return result;
}

static CUresult destroy(CUresult result) {
  Lock lock(mutex);
  state.liveObjects -= result == CUDA_SUCCESS;
  return result;
}

static void setLog(CUjit_option *options, void **values, unsigned count,
                   CUjit_option wanted, const std::string &text) {
  for (unsigned i = 0; i < count; ++i)
    if (options[i] == wanted)
      std::strcpy(static_cast<char *>(values[i]), text.c_str());
}

#define FAKE extern "C" __attribute__((visibility("default")))

FAKE FakeCuda *fakeCuda() { return &state; }

FAKE CUresult cuGetErrorName(CUresult code, const char **name) {
  static const std::map<int, const char *> names = {
      {1, "CUDA_ERROR_INVALID_VALUE"},
      {2, "CUDA_ERROR_OUT_OF_MEMORY"},
      {201, "CUDA_ERROR_INVALID_CONTEXT"},
      {209, "CUDA_ERROR_NO_BINARY_FOR_GPU"},
      {218, "CUDA_ERROR_INVALID_PTX"},
      {221, "CUDA_ERROR_JIT_COMPILER_NOT_FOUND"},
      {222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"},
      {700, "CUDA_ERROR_ILLEGAL_ADDRESS"},
  };
  auto found = names.find(code);
  *name = found == names.end() ? nullptr : found->second;
  return *name ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
FAKE CUresult cuGetErrorString(CUresult code, const char **text) {
  const char *name = nullptr;
  CUresult result = cuGetErrorName(code, &name);
  *text = name ? "text of the fake" : nullptr;
  return result;
}

FAKE CUresult cuInit(unsigned) { return answer("cuInit"); }
FAKE CUresult cuDriverGetVersion(int *version) {
  *version = state.driverVersion;
  return answer("cuDriverGetVersion");
}
FAKE CUresult cuDeviceGetCount(int *count) {
  *count = state.deviceCount;
  return answer("cuDeviceGetCount");
}
FAKE CUresult cuDeviceGet(CUdevice *device, int ordinal) {
  *device = ordinal;
  return answer("cuDeviceGet");
}
FAKE CUresult cuDeviceGetName(char *name, int bytes, CUdevice) {
  std::strncpy(name, "Fake GPU", bytes);
  return answer("cuDeviceGetName");
}
FAKE CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute,
                                   CUdevice) {
  switch (attribute) {
  case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
    *value = 132;
    break;
  case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
    *value = state.major;
    break;
  case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
    *value = state.minor;
    break;
  case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
    *value = 227 * 1024;
    break;
  }
  return answer("cuDeviceGetAttribute");
}
FAKE CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
  Lock lock(mutex);
  CUresult result = answer("cuDevicePrimaryCtxRetain");
  if (result != CUDA_SUCCESS)
    return result;
  *context = state.primary(device);
  if (!*context)
    *context = state.addContext(device);
  ++state.contexts[*context].retained;
  ++state.liveObjects;
  return result;
}
FAKE CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  Lock lock(mutex);
  FakeContext &context = state.contexts[state.primary(device)];
  context.isAlive = --context.retained > 0;
  return destroy(answer("cuDevicePrimaryCtxRelease"));
}
// From here to cuCtxPopCurrent unrecorded: every method calls some of them.
FAKE CUresult cuCtxGetCurrent(CUcontext *context) {
  *context = currentContext();
  return CUDA_SUCCESS;
}
FAKE CUresult cuCtxGetDevice(CUdevice *device) {
  Lock lock(mutex);
  *device = state.contexts[currentContext()].device;
  return CUDA_SUCCESS;
}
FAKE CUresult cuCtxGetId(CUcontext context, unsigned long long *id) {
  Lock lock(mutex);
  auto found = state.contexts.find(context ? context : currentContext());
  if (found == state.contexts.end() || !found->second.isAlive)
    return invalidContext;
  *id = found->second.id;
  return CUDA_SUCCESS;
}
FAKE CUresult cuCtxPushCurrent_v2(CUcontext context) {
  Lock lock(mutex);
  unsigned long long id = 0;
  if (CUresult result = cuCtxGetId(context, &id); result != CUDA_SUCCESS)
    return result;
  contexts.push_back(context);
  ++state.contextPushes;
  ++state.contextDepth;
  return CUDA_SUCCESS;
}
FAKE CUresult cuCtxPopCurrent_v2(CUcontext *context) {
  Lock lock(mutex);
  *context = contexts.back();
  contexts.pop_back();
  --state.contextDepth;
  return CUDA_SUCCESS;
}

static void addMemory(CUdeviceptr address, size_t bytes) {
  Lock lock(mutex);
  state.memory[address] = {bytes, state.contexts[currentContext()].device};
}

FAKE CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes) {
  CUresult result = unsafe("cuMemAlloc");
  if (result == CUDA_SUCCESS) {
    // Aligned as the driver's.
    *address = reinterpret_cast<CUdeviceptr>(
        std::aligned_alloc(256, (bytes + 255) / 256 * 256));
    addMemory(*address, bytes);
    ++state.liveObjects;
  }
  return result;
}
FAKE CUresult cuMemFree_v2(CUdeviceptr address) {
  CUresult result = unsafe("cuMemFree");
  if (result == CUDA_SUCCESS)
    std::free(reinterpret_cast<void *>(address)), state.memory.erase(address);
  return destroy(result);
}
FAKE CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr dst, const void *src,
                                   size_t bytes, CUstream stream) {
  std::memcpy(reinterpret_cast<void *>(dst), src, bytes);
  state.lastStream = stream;
  return answer("cuMemcpyHtoDAsync");
}
FAKE CUresult cuMemcpyDtoHAsync_v2(void *dst, CUdeviceptr src, size_t bytes,
                                   CUstream stream) {
  std::memcpy(dst, reinterpret_cast<void *>(src), bytes);
  state.lastStream = stream;
  return answer("cuMemcpyDtoHAsync");
}
FAKE CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr dst, CUdeviceptr src,
                                   size_t bytes, CUstream stream) {
  std::memcpy(reinterpret_cast<void *>(dst), reinterpret_cast<void *>(src),
              bytes);
  state.lastStream = stream;
  return answer("cuMemcpyDtoDAsync");
}
FAKE CUresult cuMemsetD32Async(CUdeviceptr dst, unsigned value, size_t count,
                               CUstream stream) {
  std::fill_n(reinterpret_cast<unsigned *>(dst), count, value);
  state.lastStream = stream;
  return answer("cuMemsetD32Async");
}
FAKE CUresult cuMemHostAlloc(void **memory, size_t bytes, unsigned flags) {
  CUresult result = unsafe("cuMemHostAlloc");
  if (result == CUDA_SUCCESS) {
    *memory = std::malloc(bytes);
    addMemory(reinterpret_cast<CUdeviceptr>(*memory), bytes);
    state.hostAllocFlags = flags;
    ++state.liveObjects;
  }
  return result;
}
FAKE CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *address, void *memory,
                                           unsigned) {
  *address = reinterpret_cast<CUdeviceptr>(memory);
  return answer("cuMemHostGetDevicePointer");
}
FAKE CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attribute,
                                    CUdeviceptr address) {
  Lock lock(mutex);
  if (CUresult result = inContext("cuPointerGetAttribute");
      result != CUDA_SUCCESS)
    return result;
  auto after = state.memory.upper_bound(address);
  if (after == state.memory.begin())
    return CUDA_ERROR_INVALID_VALUE;
  const auto &[begin, known] = *--after;
  const auto [bytes, device] = known;
  if (address - begin >= bytes)
    return CUDA_ERROR_INVALID_VALUE;
  if (attribute == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)
    *static_cast<int *>(data) = device;
  else if (device == state.contexts[currentContext()].device)
    *static_cast<CUdeviceptr *>(data) = address;
  else
    return CUDA_ERROR_INVALID_VALUE;
  return CUDA_SUCCESS;
}
FAKE CUresult cuMemFreeHost(void *memory) {
  CUresult result = unsafe("cuMemFreeHost");
  if (result == CUDA_SUCCESS)
    std::free(memory),
        state.memory.erase(reinterpret_cast<CUdeviceptr>(memory));
  return destroy(result);
}

FAKE CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned,
                                 CUjit_option *, void **) {
  Lock lock(mutex);
  state.loadedImage = static_cast<const char *>(image);
  CUresult result = create(unsafe("cuModuleLoadDataEx"), module);
  if (result == CUDA_SUCCESS)
    state.modules[*module] = currentContext();
  return result;
}
FAKE CUresult cuModuleUnload(CUmodule module) {
  Lock lock(mutex);
  auto found = state.modules.find(module);
  if (found == state.modules.end() || found->second != currentContext())
    return invalidContext;
  state.modules.erase(found);
  return destroy(unsafe("cuModuleUnload"));
}
FAKE CUresult cuModuleGetFunction(CUfunction *function, CUmodule module,
                                  const char *) {
  *function = reinterpret_cast<CUfunction>(module); // It has but one.
  return answer("cuModuleGetFunction");
}
FAKE CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute,
                                 CUfunction) {
  switch (attribute) {
  case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
    *value = state.maxThreads;
    break;
  case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
    *value = state.staticSharedBytes;
    break;
  case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
    *value = state.localBytes;
    break;
  case CU_FUNC_ATTRIBUTE_NUM_REGS:
    *value = state.registers;
    break;
  case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
    *value = 48 * 1024;
    break;
  }
  return answer("cuFuncGetAttribute");
}
FAKE CUresult cuFuncSetAttribute(CUfunction, CUfunction_attribute attribute,
                                 int value) {
  Lock lock(mutex);
  state.functionAttributes[attribute] = value;
  return answer("cuFuncSetAttribute");
}
FAKE CUresult cuFuncGetParamInfo(CUfunction, size_t index, size_t *offset,
                                 size_t *size) {
  if (index >= state.params.size())
    return CUDA_ERROR_INVALID_VALUE;
  *offset = state.params[index].first;
  *size = state.params[index].second;
  return answer("cuFuncGetParamInfo");
}
#ifndef FAKE_OLD_DRIVER
FAKE CUresult cuLaunchKernelEx(const CUlaunchConfig *config,
                               CUfunction function, void **params,
                               void **extra) {
  Lock lock(mutex);
  auto module = state.modules.find(reinterpret_cast<CUmodule>(function));
  auto stream = state.streams.find(config->hStream);
  if (module == state.modules.end() || module->second != currentContext() ||
      (stream != state.streams.end() && stream->second != currentContext()))
    return invalidContext;
  state.lastLaunch = *config;
  state.isProgrammatic = false;
  for (unsigned i = 0; i < config->numAttrs; ++i)
    state.isProgrammatic |=
        config->attrs[i].id ==
            CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION &&
        config->attrs[i].value.programmaticStreamSerializationAllowed;
  state.lastParams.clear();
  if (params)
    return CUDA_ERROR_INVALID_VALUE;
  const char *buffer = nullptr;
  size_t bytes = 0;
  for (; extra && *extra != launchParamEnd; extra += 2) {
    if (extra[0] == launchParamBufferPointer)
      buffer = static_cast<const char *>(extra[1]);
    else if (extra[0] == launchParamBufferSize)
      bytes = *static_cast<size_t *>(extra[1]);
  }
  // Like the driver: padding after the last parameter is refused.
  size_t expected = state.params.empty() ? 0
                                         : state.params.back().first +
                                               state.params.back().second;
  if (bytes != expected)
    return CUDA_ERROR_INVALID_VALUE;
  if (buffer)
    state.lastParams.assign(buffer, bytes);
  return answer("cuLaunchKernelEx");
}
#endif

FAKE CUresult cuLaunchKernel(CUfunction, unsigned gridX, unsigned gridY,
                             unsigned gridZ, unsigned blockX, unsigned blockY,
                             unsigned blockZ, unsigned sharedBytes,
                             CUstream stream, void **params, void **) {
  state.lastLaunch = {};
  state.lastLaunch.gridDimX = gridX;
  state.lastLaunch.gridDimY = gridY;
  state.lastLaunch.gridDimZ = gridZ;
  state.lastLaunch.blockDimX = blockX * blockY * blockZ;
  state.lastLaunch.sharedMemBytes = sharedBytes;
  state.lastLaunch.hStream = stream;
  // Like the driver: it knows where each parameter goes and how large it is.
  state.lastParams.clear();
  for (size_t i = 0; i < state.params.size(); ++i) {
    state.lastParams.resize(state.params[i].first);
    state.lastParams.append(static_cast<const char *>(params[i]),
                            state.params[i].second);
  }
  return answer("cuLaunchKernel");
}

FAKE CUresult cuLinkCreate_v2(unsigned count, CUjit_option *options,
                              void **values, CUlinkState *link) {
  setLog(options, values, count, CU_JIT_ERROR_LOG_BUFFER, state.linkErrorLog);
  setLog(options, values, count, CU_JIT_INFO_LOG_BUFFER, state.linkInfoLog);
  return create(unsafe("cuLinkCreate"), link);
}
FAKE CUresult cuLinkAddData_v2(CUlinkState, CUjitInputType, void *data,
                               size_t bytes, const char *, unsigned,
                               CUjit_option *, void **) {
  state.linkedPtx.assign(static_cast<char *>(data), bytes);
  return answer("cuLinkAddData");
}
FAKE CUresult cuLinkComplete(CUlinkState, void **cubin, size_t *bytes) {
  static char linked[] = "linked cubin";
  *cubin = linked;
  *bytes = sizeof(linked);
  return answer("cuLinkComplete");
}
FAKE CUresult cuLinkDestroy(CUlinkState) {
  return destroy(answer("cuLinkDestroy"));
}

FAKE CUresult cuStreamCreate(CUstream *stream, unsigned flags) {
  Lock lock(mutex);
  CUresult result = create(inContext("cuStreamCreate"), stream);
  if (result != CUDA_SUCCESS)
    return result;
  state.streams[*stream] = currentContext();
  if (flags == CU_STREAM_NON_BLOCKING)
    state.nonBlocking.insert(*stream);
  return result;
}
FAKE CUresult cuStreamSynchronize(CUstream) {
  return answer("cuStreamSynchronize");
}
FAKE CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *other) {
  std::swap(mode, *other);
  return CUDA_SUCCESS; // Unrecorded, as it goes with the calls it allows.
}
FAKE CUresult cuStreamIsCapturing(CUstream stream,
                                  CUstreamCaptureStatus *status) {
  Lock lock(mutex);
  // Like the driver, asked for the legacy stream when a capture blocks it.
  for (CUstream captured : state.capturing)
    if (!stream && !state.nonBlocking.count(captured))
      return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  *status = static_cast<CUstreamCaptureStatus>(state.capturing.count(stream));
  return answer("cuStreamIsCapturing");
}
FAKE CUresult cuStreamDestroy_v2(CUstream stream) {
  Lock lock(mutex);
  state.streams.erase(stream);
  return destroy(answer("cuStreamDestroy"));
}
FAKE CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode) {
  state.capturing.insert(stream);
  return answer("cuStreamBeginCapture");
}
FAKE CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph) {
  state.capturing.erase(stream);
  return create(answer("cuStreamEndCapture"), graph);
}
FAKE CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph,
                                          unsigned long long) {
  return create(answer("cuGraphInstantiate"), exec);
}
FAKE CUresult cuGraphLaunch(CUgraphExec, CUstream) {
  return answer("cuGraphLaunch");
}
FAKE CUresult cuGraphExecDestroy(CUgraphExec) {
  return destroy(answer("cuGraphExecDestroy"));
}
FAKE CUresult cuGraphDestroy(CUgraph) {
  return destroy(answer("cuGraphDestroy"));
}
FAKE CUresult cuEventCreate(CUevent *event, unsigned) {
  return create(answer("cuEventCreate"), event);
}
FAKE CUresult cuEventRecord(CUevent, CUstream) {
  return answer("cuEventRecord");
}
FAKE CUresult cuEventElapsedTime(float *milliseconds, CUevent, CUevent) {
  *milliseconds = 0;
  if (!state.elapsed.empty()) {
    *milliseconds = state.elapsed.front();
    state.elapsed.erase(state.elapsed.begin());
  }
  return answer("cuEventElapsedTime");
}
FAKE CUresult cuEventDestroy_v2(CUevent) {
  return destroy(answer("cuEventDestroy"));
}
