//===- driver_rules.cpp - What we rely on a CUDA driver for ---------------===//
//
// Captures, contexts, launch order, mapped and known memory, lack of it, on the
// first GPU. The kernels are a few lines of PTX that the driver assembles: no
// compiler and no file is needed. Prints a line for each rule; the exit status
// is 0 if all hold.
//
//===----------------------------------------------------------------------===//

#include "kernels/Decode/DecodeArgs.h"
#include "runtime/Jit.h"
#include "runtime/cuda/CudaDevice.h"
#include "runtime/cuda/CudaError.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstdio>
#include <dlfcn.h>
#include <functional>
#include <optional>
#include <thread>

using namespace replayjit::internal;
using namespace replayjit::internal::cuda;

/// Adds 1 to the word that `out` points to, and takes 50 us for it, so that two
/// that do not wait for each other lose a step.
static std::string addOne(const std::string &name, const char *beginning,
                          const std::string &version = "8.0") {
  return fmt::format(R"(.version {3}
.target sm_90
.address_size 64
.visible .entry {0}(.param .align 8 .b8 args[{1}]) .reqntid 32, 1, 1
{{
  .reg .pred %p<3>;
  .reg .b32 %r<4>;
  .reg .b64 %d<5>;
  {4}
  ld.param.u64 %d1, [args+{2}];
  mov.u32 %r1, %tid.x;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra done;
  ld.volatile.global.u32 %r2, [%d1];
  mov.u64 %d2, %globaltimer;
wait:
  mov.u64 %d3, %globaltimer;
  sub.u64 %d4, %d3, %d2;
  setp.lt.u64 %p2, %d4, 50000;
  @%p2 bra wait;
  add.u32 %r3, %r2, 1;
  st.volatile.global.u32 [%d1], %r3;
done:
  ret;
}}
)",
                     name, sizeof(DecodeArgs), offsetof(DecodeArgs, out),
                     version, beginning);
}

/// What a kernel of a spec with a programmaticLaunch begins with.
static const char *const waits = "griddepcontrol.wait; "
                                 "griddepcontrol.launch_dependents;";

static CompiledKernel adder(const std::string &name, const Target &target,
                            std::string ptx) {
  using Kind = KernelParam::Kind;
  CompiledKernel kernel;
  kernel.name = name;
  kernel.target = target;
  kernel.signature = {{{"q", Kind::Pointer, offsetof(DecodeArgs, q)},
                       {"out", Kind::Pointer, offsetof(DecodeArgs, out)}},
                      sizeof(DecodeArgs)};
  kernel.launch = {1, 32, 0};
  kernel.ptx = std::move(ptx);
  return kernel;
}

static bool hasLaunch(const DecodeSpec &spec) {
  return spec.programmaticLaunch != ProgrammaticLaunch::None;
}

/// A Jit whose compiler makes adders, for the driver to assemble.
static JitOptions addersOnly() {
  JitOptions options;
  options.compile =
      [](const CompileRequest &request) -> Result<CompiledKernel> {
    const std::string name = kernelName(request.spec, request.tuning);
    return adder(name, request.target,
                 addOne(name, hasLaunch(request.spec) ? waits : ""));
  };
  return options;
}

static DecodeSpec specOf(int n, bool isProgrammatic = false) {
  DecodeSpec spec;
  spec.ringDepth = 2 + n;
  if (isProgrammatic)
    spec.programmaticLaunch = ProgrammaticLaunch::Late;
  return spec;
}

namespace {

/// The first sentence that is not empty is what a rule breaks.
using Broken = std::string;

struct Rules {
  DriverApi api;
  std::shared_ptr<Device> device;
  std::unique_ptr<Jit> jit;
  uint64_t word = 0; ///< What the adders count in.
  CUresult (*createContext)(CUcontext *, unsigned, CUdevice) = nullptr;
  CUresult (*destroyContext)(CUcontext) = nullptr;

