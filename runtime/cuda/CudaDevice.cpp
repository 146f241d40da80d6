//===- CudaDevice.cpp - A CUDA GPU as a Device ----------------------------===//

#include "runtime/cuda/CudaDevice.h"
#include "runtime/cuda/CudaError.h"
#include "runtime/cuda/CudaKernel.h"
#include "runtime/cuda/CapturedGraph.h"
#include "runtime/cuda/LinkPtx.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

namespace replayjit::internal::cuda {

namespace {

class CudaDevice final : public Device {
public:
  explicit CudaDevice(CudaContext::Ptr shared)
      : context(std::move(shared)), api(context->api()) {}
  ~CudaDevice() override;
  Status initialize();

  std::string description() const override { return name; }
  int multiprocessors() const override { return multiprocessorCount; }
  Target target() const override { return gpuTarget; }
  bool isEmulation() const override { return false; }

  Result<uint64_t> allocate(size_t bytes, std::string name) override;
  Status free(uint64_t address) override;
  Status copyToDevice(uint64_t dst, const void *src, size_t bytes) override;
  Status copyFromDevice(void *dst, uint64_t src, size_t bytes) override;
  Result<MappedMemory> allocateMapped(size_t bytes, std::string name) override;
  Status freeMapped(const MappedMemory &memory) override;
  Status assemble(CompiledKernel &kernel) const override;
  Result<bool> isCapturing(void *stream) const override;
  Status checkAddress(uint64_t address) const override;
  Result<std::unique_ptr<LoadedKernel>>
  load(const CompiledKernel &kernel) override;
  Status launch(LoadedKernel &kernel, Grid grid, const void *params,
                size_t paramBytes) override;
  Status synchronize() override { return synchronizeOn(ownStream); }

  Status launchOn(void *stream, LoadedKernel &kernel, Grid grid,
                  const void *params, size_t paramBytes,
                  LaunchOrder order) override;
  Status fill32On(void *stream, uint64_t dst, uint32_t value,
                  size_t count) override;
  Status copyOn(void *stream, uint64_t dst, uint64_t src,
                size_t bytes) override;
  Status copyToDeviceOn(void *stream, uint64_t dst, const void *src,
                        size_t bytes) override;
  Status copyFromDeviceOn(void *stream, void *dst, uint64_t src,
                          size_t bytes) override;
  Status synchronizeOn(void *stream) override;
  void *stream() const override { return ownStream; }

protected:
  Status beginCapture() override;
  Result<Times> endCaptureAndTime(int repeats) override;

private:
  /// Calls `call` with the context current; its Status.
  template <typename Call> Status inside(Call call) const {
    ContextScope scope(*context);
    return scope.status() ? call() : scope.status();
  }
  /// An error if a capture by `time` is under way, which `what` would spoil.
  Status outsideCapture(std::string_view what) const;
  /// The same, and of captures that the driver shows on the legacy stream.
  Status outsideAnyCapture(std::string_view what) const {
    Status status = outsideCapture(what);
    return status ? checkNoCapture(nullptr, what) : status;
  }

  const CudaContext::Ptr context;
  const DriverApi &api; ///< Of the context.
  CUstream ownStream = nullptr;
  bool capturing = false;
  Status captureFault; ///< The first launch that failed during the capture.

