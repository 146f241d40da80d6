//===- OverflowTest.cpp - Numbers beyond the range of what stores them ----===//
//
// R18: what fp16 cannot hold becomes its largest number and is reported; what
// is infinite or NaN stays. Against the fp64 reference, for each tensor that a
// launch stores.
//
//===----------------------------------------------------------------------===//

#include "kernels/Materialize/MaterializeReference.h"
#include "tests/unit/TestDevice.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <functional>

using namespace replayjit::internal;
using namespace replayjit::internal::test;

namespace {

constexpr int K = 16, V = 16, L = 4;
constexpr auto F32 = DataType::F32, BF16 = DataType::BF16, F16 = DataType::F16;
constexpr double largest = 65504;

struct Stored {
  DataType state = F32, ring = F32, out = F32;
};

DecodeSpec specOf(const Stored &types, bool isKda = false) {
  DecodeSpec spec = makeSpec(1, 1, K, V, L);
  spec.isKda = isKda;
  spec.stateType = types.state;
  spec.ringType = types.ring;
  spec.outType = types.out;
  return spec;
}

/// One row at `cursor` with a state that is `scale` times as large as usual, a
/// ring of small tokens, and gates that forget little.
void prepare(Launch &launch, int cursor, double scale) {
  const DecodeSpec &spec = launch.spec;
  const DecodeTensors t = launch.tensors();
  launch.freshInputs();
  auto draw = [&] { return 0.3 * launch.normal(launch.random); };
  for (int i = 0; i < V * K; ++i)
    t.state.set(0, i, scale * t.state.get(0, i));
  for (int j = 0; j < cursor; ++j) {
    for (int i = 0; i < V; ++i)
      t.dRing.set(0, j * V + i, draw());
    for (int i = 0; i < K; ++i)
      t.kRing.set(0, j * K + i, draw());
    for (int i = 0; i < gateWidth(spec); ++i)
      t.gRing.set(0, j * gateWidth(spec) + i, -0.01);
  }
  for (int i = 0; i < gateWidth(spec); ++i) {
    t.a.set(0, i, -5);
    t.dtBias.set(0, i, 0);
  }
  t.writePos.set(0, 0, cursor);
}

int countOf(const HostTensor &tensor, int64_t size,
            const std::function<bool(double)> &holds) {
  int count = 0;
  for (int64_t i = 0; i < size; ++i)
    count += holds(tensor.get(0, i));
  return count;
}
bool isLargest(double x) { return std::abs(x) == largest; }
bool isInfinite(double x) { return std::isinf(x); }

/// Steps the kernel and the reference from the same memory and compares.
struct Both {
  Both(const DecodeSpec &spec, int cursor, double scale,
       const std::function<void(Launch &)> &change = {})
      : have(spec, 1, 1), want(spec, 1, 1) {
    for (Launch *launch : {&have, &want}) {
      prepare(*launch, cursor, scale);
      if (change)
        change(*launch);
    }
    TestKernel kernel(spec, DecodeTuning{16, 16, 2, 2});
    kernel.step(have);
    replayStep(spec, want.args);
    // fp16 rounds to 5e-4 of the largest; tf32 and its cuts to twice that.
    double bound = spec.readout == Readout::Rebuild ? 3e-3 : 2e-6;
    if (storesF16(spec))
      bound = std::max(bound, 6e-4);
    const DecodeTensors x = have.tensors(), y = want.tensors();
    checkNear(x.out, y.out, 1, V, bound);
    checkNear(x.state, y.state, 1, V * K, bound);
    if (spec.ringDepth > 1) {
      checkNear(x.dRing, y.dRing, 1, L * V, bound);
      checkNear(x.kRing, y.kRing, 1, L * K, bound);
    }
    CHECK(have.error.kind == want.error.kind);
    CHECK((have.error.count > 0) == (want.error.count > 0));
  }
  /// R17, R18: what both say.
  void checkReport(bool isExpected) const {
    CHECK((ErrorKind(have.error.kind) == ErrorKind::Overflow) == isExpected);
    if (!isExpected)
      return;
    CHECK(want.error.count == 1);
    CHECK(have.error.count >= 1);
    CHECK(have.error.row == 0);
    CHECK(have.error.layer == have.args.layer);
    // One of those that were too large, and no larger than the worst.
    CHECK(have.error.value >= 65519);
    CHECK(double(have.error.value) <= 1.001 * double(want.error.value));
  }
  Launch have, want;
};

} // namespace

