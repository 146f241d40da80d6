//===- DriverApiTest.cpp - The CUDA device over a fake driver -------------===//
//
// REPLAYJIT_FAKE_CUDA is the path of the library built from FakeCuda.cpp.
//
//===----------------------------------------------------------------------===//

#include "FakeCuda.h"
#include "runtime/cuda/CudaDevice.h"
#include "runtime/cuda/CudaError.h"
#include "runtime/cuda/LinkPtx.h"

#include <catch2/catch.hpp>
#include <dlfcn.h>

#include <algorithm>
#include <cstring>

using namespace replayjit::internal;
using namespace replayjit::internal::cuda;
using Catch::Matchers::Contains;

namespace {

/// The fake driver in its initial state, and a device over it.
struct Fixture {
  Fixture() {
    auto opened = DriverApi::open(REPLAYJIT_FAKE_CUDA);
    REQUIRE(opened.status().message == "");
    api = *opened;
    void *library = dlopen(REPLAYJIT_FAKE_CUDA, RTLD_NOW);
    auto access = reinterpret_cast<FakeCudaAccess>(dlsym(library, "fakeCuda"));
    REQUIRE(access);
    fake = access();
    *fake = FakeCuda();
    fake->params = {{0, 8}, {8, 4}};
  }

  std::unique_ptr<Device> device() {
    auto created = createCudaDevice(api, 0);
    REQUIRE(created.status().message == "");
    return std::move(*created);
  }
  int count(const std::string &call) const {
    return std::count(fake->calls.begin(), fake->calls.end(), call);
  }

  DriverApi api;
  FakeCuda *fake = nullptr;
};

/// The parameter buffer of `kernelOfTwo`: 4 bytes of padding at its end.
struct Params {
  uint64_t pointer = 0x1122334455667788;
  int32_t count = 7;
};

CompiledKernel kernelOfTwo() {
  CompiledKernel kernel;
  kernel.name = "step";
  kernel.target = *Target::parse("sm_90a");
  kernel.signature.params = {{"state", KernelParam::Kind::Pointer, 0},
                             {"count", KernelParam::Kind::I32, 8}};
  kernel.signature.bytes = sizeof(Params);
  kernel.launch = {1, 128, 64 * 1024};
  std::string image = "cubin image";
  kernel.cubin.assign(image.c_str(), image.c_str() + image.size() + 1);
  return kernel;
}

} // namespace

TEST_CASE("a missing driver is NotFound and names the library") {
  auto device = createCudaDevice(0);
  if (void *driver = dlopen("libcuda.so.1", RTLD_NOW)) {
    dlclose(driver);
    WARN("this machine has a CUDA driver: not tested without one");
    return;
  }
  CHECK(device.status().code == StatusCode::NotFound);
  CHECK_THAT(device.status().message, Contains("libcuda.so.1"));
}

TEST_CASE("a library that is no driver is NotFound and names the symbol") {
  auto api = DriverApi::open("libc.so.6");
  CHECK(api.status().code == StatusCode::NotFound);
  CHECK_THAT(api.status().message,
             Contains("libc.so.6") && Contains("cuGetErrorName"));
}

TEST_CASE_METHOD(Fixture, "a result keeps call, name, number and text") {
  CHECK(toStatus(api, CUDA_SUCCESS, "cuInit").isOk());
  Status status = toStatus(api, CUresult(218), "cuModuleLoadDataEx");
  CHECK(status.code == StatusCode::DriverError);
  CHECK(status.message == "cuModuleLoadDataEx: CUDA_ERROR_INVALID_PTX (218): "
                          "text of the fake");
  CHECK(toStatus(api, CUresult(12345), "cuInit").message ==
        "cuInit: unknown CUDA error (12345): no description");
}

TEST_CASE("a compute capability chooses a target that runs on it") {
  auto [major, minor, chip] = GENERATE(table<int, int, std::string>({
      {8, 0, "sm_80"},
      {8, 6, "sm_86"},
      {8, 7, "sm_86"},
      {8, 9, "sm_89"},
      {9, 0, "sm_90a"},
      {10, 0, "sm_100a"},
      {10, 1, "sm_100"},
      {10, 3, "sm_103a"},
      {12, 0, "sm_120"},
      {12, 1, "sm_120"},
  }));
  auto target = targetForCapability(major, minor);
  REQUIRE(target);
  CHECK(target->chip == chip);
}

