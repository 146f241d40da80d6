//===- JitContextsTest.cpp - Contexts, captures and launch order ----------===//

#include "tests/unit/JitFixture.h"

#include <optional>

using namespace replayjit::internal;
using namespace replayjit::internal::cuda;
using namespace replayjit::internal::test;
using Catch::Matchers::Contains;

namespace {

struct Fixture : JitFixture {
  /// Makes `context` current in this thread until the end of the scope.
  struct Current {
    Current(const DriverApi &api, CUcontext context) : api(api) {
      REQUIRE(api.cuCtxPushCurrent(context) == CUDA_SUCCESS);
    }
    ~Current() {
      CUcontext popped = nullptr;
      (void)api.cuCtxPopCurrent(&popped);
    }
    const DriverApi &api;
  };
  CUcontext current() const {
    CUcontext context = nullptr;
    (void)api.cuCtxGetCurrent(&context);
    return context;
  }
  /// A device over a context of its own, which is not current afterwards.
  std::shared_ptr<Device> deviceOver(CUcontext context) {
    Current scope(api, context);
    auto made = createCudaDeviceForCurrentContext(api);
    REQUIRE(made.status().message == "");
    return std::move(*made);
  }
  static DecodeSpec programmatic(DecodeSpec spec) {
    spec.programmaticLaunch = ProgrammaticLaunch::Late;
    return spec;
  }
};

} // namespace

TEST_CASE_METHOD(Fixture, "a device over the caller's context makes none",
                 "[jit]") {
  auto none = createCudaDeviceForCurrentContext(api);
  CHECK(none.status().code == StatusCode::InvalidArgument);
  CHECK_THAT(none.status().message,
             Contains("no CUDA context is current in this thread"));

  fake->deviceCount = 2;
  const CUcontext context = fake->addContext(1);
  const size_t contexts = fake->contexts.size();
  const int retained = count("cuDevicePrimaryCtxRetain");
  auto over = deviceOver(context);
  auto kernel = makeJit(over, options())->prepare(specOf(0), 0);
  REQUIRE(kernel.status().message == "");
  REQUIRE(fake->modules.size() == 1);
  CHECK(fake->modules.begin()->second == context);
  CHECK(kernel->launch(argsOf(specOf(0))).message == "");
  CHECK(current() == nullptr);
  over.reset();
  kernel = Status();
  CHECK(fake->modules.empty());
  CHECK(fake->contexts.size() == contexts);
  CHECK(fake->contexts[context].isAlive);
  CHECK(count("cuDevicePrimaryCtxRetain") == retained);
  CHECK(count("cuDevicePrimaryCtxRelease") == 0);
}

