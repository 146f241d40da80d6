//===- TritonAbiTest.cpp - Kernels that Triton could launch ---------------===//

#include "kernels/Decode/TritonArgs.h"
#include "kernels/FamilyBuilder.h"
#include "runtime/CompileOnMiss.h"
#include "runtime/DecodeLaunch.h"
#include "runtime/aot/PtxEntry.h"

#include <catch2/catch.hpp>

#include <random>

using namespace replayjit::internal;
using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

namespace {

DecodeSpec smallSpec(LaunchAbi abi) {
  DecodeSpec spec;
  spec.numKeyHeads = 1;
  spec.numValueHeads = 2;
  spec.headDimK = 16;
  spec.headDimV = 40;
  spec.ringDepth = 4;
  spec.actType = spec.gateType = spec.betaType = spec.outType = DataType::F32;
  spec.abi = abi;
  return spec;
}

/// Three tiles of a head's V.
constexpr DecodeTuning smallTiles = {16, 16, 1, 2};

CompiledKernel compileFor(const DecodeSpec &spec, bool forHost) {
  Compiler compiler;
  CompileOptions options;
  options.last = Stage::PTX;
  auto kernel =
      compileKernel(compiler, spec, smallTiles, Target(), options, forHost);
  INFO(kernel.status().message);
  REQUIRE(kernel);
  return *kernel;
}

constexpr int rows = 3, slots = 4;

/// Dense tensors of a launch whose rows flush, are padding, and append.
class Tensors {
public:
  explicit Tensors(Device &device) : device(device) {
    const DenseStrides dense = denseStrides(smallSpec(LaunchAbi::Triton));
    args.batch = rows;
    args.slots = slots;
    args.scale = 0.25f;
    args.stateIndexStride = 1;
    args.q = floats(rows * (args.qStride = dense.q));
    args.a = floats(rows * (args.aStride = dense.a));
    args.b = floats(rows * (args.bStride = dense.b));
    args.aLog = floats(2);
    args.dtBias = floats(2);
    args.out = floats(rows * (args.outStride = dense.out));
    args.state = floats(slots * (args.statePitch = dense.state));
    args.dRing = floats(slots * (args.dPitch = dense.d));
    args.kRing = floats(slots * (args.kPitch = dense.k));
    args.gRing = floats(slots * (args.gPitch = dense.g));
    args.stateIndices = upload(std::vector<int32_t>{2, -1, 0});
    args.writePos = upload(std::vector<int32_t>{3, 0, 1});
    args.forceFlush = upload(std::vector<int32_t>{0, 0, 0});
  }

  uint64_t floats(int64_t count) {
    std::vector<float> values(count);
    for (float &value : values)
      value = 0.5f * normal(random);
    return upload(values);
  }
  template <typename T> uint64_t upload(const std::vector<T> &values) {
    auto address = device.allocate(values.size() * sizeof(T), "tensor");
    REQUIRE(address);
    REQUIRE(device.copyToDevice(*address, values.data(),
                                values.size() * sizeof(T)));
    return *address;
  }
  std::vector<float> read(uint64_t address, int64_t count) {
    std::vector<float> values(count);
    REQUIRE(device.copyFromDevice(values.data(), address, count * 4));
    return values;
  }

  Device &device;
  DecodeArgs args;
  std::mt19937 random{3};
  std::normal_distribution<float> normal;
};

} // namespace

