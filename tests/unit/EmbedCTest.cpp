//===- EmbedCTest.cpp - Kernels as C source, with a fake driver -----------===//
//
// The C is compiled by the system's compiler and runs against FakeCuda.
//
//===----------------------------------------------------------------------===//

#include "CacheTestSupport.h"
#include "FakeCuda.h"

#include "runtime/aot/EmbedC.h"

#include <cstring>
#include <dlfcn.h>

using namespace replayjit::internal;
using namespace replayjit::internal::cuda;
using test::TestFolder;

namespace {

CompiledKernel sampleKernel() {
  using Kind = KernelParam::Kind;
  CompiledKernel kernel;
  kernel.name = "sample_kernel";
  kernel.launch = {6, 128, 60000};
  kernel.signature.params = {{"x", Kind::Pointer, 0},
                             {"by-value", Kind::Bytes, 8, 12},
                             {"scale", Kind::F32, 20},
                             {"stride", Kind::I64, 24},
                             {"count", Kind::I32, 32},
                             {"globalScratch", Kind::Pointer, 40},
                             {"profileScratch", Kind::Pointer, 48}};
  kernel.signature.bytes = 56;
  kernel.assembler = "ptxas 13.0.88";
  for (char c : std::string("\x7f"
                            "ELF fake code \xff"))
    kernel.cubin.push_back(c);
  kernel.cubin.push_back(0);
  return kernel;
}

/// The generated C, compiled into a library that opens `driver`.
class CLibrary {
public:
  CLibrary(const std::string &driver, uint32_t sharedBytes = 60000) {
    CompiledKernel kernel = sampleKernel();
    kernel.launch.sharedBytes = sharedBytes;
    auto source = embedAsC(kernel, "sample");
    REQUIRE(source);
    test::spit(folder / "sample.h", source->header);
    test::spit(folder / "sample.c", source->source);
    const std::string command =
        "cd " + folder.path +
        " && cc -std=c11 -O2 -Wall -Wextra -pedantic -Werror -shared -fPIC "
        "-DREPLAYJIT_LIBCUDA='\"" +
        driver + "\"' sample.c -o sample.so -ldl -pthread";
    REQUIRE(std::system(command.c_str()) == 0);
    library = dlopen((folder / "sample.so").c_str(), RTLD_NOW);
    REQUIRE(library);
  }
  ~CLibrary() { dlclose(library); }

  template <typename Function> Function *find(const char *name) {
    auto symbol = reinterpret_cast<Function *>(dlsym(library, name));
    REQUIRE(symbol);
    return symbol;
  }
  int launch(uint32_t gridX = 6, uint32_t gridY = 3, uint32_t gridZ = 2) {
    using Launch = int(void *, uint32_t, uint32_t, uint32_t, uint64_t,
                       const void *, float, int64_t, int32_t);
    return find<Launch>("sample")(reinterpret_cast<void *>(0x55), gridX, gridY,
                                  gridZ, 0x1122334455667788, "twelve bytes",
                                  0.5f, -7, 42);
  }
  int load() { return find<int()>("sample_load")(); }
  int unload() { return find<int()>("sample_unload")(); }

private:
  TestFolder folder;
  void *library = nullptr;
};

class FakeDriver {
public:
  FakeDriver() {
    void *library = dlopen(REPLAYJIT_FAKE_CUDA, RTLD_NOW);
    REQUIRE(library);
    fake = reinterpret_cast<FakeCudaAccess>(dlsym(library, "fakeCuda"))();
    push =
        reinterpret_cast<decltype(push)>(dlsym(library, "cuCtxPushCurrent_v2"));
    pop = reinterpret_cast<decltype(pop)>(dlsym(library, "cuCtxPopCurrent_v2"));
    *fake = FakeCuda();
    fake->params = {{0, 8},  {8, 12}, {20, 4}, {24, 8},
                    {32, 4}, {40, 8}, {48, 8}};
    enter(0x10, 1);
  }
  ~FakeDriver() { leave(); }
  void enter(uintptr_t context, unsigned long long id) {
    leave();
    current = reinterpret_cast<CUcontext>(context);
    fake->contexts[current] = {0, id, 0, true};
    push(current);
  }
  /// Destroys the context, which stays current.
  void die() { fake->contexts[current].isAlive = false; }
  void leave() {
    if (std::exchange(current, nullptr)) {
      CUcontext popped;
      pop(&popped);
    }
  }
  ptrdiff_t count(const char *call) const {
    return std::count(fake->calls.begin(), fake->calls.end(), call);
  }
  FakeCuda *fake;

private:
  CUresult (*push)(CUcontext);
  CUresult (*pop)(CUcontext *);
  CUcontext current = nullptr;
};

} // namespace

