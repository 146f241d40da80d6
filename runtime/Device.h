//===- Device.h - Where kernels run -----------------------------*- C++ -*-===//
//
// One interface over a CUDA GPU and the host emulation. The caller names the
// device; nothing falls back from one to the other.
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_RUNTIME_DEVICE_H
#define REPLAYJIT_RUNTIME_DEVICE_H

#include "base/CompiledKernel.h"
#include "compiler/Host/LaneOrder.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace replayjit::internal {

/// How a launch follows what its stream did before.
enum class LaunchOrder {
  Serial, ///< It starts when all of that has ended.
  /// It may start when the kernel before it lets it, and itself waits for that
  /// kernel's end: only for kernels that do
  /// (DecodeSpec::hasProgrammaticLaunch), which KernelHandle checks; sm_90 and
  /// later.
  Programmatic,
};

/// A kernel that a device can launch. It may be freed after its device, and
/// after the context that it was loaded into.
class LoadedKernel {
public:
  virtual ~LoadedKernel() = default;
  /// Registers, stack and static shared memory as the device reports them.
  virtual ResourceUsage resources() const = 0;
};

/// Host memory that kernels reach as well.
struct MappedMemory {
  void *host = nullptr;
  uint64_t device = 0; ///< The address for kernels.
};

/// Of equal runs, shortest first; one or more.
using Times = std::vector<double>;

inline double medianOf(const Times &times) {
  const size_t n = times.size();
  return (times[(n - 1) / 2] + times[n / 2]) / 2;
}

/// A GPU or the emulation. Launches and copies run in order on one stream, the
/// device's own, but for what takes a stream. One thread uses a device at a
/// time, with one exception: while no thread allocates, frees or times, any may
/// load, launch and use streams.
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

  /// `bytes` of page-locked host memory mapped into the device, of any content:
  /// what a kernel writes there the host sees without a copy, at the latest
  /// when it has waited for the kernel. Only freeMapped frees it; `{}` is
  /// allowed there and frees nothing.
  virtual Result<MappedMemory> allocateMapped(size_t bytes, std::string name);
  virtual Status freeMapped(const MappedMemory &memory);

  /// Makes the cubin of a kernel that has only PTX by the driver's own
  /// assembler, which `assembler` then names. AssembleFailed, with its log, if
  /// it rejects the PTX.
  virtual Status assemble(CompiledKernel &kernel) const;

  /// Whether `stream` is under capture (null: whether any stream is that waits
  /// for the legacy default stream). No call of the driver shows the capture of
  /// a non-blocking stream that is not named; what is done meanwhile does not
  /// spoil it.
  virtual Result<bool> isCapturing(void *stream) const { return false; }
  /// InvalidArgument if it is: `what` would then spoil the capture.
  Status checkNoCapture(void *stream, std::string_view what) const;

  /// InvalidArgument unless kernels of this device may follow `address`: it is
  /// in memory that was allocated on the device, or mapped, managed or shared
  /// with it. Says nothing of how far that memory goes. Waits for nothing, and
  /// is allowed under capture; one or two driver calls.
  virtual Status checkAddress(uint64_t address) const;

  /// Makes `kernel` launchable: its cubin on a GPU, its host program (see
  /// CompiledKernel::hostProgram) under emulation.
  virtual Result<std::unique_ptr<LoadedKernel>>
  load(const CompiledKernel &kernel) = 0;

  /// Launches the blocks of `grid`; `params` is the parameter buffer of the
  /// kernel's signature and is copied. An empty grid is a no-op.
  virtual Status launch(LoadedKernel &kernel, Grid grid, const void *params,
                        size_t paramBytes) = 0;

  /// Waits for all work of the own stream; reports faults of earlier launches.
  virtual Status synchronize() = 0;

  /// In order on the caller's `stream`, which may be under capture: a CUstream
  /// of the device's context, of which null is the legacy default stream. Each
  /// is one driver call, with the context pushed around it if it is not
  /// current, and none waits, locks, allocates or touches a file unless it
  /// fails. Host memory of a copy stays as it is until the stream has passed
  /// it. Emulation has one stream, null, on which all is done at once.
  virtual Status launchOn(void *stream, LoadedKernel &kernel, Grid grid,
                          const void *params, size_t paramBytes,
                          LaunchOrder order = LaunchOrder::Serial);
  /// Writes `value` to `count` words of 4 bytes at `dst`, which is a multiple
  /// of 4.
  virtual Status fill32On(void *stream, uint64_t dst, uint32_t value,
                          size_t count);
  virtual Status copyOn(void *stream, uint64_t dst, uint64_t src, size_t bytes);
  virtual Status copyToDeviceOn(void *stream, uint64_t dst, const void *src,
                                size_t bytes);
  virtual Status copyFromDeviceOn(void *stream, void *dst, uint64_t src,
                                  size_t bytes);
  /// Waits for `stream`. InvalidArgument while it is under capture.
  virtual Status synchronizeOn(void *stream);
  /// The device's own stream, for the functions above.
  virtual void *stream() const { return nullptr; }

  /// Milliseconds of each run of `body`, which only launches, shortest first:
  /// it is captured into a graph, and replayed `repeats` times after a warm-up.
  /// Unsupported under emulation.
  template <typename Body> Result<Times> time(Body body, int repeats) {
    if (Status status = beginCapture(); !status)
      return status;
    Status launched = body();
    Result<Times> times = endCaptureAndTime(repeats);
    if (!launched)
      return launched;
    return times;
  }

protected:
  virtual Status beginCapture() = 0;
  virtual Result<Times> endCaptureAndTime(int repeats) = 0;
  static Status underCapture(std::string_view what);

private:
  Status lacks(std::string_view what) const;
};

/// CUDA device `ordinal` through libcuda.so.1, opened at run time. Retains the
/// primary context, and makes it if there is none: for tools. NotFound without
/// a driver; InvalidArgument if there is no such device.
Result<std::unique_ptr<Device>> createCudaDevice(int ordinal);

/// The device and context that are current in the calling thread; makes no
/// context and retains none. The context is current inside the device's calls
/// in every thread, whatever is current outside of them, and the caller keeps
/// it until it no longer uses the device. InvalidArgument if there is none.
Result<std::unique_ptr<Device>> createCudaDeviceForCurrentContext();

/// Host emulation of `target`: runs the thread program on the CPU, checked (see
/// compiler/Host/Emulator.h). `launch` returns the fault it meets, and
/// `order` is the order in which lanes, warps and blocks run.
std::unique_ptr<Device>
createEmulationDevice(Target target,
                      host::LaneOrder order = host::LaneOrder::forward());

} // namespace replayjit::internal

#endif