TEST_CASE("Triton's parameters lie as TritonArgs has them", "[triton]") {
  for (bool isKda : {false, true}) {
    DecodeSpec spec = smallSpec(LaunchAbi::Triton);
    spec.isKda = isKda;
    const CompiledKernel kernel = compileFor(spec, /*forHost=*/false);
    const struct {
      const char *name;
      size_t offset;
    } order[] = {{"q", offsetof(TritonArgs, q)},
                 {"a", offsetof(TritonArgs, a)},
                 {"b", offsetof(TritonArgs, b)},
                 {"aLog", offsetof(TritonArgs, aLog)},
                 {"dtBias", offsetof(TritonArgs, dtBias)},
                 {"out", offsetof(TritonArgs, out)},
                 {"state", offsetof(TritonArgs, state)},
                 {"finalState", offsetof(TritonArgs, finalState)},
                 {"dRing", offsetof(TritonArgs, dRing)},
                 {"kRing", offsetof(TritonArgs, kRing)},
                 {"gRing", offsetof(TritonArgs, gRing)},
                 {"stateIndices", offsetof(TritonArgs, stateIndices)},
                 {"writePos", offsetof(TritonArgs, writePos)},
                 {"forceFlush", offsetof(TritonArgs, forceFlush)},
                 {"scale", offsetof(TritonArgs, scale)},
                 {"globalScratch", offsetof(TritonArgs, globalScratch)},
                 {"profileScratch", offsetof(TritonArgs, profileScratch)}};
    const auto &params = kernel.signature.params;
    REQUIRE(params.size() == std::size(order));
    for (size_t i = 0; i < params.size(); ++i) {
      INFO(i);
      CHECK(params[i].name == order[i].name);
      CHECK(params[i].offset == order[i].offset);
    }
    CHECK(kernel.signature.bytes == sizeof(TritonArgs));

    // What the driver sees: the PTX itself.
    auto entry = kernelFromPtx(kernel.ptx);
    INFO(entry.status().message);
    REQUIRE(entry);
    CHECK(entry->name == kernelName(spec, smallTiles));
    CHECK_THAT(kernel.ptx, Contains(".reqntid 32"));
    CHECK(entry->launch.threads == 32);
    REQUIRE(entry->signature.params.size() == 17);
    CHECK(entry->signature.bytes == sizeof(TritonArgs));
    for (size_t i = 0; i < 17; ++i) {
      CHECK(entry->signature.params[i].kind == params[i].kind);
      CHECK(entry->signature.params[i].offset == params[i].offset);
    }
  }
}

TEST_CASE("both ABIs compute the same bits", "[triton]") {
  auto device = createEmulationDevice(Target());
  const DecodeSpec spec = smallSpec(LaunchAbi::Triton);
  const CompiledKernel native = compileFor(smallSpec(LaunchAbi::Native),
                                           /*forHost=*/true),
                       triton = compileFor(spec, /*forHost=*/true);
  auto loadedNative = device->load(native), loadedTriton = device->load(triton);
  REQUIRE(loadedNative);
  REQUIRE(loadedTriton);

  Tensors one(*device), other(*device);
  REQUIRE(device->launch(**loadedNative, rows * native.launch.blocksPerRow,
                         &one.args, sizeof(one.args)));
  // A checkpoint is read from h0 and flushed to ht.
  TritonArgs args = toTritonArgs(other.args);
  const int64_t stateSize = slots * other.args.statePitch;
  args.finalState = other.upload(std::vector<float>(stateSize, 9));
  const std::vector<float> before = other.read(args.state, stateSize);
  REQUIRE(gridOf(spec, triton.launch, rows) == Grid(3, rows, 2));
  REQUIRE(device->launch(**loadedTriton, gridOf(spec, triton.launch, rows),
                         &args, sizeof(args)));

  auto isSame = [&](uint64_t DecodeArgs::*tensor, int64_t count) {
    return one.read(one.args.*tensor, count) ==
           other.read(other.args.*tensor, count);
  };
  CHECK(isSame(&DecodeArgs::out, rows * one.args.outStride));
  CHECK(isSame(&DecodeArgs::dRing, slots * one.args.dPitch));
  CHECK(isSame(&DecodeArgs::kRing, slots * one.args.kPitch));
  CHECK(isSame(&DecodeArgs::gRing, slots * one.args.gPitch));
  CHECK(other.read(args.state, stateSize) == before);
  std::vector<float> flushed = one.read(one.args.state, stateSize);
  CHECK(flushed != before);
  for (int64_t i = 0; i < stateSize; ++i)
    if (i / one.args.statePitch != 2) // the slot of the row that flushes
      flushed[i] = 9;
  CHECK(other.read(args.finalState, stateSize) == flushed);
}

