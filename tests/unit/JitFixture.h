//===- JitFixture.h - A Jit over the fake driver ----------------*- C++ -*-===//
//
// No LLVM behind it: the compiler is made up.
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_TESTS_UNIT_JITFIXTURE_H
#define REPLAYJIT_TESTS_UNIT_JITFIXTURE_H

#include "FakeCuda.h"
#include "kernels/Decode/DecodeArgs.h"
#include "runtime/Jit.h"
#include "runtime/cuda/CudaDevice.h"
#include "tests/unit/CacheTestSupport.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <dlfcn.h>
#include <thread>

namespace replayjit::internal::test {

template <typename DeviceOrPointer>
std::unique_ptr<Jit> makeJit(DeviceOrPointer &&device, JitOptions options) {
  auto jit =
      Jit::create(std::forward<DeviceOrPointer>(device), std::move(options));
  REQUIRE(jit.status().message == "");
  return std::move(*jit);
}

/// The fake driver in its initial state, a device over it, and a compiler that
/// makes up a kernel for it.
struct JitFixture {
  JitFixture() {
    auto opened = cuda::DriverApi::open(REPLAYJIT_FAKE_CUDA);
    REQUIRE(opened.status().message == "");
    api = *opened;
    void *library = dlopen(REPLAYJIT_FAKE_CUDA, RTLD_NOW);
    auto access = reinterpret_cast<FakeCudaAccess>(dlsym(library, "fakeCuda"));
    REQUIRE(access);
    fake = access();
    *fake = cuda::FakeCuda();
    fake->params = {{0, sizeof(DecodeArgs)}};
    auto created = cuda::createCudaDevice(api, 0);
    REQUIRE(created.status().message == "");
    device = std::move(*created);
  }

  JitOptions options() {
    JitOptions options;
    options.cache = rooted({folder.path}, heard);
    options.compile =
        [this](const CompileRequest &request) -> Result<CompiledKernel> {
      ++compiles;
      std::this_thread::sleep_for(delay);
      if (fails)
        return Status::error(StatusCode::CompileFailed, "as told");
      CompiledKernel kernel =
          kernelOf(CacheKey::of(request.spec, request.tuning, request.target));
      kernel.signature.bytes = sizeof(DecodeArgs);
      const std::string image = "cubin of " + kernel.name;
      kernel.cubin.assign(image.c_str(), image.c_str() + image.size() + 1);
      return kernel;
    };
    return options;
  }
  int count(const std::string &call) const {
    return std::count(fake->calls.begin(), fake->calls.end(), call);
  }
  static DecodeSpec specOf(int n) {
    DecodeSpec spec;
    spec.ringDepth = 2 + n;
    return spec;
  }
  /// Legal arguments that point nowhere.
  static DecodeArgs argsOf(const DecodeSpec &spec) {
    DecodeArgs args;
    args.batch = 1;
    args.slots = 1;
    for (uint64_t DecodeArgs::*pointer :
         {&DecodeArgs::stateIndices, &DecodeArgs::writePos, &DecodeArgs::state,
          &DecodeArgs::q, &DecodeArgs::a, &DecodeArgs::b, &DecodeArgs::aLog,
          &DecodeArgs::dtBias, &DecodeArgs::out, &DecodeArgs::dRing,
          &DecodeArgs::kRing, &DecodeArgs::gRing, &DecodeArgs::forceFlush})
      args.*pointer = 0x10000;
    const int64_t HV = spec.numValueHeads, L = spec.ringDepth;
    args.statePitch = HV * spec.headDimV * spec.headDimK;
    args.dPitch = HV * L * spec.headDimV;
    args.kPitch = spec.numKeyHeads * L * spec.headDimK;
    args.gPitch = HV * L;
    return args;
  }

  TestFolder folder;
  Sentences heard = std::make_shared<std::vector<std::string>>();
  cuda::DriverApi api;
  cuda::FakeCuda *fake = nullptr;
  std::shared_ptr<Device> device;
  std::atomic<int> compiles = 0;
  std::chrono::milliseconds delay{0};
  bool fails = false;
};

} // namespace replayjit::internal::test

#endif