  Status set(uint32_t value) {
    return device->copyToDevice(word, &value, sizeof value);
  }
  uint32_t count() {
    uint32_t value = ~0u;
    Status status = device->copyFromDevice(&value, word, sizeof value);
    return status ? value : ~0u;
  }
  Status add(const KernelHandle &kernel, void *stream,
             LaunchOrder order = LaunchOrder::Serial) {
    DecodeArgs args;
    args.batch = 1;
    args.out = word;
    return kernel.launchOn(stream, args, ArgsCheck::None, order);
  }
  /// Captures `body` on `stream`, then replays it three times on the device's
  /// own stream; what is broken, or how often a step was added.
  Broken captured(CUstream stream, int mode, uint32_t expected,
                  const std::function<Broken()> &body);

  Broken hitsAndMisses();
  Broken untold();
  Broken blocking();
  Broken programmatic();
  Broken twoContexts();
  Broken destroyedContext();
  Broken mapped();
  Broken knownMemory();
  Broken outOfMemory();
  Broken tooOld();
};

/// A stream of the device's context, which is current.
struct Stream {
  const DriverApi &api;
  CUstream handle = nullptr;
  Stream(const DriverApi &api, unsigned flags) : api(api) {
    (void)api.cuStreamCreate(&handle, flags);
  }
  ~Stream() { (void)api.cuStreamDestroy(handle); }
};

} // namespace

constexpr int globalMode = 0; // What torch.cuda.graph captures in.

Broken Rules::captured(CUstream stream, int mode, uint32_t expected,
                       const std::function<Broken()> &body) {
  if (Status status = set(0); !status)
    return status.message;
  if (Status status = REPLAYJIT_CU(api, cuStreamBeginCapture, stream,
                                   CUstreamCaptureMode(mode));
      !status)
    return status.message;
  Broken broken = body();
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  Status status = REPLAYJIT_CU(api, cuStreamEndCapture, stream, &graph);
  if (!broken.empty())
    return broken;
  if (status)
    status = REPLAYJIT_CU(api, cuGraphInstantiate, &exec, graph, 0);
  for (int i = 0; i < 3 && status; ++i)
    status = REPLAYJIT_CU(api, cuGraphLaunch, exec,
                          static_cast<CUstream>(device->stream()));
  if (status)
    status = device->synchronize();
  if (!status)
    return "the capture was spoiled: " + status.message;
  if (count() != 3 * expected)
    return fmt::format("{} steps instead of {}", count(), 3 * expected);
  (void)api.cuGraphExecDestroy(exec);
  (void)api.cuGraphDestroy(graph);
  return "";
}

/// Under a capture that we are told of: a hit launches, a miss is refused.
Broken Rules::hitsAndMisses() {
  Stream stream(api, CU_STREAM_NON_BLOCKING);
  auto there = jit->prepare(specOf(0), 0);
  if (!there)
    return there.status().message;
  return captured(stream.handle, globalMode, 2, [&]() -> Broken {
    auto late = jit->prepare(specOf(1), 0, stream.handle);
    if (late || late.status().code != StatusCode::InvalidArgument)
      return "a miss was not refused: " + late.status().message;
    auto again = jit->prepare(specOf(0), 0, stream.handle);
    if (!again)
      return again.status().message;
    for (int i = 0; i < 2; ++i)
      if (Status status = add(*again, stream.handle); !status)
        return status.message;
    return "";
  });
}

/// A capture that we are not told of survives loads and allocations, in its own
/// thread and in another.
Broken Rules::untold() {
  Stream stream(api, CU_STREAM_NON_BLOCKING);
  return captured(stream.handle, globalMode, 1, [&]() -> Broken {
    auto kernel = jit->prepare(specOf(2), 0);
    if (!kernel)
      return kernel.status().message;
    auto memory = device->allocate(1 << 20, "late");
    if (!memory)
      return memory.status().message;
    Status other;
    std::thread([&] { other = jit->prepare(specOf(3), 0).status(); }).join();
    if (!other)
      return other.message;
    if (Status status = device->free(*memory); !status)
      return status.message;
    return add(*kernel, stream.handle).message;
  });
}

