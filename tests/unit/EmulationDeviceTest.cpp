//===- EmulationDeviceTest.cpp - The emulation as a device ----------------===//

#include "runtime/Device.h"
#include "tests/unit/EmulatorTestSupport.h"

#include <catch2/catch.hpp>

#include <cmath>

using namespace replayjit::internal;
using namespace replayjit::internal::host;
using namespace replayjit::internal::host::test;

namespace {
struct Params {
  const float *in;
  float *out;
  int32_t count;
};
} // namespace

/// out = 2 * in, 32 elements a block.
static CompiledKernel doubling() {
  CompiledKernel kernel;
  kernel.name = "doubling";
  kernel.signature.bytes = sizeof(Params);
  kernel.launch = {1, 32, 0};
  kernel.hostProgram = std::make_shared<HostProgram>();
  kernel.hostProgram->sites = siteTexts();
  kernel.hostProgram->entry = [](const void *p) {
    const auto &params = *static_cast<const Params *>(p);
    int i = block() * 32 + tid();
    if (i < params.count)
      store(params.out + i, 2 * load(params.in + i, Global), Global);
  };
  return kernel;
}

TEST_CASE("the emulation device runs a kernel", "[emulation]") {
  for (LaneOrder order : everyOrder()) {
    std::unique_ptr<Device> device =
        createEmulationDevice(*Target::parse("sm_90a"), order);
    CHECK(device->description() == "emulation");
    CHECK(device->isEmulation());
    uint64_t in = *device->allocate(400, "in");
    uint64_t out = *device->allocate(400, "out");
    CHECK(in % 256 == 0);
    std::vector<float> values(100, 3.0f), result(100);
    REQUIRE(device->copyToDevice(in, values.data(), 400).isOk());
    auto kernel = device->load(doubling());
    REQUIRE(bool(kernel));
    Params params{reinterpret_cast<const float *>(in),
                  reinterpret_cast<float *>(out), 99};
    auto launch = [&](uint32_t blocks) {
      return device->launch(**kernel, blocks, &params, sizeof params);
    };
    REQUIRE(launch(4).message == "");
    REQUIRE(device->synchronize().isOk());
    REQUIRE(device->copyFromDevice(result.data(), out, 400).isOk());
    CHECK(result[98] == 6.0f);
    CHECK(std::isnan(result[99])); // Nothing wrote it.

    params.count = 101;
    CHECK_THAT(launch(4).message,
               Catch::Contains("doubling: out-of-bounds global load in block "
                               "3, lane 4") &&
                   Catch::Contains("offset 400 of 'in', which has 400 bytes"));
    params.count = 100;
    CHECK(launch(4).isOk());
    CHECK(launch(0).isOk());
    CHECK(device->launch(**kernel, 1, &params, 8).code ==
          StatusCode::InvalidArgument);
    CHECK(device->time([&] { return launch(1); }, 3).status().code ==
          StatusCode::Unsupported);

    // Freed memory is outside.
    REQUIRE(device->free(out).isOk());
    CHECK_THAT(launch(4).message, Catch::Contains("global store in block"));
    CHECK(device->free(out).code == StatusCode::InvalidArgument);
  }
}

TEST_CASE("the emulation device checks its arguments", "[emulation]") {
  std::unique_ptr<Device> device = createEmulationDevice({});
  uint64_t empty = *device->allocate(0, "empty");
  uint64_t some = *device->allocate(4, "some");
  CHECK(empty != some);
  float value = 0;
  CHECK(device->copyToDevice(empty, &value, 0).isOk());
  CHECK_THAT(device->copyToDevice(some + 4, &value, 4).message,
             Catch::Contains("nearest is 'some', 4 bytes"));
  CHECK(device->copyFromDevice(&value, some, 8).code ==
        StatusCode::InvalidArgument);
  CompiledKernel kernel = doubling();
  kernel.launch.sharedBytes = 240 * 1024;
  CHECK_THAT(device->load(kernel).status().message,
             Catch::Contains("sm_90a has 232448"));
  kernel.hostProgram = nullptr;
  CHECK(device->load(kernel).status().code == StatusCode::InvalidArgument);
}