TEST_CASE("embedded C launches what it was given", "[aot]") {
  FakeDriver driver;
  CLibrary library(REPLAYJIT_FAKE_CUDA);
  REQUIRE(library.launch() == 0);
  const auto &launch = driver.fake->lastLaunch;
  CHECK(launch.gridDimX == 6);
  CHECK(launch.gridDimY == 3);
  CHECK(launch.gridDimZ == 2);
  CHECK(launch.blockDimX == 128);
  CHECK(launch.sharedMemBytes == 60000);
  CHECK(launch.hStream == reinterpret_cast<void *>(0x55));
  CHECK(driver.fake->functionAttributes[8] == 60000);
  CHECK(driver.fake->loadedImage == "\x7f"
                                    "ELF fake code \xff");

  struct {
    uint64_t x = 0x1122334455667788;
    char bytes[12] = {'t', 'w', 'e', 'l', 'v', 'e',
                      ' ', 'b', 'y', 't', 'e', 's'};
    float scale = 0.5f;
    int64_t stride = -7;
    int32_t count = 42;
    int32_t padding = 0;
    uint64_t scratch[2] = {0, 0};
  } expected;
  REQUIRE(driver.fake->lastParams.size() == sizeof expected);
  CHECK(std::memcmp(driver.fake->lastParams.data(), &expected,
                    sizeof expected) == 0);
}

TEST_CASE("embedded C does nothing for an empty grid", "[aot]") {
  FakeDriver driver;
  CLibrary library(REPLAYJIT_FAKE_CUDA);
  CHECK(library.launch(0, 3, 2) == 0);
  CHECK(library.launch(6, 0, 2) == 0);
  CHECK(library.launch(6, 3, 0) == 0);
  CHECK(driver.fake->calls.empty());
  REQUIRE(library.launch() == 0);
  const ptrdiff_t launches = driver.count("cuLaunchKernel");
  REQUIRE(launches == 1);
  CHECK(library.launch(0) == 0);
  CHECK(driver.count("cuLaunchKernel") == launches);
}

TEST_CASE("embedded C asks for shared memory beyond 48 KiB", "[aot]") {
  struct {
    int fixed;
    uint32_t dynamic;
    bool asks;
  } cases[] = {{0, 49152, false},   {1, 49152, true},  {1024, 48128, false},
               {1024, 48129, true}, {49152, 0, false}, {0, 49153, true}};
  for (const auto &c : cases) {
    INFO(c.fixed << " static, " << c.dynamic << " dynamic");
    FakeDriver driver;
    driver.fake->staticSharedBytes = c.fixed;
    CLibrary library(REPLAYJIT_FAKE_CUDA, c.dynamic);
    REQUIRE(library.launch() == 0);
    CHECK(driver.count("cuFuncSetAttribute") == c.asks);
    if (c.asks)
      CHECK(driver.fake->functionAttributes[8] == int(c.dynamic));
  }
}