/// A capture of a stream that waits for the legacy one is seen by itself.
Broken Rules::blocking() {
  Stream stream(api, CU_STREAM_DEFAULT);
  auto kernel = jit->prepare(specOf(0), 0);
  return captured(stream.handle, globalMode, 1, [&]() -> Broken {
    if (jit->prepare(specOf(4), 0))
      return "a miss was not refused";
    if (device->allocate(8, "late"))
      return "an allocation was not refused";
    return add(*kernel, stream.handle).message;
  });
}

/// A chain of programmatic launches adds every step, directly and in a graph;
/// kernels that do not wait show that it could do otherwise.
Broken Rules::programmatic() {
  constexpr int length = 200;
  auto kernel = jit->prepare(specOf(0, true), 0);
  if (!kernel)
    return kernel.status().message;
  Stream stream(api, CU_STREAM_NON_BLOCKING);
  auto chain = [&]() -> Broken {
    for (int i = 0; i < length; ++i)
      if (Status status =
              add(*kernel, stream.handle, LaunchOrder::Programmatic);
          !status)
        return status.message;
    return "";
  };
  if (Status status = set(0); !status)
    return status.message;
  Broken broken = chain();
  if (Status status = device->synchronizeOn(stream.handle); !status)
    return status.message;
  if (broken.empty() && count() != length)
    broken = fmt::format("{} steps instead of {}", count(), length);
  if (broken.empty())
    broken = captured(stream.handle, globalMode, length, chain);
  if (!broken.empty())
    return broken;

  auto hasty =
      device->load(adder("hasty", device->target(),
                         addOne("hasty", "griddepcontrol.launch_dependents;")));
  if (!hasty)
    return hasty.status().message;
  DecodeArgs args;
  args.out = word;
  Status status = set(0);
  for (int i = 0; i < length && status; ++i)
    status = device->launchOn(stream.handle, **hasty, 1, &args, sizeof args,
                              LaunchOrder::Programmatic);
  if (status)
    status = device->synchronizeOn(stream.handle);
  if (!status)
    return status.message;
  std::printf("  kernels that do not wait added %u of %d steps\n", count(),
              length);
  return count() < length ? "" : "launches did not overlap: nothing was shown";
}

/// Two contexts of one GPU: kernels of both run, whatever is current.
Broken Rules::twoContexts() {
  CUcontext contexts[2] = {}, popped = nullptr;
  Broken broken;
  std::shared_ptr<Device> devices[2];
  std::optional<KernelHandle> kernels[2];
  uint64_t words[2] = {};
  for (int i = 0; i < 2 && broken.empty(); ++i) {
    if (createContext(&contexts[i], 0, 0) != CUDA_SUCCESS)
      return "cuCtxCreate failed";
    auto made = createCudaDeviceForCurrentContext();
    (void)api.cuCtxPopCurrent(&popped);
    if (!made)
      return made.status().message;
    devices[i] = std::move(*made);
    auto own = Jit::create(devices[i], addersOnly());
    auto kernel = (*own)->prepare(specOf(0), 0);
    auto memory = devices[i]->allocate(4, "word");
    if (!kernel || !memory)
      return kernel.status().message + memory.status().message;
    kernels[i] = *kernel;
    words[i] = *memory;
  }
  std::thread other([&] {
    // In this thread nothing is current, or the context of the other device.
    for (int i = 0; i < 2 && broken.empty(); ++i)
      for (CUcontext current : {CUcontext(), contexts[1 - i]}) {
        if (current)
          (void)api.cuCtxPushCurrent(current);
        DecodeArgs args;
        args.batch = 1;
        args.out = words[i];
        Status status =
            devices[i]->fill32On(devices[i]->stream(), words[i], 41, 1);
        if (status)
          status = kernels[i]->launch(args, ArgsCheck::None);
        uint32_t value = 0;
        if (status)
          status = devices[i]->copyFromDevice(&value, words[i], 4);
        if (!status || value != 42)
          broken = fmt::format("context {}: {} {}", i, value, status.message);
        if (current)
          (void)api.cuCtxPopCurrent(&popped);
      }
  });
  other.join();
  for (int i = 0; i < 2; ++i) {
    kernels[i].reset();
    devices[i].reset();
    (void)destroyContext(contexts[i]);
  }
  return broken;
}

