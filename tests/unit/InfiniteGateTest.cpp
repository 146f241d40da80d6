//===- InfiniteGateTest.cpp - Gates of minus infinity ---------------------===//
//
// A gate of -inf forgets all that came before: W and A are 0 there, and must
// not turn into NaN by inf - inf or 0 * inf on the way. Nor must a gate whose
// factors are infinite and zero (R5).
//
//===----------------------------------------------------------------------===//

#include "tests/unit/TestDevice.h"

#include <catch2/catch.hpp>

#include <cmath>

using namespace replayjit::internal;
using namespace replayjit::internal::test;

namespace {

/// A row whose ring holds `cursor` tokens. The gate of ring row `infinite` is
/// -inf, or with -1 that of the new token.
void prepare(Launch &launch, int cursor, int infinite) {
  const DecodeSpec &spec = launch.spec;
  const int width = gateWidth(spec);
  const DecodeTensors t = launch.tensors();
  launch.freshInputs();
  auto draw = [&] { return 0.3 * launch.normal(launch.random); };
  for (int j = 0; j < cursor; ++j) {
    for (int i = 0; i < spec.headDimV; ++i)
      t.dRing.set(0, j * spec.headDimV + i, draw());
    for (int i = 0; i < spec.headDimK; ++i)
      t.kRing.set(0, j * spec.headDimK + i, draw());
    for (int i = 0; i < width; ++i)
      t.gRing.set(0, j * width + i,
                  j == infinite ? -INFINITY : -std::abs(draw()));
  }
  if (infinite < 0)
    for (int i = 0; i < width; ++i)
      t.a.set(0, i, INFINITY); // softplus(inf) = inf
  t.writePos.set(0, 0, cursor);
}

} // namespace

TEST_CASE("a gate of minus infinity forgets what came before",
          "[kernel][device]") {
  constexpr int K = 16, V = 16, L = 8;
  for (bool isKda : {false, true})
    for (Readout readout : {Readout::OutputOnly, Readout::Rebuild}) {
      DecodeSpec spec = makeSpec(1, 1, K, V, L);
      spec.isKda = isKda;
      spec.readout = readout;
      TestKernel kernel(spec, DecodeTuning{16, 16, 2, 2});
      const double bound = readout == Readout::Rebuild ? 2e-3 : 2e-6;
      // Reading and flushing; the newest, a middle, the oldest row and the
      // token.
      for (int cursor : {5, 7})
        for (int infinite : {cursor - 1, 2, 0, -1}) {
          Launch launch(spec, 1, 1), expected(spec, 1, 1);
          prepare(launch, cursor, infinite);
          prepare(expected, cursor, infinite);
          kernel.step(launch);
          replayStep(spec, expected.args);
          CAPTURE(isKda, cursor, infinite);
          const DecodeTensors x = launch.tensors(), y = expected.tensors();
          checkNear(x.out, y.out, 1, V, bound);
          checkNear(x.state, y.state, 1, V * K, bound);
          checkNear(x.dRing, y.dRing, 1, L * V, bound);
          checkNear(x.kRing, y.kRing, 1, L * K, bound);
          checkNear(x.gRing, y.gRing, 1, L * gateWidth(spec), bound);
        }
    }
}

TEST_CASE("no factor of a gate makes it NaN", "[kernel][device]") {
  constexpr int K = 16, V = 16;
  // The spec, and how the gate is told apart from no gate at all.
  std::vector<DecodeSpec> specs;
  for (bool isKda : {false, true})
    for (Family family : {Family::Replay, Family::Packed}) {
      DecodeSpec spec = makeSpec(1, 1, K, V, family == Family::Packed ? 1 : 8);
      spec.isKda = isKda;
      spec.family = family;
      spec.hasForceFlush = family == Family::Replay;
      specs.push_back(spec);
      spec.gate = Gate::LowerBound;
      specs.push_back(spec);
    }
  for (const DecodeSpec &spec : specs) {
    TestKernel kernel(spec, DecodeTuning{16, 16, 2, 2});
    for (double aLog :
         {-double(INFINITY), -200., -90., 0., 88., 89., 200., double(INFINITY)})
      for (double a : {-double(INFINITY), -1e30, -200., 0., 200., 1e30,
                       double(INFINITY)}) {
        Launch launch(spec, 1, 1), expected(spec, 1, 1);
        for (Launch *one : {&launch, &expected}) {
          one->freshInputs();
          const DecodeTensors t = one->tensors();
          t.aLog.set(0, 0, aLog);
          for (int i = 0; i < gateWidth(spec); ++i) {
            t.a.set(0, i, a);
            t.dtBias.set(0, i, 0);
          }
        }
        kernel.step(launch);
        replayStep(spec, expected.args);
        CAPTURE(kernelName(spec, {}), aLog, a);
        const DecodeTensors x = launch.tensors(), y = expected.tensors();
        for (int i = 0; i < V; ++i)
          REQUIRE(std::isfinite(y.out.get(0, i)));
        checkNear(x.out, y.out, 1, V, 2e-6);
        checkNear(x.state, y.state, 1, V * K, 2e-6);
        // Of a gate of minus infinity fp32 may have the end of its range.
        for (int i = 0; i < gateWidth(spec) && spec.ringDepth > 1; ++i)
          CHECK(std::exp(x.gRing.get(0, i)) ==
                Approx(std::exp(y.gRing.get(0, i))).margin(1e-6));
      }
  }
}

TEST_CASE("of true NaN a gate makes NaN", "[kernel][device]") {
  const DecodeSpec spec = makeSpec(1, 1, 16, 16, 8);
  TestKernel kernel(spec, DecodeTuning{16, 16, 2, 2});
  for (bool isParameter : {false, true}) {
    Launch launch(spec, 1, 1);
    launch.freshInputs();
    const DecodeTensors t = launch.tensors();
    (isParameter ? t.aLog : t.a).set(0, 0, NAN);
    kernel.step(launch);
    CHECK(std::isnan(t.out.get(0, 0)));
  }
}

TEST_CASE("a circular ring that starts anew forgets its sum",
          "[kernel][device]") {
  constexpr int K = 16, V = 16, L = 4;
  DecodeSpec spec = makeSpec(1, 1, K, V, L);
  spec.isKda = spec.isCircular = true;
  spec.gate = Gate::LowerBound;
  spec.ringFormat = RingFormat::Prefix;
  TestKernel kernel(spec, DecodeTuning{16, 16, 2, 2});
  Launch launch(spec, 1, 1);
  prepare(launch, L - 1, /*infinite=*/L - 2);
  kernel.step(launch);
  // The row of the token, which is all of the new ring.
  for (int i = 0; i < K; ++i)
    CHECK(std::isfinite(launch.tensors().gRing.get(0, (L - 1) * K + i)));
}