  std::string name;
  int multiprocessorCount = 0;
  int maxSharedBytes = 0; ///< Static and dynamic, per block.
  Target gpuTarget;
};

} // namespace

Status CudaDevice::initialize() {
  const CUdevice device = context->device();
  char text[256] = {};
  REPLAYJIT_CU_RETURN(api, cuDeviceGetName, text, sizeof(text) - 1, device);
  name = text;
  int major = 0, minor = 0;
  REPLAYJIT_CU_RETURN(api, cuDeviceGetAttribute, &major,
                      CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
  REPLAYJIT_CU_RETURN(api, cuDeviceGetAttribute, &minor,
                      CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
  Result<Target> found = targetForCapability(major, minor);
  if (!found)
    return inContext(found.status(), name);
  gpuTarget = *found;
  REPLAYJIT_CU_RETURN(api, cuDeviceGetAttribute, &multiprocessorCount,
                      CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device);
  REPLAYJIT_CU_RETURN(api, cuDeviceGetAttribute, &maxSharedBytes,
                      CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
                      device);

  ContextScope scope(*context);
  if (!scope.status())
    return scope.status();
  RelaxedCaptureScope relaxed(api);
  // Non-blocking: work that the process puts on the legacy default stream must
  // neither wait for ours nor spoil a capture.
  REPLAYJIT_CU_RETURN(api, cuStreamCreate, &ownStream, CU_STREAM_NON_BLOCKING);
  return Status::ok();
}

CudaDevice::~CudaDevice() {
  if (!ownStream || !context->isAlive())
    return;
  ContextScope scope(*context);
  if (scope.status())
    (void)api.cuStreamDestroy(ownStream);
}

Status CudaDevice::outsideCapture(std::string_view what) const {
  return capturing ? underCapture(what) : Status::ok();
}

Result<bool> CudaDevice::isCapturing(void *stream) const {
  ContextScope scope(*context);
  if (!scope.status())
    return scope.status();
  CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
  CUresult result =
      api.cuStreamIsCapturing(static_cast<CUstream>(stream), &capture);
  // Of the legacy stream: one that synchronizes with it is under capture.
  if (result == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT)
    return true;
  if (Status status = toStatus(api, result, "cuStreamIsCapturing"); !status)
    return status;
  return capture != CU_STREAM_CAPTURE_STATUS_NONE;
}

Status CudaDevice::checkAddress(uint64_t address) const {
  return inside([&] {
    // The driver knows an address at which kernels of the context reach the
    // memory, or it knows of no such memory.
    CUdeviceptr reached = 0;
    CUresult result = api.cuPointerGetAttribute(
        &reached, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, address);
    if (result == CUDA_SUCCESS && reached == address)
      return Status::ok();
    if (result != CUDA_SUCCESS && result != CUDA_ERROR_INVALID_VALUE)
      return toStatus(api, result, "cuPointerGetAttribute");
    int owner = 0;
    result = api.cuPointerGetAttribute(
        &owner, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address);
    const std::string found =
        result == CUDA_SUCCESS && owner >= 0 && owner != context->device()
            ? fmt::format("it is memory of device {}", owner)
            : "the driver knows no such memory";
    return Status::invalid(fmt::format(
        "{:#x} is not allowed; it must be memory that kernels on {}, device "
        "{}, may use, and {}",
        address, name, context->device(), found));
  });
}

Result<uint64_t> CudaDevice::allocate(size_t bytes, std::string label) {
  std::string what = fmt::format("allocate {} bytes for '{}'", bytes, label);
  if (Status status = outsideAnyCapture(what); !status)
    return status;
  ContextScope scope(*context);
  RelaxedCaptureScope relaxed(api);
  CUdeviceptr address = 0;
  Status status = scope.status();
  if (status) // The driver refuses 0 bytes; its alignment is 256 at least.
    status =
        REPLAYJIT_CU(api, cuMemAlloc, &address, std::max<size_t>(bytes, 1));
  if (!status)
    return inContext(std::move(status), what);
  return static_cast<uint64_t>(address);
}

Status CudaDevice::free(uint64_t address) {
  if (address == 0)
    return Status::ok();
  if (Status status = outsideAnyCapture("free"); !status)
    return status;
  return inside([&] {
    RelaxedCaptureScope relaxed(api);
    return REPLAYJIT_CU(api, cuMemFree, address);
  });
}

Result<MappedMemory> CudaDevice::allocateMapped(size_t bytes,
                                                std::string label) {
  std::string what = fmt::format(
      "allocate {} bytes of mapped host memory for '{}'", bytes, label);
  if (Status status = outsideAnyCapture(what); !status)
    return status;
  ContextScope scope(*context);
  RelaxedCaptureScope relaxed(api);
  MappedMemory memory;
  CUdeviceptr address = 0;
  Status status = scope.status();
  if (status)
    status = REPLAYJIT_CU(api, cuMemHostAlloc, &memory.host,
                          std::max<size_t>(bytes, 1),
                          CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
  if (status)
    status =
        REPLAYJIT_CU(api, cuMemHostGetDevicePointer, &address, memory.host, 0);
  if (!status) {
    if (memory.host)
      (void)api.cuMemFreeHost(memory.host);
    return inContext(std::move(status), what);
  }
  memory.device = address;
  return memory;
}

Status CudaDevice::freeMapped(const MappedMemory &memory) {
  if (!memory.host)
    return Status::ok();
  if (Status status = outsideAnyCapture("free"); !status)
    return status;
  return inside([&] {
    RelaxedCaptureScope relaxed(api);
    return REPLAYJIT_CU(api, cuMemFreeHost, memory.host);
  });
}

Status CudaDevice::copyToDevice(uint64_t dst, const void *src, size_t bytes) {
  if (bytes == 0)
    return Status::ok();
  if (Status status = outsideCapture("copy to the device"); !status)
    return status;
  Status status = copyToDeviceOn(ownStream, dst, src, bytes);
  return status ? synchronize() : status;
}

Status CudaDevice::copyFromDevice(void *dst, uint64_t src, size_t bytes) {
  if (bytes == 0)
    return Status::ok();
  if (Status status = outsideCapture("copy from the device"); !status)
    return status;
  Status status = copyFromDeviceOn(ownStream, dst, src, bytes);
  return status ? synchronize() : status;
}

Status CudaDevice::assemble(CompiledKernel &kernel) const {
  if (Status status =
          outsideAnyCapture(fmt::format("assemble '{}'", kernel.name));
      !status)
    return status;
  ContextScope scope(*context);
  if (!scope.status())
    return scope.status();
  RelaxedCaptureScope relaxed(api);
  Result<LinkedCubin> linked = linkPtx(api, kernel.ptx, kernel.name);
  if (!linked)
    return inContext(linked.status(),
                     fmt::format("{} ({})", name, gpuTarget.chip));
  kernel.cubin = std::move(linked->cubin);
  kernel.assembler = std::move(linked->assembler);
  kernel.assemblerLog = std::move(linked->log);
  return Status::ok();
}

Result<std::unique_ptr<LoadedKernel>>
CudaDevice::load(const CompiledKernel &kernel) {
  if (Status status = outsideAnyCapture(fmt::format("load '{}'", kernel.name));
      !status)
    return status;
  ContextScope scope(*context);
  if (!scope.status())
    return scope.status();
  RelaxedCaptureScope relaxed(api);
  Result<std::unique_ptr<CudaKernel>> loaded =
      CudaKernel::load(context, kernel, maxSharedBytes);
  if (!loaded)
    return inContext(loaded.status(),
                     fmt::format("{} ({})", name, gpuTarget.chip));
  return std::unique_ptr<LoadedKernel>(std::move(*loaded));
}

Status CudaDevice::launch(LoadedKernel &kernel, Grid grid, const void *params,
                          size_t paramBytes) {
  Status status = launchOn(ownStream, kernel, grid, params, paramBytes,
                           LaunchOrder::Serial);
  if (capturing && captureFault && !status)
    captureFault = status;
  return status;
}

/// The most blocks of a grid in y and in z.
static constexpr uint32_t mostAcross = 65535;

Status CudaDevice::launchOn(void *where, LoadedKernel &loaded, Grid grid,
                            const void *params, size_t paramBytes,
                            LaunchOrder order) {
  auto &kernel = static_cast<CudaKernel &>(loaded);
  auto refused = [&](std::string why) {
    return Status::invalid(fmt::format("launch '{}': {}", kernel.name(), why));
  };
  if (kernel.owner() != context->handle())
    return refused("it was loaded by another device");
  if (paramBytes != kernel.paramBytes())
    return refused(fmt::format("{} bytes of parameters were given, its "
                               "signature has {}",
                               paramBytes, kernel.paramBytes()));
  if (grid.x > static_cast<uint32_t>(std::numeric_limits<int32_t>::max()))
    return refused(
        fmt::format("{} blocks; a grid has at most 2^31 - 1", grid.x));
  if (grid.y > mostAcross || grid.z > mostAcross)
    return refused(fmt::format("{} by {} blocks in y and z; a grid has at most "
                               "{} in each",
                               grid.y, grid.z, mostAcross));
  if (grid.isEmpty())
    return Status::ok();

  ContextScope scope(*context);
  if (!scope.status())
    return scope.status();
  CUlaunchConfig config = {};
  config.gridDimX = grid.x;
  config.gridDimY = grid.y;
  config.gridDimZ = grid.z;
  config.blockDimX = kernel.launch().threads;
  config.blockDimY = config.blockDimZ = 1;
  config.sharedMemBytes = kernel.launch().sharedBytes;
  config.hStream = static_cast<CUstream>(where);
  CUlaunchAttribute overlap = {};
  if (order == LaunchOrder::Programmatic) {
    overlap.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    overlap.value.programmaticStreamSerializationAllowed = 1;
    config.attrs = &overlap;
    config.numAttrs = 1;
  }
  size_t usedBytes = kernel.usedParamBytes();
  void *extra[] = {launchParamBufferPointer, const_cast<void *>(params),
                   launchParamBufferSize, &usedBytes, launchParamEnd};
  Status status =
      REPLAYJIT_CU(api, cuLaunchKernelEx, &config, kernel.function(), nullptr,
                   usedBytes ? extra : nullptr);
  if (!status)
    status = inContext(
        std::move(status),
        fmt::format("launch '{}' with {} blocks of {} threads, {} bytes of "
                    "dynamic shared memory",
                    kernel.name(), uint64_t(grid.x) * grid.y * grid.z,
                    config.blockDimX, config.sharedMemBytes));
  return status;
}

Status CudaDevice::fill32On(void *stream, uint64_t dst, uint32_t value,
                            size_t count) {
  if (count == 0)
    return Status::ok();
  return inside([&] {
    return REPLAYJIT_CU(api, cuMemsetD32Async, dst, value, count,
                        static_cast<CUstream>(stream));
  });
}

Status CudaDevice::copyOn(void *stream, uint64_t dst, uint64_t src,
                          size_t bytes) {
  if (bytes == 0)
    return Status::ok();
  return inside([&] {
    return REPLAYJIT_CU(api, cuMemcpyDtoDAsync, dst, src, bytes,
                        static_cast<CUstream>(stream));
  });
}

Status CudaDevice::copyToDeviceOn(void *stream, uint64_t dst, const void *src,
                                  size_t bytes) {
  if (bytes == 0)
    return Status::ok();
  return inside([&] {
    return REPLAYJIT_CU(api, cuMemcpyHtoDAsync, dst, src, bytes,
                        static_cast<CUstream>(stream));
  });
}

Status CudaDevice::copyFromDeviceOn(void *stream, void *dst, uint64_t src,
                                    size_t bytes) {
  if (bytes == 0)
    return Status::ok();
  return inside([&] {
    return REPLAYJIT_CU(api, cuMemcpyDtoHAsync, dst, src, bytes,
                        static_cast<CUstream>(stream));
  });
}

Status CudaDevice::synchronizeOn(void *where) {
  auto stream = static_cast<CUstream>(where);
  // Asked first: a wait would not only fail but invalidate the capture.
  if (Status status = checkNoCapture(stream, "synchronize"); !status)
    return status;
  return inside([&] { return REPLAYJIT_CU(api, cuStreamSynchronize, stream); });
}

Status CudaDevice::beginCapture() {
  if (Status status = outsideCapture("begin a capture"); !status)
    return status;
  ContextScope scope(*context);
  if (!scope.status())
    return scope.status();
  // Thread-local: other threads of the process may allocate meanwhile.
  REPLAYJIT_CU_RETURN(api, cuStreamBeginCapture, ownStream,
                      CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  capturing = true;
  captureFault = Status::ok();
  return Status::ok();
}

Result<Times> CudaDevice::endCaptureAndTime(int repeats) {
  ContextScope scope(*context);
  if (!scope.status())
    return scope.status();
  capturing = false;
  CapturedGraph graph(api);
  Status ended = graph.endCapture(ownStream);
  if (!captureFault) // The cause, where `ended` may only say "invalidated".
    return captureFault;
  return ended ? graph.time(ownStream, repeats) : Result<Times>(ended);
}

Result<Target> targetForCapability(int major, int minor) {
  int capability = 10 * major + minor;
  // What the "a" targets add runs on exactly that capability; all else runs on
  // later minors as well.
  static constexpr struct {
    int capability;
    const char *chip;
  } specific[] = {{90, "sm_90a"}, {100, "sm_100a"}, {103, "sm_103a"}};
  for (const auto &entry : specific)
    if (entry.capability == capability)
      return Target::parse(entry.chip);

  Result<Target> best = Status::error(
      StatusCode::Unsupported,
      fmt::format("compute capability {}.{} has no target; allowed are {}",
                  major, minor, fmt::join(Target::names(), ", ")));
  for (const std::string &chip : Target::names()) { // Ascending.
    Result<Target> target = Target::parse(chip);
    if (target && chip.back() != 'a' && target->capability <= capability &&
        target->capability / 10 == major)
      best = target;
  }
  return best;
}

static Result<std::unique_ptr<Device>>
createOver(Result<CudaContext::Ptr> context) {
  if (!context)
    return context.status();
  auto device = std::make_unique<CudaDevice>(std::move(*context));
  if (Status status = device->initialize(); !status)
    return status;
  return std::unique_ptr<Device>(std::move(device));
}

static Result<CUdevice> deviceOf(const DriverApi &api, int ordinal) {
  REPLAYJIT_CU_RETURN(api, cuInit, 0);
  int count = 0;
  REPLAYJIT_CU_RETURN(api, cuDeviceGetCount, &count);
  if (ordinal < 0 || ordinal >= count)
    return Status::invalid(fmt::format(
        "there is no such device; the driver shows {}, numbered from 0",
        count));
  CUdevice device = 0;
  REPLAYJIT_CU_RETURN(api, cuDeviceGet, &device, ordinal);
  return device;
}

Result<std::unique_ptr<Device>> createCudaDevice(const DriverApi &api,
                                                 int ordinal) {
  Result<CUdevice> device = deviceOf(api, ordinal);
  Result<std::unique_ptr<Device>> made =
      device ? createOver(CudaContext::retainPrimary(api, *device))
             : device.status();
  if (!made)
    return inContext(made.status(), fmt::format("CUDA device {}", ordinal));
  return made;
}

Result<std::unique_ptr<Device>>
createCudaDeviceForCurrentContext(const DriverApi &api) {
  REPLAYJIT_CU_RETURN(api, cuInit, 0);
  return createOver(CudaContext::current(api));
}

} // namespace replayjit::internal::cuda

namespace replayjit::internal {

Result<std::unique_ptr<Device>> createCudaDevice(int ordinal) {
  const Result<cuda::DriverApi> &api = cuda::DriverApi::get();
  if (!api)
    return api.status();
  return cuda::createCudaDevice(*api, ordinal);
}

Result<std::unique_ptr<Device>> createCudaDeviceForCurrentContext() {
  const Result<cuda::DriverApi> &api = cuda::DriverApi::get();
  if (!api)
    return api.status();
  return cuda::createCudaDeviceForCurrentContext(*api);
}

} // namespace replayjit::internal
