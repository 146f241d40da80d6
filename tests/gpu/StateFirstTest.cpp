//===- StateFirstTest.cpp - Programmatic launches on a GPU ----------------===//
//
// A chain of steps of one layer: a slow kernel that makes the token, then
// decode, 10,000 times over, each step on the state of the one before. What
// replayjit.h asks of such a chain must be enough, and without it the chain
// must go wrong. Assembled by the driver.
//
//===----------------------------------------------------------------------===//

#include "runtime/CompileOnMiss.h"
#include "tests/unit/TestDevice.h"

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <random>
#include <set>

using namespace replayjit::internal;
using namespace replayjit::internal::test;

namespace {

constexpr int steps = 10000, stepsOfGraph = 1000, tokens = 64;
constexpr int rows = 4, heads = 2, size = 128, depth = 4;
constexpr int64_t outBytes = rows * heads * size * 2;

DecodeSpec specOf(ProgrammaticLaunch launch) {
  DecodeSpec spec;
  spec.numKeyHeads = 1;
  spec.numValueHeads = heads;
  spec.ringDepth = depth;
  spec.hasForceFlush = false;
  spec.programmaticLaunch = launch;
  return spec;
}

/// Parameters, the token between them, and slots and cursors: side by side, so
/// that sectors and lines hold both what is read before the wait and what is
/// written meanwhile.
struct Inputs {
  float dtBias[heads], aLog[heads];
  uint16_t a[rows][heads], b[rows][heads];
  uint16_t qkv[rows][2 * size + heads * size];
  int32_t slots[rows];
  int32_t cursors[depth][rows];
};
constexpr int64_t tokenBegin = offsetof(Inputs, a);
constexpr int64_t tokenBytes = offsetof(Inputs, slots) - tokenBegin;

/// After `beginning` it takes five microseconds, and then copies a token.
std::string producer(const char *beginning) {
  return fmt::format(R"(.version 8.0
.target sm_90
.address_size 64
.visible .entry produce(.param .u64 from, .param .u64 to) .reqntid 256, 1, 1
{{
  .reg .pred %p<3>;
  .reg .b32 %r<4>;
  .reg .b64 %d<8>;
  {}
  mov.u64 %d1, %globaltimer;
wait:
  mov.u64 %d2, %globaltimer;
  sub.u64 %d2, %d2, %d1;
  setp.lt.u64 %p1, %d2, 5000;
  @%p1 bra wait;
  ld.param.u64 %d3, [from];
  ld.param.u64 %d4, [to];
  mov.u32 %r1, %tid.x;
copy:
  mul.wide.u32 %d5, %r1, 4;
  add.u64 %d6, %d3, %d5;
  add.u64 %d7, %d4, %d5;
  ld.global.u32 %r2, [%d6];
  st.global.u32 [%d7], %r2;
  add.u32 %r1, %r1, 256;
  setp.lt.u32 %p2, %r1, {};
  @%p2 bra copy;
  ret;
}}
)",
                     beginning, tokenBytes / 4);
}

const char *const late = "griddepcontrol.wait; "
                         "griddepcontrol.launch_dependents;";
const char *const early = "griddepcontrol.launch_dependents; "
                          "griddepcontrol.wait;";

void check(const Status &status) { REQUIRE(status.message == ""); }

/// A kernel that neither waits before its token nor before its stores.
void removeWaits(std::string &ptx) {
  const std::string wait = "griddepcontrol.wait;";
  size_t at = ptx.find(wait);
  REQUIRE(at != std::string::npos);
  for (; at != std::string::npos; at = ptx.find(wait))
    ptx.erase(at, wait.size());
}

KernelHandle decodeKernel(ProgrammaticLaunch launch, bool waits = true) {
  AssembleOptions assemble;
  assemble.preference = AssembleOptions::Preference::Driver;
  JitOptions options;
  options.compile = [waits, compile = compileOnMiss(assemble)](
                        const CompileRequest &request) {
    Result<CompiledKernel> kernel = compile(request);
    if (kernel && !waits)
      removeWaits(kernel->ptx);
    return kernel;
  };
  auto jit = Jit::create(testDevice(), options);
  check(jit.status());
  auto kernel = (*jit)->prepare(specOf(launch), rows);
  check(kernel.status());
  return *kernel;
}

/// Memory of the layer, and the kernels of a chain over it.
class Chain {
public:
  Chain(const char *beginning, KernelHandle decode, LaunchOrder order)
      : decode(std::move(decode)), order(order) {
    CompiledKernel kernel;
    kernel.name = "produce";
    kernel.target = device.target();
    using Kind = KernelParam::Kind;
    kernel.signature.params = {{"from", Kind::Pointer, 0},
                               {"to", Kind::Pointer, 8}};
    kernel.signature.bytes = 16;
    kernel.launch = {1, 256, 0};
    kernel.ptx = producer(beginning);
    auto loaded = device.load(kernel);
    check(loaded.status());
    produce = std::move(*loaded);
    fill();
  }
  ~Chain() {
    for (uint64_t address : {inputs, made, state, d, k, g, out})
      (void)device.free(address);
  }

  /// All bits that it leaves behind, after so many steps; launched one by one,
  /// or as replays of a graph.
  std::vector<uint16_t> run(bool isGraph) {
    if (isGraph) {
      constexpr int warmups = 3; // Of Device::time, which replays them all.
      check(device
                .time([&] { return launch(0, stepsOfGraph); },
                      steps / stepsOfGraph - warmups)
                .status());
    } else {
      check(launch(0, steps));
      check(device.synchronize());
    }
    std::vector<uint16_t> all;
    for (auto [address, bytes] :
         {std::pair(state, stateBytes), std::pair(d, dBytes),
          std::pair(k, kBytes), std::pair(g, gBytes),
          std::pair(out, steps * outBytes)}) {
      const size_t before = all.size();
      all.resize(before + bytes / 2);
      check(device.copyFromDevice(&all[before], address, bytes));
    }
    return all;
  }

private:
  static constexpr int64_t stateBytes = rows * heads * size * size * 4;
  static constexpr int64_t dBytes = rows * heads * depth * size * 4;
  static constexpr int64_t kBytes = rows * depth * size * 4;
  static constexpr int64_t gBytes = rows * heads * depth * 4;

