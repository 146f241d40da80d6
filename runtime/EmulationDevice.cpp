//===- EmulationDevice.cpp - The device that is this CPU ------------------===//

#include "compiler/Host/Emulator.h"
#include "runtime/Device.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>
#include <memory>

namespace replayjit::internal {

namespace {

class EmulatedKernel final : public LoadedKernel {
public:
  explicit EmulatedKernel(const CompiledKernel &kernel)
      : name(kernel.name), program(kernel.hostProgram), launch(kernel.launch),
        paramBytes(kernel.signature.bytes) {}

  ResourceUsage resources() const override { return {}; } // Nothing to report.

  std::string name;
  std::shared_ptr<host::HostProgram> program;
  LaunchConfig launch;
  uint32_t paramBytes;
};

/// Launches run at once, and their faults are returned by `launch`.
class EmulationDevice final : public Device {
public:
  EmulationDevice(Target target, host::LaneOrder order)
      : kernelTarget(std::move(target)), order(order) {}

  std::string description() const override { return "emulation"; }
  // As an H200 has, so that variants are chosen as they are there.
  int multiprocessors() const override { return 132; }
  Target target() const override { return kernelTarget; }
  bool isEmulation() const override { return true; }

  Result<uint64_t> allocate(size_t bytes, std::string name) override;
  Status free(uint64_t address) override;
  Status copyToDevice(uint64_t dst, const void *src, size_t bytes) override;
  Status copyFromDevice(void *dst, uint64_t src, size_t bytes) override;
  Result<MappedMemory> allocateMapped(size_t bytes, std::string name) override;
  Status freeMapped(const MappedMemory &memory) override;
  Status checkAddress(uint64_t address) const override;
  Result<std::unique_ptr<LoadedKernel>>
  load(const CompiledKernel &kernel) override;
  Status launch(LoadedKernel &kernel, Grid grid, const void *params,
                size_t paramBytes) override;
  Status synchronize() override { return Status::ok(); }

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
  Status synchronizeOn(void *stream) override { return checkStream(stream); }

protected:
  Status beginCapture() override {
    return Status::error(StatusCode::Unsupported,
                         "emulation: there are no graphs and no GPU times");
  }
  Result<Times> endCaptureAndTime(int repeats) override {
    return beginCapture();
  }

private:
  Status checkRange(uint64_t address, size_t bytes) const;
  static Status checkStream(void *stream);

