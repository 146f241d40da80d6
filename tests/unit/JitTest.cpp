//===- JitTest.cpp - Prepare, launch, and who compiles --------------------===//
//
// Real kernels on the emulation; threads, caches and lifetimes over the fake
// driver with a compiler that is made up.
//
//===----------------------------------------------------------------------===//

#include "runtime/Jit.h"
#include "FakeCuda.h"
#include "kernels/Decode/DecodeReference.h"
#include "runtime/CompileOnMiss.h"
#include "runtime/cuda/CudaDevice.h"
#include "tests/unit/CacheTestSupport.h"
#include "tests/unit/DecodeLaunch.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <dlfcn.h>
#include <random>
#include <thread>

using namespace replayjit;
using namespace replayjit::cuda;
using namespace replayjit::test;
using namespace std::chrono_literals;
using Catch::Matchers::Contains;

namespace {

/// The tensors of a launch of two rows in the memory of the emulation, which is
/// also the host's, so that the reference takes the same arguments.
struct EmulatedTensors {
  EmulatedTensors(Device &device, const DecodeSpec &spec) : device(device) {
    const int H = spec.numKeyHeads, HV = spec.numValueHeads;
    const int K = spec.headDimK, V = spec.headDimV, L = spec.ringDepth;
    const DataType f32 = DataType::F32, i32 = DataType::I32;
    args.batch = 2;
    args.slots = 3;
    args.scale = 0.5f;
    args.qStride = 2 * H * K + HV * V;
    args.aStride = args.bStride = HV;
    args.outStride = HV * V;
    args.statePitch = HV * V * K;
    args.dPitch = HV * L * V;
    args.kPitch = H * L * K;
    args.gPitch = HV * L;
    args.q = make("q", f32, 2 * args.qStride, 1);
    args.a = make("a", f32, 2 * HV, 1);
    args.b = make("b", f32, 2 * HV, 1);
    args.aLog = make("aLog", f32, HV, 0.3);
    args.dtBias = make("dtBias", f32, HV, 0.3);
    args.out = make("out", f32, 2 * HV * V, 0);
    args.state = make("state", f32, 3 * args.statePitch, 1);
    args.dRing = make("dRing", f32, 3 * args.dPitch, 0);
    args.kRing = make("kRing", f32, 3 * args.kPitch, 0);
    args.gRing = make("gRing", f32, 3 * args.gPitch, 0);
    args.stateIndices = make("stateIndices", i32, 2, 0);
    args.writePos = make("writePos", i32, 2, 0);
    args.forceFlush = make("forceFlush", i32, 2, 0);
    DecodeTensors tensors(spec, args);
    tensors.stateIndices.set(0, 0, 2);
    tensors.stateIndices.set(1, 0, 1);
  }

  uint64_t make(const char *name, DataType type, int64_t count, double spread) {
    auto address = device.allocate(count * byteSize(type), name);
    REQUIRE(address);
    std::normal_distribution<double> normal;
    for (int64_t i = 0; i < count; ++i)
      storeElement(type, reinterpret_cast<void *>(*address), i,
                   spread ? spread * normal(random) : 0);
    return *address;
  }