TEST_CASE("embedded C loads once per context, ids being what counts", "[aot]") {
  FakeDriver driver;
  CLibrary library(REPLAYJIT_FAKE_CUDA);
  REQUIRE(library.load() == 0);
  REQUIRE(library.launch() == 0);
  REQUIRE(library.launch() == 0);
  CHECK(driver.count("cuModuleLoadDataEx") == 1);
  driver.enter(0x20, 2);
  REQUIRE(library.launch() == 0);
  CHECK(driver.count("cuModuleLoadDataEx") == 2);
  driver.enter(0x10, 3); // another context at an address used before
  REQUIRE(library.launch() == 0);
  CHECK(driver.count("cuModuleLoadDataEx") == 3);

  CHECK(driver.fake->liveObjects == 3);
  CHECK(library.unload() == 0);
  CHECK(library.unload() == 0); // nothing is left to do
  driver.enter(0x20, 2);
  CHECK(library.unload() == 0);
  CHECK(driver.fake->liveObjects == 1);
  REQUIRE(library.launch() == 0); // loads it anew
  CHECK(driver.count("cuModuleLoadDataEx") == 4);
}

TEST_CASE("embedded C returns the driver's errors", "[aot]") {
  FakeDriver driver;
  {
    CLibrary library("/dev/null/libcuda.so");
    CHECK(library.launch() == 303);
    CHECK(library.load() == 303);
    CHECK(library.unload() == 303);
  }
  {
    CLibrary library("libc.so.6");
    CHECK(library.launch() == 302);
  }
  CLibrary library(REPLAYJIT_FAKE_CUDA);
  driver.leave();
  CHECK(library.launch() == 201);
  driver.enter(0x10, 1);
  driver.die();
  CHECK(library.launch() == 201);
  driver.enter(0x10, 1);
  for (const char *call : {"cuModuleLoadDataEx", "cuModuleGetFunction",
                           "cuFuncGetAttribute", "cuFuncSetAttribute"}) {
    INFO(call);
    driver.fake->failures = {{call, 2}};
    CHECK(library.launch() == 2);
    CHECK(driver.fake->liveObjects == 0);
  }
  driver.fake->failures = {{"cuLaunchKernel", 700}};
  CHECK(library.launch() == 700);
  driver.fake->failures = {};
  CHECK(library.launch() == 0);
  CHECK(driver.fake->liveObjects == 1);
}

TEST_CASE("embedded C needs a name and a cubin", "[aot]") {
  CompiledKernel kernel = sampleKernel();
  for (const char *name : {"", "2fast", "a-b", "a.b"})
    CHECK(embedAsC(kernel, name).status().message ==
          "name: '" + std::string(name) +
              "' is not allowed; it must be a C identifier");
  for (auto [name, taken] : {std::pair("int", "int"),
                             {"class", "class"},
                             {"co_await", "co_await"},
                             {"xor_eq", "xor_eq"},
                             {"while", "while"},
                             {"_launch", "_launch"},
                             {"my__kernel", "my__kernel"},
                             {"main", "main"},
                             {"malloc", "malloc"},
                             {"find", "find"},
                             {"table", "table"},
                             {"uint32_t", "uint32_t"},
                             {"atomic", "atomic_load"},
                             {"NULL", "NULL"}})
    CHECK(embedAsC(kernel, name).status().message ==
          "name: '" + std::string(name) +
              "' is not allowed; C, C++ or what is included has '" + taken +
              "' already");
  for (const char *name :
       {"in", "tab", "kernel", "step", "decode_step", "ints"})
    CHECK(embedAsC(kernel, name));
  kernel.cubin.clear();
  CHECK(embedAsC(kernel, "fine").status().message ==
        "kernel 'sample_kernel' has no cubin to embed");
}

TEST_CASE("the header says what is known of a parameter", "[aot]") {
  const CompiledKernel kernel = sampleKernel();
  auto source = embedAsC(kernel, "sample",
                         {{"x", "[B] fp32, read"}, {"globalScratch", "none"}});
  REQUIRE(source);
  CHECK(source->header.find(" *   arg_x: [B] fp32, read\n") !=
        std::string::npos);
  // One that is not passed has no line, nor has one that nobody knows.
  CHECK(source->header.find("none") == std::string::npos);
  CHECK(source->header.find("arg_stride:") == std::string::npos);
}