TEST_CASE("an fp16 ring keeps what it can of a large state",
          "[kernel][device]") {
  for (bool isKda : {false, true})
    for (Readout readout : {Readout::OutputOnly, Readout::Rebuild}) {
      DecodeSpec spec = specOf({.ring = F16}, isKda);
      spec.readout = readout;
      CAPTURE(isKda, int(readout));
      const Both small(spec, 1, 1e4);
      small.checkReport(false);
      const Both both(spec, 1, 1e6, [](Launch &l) { l.args.layer = 3; });
      both.checkReport(true);
      const HostTensor d = both.have.tensors().dRing;
      CHECK(countOf({F16, d.address + V * 2, d.pitch}, V, isLargest) > 0);
      CHECK(countOf({F16, d.address + V * 2, d.pitch}, V, isInfinite) == 0);
    }
}

TEST_CASE("a large state survives rings and flushes of fp16",
          "[kernel][device]") {
  const DecodeSpec spec = specOf({.ring = F16});
  TestKernel kernel(spec, DecodeTuning{16, 16, 2, 2});
  Launch launch(spec, 1, 1);
  prepare(launch, 0, 1e6);
  for (int step = 0; step < 3 * L; ++step) {
    launch.tensors().writePos.set(0, 0, step % L);
    kernel.step(launch);
    launch.freshInputs();
  }
  CHECK(countOf(launch.tensors().state, V * K,
                [](double x) { return std::isfinite(x); }) == V * K);
  CHECK(ErrorKind(launch.error.kind) == ErrorKind::Overflow);
}

TEST_CASE("states and outputs of fp16 saturate", "[kernel][device]") {
  for (int cursor : {1, L - 1}) // Reads, and flushes.
    for (Stored types : {Stored{.out = F16}, Stored{.state = F16},
                         Stored{.state = F16, .ring = F16, .out = F16}}) {
      const DecodeSpec spec = specOf(types);
      CAPTURE(cursor, wordOf(types.state), wordOf(types.out));
      // Of a state in fp16 only the update is large.
      const bool isState = types.state == F16;
      const Both both(spec, cursor, isState ? 1 : 1e6, [&](Launch &l) {
        for (int i = 0; i < V; ++i)
          l.tensors().v.set(0, i, i % 2 ? 1e7 : -1e7);
      });
      const DecodeTensors t = both.have.tensors();
      if (types.out == F16)
        CHECK(countOf(t.out, V, isLargest) > 0);
      if (isState && cursor == L - 1)
        CHECK(countOf(t.state, V * K, isLargest) > 0);
      CHECK(countOf(t.out, V, isInfinite) == 0);
      CHECK(countOf(t.state, V * K, isInfinite) == 0);
      both.checkReport(types.out == F16 || cursor == L - 1);
    }
  // So does packed decode; keys that are not normalized go to the k ring.
  DecodeSpec packed = specOf({.state = F16, .out = F16});
  packed.family = Family::Packed;
  packed.ringDepth = 1;
  packed.hasForceFlush = false;
  Both(packed, 0, 1, [](Launch &l) {
    for (int i = 0; i < V; ++i)
      l.tensors().v.set(0, i, 1e7);
  }).checkReport(true);
  DecodeSpec raw = specOf({.ring = F16});
  raw.qkL2Norm = false;
  const Both keys(raw, 0, 0, [](Launch &l) {
    l.tensors().k.set(0, 3, -1e5);
    for (int i = 0; i < V; ++i)
      l.tensors().v.set(0, i, 0); // d = 0
  });
  keys.checkReport(true);
  CHECK(keys.have.tensors().kRing.get(0, 3) == -largest);
}

