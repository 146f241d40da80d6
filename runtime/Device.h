//===- Device.h - Where kernels run -----------------------------*- C++ -*-===//
//
// One interface over a CUDA GPU and the host emulation. The caller names the
// device; nothing falls back from one to the other.
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_RUNTIME_DEVICE_H
#define REPLAYJIT_RUNTIME_DEVICE_H

#include "compiler/CompiledKernel.h"
#include "compiler/Host/LaneOrder.h"

#include <cstddef>
#include <cstdint>
#include <memory>

namespace replayjit {

/// A kernel that a device can launch. Freed before its device.
class LoadedKernel {
public:
  virtual ~LoadedKernel() = default;
  /// Registers, stack and static shared memory as the device reports them.
  virtual ResourceUsage resources() const = 0;
};

/// A GPU or the emulation. Launches and copies run in order on one stream, but
/// for launchOn. One thread uses a device at a time, with one exception: while
/// no thread allocates, frees or times, any may load and launch. It outlives
/// its loaded kernels.
class Device {
public:
  virtual ~Device() = default;

  virtual std::string description() const = 0; ///< "NVIDIA H200", "emulation"
  virtual int multiprocessors() const = 0;
  /// The target kernels for this device are compiled for.
  virtual Target target() const = 0;
  virtual bool isEmulation() const = 0;

  /// `bytes` of device memory (0 is allowed), 256-byte aligned. `name` appears
  /// in reports of accesses outside of it. The caller frees it.
  virtual Result<uint64_t> allocate(size_t bytes, std::string name) = 0;
  virtual Status free(uint64_t address) = 0;
  virtual Status copyToDevice(uint64_t dst, const void *src, size_t bytes) = 0;
  virtual Status copyFromDevice(void *dst, uint64_t src, size_t bytes) = 0;

  /// Makes `kernel` launchable: its cubin on a GPU, its host program (see
  /// CompiledKernel::hostProgram) under emulation.
  virtual Result<std::unique_ptr<LoadedKernel>>
  load(const CompiledKernel &kernel) = 0;

  /// Launches `blocks` blocks of `kernel`; `params` is the parameter buffer of
  /// its signature and is copied. blocks = 0 is a no-op.
  virtual Status launch(LoadedKernel &kernel, uint32_t blocks,
                        const void *params, size_t paramBytes) = 0;

  /// The same on the caller's `stream`, a CUstream of the device's context;
  /// null is the legacy default stream. It is one driver call between pushing
  /// and popping the context; neither locks, allocates nor touches a file
  /// unless it fails. Unsupported under emulation, which has no streams.
  virtual Status launchOn(void *stream, LoadedKernel &kernel, uint32_t blocks,
                          const void *params, size_t paramBytes);

  /// Waits for all work; reports faults of earlier launches.
  virtual Status synchronize() = 0;

  /// Milliseconds per run of `body`, which only launches: it is captured into a
  /// graph, replayed `repeats` times after a warm-up, and the median is taken.
  /// Unsupported under emulation.
  template <typename Body> Result<double> time(Body body, int repeats) {
    if (Status status = beginCapture(); !status)
      return status;
    Status launched = body();
    Result<double> median = endCaptureAndTime(repeats);
    if (!launched)
      return launched;
    return median;
  }

protected:
  virtual Status beginCapture() = 0;
  virtual Result<double> endCaptureAndTime(int repeats) = 0;
};

inline Status Device::launchOn(void *, LoadedKernel &, uint32_t, const void *,
                               size_t) {
  return Status::error(StatusCode::Unsupported,
                       description() + ": there are no streams");
}

/// CUDA device `ordinal` through libcuda.so.1, opened at run time. Uses the
/// primary context. An error if there is no driver or no such device.
Result<std::unique_ptr<Device>> createCudaDevice(int ordinal);

/// Host emulation of `target`: runs the thread program on the CPU, checked (see
/// compiler/Host/Emulator.h). `launch` returns the fault it meets, and
/// `order` is the order in which lanes, warps and blocks run.
std::unique_ptr<Device>
createEmulationDevice(Target target,
                      host::LaneOrder order = host::LaneOrder::forward());

} // namespace replayjit

#endif
