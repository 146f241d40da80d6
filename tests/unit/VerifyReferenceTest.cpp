//===- VerifyReferenceTest.cpp - Rows with drafts, token by token ---------===//
//
// The oracle is the recurrence of the tokens that held, which knows no ring.
//
//===----------------------------------------------------------------------===//

#include "kernels/Verify/VerifyReference.h"
#include "tests/unit/VerifyModel.h"

#include <catch2/catch.hpp>

#include <cmath>

using namespace replayjit::internal;

namespace {

/// Steps rows with drafts and, token by token, the recurrence.
void follow(const DecodeSpec &spec, int steps) {
  constexpr int batch = 3, slots = 5;
  const int HV = spec.numValueHeads, V = spec.headDimV, KV = V * spec.headDimK;
  Launch launch(spec, batch, slots);
  Speculation speculation(launch);
  const DecodeTensors t = launch.tensors();
  DecodeRecurrence truth(spec, slots);
  for (int slot = 0; slot < slots; ++slot)
    for (int i = 0; i < HV * KV; ++i)
      truth.state(slot)[i] = t.state.get(slot, i);
  int folds = 0;
  for (int step = 0; step < steps; ++step) {
    CAPTURE(step);
    speculation.draw();
    verifyLaunch(spec, launch.args);
    for (int row = 0; row < batch; ++row) {
      CAPTURE(row);
      const DecodeRow did = readRow(spec, launch.args, row);
      REQUIRE(did.error == ErrorKind::None);
      folds += did.flushes;
      const int slot = slots - 1 - row;
      DecodeRecurrence drafts = truth; // Which may go too far.
      const int accepted = speculation.accept(row);
      for (int i = 0; i < (did.isLive ? did.numTokens : 0); ++i) {
        const DecodeToken token =
            readToken(spec, launch.args, did.firstToken + i);
        const std::vector<double> out = drafts.step(slot, token).out;
        CHECK(distance(t.out, did.firstToken + i, 0, out) < launch.bound());
        if (i < accepted)
          truth.step(slot, token);
      }
      for (int hv = 0; hv < HV; ++hv) {
        const std::vector<double> S =
            materialize(spec, ReplayTensors(spec, launch.args), slot, slot, hv,
                        speculation.cursor(row));
        double largest = 0;
        for (int i = 0; i < KV; ++i) {
          const double wrong = std::abs(S[i] - truth.state(slot)[hv * KV + i]);
          if (!(wrong <= largest))
            largest = wrong;
        }
        CHECK(largest < launch.bound());
      }
    }
  }
  CHECK((folds > 0 || spec.ringDepth < 2 * spec.numTokens));
  CHECK(launch.guardsIntact());
  CHECK(launch.error.count == 0);
}

} // namespace

TEST_CASE("rows with drafts follow the recurrence of those that hold",
          "[reference]") {
  for (int T : {1, 2, 3, 5})
    for (int L : {2 * T, 2 * T + 1, 16})
      for (TokenRows rows :
           {TokenRows::Full, TokenRows::Counted, TokenRows::Ragged}) {
        DecodeSpec spec = makeVerifySpec(1, 2, 5, 3, L, T);
        spec.tokenRows = rows;
        CAPTURE(T, L, int(rows));
        follow(spec, 30);
        spec.numValueHeads = 1;
        for (RingFormat format :
             {RingFormat::Raw, RingFormat::Prefix, RingFormat::Predecayed})
          follow(kdaOf(spec, format), 15);
      }
}

TEST_CASE("a row without tokens is padding, and too many are reported",
          "[reference]") {
  DecodeSpec spec = makeVerifySpec(1, 1, 4, 3, 8, 2);
  spec.tokenRows = TokenRows::Counted;
  auto errorOf = [&](auto change) {
    Launch launch(spec, 2, 3);
    launch.freshInputs();
    const DecodeTensors t = launch.tensors();
    change(t);
    verifyLaunch(spec, launch.args);
    for (int token = 0; token < 2; ++token) // Row 0 is the one that changed.
      for (int i = 0; i < 3; ++i)
        CHECK(t.out.get(token, i) == 0);
    CHECK(t.out.get(2, 0) != 0);
    CHECK(std::isnan(t.dRing.get(2, 0)));
    return launch.error;
  };
  auto count = [](int value) {
    return [=](const DecodeTensors &t) { t.tokenCounts.set(0, 0, value); };
  };
  CHECK(errorOf(count(0)).count == 0);
  for (int value : {3, -1}) {
    const ErrorWord error = errorOf(count(value));
    CHECK(error.count == 1);
    CHECK(error.kind == uint32_t(ErrorKind::TokenCount));
    CHECK(error.value == value);
  }
  const ErrorWord late =
      errorOf([](const DecodeTensors &t) { t.writePos.set(0, 0, 7); });
  CHECK(late.kind == uint32_t(ErrorKind::WritePos));
  CHECK(late.value == 7);
}

TEST_CASE("ragged rows outside of the list are reported", "[reference]") {
  DecodeSpec spec = makeVerifySpec(1, 1, 4, 3, 8, 2);
  spec.tokenRows = TokenRows::Ragged;
  struct Case {
    int first, end;
    ErrorKind kind;
    int value;
  };
  for (Case bad : {Case{-1, 1, ErrorKind::TokenOffset, -1},
                   {4, 5, ErrorKind::TokenOffset, 4},
                   {5, 5, ErrorKind::None, 0},
                   {0, 3, ErrorKind::TokenCount, 3},
                   {2, 1, ErrorKind::TokenCount, -1}}) {
    CAPTURE(bad.first, bad.end);
    Launch launch(spec, 2, 2);
    launch.args.batch = 1; // Of a list that has the tokens of two.
    launch.freshInputs();
    const DecodeTensors t = launch.tensors();
    t.tokenOffsets.set(0, 0, bad.first);
    t.tokenOffsets.set(1, 0, bad.end);
    verifyLaunch(spec, launch.args);
    CHECK(launch.error.kind == uint32_t(bad.kind));
    CHECK(launch.error.value == bad.value);
    CHECK(std::isnan(t.dRing.get(1, 0)));
    // Places within the list are cleared, no others written.
    const bool clears = bad.first == 0;
    CHECK(t.out.get(0, 0) == (clears ? 0 : 3));
    CHECK(t.out.get(1, 0) == (clears ? 0 : 3));
  }
}
