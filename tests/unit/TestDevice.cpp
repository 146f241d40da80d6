//===- TestDevice.cpp - The device of the tests tagged [device] -----------===//

#include "tests/unit/TestDevice.h"

#include "kernels/FamilyBuilder.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>

namespace replayjit::internal::test {

static Result<std::unique_ptr<Device>> createNamedDevice() {
  const char *variable = std::getenv("REPLAYJIT_TEST_DEVICE");
  const std::string name = variable ? variable : "";
  if (name.empty() || name == "cpu")
    return createEmulationDevice(*Target::parse("sm_90a"));
  if (name == "gpu")
    return createCudaDevice(0);
  return Status::invalid("REPLAYJIT_TEST_DEVICE: '" + name +
                         "' is not allowed; it must be cpu or gpu");
}

Device &testDevice() {
  // Never destroyed: at the end of the process the driver may be gone first.
  static auto *device =
      new Result<std::unique_ptr<Device>>(createNamedDevice());
  INFO(device->status().message);
  REQUIRE(*device);
  return ***device;
}

/// Compiles by `compile(compiler, options, forHost)` and loads.
template <typename Compile>
static std::unique_ptr<LoadedKernel> load(Compile compile,
                                          uint32_t &blocksPerRow) {
  Device &device = testDevice();
  Compiler compiler;
  CompileOptions options;
  options.last = Stage::PTX; // The driver goes on from there.
  Result<CompiledKernel> kernel =
      compile(compiler, options, device.isEmulation());
  REQUIRE(kernel.status().message == "");
  if (!device.isEmulation())
    REQUIRE(device.assemble(*kernel).message == "");
  Result<std::unique_ptr<LoadedKernel>> loaded = device.load(*kernel);
  REQUIRE(loaded.status().message == "");
  blocksPerRow = kernel->launch.blocksPerRow;
  return std::move(*loaded);
}

TestKernel::TestKernel(const Compiler::Builder &build) {
  loaded = load(
      [&](Compiler &compiler, const CompileOptions &options, bool forHost) {
        const Target target = testDevice().target();
        return forHost ? compiler.compileForHost(build, target, options)
                       : compiler.compile(build, target, options);
      },
      blocksPerRow);
}

TestKernel::TestKernel(const DecodeSpec &spec, const DecodeTuning &tuning) {
  loaded = load(
      [&](Compiler &compiler, const CompileOptions &options, bool forHost) {
        return compileKernel(compiler, spec, tuning, testDevice().target(),
                             options, forHost);
      },
      blocksPerRow);
}

TestKernel::TestKernel(const DecodeSpec &spec, int rows)
    : TestKernel(spec, chooseTuning(spec, rows, testDevice().target())) {}

Status TestKernel::launch(uint32_t blocks, const void *params, size_t bytes) {
  Status status = testDevice().launch(*loaded, blocks, params, bytes);
  return status ? testDevice().synchronize() : status;
}

Status TestKernel::launch(const DecodeArgs &args) {
  return launch(uint32_t(args.batch) * blocksPerRow, &args, sizeof(args));
}

void TestKernel::step(Launch &memory) {
  DeviceCopy copy(memory);
  REQUIRE(launch(copy.args).message == "");
  copy.fetch();
}

DeviceCopy::DeviceCopy(Launch &launch) : args(launch.args), launch(launch) {
  launch.forEachTensor(
      [&](std::vector<char> &bytes) { upload(bytes.data(), bytes.size()); });
  upload(&launch.error, sizeof(launch.error));
  for (const Argument &argument : decodeArguments()) {
    if (argument.kind != Argument::Kind::Pointer)
      continue;
    uint64_t &address = memberOf(argument, &args);
    if (auto copy = copies.find(address); copy != copies.end())
      address = copy->second;
  }
}

DeviceCopy::~DeviceCopy() {
  for (auto [host, memory] : copies)
    (void)testDevice().free(memory); // nothing to be done about it
}

void DeviceCopy::fetch() {
  launch.forEachTensor(
      [&](std::vector<char> &bytes) { download(bytes.data(), bytes.size()); });
  download(&launch.error, sizeof(launch.error));
}

void DeviceCopy::upload(const void *host, size_t bytes) {
  Result<uint64_t> memory = testDevice().allocate(bytes, "tensor");
  REQUIRE(memory.status().message == "");
  copies[reinterpret_cast<uint64_t>(host)] = *memory;
  REQUIRE(testDevice().copyToDevice(*memory, host, bytes).message == "");
}

void DeviceCopy::download(void *host, size_t bytes) {
  const uint64_t memory = copies.at(reinterpret_cast<uint64_t>(host));
  REQUIRE(testDevice().copyFromDevice(host, memory, bytes).message == "");
}

void checkNear(const HostTensor &x, const HostTensor &y, int rows, int64_t size,
               double bound) {
  for (int row = 0; row < rows; ++row) {
    double largest = 0;
    for (int64_t i = 0; i < size; ++i)
      if (double value = y.get(row, i); std::isfinite(value))
        largest = std::max(largest, std::abs(value));
    for (int64_t i = 0; i < size; ++i) {
      const double have = x.get(row, i), want = y.get(row, i);
      CAPTURE(row, i, have, want);
      if (std::isfinite(want))
        CHECK(std::abs(have - want) <= bound * largest);
      else
        CHECK((have == want || (std::isnan(have) && std::isnan(want))));
    }
  }
}

} // namespace replayjit::internal::test