TEST_CASE("a compute capability without a target is refused") {
  // A cubin does not run on another major version, so 11.0 gets no sm_100.
  auto [major, minor] =
      GENERATE(table<int, int>({{7, 5}, {11, 0}, {13, 0}, {6, 1}}));
  auto target = targetForCapability(major, minor);
  CHECK(target.status().code == StatusCode::Unsupported);
  CHECK_THAT(target.status().message, Contains("sm_90a"));
}

TEST_CASE_METHOD(Fixture, "a device reports its facts and gives all back") {
  {
    auto gpu = device();
    CHECK(gpu->description() == "Fake GPU");
    CHECK(gpu->multiprocessors() == 132);
    CHECK(gpu->target().chip == "sm_90a");
    CHECK_FALSE(gpu->isEmulation());
    CHECK(fake->contextDepth == 0);
  }
  CHECK(fake->liveObjects == 0);
  CHECK(count("cuDevicePrimaryCtxRelease") == 1);
}

TEST_CASE_METHOD(Fixture, "a device that cannot be made leaves nothing") {
  SECTION("no such ordinal") {
    auto created = createCudaDevice(api, 3);
    CHECK(created.status().code == StatusCode::InvalidArgument);
    CHECK_THAT(created.status().message,
               Contains("CUDA device 3") && Contains("shows 1"));
  }
  SECTION("a failing call") {
    fake->failures["cuStreamCreate"] = 2;
    auto created = createCudaDevice(api, 0);
    CHECK(created.status().code == StatusCode::DriverError);
    CHECK_THAT(created.status().message,
               Contains("cuStreamCreate: CUDA_ERROR_OUT_OF_MEMORY (2)"));
  }
  SECTION("a GPU that is too old") {
    fake->major = 7;
    auto created = createCudaDevice(api, 0);
    CHECK(created.status().code == StatusCode::Unsupported);
    CHECK_THAT(created.status().message, Contains("7.0"));
  }
  CHECK(fake->liveObjects == 0);
  CHECK(fake->contextDepth == 0);
}

TEST_CASE_METHOD(Fixture, "memory round trip") {
  auto gpu = device();
  auto address = gpu->allocate(5, "ring");
  REQUIRE(address);
  char back[5] = {};
  CHECK(gpu->copyToDevice(*address, "ring", 5).isOk());
  CHECK(gpu->copyFromDevice(back, *address, 5).isOk());
  CHECK(std::string(back) == "ring");
  CHECK(gpu->free(*address).isOk());

  auto empty = gpu->allocate(0, "nothing");
  REQUIRE(empty);
  CHECK(gpu->copyToDevice(*empty, nullptr, 0).isOk());
  CHECK(gpu->free(*empty).isOk());
  CHECK(gpu->free(0).isOk());

  fake->failures["cuMemAlloc"] = 2;
  auto failed = gpu->allocate(1 << 30, "state");
  CHECK(failed.status().message ==
        "allocate 1073741824 bytes for 'state': cuMemAlloc: "
        "CUDA_ERROR_OUT_OF_MEMORY (2): text of the fake");
  CHECK(fake->contextDepth == 0);
}

TEST_CASE_METHOD(Fixture, "mapped memory has one address for each side") {
  auto gpu = device();
  const int alive = fake->liveObjects;
  auto mapped = gpu->allocateMapped(64, "word");
  REQUIRE(mapped.status().message == "");
  CHECK(fake->hostAllocFlags ==
        (CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP));
  CHECK(mapped->device == reinterpret_cast<uint64_t>(mapped->host));
  CHECK(gpu->freeMapped(*mapped).isOk());
  CHECK(gpu->freeMapped({}).isOk());
  CHECK(count("cuMemFreeHost") == 1);

  fake->failures["cuMemHostGetDevicePointer"] = 1;
  CHECK_THAT(gpu->allocateMapped(64, "word").status().message,
             Contains("allocate 64 bytes of mapped host memory for 'word': "
                      "cuMemHostGetDevicePointer"));
  fake->failures["cuMemHostAlloc"] = 2;
  CHECK_THAT(gpu->allocateMapped(64, "word").status().message,
             Contains("cuMemHostAlloc: CUDA_ERROR_OUT_OF_MEMORY (2)"));
  CHECK(fake->liveObjects == alive);
  CHECK(fake->contextDepth == 0);
}

