//===- KernelExamplesTest.cpp - Launches to follow by hand ----------------===//
//
// Numbers of the operator contract, computed by kernels on the test device.
//
//===----------------------------------------------------------------------===//

#include "tests/unit/TestDevice.h"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace replayjit::internal;
using namespace replayjit::internal::test;

namespace {

/// The largest magnitude of row 0, NaN left out.
double largest(const HostTensor &tensor, int64_t size) {
  double result = 0;
  for (int64_t i = 0; i < size; ++i)
    result = std::fmax(result, std::abs(tensor.get(0, i)));
  return result;
}

} // namespace

TEST_CASE("a kernel's beta, rounded and not", "[kernel][device]") {
  // beta = sigmoid(0.5), S = 0, k = v = e0: S' has beta at (0, 0).
  struct Rounding {
    bool isAsked;
    DataType betaType, gateType = DataType::BF16;
    bool isRounded = false; ///< Through b's type, whatever that of a.
  };
  for (Family family : {Family::Replay, Family::Packed})
    for (auto [isAsked, betaType, gateType, isRounded] :
         {Rounding{false, DataType::BF16},
          {true, DataType::BF16, DataType::BF16, true},
          {true, DataType::BF16, DataType::F32, true},
          {true, DataType::F32}}) {
      DecodeSpec spec = makeSpec(1, 1, 4, 3, 1);
      spec.family = family;
      spec.actType = DataType::BF16;
      spec.gateType = gateType;
      spec.betaType = betaType;
      spec.betaRound = isAsked;
      Launch launch(spec, 1, 1);
      const DecodeTensors t = launch.tensors();
      for (int i = 0; i < 12; ++i)
        t.state.set(0, i, 0);
      for (int i = 0; i < 4; ++i) {
        t.q.set(0, i, 0);
        t.k.set(0, i, i == 0);
      }
      for (int i = 0; i < 3; ++i)
        t.v.set(0, i, i == 0);
      t.a.set(0, 0, 0);
      t.b.set(0, 0, 0.5);
      TestKernel(spec).step(launch);
      // k is normalized: 1 / sqrt(1 + 1e-6)
      const double beta = isRounded ? 0.62109375 : 0.62245935;
      CHECK(std::abs(t.state.get(0, 0) - beta) < 1e-6);
      for (int i = 1; i < 12; ++i)
        CHECK(t.state.get(0, i) == 0);
      CHECK(t.out.get(0, 0) == 0);
    }
}

TEST_CASE("a kernel's circular batch", "[kernel][device]") {
  for (RingFormat format : {RingFormat::Prefix, RingFormat::Predecayed}) {
    DecodeSpec spec = makeSpec(2, 2, 8, 6, 4);
    spec.isKda = true;
    spec.gate = Gate::LowerBound;
    spec.ringFormat = format;
    spec.isCircular = true;
    std::vector<RingCursor> cursors = {{0, 0}, {2, 1}, {3, 2}, {0, 0}};
    const int slots[] = {1, 2, -1}, forced[] = {1, 0, 0};
    auto prepare = [&](Launch &launch) {
      launch.freshInputs();
      const DecodeTensors t = launch.tensors();
      for (int slot = 0; slot < 4; ++slot)
        for (int j = 0; j < cursors[slot].writePos; ++j) {
          const int place = ringRow(spec, cursors[slot], j);
          for (int h = 0; h < 2; ++h) {
            for (int i = 0; i < 6; ++i)
              t.dRing.set(slot, (h * 4 + place) * 6 + i,
                          launch.normal(launch.random));
            for (int i = 0; i < 8; ++i) {
              t.kRing.set(slot, (h * 4 + place) * 8 + i,
                          0.3 * launch.normal(launch.random));
              t.gRing.set(slot, (h * 4 + place) * 8 + i, -0.5 * (j + 1));
            }
          }
        }
      for (int row = 0; row < 3; ++row) {
        const RingCursor at =
            slots[row] < 0 ? RingCursor() : cursors[slots[row]];
        t.stateIndices.set(row, 0, slots[row]);
        t.writePos.set(row, 0, at.writePos);
        t.ringBase.set(row, 0, at.base);
        t.forceFlush.set(row, 0, forced[row]);
      }
    };
    Launch launch(spec, 3, 4), expected(spec, 3, 4);
    prepare(launch);
    prepare(expected);
    TestKernel(spec).step(launch);
    replayStep(spec, expected.args);

    const DecodeTensors x = launch.tensors(), y = expected.tensors();
    checkNear(x.out, y.out, 3, 12, 1e-5);
    checkNear(x.state, y.state, 4, 96, 1e-5);
    checkNear(x.dRing, y.dRing, 4, 48, 1e-5);
    checkNear(x.kRing, y.kRing, 4, 64, 1e-5);
    checkNear(x.gRing, y.gRing, 4, 64, 1e-5);
    CHECK(launch.guardsIntact());
    CHECK(launch.error.count == 0);
    for (int i = 0; i < 12; ++i)
      CHECK(x.out.get(2, i) == 0);
    // The kernel moved no cursor; the caller does.
    for (int row = 0; row < 3; ++row) {
      CHECK(x.writePos.get(row, 0) == y.writePos.get(row, 0));
      CHECK(x.ringBase.get(row, 0) == y.ringBase.get(row, 0));
      if (slots[row] >= 0)
        cursors[slots[row]] =
            nextCursor(spec, cursors[slots[row]], forced[row] != 0);
    }
    CHECK(cursors == std::vector<RingCursor>{{0, 0}, {0, 0}, {1, 1}, {0, 0}});
  }
}

