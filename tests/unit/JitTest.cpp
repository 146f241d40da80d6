//===- JitTest.cpp - Prepare, launch, and who compiles --------------------===//
//
// Real kernels on the emulation. JitDriverTest.cpp has what needs no compiler.
//
//===----------------------------------------------------------------------===//

#include "runtime/Jit.h"
#include "kernels/Decode/DecodeReference.h"
#include "kernels/Materialize/MaterializeArgs.h"
#include "runtime/CompileOnMiss.h"
#include "tests/unit/DecodeLaunch.h"

#include <catch2/catch.hpp>

#include <atomic>
#include <random>

using namespace replayjit::internal;
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