TEST_CASE_METHOD(Fixture, "copies and fills go to the caller's stream") {
  auto gpu = device();
  CHECK(gpu->stream() != nullptr);
  auto address = gpu->allocate(16, "buffer");
  REQUIRE(address);
  const int synchronized = count("cuStreamSynchronize");
  int place = 0;
  auto stream = reinterpret_cast<CUstream>(&place);
  auto isOnIt = [&](const Status &status) {
    const bool is = status.isOk() && fake->lastStream == stream;
    fake->lastStream = nullptr;
    return is;
  };
  char back[17] = {};
  CHECK(isOnIt(gpu->copyToDeviceOn(stream, *address, "0123456789abcdef", 16)));
  CHECK(isOnIt(gpu->copyOn(stream, *address, *address + 8, 4)));
  CHECK(isOnIt(gpu->fill32On(stream, *address + 4, 0x41414141, 2)));
  CHECK(isOnIt(gpu->copyFromDeviceOn(stream, back, *address, 16)));
  CHECK(std::string(back) == "89abAAAAAAAAcdef");
  CHECK(count("cuStreamSynchronize") == synchronized); // None waits.
  CHECK(gpu->synchronizeOn(stream).isOk());
  CHECK(count("cuStreamSynchronize") == synchronized + 1);

  // A wait would spoil a capture, so the driver is not asked to.
  fake->capturing = {stream};
  for (CUstream captured : {stream, CUstream()})
    CHECK_THAT(gpu->synchronizeOn(captured).message,
               Contains("synchronize: not possible while launches are "
                        "captured"));
  CHECK(gpu->synchronize().isOk());
  CHECK(count("cuStreamSynchronize") == synchronized + 2);

  const size_t calls = fake->calls.size();
  CHECK(gpu->copyToDeviceOn(stream, *address, back, 0).isOk());
  CHECK(gpu->copyFromDeviceOn(stream, back, *address, 0).isOk());
  CHECK(gpu->copyOn(stream, *address, *address, 0).isOk());
  CHECK(gpu->fill32On(stream, *address, 0, 0).isOk());
  CHECK(fake->calls.size() == calls);
  fake->capturing.clear();
  CHECK(gpu->free(*address).isOk());
}

TEST_CASE_METHOD(Fixture, "a context that is current is not pushed") {
  auto gpu = device();
  auto kernel = gpu->load(kernelOfTwo());
  REQUIRE(kernel);
  Params params;
  auto pushesOfALaunch = [&] {
    const int before = fake->contextPushes;
    CHECK(gpu->launch(**kernel, 1, &params, sizeof(params)).isOk());
    return fake->contextPushes - before;
  };
  CHECK(pushesOfALaunch() == 1);
  CUcontext popped = nullptr;
  REQUIRE(api.cuCtxPushCurrent(fake->primary(0)) == CUDA_SUCCESS);
  CHECK(pushesOfALaunch() == 0);
  CHECK(fake->contextDepth == 1);
  REQUIRE(api.cuCtxPopCurrent(&popped) == CUDA_SUCCESS);
  CHECK(popped == fake->primary(0));
}