TEST_CASE_METHOD(Fixture, "threads with other contexts launch on two devices",
                 "[jit]") {
  fake->deviceCount = 2;
  auto made = createCudaDevice(api, 1);
  REQUIRE(made.status().message == "");
  std::shared_ptr<Device> second = std::move(*made);
  const CUcontext contexts[] = {nullptr, fake->primary(0), fake->primary(1),
                                fake->addContext(1)};
  auto jitOfFirst = makeJit(device, options());
  auto jitOfSecond = makeJit(second, options());
  std::atomic<int> failures = 0;
  std::vector<std::thread> threads;
  for (CUcontext context : contexts)
    threads.emplace_back([&, context] {
      if (context)
        failures += api.cuCtxPushCurrent(context) != CUDA_SUCCESS;
      for (int i = 0; i < 20; ++i) {
        auto one = jitOfFirst->prepare(specOf(i % 2), 0);
        auto other = jitOfSecond->prepare(specOf(i % 2), 0);
        if (!one || !other) {
          ++failures;
          continue;
        }
        failures += !one->launch(argsOf(specOf(i % 2)));
        failures += !other->launch(argsOf(specOf(i % 2)));
        failures += !other->launchOn(nullptr, argsOf(specOf(i % 2)));
        failures += current() != context;
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  CHECK(failures == 0);
  CHECK(compiles == 2); // One found the other's on disk.
  int onFirst = 0;
  for (const auto &[module, context] : fake->modules)
    onFirst += context == fake->primary(0);
  CHECK(fake->modules.size() == 4);
  CHECK(onFirst == 2);
  CHECK(count("cuLaunchKernelEx") == 4 * 20 * 3);
}

TEST_CASE_METHOD(Fixture, "a kernel of one context is refused by another",
                 "[jit]") {
  auto other = deviceOver(fake->addContext(0));
  CompiledKernel kernel = kernelOf(keyOf(0));
  kernel.signature.params.clear();
  fake->params.clear();
  auto loaded = other->load(kernel);
  REQUIRE(loaded.status().message == "");
  CHECK_THAT(
      device->launch(**loaded, 1, nullptr, kernel.signature.bytes).message,
      Contains("it was loaded by another device"));
}

TEST_CASE_METHOD(Fixture, "a shared device lives as long as a handle",
                 "[jit]") {
  auto jit = makeJit(device, options());
  auto kernel = jit->prepare(specOf(0), 0);
  REQUIRE(kernel.status().message == "");
  jit.reset();
  device.reset();
  CHECK(kernel->launch(argsOf(specOf(0))).message == "");
  kernel = Status();
  CHECK(count("cuModuleUnload") == 1);
  CHECK(fake->liveObjects == 0);
}

TEST_CASE_METHOD(Fixture, "a handle may be dropped after its context",
                 "[jit]") {
  const CUcontext context = fake->addContext(0);
  auto over = deviceOver(context);
  std::optional<KernelHandle> handle =
      *makeJit(over, options())->prepare(specOf(0), 0);
  over.reset();
  fake->contexts[context].isAlive = false;
  CHECK_THAT(handle->launch(argsOf(specOf(0))).message,
             Contains("the CUDA context has been destroyed"));
  SECTION("which is gone") {}
  SECTION("whose address another one has") {
    fake->contexts[context] = {0, ++fake->lastContextId, 0, true};
  }
  handle.reset();
  CHECK(count("cuModuleUnload") == 0); // The context took it along.
  CHECK(count("cuStreamDestroy") == 0);
}

TEST_CASE_METHOD(Fixture, "a loaded kernel may be freed after its device",
                 "[jit]") {
  CompiledKernel kernel = kernelOf(keyOf(0));
  kernel.signature.params.clear();
  fake->params.clear();
  auto loaded = device->load(kernel);
  REQUIRE(loaded.status().message == "");
  device.reset();
  loaded->reset();
  CHECK(count("cuModuleUnload") == 1);
  CHECK(fake->liveObjects == 0);
}

TEST_CASE_METHOD(Fixture, "under capture only what is in memory is had",
                 "[jit]") {
  auto jit = makeJit(device, options());
  REQUIRE(jit->prepare(specOf(0), 0));
  int place = 0;
  auto stream = reinterpret_cast<CUstream>(&place);
  fake->capturing = {stream};
  CUstream told = nullptr; // What the legacy stream waits for is seen anyway.
  SECTION("a blocking stream, not told of") {}
  SECTION("a blocking stream") { told = stream; }
  SECTION("another stream") {
    fake->nonBlocking = {stream};
    told = stream;
  }
  const size_t calls = fake->calls.size();
  auto late = jit->prepare(specOf(1), 0, told);
  CHECK(late.status().code == StatusCode::InvalidArgument);
  CHECK_THAT(late.status().message,
             Contains("prepare 'gdn_decode_h16_hv32_k128_v128_l3_") &&
                 Contains("not possible while launches are captured; do it "
                          "before"));
  auto there = jit->prepare(specOf(0), 0, told);
  REQUIRE(there);
  CHECK(there->launchOn(stream, argsOf(specOf(0))).message == "");
  // Asked, and launched: nothing else reached the driver or the compiler.
  CHECK(fake->calls.size() <= calls + 2);
  CHECK(compiles == 1);
  CHECK_FALSE(fake->isCaptureSpoiled);

  fake->capturing.clear();
  CHECK(jit->prepare(specOf(1), 0, told));
}

TEST_CASE_METHOD(Fixture, "a capture that nobody told of is not spoiled",
                 "[jit]") {
  int place = 0;
  auto stream = reinterpret_cast<CUstream>(&place);
  fake->capturing = fake->nonBlocking = {stream};
  {
    auto jit = makeJit(device, options());
    CHECK(jit->prepare(specOf(0), 0).status().message == "");
    auto address = device->allocate(8, "late");
    REQUIRE(address);
    CHECK(device->free(*address).isOk());
    auto mapped = device->allocateMapped(8, "late");
    REQUIRE(mapped);
    CHECK(device->freeMapped(*mapped).isOk());
  }
  CHECK(count("cuModuleUnload") == 1);
  CHECK_FALSE(fake->isCaptureSpoiled);
  // The fake would notice: a thread in the driver's usual mode spoils it.
  Current scope(api, fake->primary(0));
  CUdeviceptr address = 0;
  CHECK(api.cuMemAlloc(&address, 8) != CUDA_SUCCESS);
  CHECK(fake->isCaptureSpoiled);
}

TEST_CASE_METHOD(Fixture, "a blocking capture forbids to allocate", "[jit]") {
  auto before = device->allocate(8, "before");
  REQUIRE(before);
  int place = 0;
  fake->capturing = {reinterpret_cast<CUstream>(&place)};
  CHECK_THAT(device->allocate(8, "late").status().message,
             Contains("allocate 8 bytes for 'late': not possible while"));
  CHECK_FALSE(device->allocateMapped(8, "late").status().isOk());
  CHECK_FALSE(device->free(*before).isOk());
  CHECK_FALSE(device->load(kernelOf(keyOf(0))).status().isOk());
  CHECK_FALSE(fake->isCaptureSpoiled);
  fake->capturing.clear();
  CHECK(device->free(*before).isOk());
}

TEST_CASE_METHOD(Fixture, "only a kernel that waits is launched early",
                 "[jit]") {
  auto jit = makeJit(device, options());
  auto serial = jit->prepare(specOf(0), 0);
  auto early = jit->prepare(programmatic(specOf(0)), 0);
  REQUIRE(serial);
  REQUIRE(early.status().message == "");
  const DecodeArgs args = argsOf(specOf(0));
  auto launch = [&](const KernelHandle &kernel, LaunchOrder order) {
    return kernel.launchOn(nullptr, args, ArgsCheck::Full, order);
  };
  CHECK(launch(*early, LaunchOrder::Programmatic).message == "");
  CHECK(fake->isProgrammatic);
  CHECK(launch(*early, LaunchOrder::Serial).message == "");
  CHECK_FALSE(fake->isProgrammatic);
  const int launches = count("cuLaunchKernelEx");
  for (ArgsCheck check : {ArgsCheck::Full, ArgsCheck::None}) {
    Status refused =
        serial->launchOn(nullptr, args, check, LaunchOrder::Programmatic);
    CHECK(refused.code == StatusCode::InvalidArgument);
    CHECK_THAT(refused.message,
               Contains("order: programmatic is not allowed") &&
                   Contains("prepare it with a programmaticLaunch"));
  }
  CHECK(count("cuLaunchKernelEx") == launches);

  fake->major = 8; // A device of another kind.
  auto old = deviceOver(fake->addContext(0));
  CHECK_THAT(makeJit(old, options())
                 ->prepare(programmatic(specOf(0)), 0)
                 .status()
                 .message,
             Contains("programmaticLaunch: late is not allowed for sm_80"));
}