// With a state of 3e5 the outputs, the rows of d and the flushed state all go
// beyond the largest fp16 number, that of the activations.
TEST_CASE("a kernel's fp32 outputs outlast fp16's range", "[kernel][device]") {
  constexpr int K = 16, V = 16, HV = 2;
  for (bool isKda : {false, true})
    for (Readout readout : {Readout::OutputOnly, Readout::Rebuild})
      for (int depth : {1, 4}) {
        DecodeSpec spec = makeSpec(1, HV, K, V, depth);
        spec.isKda = isKda;
        spec.readout = readout;
        spec.actType = spec.gateType = spec.betaType = DataType::F16;
        TestKernel kernel(spec);
        Launch launch(spec, 1, 1), expected(spec, 1, 1);
        for (Launch *memory : {&launch, &expected})
          for (int i = 0; i < HV * V * K; ++i)
            memory->tensors().state.set(0, i,
                                        3e5 * memory->normal(memory->random));
        // The dot of a rebuilt state rounds its operands to tf32.
        const bool hasDot = readout == Readout::Rebuild && depth > 1;
        const double bound = hasDot ? 1e-3 : 1e-5;
        const DecodeTensors x = launch.tensors(), y = expected.tensors();
        RingCursor cursor;
        // Over a natural flush and, with what that left, a forced one.
        for (int step = 0; step < depth + 3; ++step) {
          const bool forced = step == depth + 2;
          for (Launch *memory : {&launch, &expected}) {
            memory->freshInputs();
            for (int i = 0; i < HV * gateWidth(spec); ++i)
              memory->tensors().a.set(0, i, -8); // hardly forgets
            memory->tensors().writePos.set(0, 0, cursor.writePos);
            memory->tensors().forceFlush.set(0, 0, forced);
          }
          kernel.step(launch);
          replayStep(spec, expected.args);
          CAPTURE(kernelName(spec, {}), step);
          checkNear(x.out, y.out, 1, HV * V, bound);
          checkNear(x.dRing, y.dRing, 1, HV * depth * V, bound);
          checkNear(x.state, y.state, 1, HV * V * K, bound);
          CHECK(largest(y.out, HV * V) > 65504);
          CHECK(largest(y.state, HV * V * K) > 65504);
          if (cursor.writePos > 0)
            CHECK(largest(y.dRing, HV * depth * V) > 65504);
          cursor = nextCursor(spec, cursor, forced);
        }
        CHECK(launch.guardsIntact());
      }
}