  Device &device;
  std::mt19937 random{7};
  DecodeArgs args;
};

DecodeSpec smallSpec() { return makeSpec(1, 2, 16, 16, 4); }

/// The real compiler, counting.
JitOptions compiling(std::atomic<int> &count) {
  JitOptions options;
  options.compile = [&count, compile = compileOnMiss(AssembleOptions())](
                        const CompileRequest &request) {
    ++count;
    return compile(request);
  };
  return options;
}

std::unique_ptr<Jit> makeJit(Device &device, JitOptions options) {
  auto jit = Jit::create(device, std::move(options));
  REQUIRE(jit.status().message == "");
  return std::move(*jit);
}

/// The fake driver in its initial state, a device over it, and a compiler that
/// makes up a kernel for it.
struct Fixture {
  Fixture() {
    auto api = DriverApi::open(REPLAYJIT_FAKE_CUDA);
    REQUIRE(api.status().message == "");
    void *library = dlopen(REPLAYJIT_FAKE_CUDA, RTLD_NOW);
    auto access = reinterpret_cast<FakeCudaAccess>(dlsym(library, "fakeCuda"));
    REQUIRE(access);
    fake = access();
    *fake = FakeCuda();
    fake->params = {{0, sizeof(DecodeArgs)}};
    auto created = createCudaDevice(*api, 0);
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
  FakeCuda *fake = nullptr;
  std::unique_ptr<Device> device;
  std::atomic<int> compiles = 0;
  std::chrono::milliseconds delay{0};
  bool fails = false;
};

} // namespace

TEST_CASE("a kernel is prepared once and computes what the reference does",
          "[jit]") {
  auto device = createEmulationDevice(*Target::parse("sm_90a"));
  std::atomic<int> compiles = 0;
  auto jit = makeJit(*device, compiling(compiles));
  const DecodeSpec spec = smallSpec();
  auto kernel = jit->prepare(spec, 2);
  REQUIRE(kernel.status().message == "");
  auto again = jit->prepare(spec, 2);
  REQUIRE(again);
  CHECK(*again == *kernel);
  CHECK(compiles == 1);
  CHECK(kernel->info().spec == spec);
  CHECK(kernel->info().name == kernelName(spec, kernel->info().tuning));
  CHECK(kernel->info().origin == KernelOrigin::Compiled);
  CHECK(jit->counters().misses == 0); // The disk cache is not asked.

  EmulatedTensors ours(*device, spec), theirs(*device, spec);
  const DecodeTensors t(spec, ours.args), expected(spec, theirs.args);
  RingCursor cursor;
  for (int step = 0; step < 6; ++step) {
    for (int row = 0; row < 2; ++row)
      for (const DecodeTensors &tensors : {t, expected})
        tensors.writePos.set(row, 0, cursor.writePos);
    REQUIRE(kernel->launch(ours.args).message == "");
    replayStep(spec, theirs.args);
    cursor = nextCursor(spec, cursor, false);
    for (int row = 0; row < 2; ++row)
      for (int i = 0; i < ours.args.outStride; ++i)
        CHECK(t.out.get(row, i) ==
              Approx(expected.out.get(row, i)).margin(1e-4));
  }
  for (int slot = 0; slot < 3; ++slot)
    for (int i = 0; i < ours.args.statePitch; ++i)
      REQUIRE(t.state.get(slot, i) ==
              Approx(expected.state.get(slot, i)).margin(1e-4));
}

TEST_CASE("a launch refuses bad arguments in one sentence", "[jit]") {
  auto device = createEmulationDevice(*Target::parse("sm_90a"));
  std::atomic<int> compiles = 0;
  auto jit = makeJit(*device, compiling(compiles));
  const DecodeSpec spec = smallSpec();
  auto kernel = jit->prepare(spec, 0);
  REQUIRE(kernel);
  EmulatedTensors tensors(*device, spec);

  DecodeArgs bad = tensors.args;
  bad.q += 4;
  Status status = kernel->launch(bad);
  CHECK(status.code == StatusCode::InvalidArgument);
  CHECK_THAT(status.message,
             Contains("launch '" + kernel->info().name + "': q: 0x") &&
                 Contains("must be a multiple of 16 bytes"));
  bad = tensors.args;
  bad.state = 0;
  CHECK_THAT(kernel->launch(bad).message, Contains("state: 0 is not allowed"));
  bad = tensors.args;
  bad.batch = -1;
  CHECK_THAT(kernel->launch(bad).message, Contains("batch: -1"));
  CHECK_THAT(kernel->launch(bad, ArgsCheck::None).message,
             Contains("-1 rows of"));
  bad.batch = std::numeric_limits<int32_t>::max();
  CHECK_THAT(kernel->launch(bad, ArgsCheck::None).message,
             Contains("a grid has at most 2^31 - 1 blocks"));
  CHECK_THAT(kernel->launch(MaterializeArgs()).message,
             Contains("a kernel of family replay takes DecodeArgs"));
  CHECK(kernel->launchOn(nullptr, tensors.args).message == "");
  int other = 0;
  CHECK_THAT(kernel->launchOn(&other, tensors.args).message,
             Contains("emulation: stream 0x") &&
                 Contains("its one stream is null"));

  // No rows: nothing need be there.
  CHECK(kernel->launch(DecodeArgs()).isOk());
  CHECK(kernel->launch(DecodeArgs(), ArgsCheck::None).isOk());
}

TEST_CASE("what cannot be prepared says why", "[jit]") {
  auto device = createEmulationDevice(*Target::parse("sm_90a"));
  std::atomic<int> compiles = 0;
  auto jit = makeJit(*device, compiling(compiles));
  DecodeSpec spec = smallSpec();
  CHECK_THAT(jit->prepare(spec, -1).status().message,
             Contains("rows: -1 is not allowed"));
  spec.ringDepth = 65;
  CHECK_THAT(jit->prepare(spec, 0).status().message,
             Contains("ringDepth: 65 is not allowed"));
  CHECK(compiles == 0);

  CHECK_THAT(makeJit(*device, {})->prepare(smallSpec(), 0).status().message,
             Contains("this program has no compiler"));
  JitOptions options;
  options.workers = -1;
  CHECK_THAT(Jit::create(*device, options).status().message,
             Contains("workers: -1"));
  options = {};
  options.once.mustHit = true;
  CHECK_THAT(Jit::create(*device, options).status().message,
             Contains("mustHit: not allowed under emulation"));
}

TEST_CASE_METHOD(Fixture, "sixteen threads compile and load four kernels once",
                 "[jit]") {
  delay = 20ms;
  auto jit = makeJit(*device, options());
  std::vector<std::optional<KernelHandle>> got(16);
  std::vector<std::thread> threads;
  for (int i = 0; i < 16; ++i)
    threads.emplace_back([&, i] {
      auto kernel = jit->prepare(specOf(i % 4), 0);
      if (kernel)
        got[i] = *kernel;
    });
  for (std::thread &thread : threads)
    thread.join();
  CHECK(compiles == 4);
  CHECK(count("cuModuleLoadDataEx") == 4);
  for (int i = 0; i < 16; ++i) {
    REQUIRE(got[i]);
    CHECK(*got[i] == *got[i % 4]);
    CHECK(got[i]->info().spec == specOf(i % 4));
  }
  CHECK(jit->counters().compiles == 4);
  CHECK(heard->empty());
}

TEST_CASE_METHOD(Fixture, "a new Jit finds on disk what another compiled",
                 "[jit]") {
  auto first = makeJit(*device, options())->prepare(specOf(0), 0);
  REQUIRE(first.status().message == "");
  CHECK(first->info().origin == KernelOrigin::Compiled);
  JitOptions bare = options();
  SECTION("with a compiler") {}
  SECTION("without one") { bare.compile = nullptr; }
  auto jit = makeJit(*device, bare);
  auto second = jit->prepare(specOf(0), 0);
  REQUIRE(second.status().message == "");
  CHECK(compiles == 1);
  CHECK(second->info().origin == KernelOrigin::Cached);
  CHECK(second->info().name == first->info().name);
  CHECK(second->info().assembler == "ptxas 13.0.88");
  // What the device reports, and the assembler's spills.
  CHECK(second->info().resources.registers == 40);
  CHECK(second->info().resources.spillStoreBytes == 0);
  CHECK(jit->counters().hits == 1);
  if (!bare.compile)
    CHECK_THAT(jit->prepare(specOf(1), 0).status().message,
               Contains("is not cached, and this program has no compiler") &&
                   Contains("spec.ringDepth: 3 is asked for; the entry has 2"));
}

TEST_CASE_METHOD(Fixture, "mustHit names the key and the nearest entry",
                 "[jit]") {
  REQUIRE(makeJit(*device, options())->prepare(specOf(0), 0));
  JitOptions strict = options();
  strict.once.mustHit = true;
  auto jit = makeJit(*device, strict);
  CHECK(jit->prepare(specOf(0), 0));
  Status status = jit->prepare(specOf(1), 0).status();
  CHECK(status.code == StatusCode::NotFound);
  CHECK_THAT(status.message,
             Contains("gdn_decode_h16_hv32_k128_v128_l3_") &&
                 Contains("the nearest entry is") &&
                 Contains("spec.ringDepth: 3 is asked for; the entry has 2"));
  CHECK(compiles == 1);
}

TEST_CASE_METHOD(Fixture, "a failure is not remembered", "[jit]") {
  auto jit = makeJit(*device, options());
  fails = true;
  CHECK(jit->prepare(specOf(0), 0).status().message == "as told");
  fails = false;
  fake->failures["cuModuleLoadDataEx"] = 2;
  CHECK_THAT(jit->prepare(specOf(0), 0).status().message,
             Contains("CUDA_ERROR_OUT_OF_MEMORY (2)"));
  fake->failures.clear();
  CHECK(jit->prepare(specOf(0), 0).status().message == "");
  CHECK(compiles == 2); // The second came from disk.
}

TEST_CASE_METHOD(Fixture, "handles outlive the Jit, and the device the handles",
                 "[jit]") {
  auto jit = makeJit(*device, options());
  auto kernel = jit->prepare(specOf(0), 0);
  REQUIRE(kernel.status().message == "");
  std::optional<KernelHandle> handle = *kernel;
  kernel = Status();
  jit.reset();
  CHECK(count("cuModuleUnload") == 0);

  DecodeArgs args = argsOf(specOf(0));
  CHECK(handle->launch(args).message == "");
  const CUstream own = fake->lastLaunch.hStream;
  CHECK(own);
  CHECK(fake->lastLaunch.gridDimX == handle->info().launch.blocksPerRow);
  CHECK(fake->lastParams ==
        std::string(reinterpret_cast<const char *>(&args), sizeof(args)));
  int stream = 0;
  CHECK(handle->launchOn(&stream, args).message == "");
  CHECK(fake->lastLaunch.hStream == static_cast<void *>(&stream));
  CHECK(handle->launchOn(nullptr, args).message == "");
  CHECK(fake->lastLaunch.hStream == nullptr);
  CHECK(count("cuLaunchKernelEx") == 3);
  args.batch = 0;
  CHECK(handle->launch(args).isOk());
  CHECK(count("cuLaunchKernelEx") == 3);

  handle.reset();
  CHECK(count("cuModuleUnload") == 1);
  device.reset();
  CHECK(fake->liveObjects == 0);
}

TEST_CASE_METHOD(Fixture, "nothing is loaded while launches are captured",
                 "[jit]") {
  auto jit = makeJit(*device, options());
  auto there = jit->prepare(specOf(0), 0);
  REQUIRE(there);
  Status late;
  auto timed = device->time(
      [&] {
        late = jit->prepare(specOf(1), 0).status();
        return there->launch(argsOf(specOf(0)));
      },
      1);
  CHECK(timed.status().message == "");
  CHECK_THAT(late.message,
             Contains("not possible while launches are captured"));
}

TEST_CASE_METHOD(Fixture, "a kernel with other parameters is refused",
                 "[jit]") {
  JitOptions other = options();
  other.compile = [make = other.compile](const CompileRequest &request) {
    auto kernel = make(request);
    kernel->signature.bytes = 24;
    return kernel;
  };
  CHECK_THAT(makeJit(*device, other)->prepare(specOf(0), 0).status().message,
             Contains("takes 24 bytes of parameters"));
}

TEST_CASE_METHOD(Fixture, "prepareAll tells of each kernel once", "[jit]") {
  JitOptions some = options();
  some.workers = GENERATE(0, 1, 3);
  delay = 2ms;
  auto jit = makeJit(*device, some);
  std::vector<KernelRequest> requests;
  for (int i = 0; i < 6; ++i)
    requests.push_back({specOf(i), 0});
  requests[4].spec.ringDepth = 65;
  std::vector<size_t> told;
  int failed = 0;
  auto outcomes =
      jit->prepareAll(requests, [&](size_t done, size_t total,
                                    const Result<KernelHandle> &outcome) {
        CHECK(total == 6);
        told.push_back(done);
        failed += !outcome;
      });
  CHECK(told == std::vector<size_t>{1, 2, 3, 4, 5, 6});
  CHECK(failed == 1);
  REQUIRE(outcomes.size() == 6);
  for (int i = 0; i < 6; ++i)
    if (i == 4)
      CHECK_THAT(outcomes[i].status().message, Contains("ringDepth: 65"));
    else
      CHECK(outcomes[i]->info().spec == specOf(i));
  CHECK(compiles == 5);
  CHECK(jit->prepareAll({}).empty());
}

TEST_CASE("prepareAll compiles with a compiler for each thread", "[jit]") {
  auto device = createEmulationDevice(*Target::parse("sm_90a"));
  std::atomic<int> compiles = 0;
  JitOptions options = compiling(compiles);
  options.workers = 3;
  auto jit = makeJit(*device, options);
  std::vector<KernelRequest> requests;
  for (int L : {2, 3, 4, 5}) {
    requests.push_back({smallSpec(), 0});
    requests.back().spec.ringDepth = L;
  }
  for (const Result<KernelHandle> &kernel : jit->prepareAll(requests))
    CHECK(kernel.status().message == "");
  CHECK(compiles == 4);
}