/// A handle, and with it a device, may go after its context, and also after
/// another context has come.
Broken Rules::destroyedContext() {
  for (bool comesAnother : {false, true}) {
    CUcontext context = nullptr, another = nullptr, popped = nullptr;
    if (createContext(&context, 0, 0) != CUDA_SUCCESS)
      return "cuCtxCreate failed";
    auto made = createCudaDeviceForCurrentContext();
    if (!made)
      return made.status().message;
    std::shared_ptr<Device> own = std::move(*made);
    auto jitOfOwn = Jit::create(own, addersOnly());
    std::optional<KernelHandle> handle;
    if (auto kernel = (*jitOfOwn)->prepare(specOf(0), 0))
      handle = *kernel;
    else
      return kernel.status().message;
    if (destroyContext(context) != CUDA_SUCCESS)
      return "cuCtxDestroy failed";
    if (comesAnother && createContext(&another, 0, 0) != CUDA_SUCCESS)
      return "cuCtxCreate failed";
    if (handle->launch(DecodeArgs{.batch = 1}, ArgsCheck::None))
      return "a launch in a context that is gone was accepted";
    jitOfOwn->reset();
    own.reset();
    handle.reset();
    if (another) {
      (void)api.cuCtxPopCurrent(&popped);
      (void)destroyContext(another);
    }
  }
  auto kernel = jit->prepare(specOf(0), 0); // All is well elsewhere.
  Status status = set(0);
  if (status)
    status = add(*kernel, device->stream());
  if (status)
    status = device->synchronize();
  return status ? count() == 1 ? "" : "a later launch was lost"
                : status.message;
}

/// What a kernel writes to mapped memory the host reads without a copy.
Broken Rules::mapped() {
  auto memory = device->allocateMapped(4, "word");
  if (!memory)
    return memory.status().message;
  auto *value = static_cast<volatile uint32_t *>(memory->host);
  *value = 6;
  const uint64_t before = word;
  word = memory->device;
  auto kernel = jit->prepare(specOf(0), 0);
  Status status = add(*kernel, nullptr);
  word = before;
  if (status)
    status = device->synchronizeOn(nullptr);
  const uint32_t seen = *value;
  if (status)
    status = device->freeMapped(*memory);
  if (!status)
    return status.message;
  return seen == 7 ? "" : fmt::format("the host read {} instead of 7", seen);
}

/// The driver knows which memory kernels may use, under a capture too: its own,
/// mapped, not of the host alone, not freed, not of another GPU.
Broken Rules::knownMemory() {
  auto mapped = device->allocateMapped(64, "mapped");
  auto freed = device->allocate(64 << 20, "freed");
  if (!mapped || !freed || !device->free(*freed))
    return "no memory";
  static char ofHost[64];
  uint64_t foreign = 0;
  auto second = createCudaDevice(1); // If there is one.
  if (second)
    foreign = *(*second)->allocate(64, "foreign");
  Stream stream(api, CU_STREAM_NON_BLOCKING);
  auto kernel = jit->prepare(specOf(0), 0);
  const Broken broken = captured(stream.handle, globalMode, 1, [&]() -> Broken {
    for (uint64_t address : {word, word + 3, mapped->device})
      if (Status status = device->checkAddress(address); !status)
        return status.message;
    for (uint64_t address :
         {*freed, reinterpret_cast<uint64_t>(ofHost), foreign}) {
      const Status status = device->checkAddress(address);
      std::printf("  %s\n", status.message.c_str());
      if (status.code != StatusCode::InvalidArgument)
        return fmt::format("{:#x} was not refused", address);
    }
    return add(*kernel, stream.handle).message;
  });
  if (second)
    (void)(*second)->free(foreign);
  (void)device->freeMapped(*mapped);
  return broken;
}

