//===- VerifyKernelTest.cpp - The kernel of rows with drafts --------------===//

#include "kernels/Verify/VerifyReference.h"
#include "tests/unit/TestDevice.h"
#include "tests/unit/VerifyModel.h"

#include <catch2/catch.hpp>

#include <cstring>

using namespace replayjit::internal;
using namespace replayjit::internal::test;

namespace {

/// All that a launch may write.
void checkSame(const Launch &x, const Launch &y, double bound) {
  const DecodeSpec &spec = x.spec;
  const DecodeTensors a = x.tensors(), b = y.tensors();
  const int64_t H = spec.numKeyHeads, HV = spec.numValueHeads;
  const int64_t K = spec.headDimK, V = spec.headDimV, L = spec.ringDepth;
  INFO("out");
  checkNear(a.out, b.out, x.args.tokens, HV * V, bound);
  INFO("state");
  checkNear(a.state, b.state, x.args.slots, HV * V * K, bound);
  INFO("d");
  checkNear(a.dRing, b.dRing, x.args.slots, HV * L * V, bound);
  INFO("k");
  checkNear(a.kRing, b.kRing, x.args.slots, H * L * K, bound);
  INFO("g");
  checkNear(a.gRing, b.gRing, x.args.slots, HV * L * gateWidth(spec), bound);
  CHECK(std::memcmp(&x.error, &y.error, sizeof(ErrorWord)) == 0);
}

/// Steps the kernel and, from the memory it left, the reference.
void follow(const DecodeSpec &spec, const DecodeTuning &tuning, int steps) {
  INFO(kernelName(spec, tuning));
  REQUIRE(validate(spec, tuning, testDevice().target()).message == "");
  TestKernel kernel(spec, tuning);
  Launch launch(spec, 3, 5), other(spec, 3, 5);
  Speculation speculation(launch), same(other);
  for (int step = 0; step < steps; ++step) {
    CAPTURE(step);
    speculation.draw();
    same.draw(); // The same: both draw from one seed.
    kernel.step(launch);
    verifyLaunch(spec, other.args);
    checkSame(launch, other, launch.bound());
    for (int row = 0; row < 3; ++row)
      REQUIRE(speculation.accept(row) == same.accept(row));
  }
  CHECK(launch.guardsIntact());
}

void follow(const DecodeSpec &spec, int steps = 6) {
  follow(spec, chooseTuning(spec, 1, testDevice().target()), steps);
}

} // namespace

TEST_CASE("the verify kernel does what the reference does",
          "[kernel][device]") {
  for (int T : {1, 2, 3, 4}) {
    DecodeSpec spec = makeVerifySpec(1, 2, 16, 24, 2 * T + 1, T);
    follow(spec);
    spec.tokenRows = T % 2 ? TokenRows::Ragged : TokenRows::Counted;
    follow(spec);
    spec.numKeyHeads = 2;
    for (RingFormat format :
         {RingFormat::Raw, RingFormat::Prefix, RingFormat::Predecayed})
      follow(kdaOf(spec, format));
  }
}

TEST_CASE("verify with one token is replay with a circular ring",
          "[kernel][device]") {
  for (RingFormat format :
       {RingFormat::Raw, RingFormat::Prefix, RingFormat::Predecayed})
    for (bool isKda : {false, true}) {
      if (!isKda && format != RingFormat::Raw)
        continue;
      DecodeSpec verify = makeVerifySpec(2, 2, 32, 48, 4, 1);
      if (isKda)
        verify = kdaOf(verify, format);
      DecodeSpec replay = verify;
      replay.family = Family::Replay;
      const DecodeTuning tuning =
          chooseTuning(replay, 1, testDevice().target());
      TestKernel one(verify, tuning), other(replay, tuning);
      Launch x(verify, 2, 3), y(replay, 2, 3);
      x.args.lowerBound = y.args.lowerBound = -5;
      RingCursor cursor;
      for (int step = 0; step < 9; ++step) {
        CAPTURE(int(format), isKda, step);
        for (Launch *launch : {&x, &y}) {
          launch->freshInputs();
          for (int row = 0; row < 2; ++row) {
            launch->tensors().writePos.set(row, 0, cursor.writePos);
            launch->tensors().ringBase.set(row, 0, cursor.base);
          }
        }
        // In turn: a pool may be stepped by both.
        (step % 3 == 1 ? other : one).step(x);
        other.step(y);
        checkSame(x, y, 0);
        const RingCursor next = nextCursor(replay, cursor, false);
        CHECK(next == acceptedCursor(verify, cursor, false, 1));
        cursor = next;
      }
    }
}
