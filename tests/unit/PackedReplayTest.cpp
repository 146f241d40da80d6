//===- PackedReplayTest.cpp - Packed decode against replay with L = 1 -----===//
//
// Without a ring replay decode is packed decode: both read, update and write
// the state at each token, and must give the same result on the same inputs.
//
//===----------------------------------------------------------------------===//

#include "tests/unit/TestDevice.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <set>

using namespace replayjit::internal;
using namespace replayjit::internal::test;

namespace {

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

void compare(const DecodeSpec &replaySpec, const DecodeTuning &tuning) {
  constexpr int batch = 3, slots = 5, steps = 4;
  DecodeSpec packedSpec = replaySpec;
  packedSpec.family = Family::Packed;
  packedSpec.hasForceFlush = false;
  INFO(kernelName(replaySpec, tuning));
  TestKernel replay(replaySpec, tuning), packed(packedSpec, tuning);
  Launch ofReplay(replaySpec, batch, slots), ofPacked(packedSpec, batch, slots);
  const int64_t outputs = replaySpec.numValueHeads * replaySpec.headDimV;
  for (int i = 0; i < steps; ++i) {
    ofReplay.freshInputs();
    ofPacked.freshInputs(); // the same: both draw from one seed
    replay.step(ofReplay);
    packed.step(ofPacked);
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

TEST_CASE("packed decode is replay with L = 1", "[kernel][device]") {
  using enum DataType;
  struct Types {
    DataType act, out, state;
  };
  struct Sizes {
    int H, HV, K, V;
  };
  std::set<int> rowsOfBlocks;
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
        const DecodeTuning few = chooseTuning(spec, 1, testDevice().target());
        const DecodeTuning many = chooseTuning(spec, 0, testDevice().target());
        for (int alignment : {0, 16}) {
          spec.alignment = alignment;
          compare(spec, few);
          if (alignment && many != few)
            compare(spec, many);
        }
        rowsOfBlocks.insert({few.blockV, many.blockV});
      }
  CHECK(rowsOfBlocks == std::set<int>{8, 16});
}