/// Without memory: sentences, and all is well once there is some.
Broken Rules::outOfMemory() {
  std::vector<uint64_t> taken;
  Status full;
  for (size_t bytes = size_t(1) << 36; bytes >= 1 << 12; bytes /= 2)
    for (;;) {
      auto memory = device->allocate(bytes, "all there is");
      if (!memory) {
        full = memory.status();
        break;
      }
      taken.push_back(*memory);
    }
  std::printf("  allocate: %s\n", full.message.c_str());
  auto kernel = jit->prepare(specOf(5), 0);
  std::printf("  prepare: %s\n", kernel ? "there was memory left for it"
                                        : kernel.status().message.c_str());
  for (uint64_t address : taken)
    if (Status status = device->free(address); !status)
      return status.message;
  if (full.message.find("CUDA_ERROR_OUT_OF_MEMORY") == std::string::npos)
    return "it was not refused for lack of memory";
  auto again = jit->prepare(specOf(5), 0);
  Status status = again ? set(0) : again.status();
  if (status)
    status = add(*again, nullptr);
  if (status)
    status = device->synchronizeOn(nullptr);
  return status ? count() == 1 ? "" : "a later launch was lost"
                : status.message;
}

/// PTX that is newer than any driver.
Broken Rules::tooOld() {
  auto kernel =
      device->load(adder("late", device->target(), addOne("late", "", "99.0")));
  std::printf("  load: %s\n", kernel.status().message.c_str());
  return kernel.status().code == StatusCode::AssembleFailed
             ? ""
             : "it was not refused by the assembler";
}

int main() {
  Rules rules;
  const Result<DriverApi> &api = DriverApi::get();
  auto made = createCudaDevice(0);
  if (!api || !made) {
    std::fprintf(stderr, "error: %s\n", made.status().message.c_str());
    return 2;
  }
  rules.api = *api;
  rules.device = std::move(*made);
  void *driver = dlopen("libcuda.so.1", RTLD_NOW);
  rules.createContext = reinterpret_cast<decltype(rules.createContext)>(
      dlsym(driver, "cuCtxCreate_v2"));
  rules.destroyContext = reinterpret_cast<decltype(rules.destroyContext)>(
      dlsym(driver, "cuCtxDestroy_v2"));
  auto jit = Jit::create(rules.device, addersOnly());
  auto word = rules.device->allocate(4, "word");
  CUcontext context = nullptr;
  if (!jit || !word || !rules.createContext || !rules.destroyContext ||
      api->cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS ||
      api->cuCtxPushCurrent(context) != CUDA_SUCCESS) {
    std::fprintf(stderr, "error: the first GPU cannot be used\n");
    return 2;
  }
  rules.jit = std::move(*jit);
  rules.word = *word;

  int failed = 0;
  for (auto [name, rule] :
       {std::pair{"told of a capture, hits only", &Rules::hitsAndMisses},
        {"a capture not told of survives", &Rules::untold},
        {"a blocking capture is seen", &Rules::blocking},
        {"programmatic launches wait", &Rules::programmatic},
        {"two contexts", &Rules::twoContexts},
        {"a handle outlives its context", &Rules::destroyedContext},
        {"mapped memory", &Rules::mapped},
        {"known memory", &Rules::knownMemory},
        {"no memory left", &Rules::outOfMemory},
        {"PTX newer than the driver", &Rules::tooOld}}) {
    const Broken broken = (rules.*rule)();
    std::printf("%s: %s\n", name, broken.empty() ? "PASS" : broken.c_str());
    std::fflush(stdout);
    failed += !broken.empty();
  }
  return failed != 0;
}
