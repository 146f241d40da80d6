//===- FakeDecodeDevice.h - A device whose kernel is a function -*- C++ -*-===//
//
// Host memory as a Device.
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_TESTS_UNIT_FAKEDECODEDEVICE_H
#define REPLAYJIT_TESTS_UNIT_FAKEDECODEDEVICE_H

#include "kernels/Decode/DecodeArgs.h"
#include "kernels/Materialize/MaterializeArgs.h"
#include "runtime/Device.h"

#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace replayjit::internal {

struct FakeKernel : LoadedKernel {
  std::function<void(const DecodeArgs &)> run;
  std::function<void(const MaterializeArgs &)> runMaterialize;
  ResourceUsage resources() const override { return {}; }
};

class FakeDevice : public Device {
public:
  std::string description() const override { return "fake"; }
  int multiprocessors() const override { return 1; }
  Target target() const override { return {}; }
  bool isEmulation() const override { return true; }

  Result<uint64_t> allocate(size_t bytes, std::string name) override {
    std::vector<char> memory(bytes + 1);
    uint64_t address = reinterpret_cast<uint64_t>(memory.data());
    allocations[address] = std::move(memory);
    return address;
  }
  Status free(uint64_t address) override {
    allocations.erase(address);
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
  Result<std::unique_ptr<LoadedKernel>> load(const CompiledKernel &) override {
    return Status::error(StatusCode::Unsupported, "load: not in a fake");
  }
  Status launch(LoadedKernel &kernel, Grid grid, const void *params,
                size_t paramBytes) override {
    ++launches;
    lastBlocks = grid.x;
    if (launches == failAtLaunch)
      return Status::error(StatusCode::DriverError, "launch: as told");
    auto &fake = static_cast<FakeKernel &>(kernel);
    if (fake.run && paramBytes == sizeof(DecodeArgs))
      return call(fake.run, params);
    if (fake.runMaterialize && paramBytes == sizeof(MaterializeArgs))
      return call(fake.runMaterialize, params);
    return Status::invalid("params: not of this kernel");
  }
  Status synchronize() override { return Status::ok(); }

  std::map<uint64_t, std::vector<char>> allocations;
  int launches = 0;
  int failAtLaunch = 0; ///< Counted from 1; 0: never.
  uint32_t lastBlocks = 0;

private:
  template <typename Args>
  static Status call(const std::function<void(const Args &)> &run,
                     const void *params) {
    Args args;
    std::memcpy(&args, params, sizeof(args));
    run(args);
    return Status::ok();
  }

protected:
  Status beginCapture() override {
    return Status::error(StatusCode::Unsupported, "time: not in a fake");
  }
  Result<Times> endCaptureAndTime(int) override { return beginCapture(); }
};

} // namespace replayjit::internal

#endif