TEST_CASE_METHOD(Fixture, "loading and launching a cubin") {
  auto gpu = device();
  auto kernel = gpu->load(kernelOfTwo());
  REQUIRE(kernel.status().message == "");
  CHECK(fake->loadedImage == "cubin image");
  CHECK(count("cuLinkCreate") == 0);
  ResourceUsage usage = (*kernel)->resources();
  CHECK(usage.registers == 40);
  CHECK(usage.stackBytes == 16);
  CHECK(usage.staticSharedBytes == 1024);
  CHECK(usage.spillStoreBytes == -1);
  CHECK(fake->functionAttributes.at(
            CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) == 64 * 1024);

  Params params;
  REQUIRE(gpu->launch(**kernel, 6, &params, sizeof(params)).message == "");
  CHECK(fake->lastLaunch.gridDimX == 6);
  CHECK(fake->lastLaunch.gridDimY == 1);
  CHECK(fake->lastLaunch.blockDimX == 128);
  CHECK(fake->lastLaunch.blockDimZ == 1);
  CHECK(fake->lastLaunch.sharedMemBytes == 64 * 1024);
  CHECK(fake->lastLaunch.hStream != nullptr);
  CHECK(fake->lastParams == std::string(reinterpret_cast<char *>(&params), 12));

  CHECK(gpu->launch(**kernel, 0, &params, sizeof(params)).isOk());
  CHECK(count("cuLaunchKernelEx") == 1);
  CHECK_THAT(gpu->launch(**kernel, 1, &params, 12).message,
             Contains("launch 'step'") && Contains("12 bytes"));
  CHECK_THAT(gpu->launch(**kernel, 0x80000000u, &params, 16).message,
             Contains("2147483648 blocks"));
  CHECK_THAT(
      gpu->launch(**kernel, {1, 2, 65536}, &params, sizeof(params)).message,
      Contains("2 by 65536 blocks in y and z; a grid has at most 65535"));
  CHECK(gpu->launch(**kernel, {3, 0, 2}, &params, sizeof(params)).isOk());
  CHECK(count("cuLaunchKernelEx") == 1);
  REQUIRE(gpu->launch(**kernel, {3, 5, 2}, &params, sizeof(params)).isOk());
  CHECK(fake->lastLaunch.gridDimX == 3);
  CHECK(fake->lastLaunch.gridDimY == 5);
  CHECK(fake->lastLaunch.gridDimZ == 2);

  fake->failures["cuLaunchKernelEx"] = 1;
  Status failed = gpu->launch(**kernel, 2, &params, sizeof(params));
  CHECK(failed.code == StatusCode::DriverError);
  CHECK_THAT(failed.message, Contains("launch 'step' with 2 blocks of 128") &&
                                 Contains("CUDA_ERROR_INVALID_VALUE (1)"));
  fake->failures["cuStreamSynchronize"] = 700;
  CHECK_THAT(gpu->synchronize().message,
             Contains("CUDA_ERROR_ILLEGAL_ADDRESS (700)"));

  kernel->reset();
  CHECK(count("cuModuleUnload") == 1);
  CHECK(fake->contextDepth == 0);
}

TEST_CASE_METHOD(Fixture, "a small kernel needs no shared memory attribute") {
  auto gpu = device();
  CompiledKernel small = kernelOfTwo();
  small.launch.sharedBytes = 47 * 1024;
  REQUIRE(gpu->load(small));
  CHECK(fake->functionAttributes.empty());
}

TEST_CASE_METHOD(Fixture, "a signature may be one by-value struct") {
  fake->params = {{0, 16}};
  auto gpu = device();
  auto kernel = gpu->load(kernelOfTwo());
  REQUIRE(kernel.status().message == "");
  Params params;
  CHECK(gpu->launch(**kernel, 1, &params, sizeof(params)).isOk());
  CHECK(fake->lastParams.size() == 16);
}

TEST_CASE_METHOD(Fixture, "a driver without cuFuncGetParamInfo launches too") {
  api.cuFuncGetParamInfo = nullptr;
  auto gpu = device();
  auto kernel = gpu->load(kernelOfTwo());
  REQUIRE(kernel);
  Params params;
  CHECK(gpu->launch(**kernel, 1, &params, sizeof(params)).isOk());
  CHECK(fake->lastParams.size() == 12);
}

TEST_CASE_METHOD(Fixture, "a kernel that cannot be loaded says why") {
  auto gpu = device();
  CompiledKernel kernel = kernelOfTwo();
  StatusCode code = StatusCode::InvalidArgument;
  std::string text;
  SECTION("the driver rejects the image") {
    fake->failures["cuModuleLoadDataEx"] = 218;
    code = StatusCode::DriverError;
    text = "Fake GPU (sm_90a): load kernel 'step' for sm_90a: "
           "cuModuleLoadDataEx: CUDA_ERROR_INVALID_PTX (218): text of the fake";
  }
  SECTION("no code at all") {
    kernel.cubin.clear();
    text = "neither a cubin nor PTX";
  }
  SECTION("too many threads") {
    fake->maxThreads = 64;
    text = "128 threads";
  }
  SECTION("too much shared memory") {
    kernel.launch.sharedBytes = 227 * 1024;
    code = StatusCode::Unsupported;
    text = "the device has 232448";
  }
  SECTION("another parameter count") {
    fake->params.push_back({16, 8});
    text = "its signature has 2 parameters, its code has 3";
  }
  SECTION("a parameter elsewhere") {
    fake->params[1] = {12, 4};
    text = "parameter 1 ('count') is 4 bytes at byte 8 in its signature and 4 "
           "bytes at byte 12 in its code";
  }
  auto loaded = gpu->load(kernel);
  CHECK(loaded.status().code == code);
  CHECK_THAT(loaded.status().message, Contains(text));
  gpu.reset();
  CHECK(fake->liveObjects == 0);
}

