//===- FillDevice.cpp - A GPU that is not there ---------------------------===//

#include "tests/engine/FillDevice.h"

#include <cstdlib>
#include <cstring>

namespace replayjit::internal::engine {

namespace {

struct IdleKernel final : LoadedKernel {
  ResourceUsage resources() const override { return {}; }
};

class FillDevice final : public Device {
public:
  FillDevice(Target target, int multiprocessors)
      : gpu(std::move(target)), processors(multiprocessors) {}

  std::string description() const override { return "a GPU to fill for"; }
  int multiprocessors() const override { return processors; }
  Target target() const override { return gpu; }
  bool isEmulation() const override { return false; }

  Result<uint64_t> allocate(size_t bytes, std::string) override {
    return reinterpret_cast<uint64_t>(
        std::aligned_alloc(256, (bytes + 256) / 256 * 256));
  }
  Status free(uint64_t address) override {
    std::free(reinterpret_cast<void *>(address));
    return Status::ok();
  }
  Status copyToDevice(uint64_t dst, const void *src, size_t bytes) override {
    std::memcpy(reinterpret_cast<void *>(dst), src, bytes);
    return Status::ok();
  }
  Status copyFromDevice(void *dst, uint64_t src, size_t bytes) override {
    std::memcpy(dst, reinterpret_cast<void *>(src), bytes);
    return Status::ok();
  }
  Result<MappedMemory> allocateMapped(size_t bytes, std::string name) override {
    Result<uint64_t> address = allocate(bytes, std::move(name));
    return MappedMemory{reinterpret_cast<void *>(*address), *address};
  }
  Status freeMapped(const MappedMemory &memory) override {
    return free(memory.device);
  }
  Result<std::unique_ptr<LoadedKernel>>
  load(const CompiledKernel &kernel) override {
    return std::unique_ptr<LoadedKernel>(new IdleKernel);
  }
  Status launch(LoadedKernel &, Grid, const void *, size_t) override {
    return Status::ok();
  }
  Status synchronize() override { return Status::ok(); }
  Status fill32On(void *, uint64_t dst, uint32_t value, size_t count) override {
    for (size_t i = 0; i < count; ++i)
      reinterpret_cast<uint32_t *>(dst)[i] = value;
    return Status::ok();
  }

protected:
  Status beginCapture() override { return Status::invalid("no graphs"); }
  Result<Times> endCaptureAndTime(int) override { return beginCapture(); }

private:
  Target gpu;
  int processors;
};

} // namespace

std::unique_ptr<Device> createFillDevice(Target target, int multiprocessors) {
  return std::make_unique<FillDevice>(std::move(target), multiprocessors);
}

} // namespace replayjit::internal::engine
