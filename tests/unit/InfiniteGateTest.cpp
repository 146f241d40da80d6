//===- InfiniteGateTest.cpp - Gates of minus infinity ---------------------===//
//
// A gate of -inf forgets all that came before: W and A are 0 there, and must
// not turn into NaN by inf - inf or 0 * inf on the way.
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