  Target kernelTarget;
  host::LaneOrder order;
  host::MemoryMap memory;
  struct Free {
    void operator()(void *block) const { std::free(block); }
  };
  using Blocks = std::map<uint64_t, std::unique_ptr<void, Free>>;
  Blocks blocks; ///< Address to what malloc gave.
};

} // namespace

// Between two allocations lies at least this much that belongs to none.
static constexpr size_t redZone = 256;

Result<uint64_t> EmulationDevice::allocate(size_t bytes, std::string name) {
  constexpr size_t most = std::numeric_limits<ptrdiff_t>::max() / 2;
  size_t rounded = bytes < most ? (bytes + 255) / 256 * 256 : 0;
  std::unique_ptr<void, Free> block(
      bytes < most ? std::aligned_alloc(256, rounded + 2 * redZone) : nullptr);
  if (!block)
    return Status::error(
        StatusCode::OutOfMemory,
        fmt::format("emulation: no memory for '{}', {} bytes", name, bytes));
  // Not a number as f16, bf16, f32 and f64, and no useful index: what reads
  // memory that nothing wrote shows it.
  uint16_t poison = 0x7fff;
  auto *values = static_cast<uint16_t *>(block.get());
  std::fill_n(values, (rounded + 2 * redZone) / sizeof poison, poison);
  char *base = static_cast<char *>(block.get()) + redZone;
  uint64_t address = reinterpret_cast<uint64_t>(base);
  Blocks entry;
  entry.emplace(address, std::move(block));
  memory.add(std::move(name), base, bytes);
  blocks.merge(entry); // Which cannot fail: both know of it, or neither.
  return address;
}

Status EmulationDevice::free(uint64_t address) {
  auto found = blocks.find(address);
  if (found == blocks.end())
    return Status::invalid(
        fmt::format("emulation: {:#x} is not an allocation", address));
  memory.remove(reinterpret_cast<const void *>(address));
  blocks.erase(found);
  return Status::ok();
}

Status EmulationDevice::checkRange(uint64_t address, size_t bytes) const {
  if (bytes == 0 || memory.find(address, bytes))
    return Status::ok();
  const host::MemoryMap::Allocation *near = memory.nearest(address);
  return Status::invalid(fmt::format(
      "emulation: a copy of {} bytes at {:#x} is not inside one allocation; "
      "nearest is '{}', {} bytes at {:#x}",
      bytes, address, near ? near->name : "none", near ? near->bytes : 0,
      near ? near->base : 0));
}

Status EmulationDevice::copyToDevice(uint64_t dst, const void *src,
                                     size_t bytes) {
  Status status = checkRange(dst, bytes);
  if (status && bytes)
    std::memcpy(reinterpret_cast<void *>(dst), src, bytes);
  return status;
}

Status EmulationDevice::copyFromDevice(void *dst, uint64_t src, size_t bytes) {
  Status status = checkRange(src, bytes);
  if (status && bytes)
    std::memcpy(dst, reinterpret_cast<const void *>(src), bytes);
  return status;
}

// Kernels run in this process: all of its memory is mapped.
Result<MappedMemory> EmulationDevice::allocateMapped(size_t bytes,
                                                     std::string name) {
  Result<uint64_t> address = allocate(bytes, std::move(name));
  if (!address)
    return address.status();
  return MappedMemory{reinterpret_cast<void *>(*address), *address};
}

Status EmulationDevice::freeMapped(const MappedMemory &memory) {
  return memory.host ? free(memory.device) : Status::ok();
}

Status EmulationDevice::checkAddress(uint64_t address) const {
  if (memory.find(address, 1))
    return Status::ok();
  return Status::invalid(fmt::format(
      "{:#x} is not allowed; it must be in an allocation of the emulation",
      address));
}

Result<std::unique_ptr<LoadedKernel>>
EmulationDevice::load(const CompiledKernel &kernel) {
  if (!kernel.hostProgram)
    return Status::invalid(fmt::format(
        "emulation: kernel '{}' was not compiled for the host", kernel.name));
  if (kernel.launch.sharedBytes > uint32_t(kernelTarget.maxSharedBytes))
    return Status::invalid(
        fmt::format("emulation: kernel '{}' asks for {} bytes of shared "
                    "memory; {} has {}",
                    kernel.name, kernel.launch.sharedBytes, kernelTarget.chip,
                    kernelTarget.maxSharedBytes));
  return std::unique_ptr<LoadedKernel>(new EmulatedKernel(kernel));
}

Status EmulationDevice::launch(LoadedKernel &loaded, Grid blocks,
                               const void *params, size_t paramBytes) {
  auto &kernel = static_cast<EmulatedKernel &>(loaded);
  if (paramBytes != kernel.paramBytes)
    return Status::invalid(fmt::format(
        "emulation: kernel '{}' takes {} bytes of parameters, given are {}",
        kernel.name, kernel.paramBytes, paramBytes));
  host::GridLaunch grid;
  grid.entry = kernel.program->entry;
  grid.sites = &kernel.program->sites;
  grid.blocks = blocks;
  grid.threads = kernel.launch.threads;
  grid.sharedBytes = kernel.launch.sharedBytes;
  grid.params = params;
  grid.order = order;
  Status status = host::runGrid(grid, memory);
  if (!status)
    status.message = kernel.name + ": " + status.message;
  return status;
}

Status EmulationDevice::checkStream(void *stream) {
  if (!stream)
    return Status::ok();
  return Status::invalid(fmt::format(
      "emulation: stream {} is not allowed; its one stream is null", stream));
}

Status EmulationDevice::launchOn(void *stream, LoadedKernel &kernel, Grid grid,
                                 const void *params, size_t paramBytes,
                                 LaunchOrder) {
  Status status =
      checkStream(stream); // Programmatic or not: one after another.
  return status ? launch(kernel, grid, params, paramBytes) : status;
}

Status EmulationDevice::fill32On(void *stream, uint64_t dst, uint32_t value,
                                 size_t count) {
  Status status = checkStream(stream);
  size_t bytes = 0;
  if (__builtin_mul_overflow(count, sizeof value, &bytes))
    bytes = std::numeric_limits<size_t>::max(); // In no allocation.
  if (status)
    status = checkRange(dst, bytes);
  if (status && dst % sizeof value)
    status = Status::invalid(fmt::format(
        "emulation: a fill at {:#x}, which is no multiple of 4", dst));
  if (status)
    std::fill_n(reinterpret_cast<uint32_t *>(dst), count, value);
  return status;
}

Status EmulationDevice::copyOn(void *stream, uint64_t dst, uint64_t src,
                               size_t bytes) {
  Status status = checkStream(stream);
  if (status)
    status = checkRange(src, bytes);
  return status ? copyToDevice(dst, reinterpret_cast<const void *>(src), bytes)
                : status;
}

Status EmulationDevice::copyToDeviceOn(void *stream, uint64_t dst,
                                       const void *src, size_t bytes) {
  Status status = checkStream(stream);
  return status ? copyToDevice(dst, src, bytes) : status;
}

Status EmulationDevice::copyFromDeviceOn(void *stream, void *dst, uint64_t src,
                                         size_t bytes) {
  Status status = checkStream(stream);
  return status ? copyFromDevice(dst, src, bytes) : status;
}

std::unique_ptr<Device> createEmulationDevice(Target target,
                                              host::LaneOrder order) {
  return std::make_unique<EmulationDevice>(std::move(target), order);
}

} // namespace replayjit::internal