  uint64_t memory(int64_t bytes, const char *name) {
    Result<uint64_t> address = device.allocate(bytes, name);
    check(address.status());
    check(device.fill32On(device.stream(), *address, 0, bytes / 4));
    return *address;
  }

  void fill() {
    std::mt19937 random(7);
    std::uniform_real_distribution<float> number(-1, 1);
    auto bf16 = [&] {
      return uint16_t(std::bit_cast<uint32_t>(number(random)) >> 16);
    };
    std::vector<Inputs> all(tokens);
    std::vector<char> token(tokens * tokenBytes);
    for (int n = 0; n < tokens; ++n) {
      for (int row = 0; row < rows; ++row) {
        for (int head = 0; head < heads; ++head) {
          all[n].a[row][head] = bf16();
          all[n].b[row][head] = bf16();
        }
        for (uint16_t &element : all[n].qkv[row])
          element = bf16();
      }
      std::memcpy(&token[n * tokenBytes], all[n].a, tokenBytes);
    }
    Inputs first = {};
    for (int head = 0; head < heads; ++head)
      first.dtBias[head] = first.aLog[head] = 0.1f * float(head);
    for (int row = 0; row < rows; ++row) {
      first.slots[row] = rows - 1 - row;
      for (int phase = 0; phase < depth; ++phase)
        first.cursors[phase][row] = phase;
    }
    inputs = memory(sizeof first, "inputs");
    made = memory(token.size(), "tokens");
    state = memory(stateBytes, "state");
    d = memory(dBytes, "dRing");
    k = memory(kBytes, "kRing");
    g = memory(gBytes, "gRing");
    out = memory(steps * outBytes, "out");
    check(device.synchronize());
    check(device.copyToDevice(inputs, &first, sizeof first));
    check(device.copyToDevice(made, token.data(), token.size()));
  }

  Status launch(int begin, int end) {
    DecodeArgs args;
    args.batch = args.slots = rows;
    args.stateIndices = inputs + offsetof(Inputs, slots);
    args.stateIndexStride = 1;
    args.state = state;
    args.statePitch = heads * size * size;
    args.q = inputs + offsetof(Inputs, qkv);
    args.qStride = sizeof(Inputs::qkv) / rows / 2;
    args.a = inputs + offsetof(Inputs, a);
    args.b = inputs + offsetof(Inputs, b);
    args.aStride = args.bStride = heads;
    args.aLog = inputs + offsetof(Inputs, aLog);
    args.dtBias = inputs + offsetof(Inputs, dtBias);
    args.outStride = heads * size;
    args.dRing = d;
    args.kRing = k;
    args.gRing = g;
    args.dPitch = heads * depth * size;
    args.kPitch = depth * size;
    args.gPitch = heads * depth;
    args.scale = 1;
    for (int n = begin; n < end; ++n) {
      const uint64_t params[] = {made + n % tokens * tokenBytes,
                                 inputs + tokenBegin};
      if (Status status = device.launchOn(device.stream(), *produce, 1, params,
                                          sizeof params, order);
          !status)
        return status;
      args.writePos = inputs + offsetof(Inputs, cursors) +
                      n % depth * sizeof(Inputs::cursors[0]);
      args.out = out + n * outBytes;
      if (Status status =
              decode.launchOn(device.stream(), args, ArgsCheck::Full, order);
          !status)
        return status;
    }
    return Status::ok();
  }

  Device &device = testDevice();
  KernelHandle decode;
  LaunchOrder order;
  std::unique_ptr<LoadedKernel> produce;
  uint64_t inputs = 0, made = 0, state = 0, d = 0, k = 0, g = 0, out = 0;
};

} // namespace

TEST_CASE("launches that read their state first are right", "[device]") {
  for (ProgrammaticLaunch launch :
       {ProgrammaticLaunch::Late, ProgrammaticLaunch::Early}) {
    const KernelHandle decode = decodeKernel(launch);
    for (bool isGraph : {false, true}) {
      INFO(wordOf(launch) << (isGraph ? ", in graphs" : ""));
      const auto serial = Chain(late, decode, LaunchOrder::Serial).run(isGraph);
      CHECK(std::set(serial.begin(), serial.end()).size() > 1000);
      // Not by itself: Catch would print all of both.
      const bool isSame =
          Chain(late, decode, LaunchOrder::Programmatic).run(isGraph) == serial;
      CHECK(isSame);
    }
  }
}

// That no luck was needed above.
TEST_CASE("what the contract forbids goes wrong", "[device]") {
  const KernelHandle decode = decodeKernel(ProgrammaticLaunch::Early);
  const auto serial = Chain(late, decode, LaunchOrder::Serial).run(false);
  auto wrongAfter = [&](const char *beginning, const KernelHandle &kernel) {
    const auto all = Chain(beginning, kernel, LaunchOrder::Programmatic)
                         .run(/*isGraph=*/false);
    return std::mismatch(all.begin(), all.end(), serial.begin()).first !=
           all.end();
  };
  // Between two steps stands no kernel that is ordinary or late.
  CHECK(wrongAfter(early, decode));
  // A token is read before it is made.
  CHECK(wrongAfter(late, decodeKernel(ProgrammaticLaunch::Early, false)));
}