TEST_CASE("the emulation's one stream is null, and does all at once",
          "[emulation]") {
  std::unique_ptr<Device> device =
      createEmulationDevice(*Target::parse("sm_90a"));
  CHECK(device->stream() == nullptr);
  uint64_t in = *device->allocate(128, "in");
  uint64_t out = *device->allocate(128, "out");
  std::vector<float> values(32), result(32);
  for (int i = 0; i < 32; ++i)
    values[i] = i;
  REQUIRE(device->copyToDeviceOn(nullptr, in, values.data(), 128).isOk());
  auto kernel = device->load(doubling());
  REQUIRE(bool(kernel));
  Params params{reinterpret_cast<const float *>(in),
                reinterpret_cast<float *>(out), 32};
  REQUIRE(
      device->launchOn(nullptr, **kernel, 1, &params, sizeof params).message ==
      "");
  REQUIRE(device->copyOn(nullptr, in + 64, out, 64).isOk());
  REQUIRE(device->fill32On(nullptr, in, 0x3f800000, 15).isOk());
  REQUIRE(device->copyFromDeviceOn(nullptr, result.data(), in, 128).isOk());
  CHECK(device->synchronizeOn(nullptr).isOk());
  for (int i = 0; i < 32; ++i)
    CHECK(result[i] == (i < 15 ? 1 : i == 15 ? 15 : 2 * (i - 16)));

  void *other = &params;
  for (const Status &status :
       {device->launchOn(other, **kernel, 1, &params, sizeof params),
        device->fill32On(other, in, 0, 1), device->copyOn(other, in, out, 4),
        device->copyToDeviceOn(other, in, &params, 4),
        device->copyFromDeviceOn(other, &params, in, 4),
        device->synchronizeOn(other)})
    CHECK_THAT(status.message, Catch::Contains("its one stream is null"));
  CHECK_THAT(device->fill32On(nullptr, in + 124, 0, 2).message,
             Catch::Contains("nearest is 'in'"));
  CHECK_FALSE(device->fill32On(nullptr, in, 0, size_t(1) << 62).isOk());
  CHECK_THAT(device->fill32On(nullptr, in + 2, 0, 1).message,
             Catch::Contains("no multiple of 4"));
  CHECK_THAT(device->copyOn(nullptr, in, out + 4, 128).message,
             Catch::Contains("nearest is 'out'"));
}

TEST_CASE("a kernel of the emulation writes mapped memory", "[emulation]") {
  std::unique_ptr<Device> device =
      createEmulationDevice(*Target::parse("sm_90a"));
  auto mapped = device->allocateMapped(8, "word");
  REQUIRE(bool(mapped));
  uint64_t in = *device->allocate(8, "in");
  REQUIRE(device->fill32On(nullptr, in, 0x3f800000, 2).isOk());
  auto kernel = device->load(doubling());
  REQUIRE(bool(kernel));
  Params params{reinterpret_cast<const float *>(in),
                reinterpret_cast<float *>(mapped->device), 2};
  REQUIRE(device->launch(**kernel, 1, &params, sizeof params).message == "");
  CHECK(static_cast<float *>(mapped->host)[1] == 2);
  CHECK(device->freeMapped(*mapped).isOk());
  CHECK(device->freeMapped({}).isOk());
  CHECK_THAT(device->launch(**kernel, 1, &params, sizeof params).message,
             Catch::Contains("global store"));
}

TEST_CASE("the emulation knows its memory", "[device]") {
  std::unique_ptr<Device> device = createEmulationDevice(Target());
  const uint64_t address = *device->allocate(400, "state");
  CHECK(device->checkAddress(address).isOk());
  CHECK(device->checkAddress(address + 399).isOk());
  float elsewhere = 0;
  for (uint64_t other :
       {address + 400, address - 1, reinterpret_cast<uint64_t>(&elsewhere)}) {
    const Status status = device->checkAddress(other);
    CHECK(status.code == StatusCode::InvalidArgument);
    CHECK_THAT(status.message,
               Catch::Contains("is not allowed; it must be in an allocation of "
                               "the emulation"));
  }
  CHECK(device->free(address).isOk());
  CHECK_FALSE(device->checkAddress(address).isOk());
}

TEST_CASE("more memory than there can be", "[device][error]") {
  std::unique_ptr<Device> device = createEmulationDevice(Target());
  for (size_t bytes : {SIZE_MAX, SIZE_MAX - 300, SIZE_MAX - 600, SIZE_MAX / 2})
    CHECK(device->allocate(bytes, "state").status().message ==
          "emulation: no memory for 'state', " + std::to_string(bytes) +
              " bytes");
}
