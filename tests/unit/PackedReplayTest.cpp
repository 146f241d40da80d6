//===- PackedReplayTest.cpp - Packed decode against replay with L = 1 -----===//
//
// Without a ring replay decode is packed decode: both read, update and write
// the state at each token, and must give the same result on the same inputs.
//
//===----------------------------------------------------------------------===//

#include "compiler/Host/Emulator.h"
#include "kernels/Decode/DecodeBuilder.h"
#include "tests/unit/DecodeLaunch.h"

#include <catch2/catch.hpp>

#include <cmath>

using namespace replayjit;

namespace {

CompiledKernel compile(const DecodeSpec &spec) {
  const Target target;
  Compiler compiler;
  Result<CompiledKernel> kernel =
      compileDecode(compiler, spec, chooseTuning(spec, 1, target), target,
                    CompileOptions(), /*forHost=*/true);
  INFO(kernel.status().message);
  REQUIRE(kernel);
  return *kernel;
}

/// One step of `kernel` in the memory of `launch`, under emulation.
void step(Launch &launch, const CompiledKernel &kernel) {
  host::MemoryMap memory;
  launch.forEachTensor([&](std::vector<char> &bytes) {
    REQUIRE(memory.add("tensor", bytes.data(), bytes.size()));
  });
  REQUIRE(memory.add("error word", &launch.error, sizeof(launch.error)));
  host::GridLaunch grid;
  grid.entry = kernel.hostProgram->entry;
  grid.sites = &kernel.hostProgram->sites;
  grid.blocks = uint32_t(launch.args.batch) * kernel.launch.blocksPerRow;
  grid.threads = kernel.launch.threads;
  grid.sharedBytes = kernel.launch.sharedBytes;
  grid.params = &launch.args;
  REQUIRE(host::runGrid(grid, memory).message == "");
}

/// ||x - y|| / ||y|| over `rows` rows of `count` elements.
double difference(const HostTensor &x, const HostTensor &y, int rows,
                  int64_t count) {
  double wrong = 0, all = 0;
  for (int row = 0; row < rows; ++row)
    for (int64_t i = 0; i < count; ++i) {
      wrong += std::pow(x.get(row, i) - y.get(row, i), 2);
      all += std::pow(y.get(row, i), 2);
    }
  REQUIRE(all > 0);
  return std::sqrt(wrong / all);
}

void compare(const DecodeSpec &replaySpec) {
  constexpr int batch = 3, slots = 5, steps = 4;
  DecodeSpec packedSpec = replaySpec;
  packedSpec.family = Family::Packed;
  packedSpec.hasForceFlush = false;
  const CompiledKernel replay = compile(replaySpec);
  const CompiledKernel packed = compile(packedSpec);
  Launch ofReplay(replaySpec, batch, slots), ofPacked(packedSpec, batch, slots);
  const int64_t outputs = replaySpec.numValueHeads * replaySpec.headDimV;
  for (int i = 0; i < steps; ++i) {
    ofReplay.freshInputs();
    ofPacked.freshInputs(); // the same: both draw from one seed
    step(ofReplay, replay);
    step(ofPacked, packed);
    const DecodeTensors x = ofReplay.tensors(), y = ofPacked.tensors();
    CAPTURE(i);
    CHECK(difference(x.out, y.out, batch, outputs) <= 2e-6);
    CHECK(difference(x.state, y.state, slots, outputs * replaySpec.headDimK) <=
          2e-6);
  }
  CHECK(ofReplay.guardsIntact());
  CHECK(ofPacked.guardsIntact());
}

} // namespace

TEST_CASE("packed decode is replay with L = 1", "[kernel]") {
  using enum DataType;
  struct Types {
    DataType act, out, state;
  };
  struct Sizes {
    int H, HV, K, V;
  };
  for (Types types : {Types{F32, F32, F32},
                      {BF16, F32, F32},
                      {BF16, BF16, BF16},
                      {F16, F16, F16}})
    for (Sizes sizes : {Sizes{1, 2, 64, 64}, {2, 2, 60, 100}, {1, 3, 128, 32}})
      for (int gate = 0; gate < 3; ++gate) {
        DecodeSpec spec =
            makeSpec(sizes.H, sizes.HV, sizes.K, sizes.V, /*L=*/1);
        spec.actType = spec.gateType = spec.betaType = types.act;
        spec.outType = types.out;
        spec.stateType = types.state;
        spec.isKda = gate > 0;
        spec.gate = gate == 2 ? Gate::LowerBound : Gate::Softplus;
        spec.alignment = 0;
        INFO(kernelName(spec, chooseTuning(spec, 1, Target{})));
        compare(spec);
      }
}