TEST_CASE("a state of fp16 that is materialized saturates",
          "[kernel][device]") {
  DecodeSpec spec = specOf({.state = F16});
  Launch have(spec, 1, 2), want(spec, 1, 2);
  auto argsOf = [](const DecodeArgs &from, const ReplayLayer *layers) {
    MaterializeArgs args;
    args.layers = reinterpret_cast<uint64_t>(layers);
    args.srcIndices = from.stateIndices;
    args.dstIndices = from.dstIndices;
    args.writePos = from.writePos;
    args.errorWord = from.errorWord;
    args.batch = args.numLayers = 1;
    args.slots = 2;
    return args;
  };
  auto layerOf = [](const DecodeArgs &from) {
    return ReplayLayer{from.state,      from.dRing,  from.kRing,  from.gRing,
                       from.statePitch, from.dPitch, from.kPitch, from.gPitch};
  };
  for (Launch *launch : {&have, &want}) {
    prepare(*launch, 1, 1);
    const DecodeTensors t = launch->tensors();
    t.stateIndices.set(0, 0, 0);
    t.dstIndices.set(0, 0, 1);
    for (int i = 0; i < V * K; ++i)
      t.state.set(0, i, i % 3 ? 6e4 : -6e4);
    for (int i = 0; i < V; ++i)
      t.dRing.set(0, i, 1e4);
    for (int i = 0; i < K; ++i)
      t.kRing.set(0, i, 1);
  }
  spec.family = Family::Materialize;
  spec.hasMask = false;
  TestKernel kernel(spec, DecodeTuning{16, 16, 2, 2});
  {
    DeviceCopy copy(have);
    const ReplayLayer layer = layerOf(copy.args);
    Result<uint64_t> table = testDevice().allocate(sizeof layer, "layers");
    REQUIRE(table.status().message == "");
    REQUIRE(testDevice().copyToDevice(*table, &layer, sizeof layer).isOk());
    const MaterializeArgs args =
        argsOf(copy.args, reinterpret_cast<const ReplayLayer *>(*table));
    // Blocks past the last row do nothing.
    CHECK(kernel.launch(8, &args, sizeof args).message == "");
    copy.fetch();
    REQUIRE(testDevice().free(*table).isOk());
  }
  const ReplayLayer layer = layerOf(want.args);
  materializeLaunch(spec, argsOf(want.args, &layer));
  checkNear(have.tensors().state, want.tensors().state, 2, V * K, 6e-4);
  CHECK(have.tensors().state.get(1, 1) == largest);
  CHECK(ErrorKind(want.error.kind) == ErrorKind::Overflow);
  CHECK(ErrorKind(have.error.kind) == ErrorKind::Overflow);
  CHECK(want.error.count == 1);
  CHECK(have.error.value >= 65519);
  CHECK(have.error.value <= want.error.value);
}

TEST_CASE("rebuild with fp16 outputs reads any ring", "[kernel][device]") {
  for (bool isKda : {false, true})
    for (DataType ring : {F32, BF16}) {
      DecodeSpec spec = specOf({.ring = ring, .out = F16}, isKda);
      spec.readout = Readout::Rebuild;
      CAPTURE(isKda, wordOf(ring));
      // A d of 1e6 that a q and k across from its k do not see.
      const Both both(spec, 1, 1, [](Launch &l) {
        const DecodeTensors t = l.tensors();
        for (int i = 0; i < V; ++i)
          t.dRing.set(0, i, 1e6);
        for (int i = 0; i < K; ++i) {
          t.kRing.set(0, i, i == 0);
          t.q.set(0, i, i == 1);
          t.k.set(0, i, i == 2);
        }
      });
      both.checkReport(false);
      CHECK(countOf(both.have.tensors().out, V, isInfinite) == 0);
    }
}

TEST_CASE("infinities and NaN stay visible", "[kernel][device]") {
  for (double bad : {double(INFINITY), -double(INFINITY), double(NAN)}) {
    const DecodeSpec spec = specOf({.state = F16, .ring = F16, .out = F16});
    CAPTURE(bad);
    const Both both(spec, L - 1, 1,
                    [&](Launch &l) { l.tensors().v.set(0, 5, bad); });
    both.checkReport(false);
    CHECK_FALSE(std::isfinite(both.have.tensors().out.get(0, 5)));
    CHECK_FALSE(std::isfinite(both.have.tensors().state.get(0, 5 * K)));
    CHECK(std::isfinite(both.have.tensors().out.get(0, 4)));
  }
}

TEST_CASE("bf16 has the range of fp32", "[kernel][device]") {
  const DecodeSpec spec = specOf({.state = BF16, .ring = BF16, .out = BF16});
  Launch launch(spec, 1, 1);
  prepare(launch, 1, 1e30);
  TestKernel kernel(spec, DecodeTuning{16, 16, 2, 2});
  kernel.step(launch);
  CHECK(countOf(launch.tensors().out, V,
                [](double x) { return std::isfinite(x); }) == V);
  CHECK(launch.error.count == 0);
  // Its largest number is 3.3895e38; beyond half a step more is infinity.
  CHECK(std::isfinite(roundTo(BF16, 3.39e38)));
  CHECK(std::isinf(roundTo(BF16, 3.4e38)));
}

TEST_CASE("a launch on a row that is no overflow costs no report",
          "[kernel][device]") {
  // Exactly the largest, and what rounds to it.
  const DecodeSpec spec = specOf({.ring = F16});
  for (auto [value, isOver] : {std::pair(65504.0, false),
                               {65519.0, false},
                               {65520.0, true},
                               {-65520.0, true}}) {
    CAPTURE(value);
    const Both both(spec, 0, 0, [value = value](Launch &l) {
      l.tensors().b.set(0, 0, 100); // beta = 1, so d = v
      for (int i = 0; i < V; ++i)
        l.tensors().v.set(0, i, value);
    });
    both.checkReport(isOver);
    CHECK(both.have.tensors().dRing.get(0, 0) == std::copysign(largest, value));
  }
}