TEST_CASE_METHOD(Fixture, "PTX goes through the driver's linker") {
  fake->linkErrorLog = "ptxas error: line 3";
  fake->linkInfoLog = "\ninfo: 40 registers";
  CompiledKernel kernel = kernelOfTwo();
  kernel.cubin.clear();
  kernel.ptx = ".version 8.0";
  auto gpu = device();
  SECTION("accepted") {
    auto loaded = gpu->load(kernel);
    REQUIRE(loaded.status().message == "");
    CHECK(fake->linkedPtx == std::string(".version 8.0\0", 13));
    CHECK(fake->loadedImage == "linked cubin");
    CUcontext popped = nullptr;
    REQUIRE(api.cuCtxPushCurrent(fake->primary(0)) == CUDA_SUCCESS);
    auto linked = linkPtx(api, kernel.ptx, kernel.name);
    REQUIRE(api.cuCtxPopCurrent(&popped) == CUDA_SUCCESS);
    REQUIRE(linked);
    CHECK(linked->assembler == "cuLink driver 13.0");
    CHECK(linked->log == "ptxas error: line 3\ninfo: 40 registers");
  }
  SECTION("rejected") {
    fake->failures["cuLinkAddData"] = 218;
    auto loaded = gpu->load(kernel);
    CHECK(loaded.status().code == StatusCode::AssembleFailed);
    CHECK_THAT(loaded.status().message,
               Contains("cuLinkAddData: CUDA_ERROR_INVALID_PTX (218)"));
    CHECK(loaded.status().stage == "assemble");
    CHECK_THAT(loaded.status().log, Contains("ptxas error: line 3"));
  }
  gpu.reset();
  CHECK(count("cuLinkCreate") == count("cuLinkDestroy"));
}

TEST_CASE_METHOD(Fixture, "the times of graph replays") {
  auto gpu = device();
  auto kernel = gpu->load(kernelOfTwo());
  REQUIRE(kernel);
  Params params;
  auto body = [&] {
    for (int i = 0; i < 300; ++i)
      if (Status s = gpu->launch(**kernel, 1, &params, sizeof(params)); !s)
        return s;
    return Status::ok();
  };
  int alive = fake->liveObjects;

  SECTION("odd and even") {
    fake->elapsed = {5, 1, 3};
    auto odd = gpu->time(body, 3);
    REQUIRE(odd);
    CHECK(*odd == Times{1, 3, 5});
    CHECK(medianOf(*odd) == 3);
    CHECK(count("cuLaunchKernelEx") == 300);
    CHECK(count("cuGraphLaunch") == 3 + 3);
    fake->elapsed = {4, 1, 2, 9};
    auto even = gpu->time(body, 4);
    REQUIRE(even);
    CHECK(medianOf(*even) == 3);
  }
  SECTION("what a capture refuses") {
    auto timed = gpu->time(
        [&] {
          CHECK_FALSE(gpu->allocate(8, "late").status().isOk());
          CHECK_FALSE(gpu->load(kernelOfTwo()).status().isOk());
          return gpu->synchronize();
        },
        1);
    CHECK_THAT(timed.status().message,
               Contains("synchronize: not possible while launches are "
                        "captured"));
    CHECK(gpu->synchronize().isOk());
  }
  SECTION("a launch that fails is the cause given, and nothing is replayed") {
    fake->failures["cuLaunchKernelEx"] = 1;
    auto timed = gpu->time(body, 5);
    CHECK_THAT(timed.status().message, Contains("launch 'step'"));
    CHECK(count("cuGraphLaunch") == 0);
  }
  SECTION("no repeats") {
    CHECK(gpu->time(body, 0).status().code == StatusCode::InvalidArgument);
  }
  SECTION("a fault in a replay") {
    fake->failures["cuStreamSynchronize"] = 700;
    CHECK_THAT(gpu->time(body, 2).status().message,
               Contains("CUDA_ERROR_ILLEGAL_ADDRESS"));
  }
  CHECK(fake->liveObjects == alive);
  CHECK(fake->contextDepth == 0);
}