TEST_CASE("a Jit launches them with DecodeArgs that are dense", "[triton]") {
  auto device = createEmulationDevice(Target());
  JitOptions options;
  options.compile = compileOnMiss();
  auto jit = Jit::create(*device, options);
  REQUIRE(jit);
  auto native = (*jit)->prepare(smallSpec(LaunchAbi::Native), smallTiles);
  auto triton = (*jit)->prepare(smallSpec(LaunchAbi::Triton), smallTiles);
  REQUIRE(native);
  REQUIRE(triton);
  Tensors one(*device), other(*device);
  REQUIRE(native->launch(one.args));
  REQUIRE(triton->launch(other.args));
  const int64_t stateSize = slots * one.args.statePitch;
  CHECK(one.read(one.args.state, stateSize) ==
        other.read(other.args.state, stateSize));

  auto refuses = [&](auto change, const char *why) {
    DecodeArgs args = other.args;
    change(args);
    const Status status = triton->launch(args);
    CHECK_THAT(status.message, Contains(why));
    args.batch = 1; // whose strides are never used
    return triton->launch(args);
  };
  CHECK(refuses([](DecodeArgs &args) { args.aStride = 4; },
                "aStride: 4 is not allowed with abi triton, whose kernel is "
                "compiled for 2"));
  CHECK(refuses([](DecodeArgs &args) { args.stateIndexStride = 2; },
                "stateIndexStride: 2 is not allowed with abi triton"));
  CHECK_FALSE(refuses([](DecodeArgs &args) { args.statePitch += 4; },
                      "statePitch: 1284 is not allowed with abi triton, whose "
                      "kernel is compiled for 1280"));
  CHECK_FALSE(refuses([](DecodeArgs &args) { args.errorWord = 64; },
                      "errorWord: 0x40 is not allowed with abi triton"));
  CHECK(refuses([](DecodeArgs &args) { args.batch = 65536; },
                "batch: 65536 is not allowed with abi triton, whose grid has "
                "at most 65535 rows"));
}

TEST_CASE("what Triton's signature lacks is refused", "[triton]") {
  auto refusal = [](auto change) {
    DecodeSpec spec = smallSpec(LaunchAbi::Triton);
    change(spec);
    return validate(spec, smallTiles, Target()).message;
  };
  CHECK(refusal([](DecodeSpec &) {}).empty());
  CHECK_THAT(refusal([](DecodeSpec &spec) {
               spec.family = Family::Packed;
               spec.ringDepth = 1;
             }),
             StartsWith("abi: triton is not allowed with family packed"));
  CHECK_THAT(refusal([](DecodeSpec &spec) {
               spec.isKda = true;
               spec.gate = Gate::LowerBound;
             }),
             StartsWith("abi: triton is not allowed with gate lowerBound"));
  CHECK(refusal([](DecodeSpec &spec) { spec.gate = Gate::LogDecay; }) ==
        "abi: triton is not allowed with gate logDecay; its signature means "
        "the softplus gate");
  CHECK(refusal([](DecodeSpec &spec) { spec.beta = Beta::Given; }) ==
        "abi: triton is not allowed with beta given; its signature means a "
        "sigmoid of b");
  CHECK(refusal([](DecodeSpec &spec) { spec.rule = Rule::Additive; }) ==
        "abi: triton is not allowed with rule additive; its signature means "
        "the delta rule");
  CHECK(refusal([](DecodeSpec &spec) { spec.skip = Skip::Head; }) ==
        "abi: triton is not allowed with skip head; its signature has no "
        "argument for it");
  for (bool DecodeSpec::*fact :
       {&DecodeSpec::isCircular, &DecodeSpec::hasSeparateQkv,
        &DecodeSpec::hasRingIndices, &DecodeSpec::hasDstIndices,
        &DecodeSpec::hasTrackIndices, &DecodeSpec::hasOutGate,
        &DecodeSpec::trapOnError})
    CHECK_THAT(refusal([&](DecodeSpec &spec) { spec.*fact = true; }),
               Contains("= true; its signature has no argument for it"));
  // 2 * 16 + 2 * 41 elements of four bytes
  CHECK_THAT(refusal([](DecodeSpec &spec) { spec.headDimV = 41; }),
             StartsWith("alignment: 16 is not allowed with abi triton and "
                        "these sizes, since a dense row of mixed_qkv has 456 "
                        "bytes"));
  CHECK(refusal([](DecodeSpec &spec) {
          spec.headDimV = 41;
          spec.alignment = 0;
        }).empty());
}
