//===- JitFaultsTest.cpp - Drivers that cannot ----------------------------===//
//
// Whatever the driver refuses: one clear sentence, no kernel, no hang, and what
// the cache holds stays there.
//
//===----------------------------------------------------------------------===//

#include "tests/unit/JitFixture.h"

using namespace replayjit::internal;
using namespace replayjit::internal::cuda;
using namespace replayjit::internal::test;
using namespace std::chrono_literals;
using Catch::Matchers::Contains;

namespace {

struct Fixture : JitFixture {
  /// With a compiler that leaves it to the driver to assemble.
  JitOptions toPtx() {
    JitOptions options = JitFixture::options();
    options.compile = [make = options.compile](const CompileRequest &request) {
      Result<CompiledKernel> kernel = make(request);
      kernel->cubin.clear();
      kernel->assembler.clear();
      kernel->ptx = ".version 8.8\n.target sm_90a\n";
      return kernel;
    };
    return options;
  }
  JitOptions withoutCompiler() {
    JitOptions options = JitFixture::options();
    options.compile = nullptr;
    return options;
  }
};

} // namespace

TEST_CASE("a missing driver is NotFound and says what to do", "[jit]") {
  auto api = DriverApi::open("libreplayjit-no-such-driver.so.1");
  CHECK(api.status().code == StatusCode::NotFound);
  CHECK_THAT(api.status().message,
             Contains("cannot open 'libreplayjit-no-such-driver.so.1'") &&
                 Contains("install the NVIDIA driver, or name the emulation "
                          "device"));
}

TEST_CASE("a driver that lacks a function names it and the driver needed",
          "[jit]") {
  auto api = DriverApi::open(REPLAYJIT_OLD_CUDA);
  CHECK(api.status().code == StatusCode::NotFound);
  CHECK_THAT(api.status().message,
             Contains(REPLAYJIT_OLD_CUDA) && Contains("'cuLaunchKernelEx'") &&
                 Contains("the driver of CUDA 12.0 or newer"));
}

TEST_CASE_METHOD(Fixture, "the driver assembles for a compiler that does not",
                 "[jit]") {
  auto first = makeJit(device, toPtx())->prepare(specOf(0), 0);
  REQUIRE(first.status().message == "");
  CHECK(first->info().assembler == "cuLink driver 13.0");
  CHECK(fake->linkedPtx == std::string(".version 8.8\n.target sm_90a\n\0", 29));
  CHECK(fake->loadedImage == "linked cubin");

  // Kept as any other cubin is.
  auto second = makeJit(device, withoutCompiler())->prepare(specOf(0), 0);
  REQUIRE(second.status().message == "");
  CHECK(second->info().origin == KernelOrigin::Cached);
  CHECK(second->info().assembler == "cuLink driver 13.0");
  CHECK(fake->loadedImage == "linked cubin");
  CHECK(count("cuLinkComplete") == 1);
}

TEST_CASE_METHOD(Fixture, "a driver that cannot assemble says why", "[jit]") {
  fake->driverVersion = 12020;
  std::string text;
  SECTION("too old for the PTX") {
    fake->failures["cuLinkAddData"] = 222;
    text = "CUDA_ERROR_UNSUPPORTED_PTX_VERSION (222): text of the fake; this "
           "driver, of CUDA 12.2, is too old for PTX 8.8: install a newer one, "
           "or assemble with ptxas or nvJitLink instead (REPLAYJIT_PTXAS, "
           "REPLAYJIT_NVJITLINK)";
  }
  SECTION("without its assembler") {
    fake->failures["cuLinkCreate"] = 221;
    text = "CUDA_ERROR_JIT_COMPILER_NOT_FOUND (221): text of the fake; the "
           "driver's libnvidia-ptxjitcompiler.so is not installed";
  }
  auto jit = makeJit(device, toPtx());
  auto kernel = jit->prepare(specOf(0), 0);
  CHECK(kernel.status().code == StatusCode::AssembleFailed);
  CHECK_THAT(kernel.status().message, Contains(text) &&
                                          Contains("by cuLink driver 12.2") &&
                                          Contains("Fake GPU (sm_90a)"));
  CHECK(count("cuModuleLoadDataEx") == 0);
  CHECK(count("cuLinkCreate") == 1); // No second way is tried.
  CHECK(
      makeJit(device, withoutCompiler())->prepare(specOf(0), 0).status().code ==
      StatusCode::NotFound); // Nothing half made is kept.
  fake->failures.clear();
  CHECK(jit->prepare(specOf(0), 0).status().message == "");
}

TEST_CASE_METHOD(Fixture, "a cubin that cannot be loaded stays in the cache",
                 "[jit]") {
  REQUIRE(makeJit(device, options())->prepare(specOf(0), 0));
  StatusCode code = StatusCode::DriverError;
  std::string text;
  SECTION("no memory") {
    fake->failures["cuModuleLoadDataEx"] = 2;
    text = "cuModuleLoadDataEx: CUDA_ERROR_OUT_OF_MEMORY (2)";
  }
  SECTION("no code for this GPU") {
    fake->failures["cuModuleLoadDataEx"] = 209;
    code = StatusCode::Unsupported;
    text = "CUDA_ERROR_NO_BINARY_FOR_GPU (209): text of the fake; its cubin is "
           "for sm_90a, and this GPU runs no such code";
  }
  auto jit = makeJit(device, options());
  const int alive = fake->liveObjects;
  auto kernel = jit->prepare(specOf(0), 0);
  CHECK(kernel.status().code == code);
  CHECK_THAT(kernel.status().message,
             Contains("Fake GPU (sm_90a): load kernel 'gdn_decode_h16") &&
                 Contains(text));
  CHECK(fake->liveObjects == alive);
  fake->failures.clear();
  auto again = jit->prepare(specOf(0), 0);
  REQUIRE(again.status().message == "");
  CHECK(again->info().origin == KernelOrigin::Cached);
  CHECK(compiles == 1);
  CHECK(heard->empty()); // No entry was found damaged.
}

TEST_CASE_METHOD(Fixture, "no thread waits for ever for a load that fails",
                 "[jit]") {
  delay = 20ms;
  fake->failures["cuModuleLoadDataEx"] = 2;
  auto jit = makeJit(device, options());
  std::atomic<int> told = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&] {
      told +=
          jit->prepare(specOf(0), 0)
              .status()
              .message.find("CUDA_ERROR_OUT_OF_MEMORY") != std::string::npos;
    });
  for (std::thread &thread : threads)
    thread.join();
  CHECK(told == 8);
}
