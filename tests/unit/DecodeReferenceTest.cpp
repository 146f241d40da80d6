//===- DecodeReferenceTest.cpp - The two oracles against each other -------===//

#include "kernels/Decode/DecodeReference.h"
#include "DecodeLaunch.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

using namespace replayjit::internal;

namespace {

/// Steps both oracles side by side; row 1 is forced to flush now and then.
void compareOracles(const DecodeSpec &spec, int steps) {
  const int batch = 3, slots = 5, HV = spec.numValueHeads;
  const int KV = spec.headDimK * spec.headDimV;
  Launch launch(spec, batch, slots);
  DecodeTensors t = launch.tensors();
  DecodeRecurrence recurrence(spec, slots);
  for (int row = 0; row < batch; ++row)
    for (int i = 0; i < HV * KV; ++i)
      recurrence.state(slots - 1 - row)[i] = t.state.get(slots - 1 - row, i);

  std::vector<RingCursor> cursors(batch);
  for (int step = 0; step < steps; ++step) {
    launch.freshInputs();
    t.forceFlush.set(1, 0, step % 7 == 2 ? -1 : 0);
    replayStep(spec, launch.args);
    for (int row = 0; row < batch; ++row) {
      const int slot = slots - 1 - row, m = cursors[row].writePos;
      const DecodeRow did = readRow(spec, launch.args, row);
      const bool forced = row == 1 && step % 7 == 2;
      CHECK(did.isLive);
      CHECK(did.flushes == (m == spec.ringDepth - 1 || forced));
      DecodeToken token = readToken(spec, launch.args, row);
      DecodeRecurrence::Step truth = recurrence.step(slot, token);
      CHECK(distance(t.out, row, 0, truth.out) < 2e-6);
      const RingCursor next = nextCursor(spec, cursors[row], forced);
      for (int hv = 0; hv < HV; ++hv) {
        std::vector<double> S = materialize(
            spec, ReplayTensors(spec, launch.args), slot, slot, hv, next);
        double largest = 0;
        for (int i = 0; i < KV; ++i)
          largest = std::max(
              largest, std::abs(S[i] - recurrence.state(slot)[hv * KV + i]));
        CHECK(largest < launch.bound());
        if (did.flushes && !did.keepsToken(spec))
          continue;
        const int V = spec.headDimV, place = ringRow(spec, cursors[row], m);
        std::vector<double> d(truth.d.begin() + hv * V,
                              truth.d.begin() + (hv + 1) * V);
        CHECK(distance(t.dRing, slot, (hv * spec.ringDepth + place) * V, d) <
              launch.bound());
      }
      cursors[row] = next;
      t.writePos.set(row, 0, next.writePos);
      t.ringBase.set(row, 0, next.base);
      launch.forgetRing(slot, next); // what may not be read again
    }
  }
  CHECK(launch.guardsIntact());
}

} // namespace

TEST_CASE("replayStep follows the recurrence", "[reference]") {
  for (int L : {1, 2, 3, 8, 16, 64})
    for (int ratio : {1, 2, 3}) {
      INFO("L = " << L << ", HV/H = " << ratio);
      compareOracles(makeSpec(2, 2 * ratio, 5, 3, L), 40);
    }
  compareOracles(makeSpec(1, 2, 16, 24, 8), 40);
  compareOracles(makeSpec(1, 1, 1, 1, 4), 40);
  DecodeSpec raw = makeSpec(1, 2, 4, 6, 4);
  raw.qkL2Norm = false;
  compareOracles(raw, 3); // k is not normalized: the recurrence grows
  DecodeSpec wide = makeSpec(1, 2, 4, 6, 4);
  wide.indexType = DataType::I64;
  compareOracles(wide, 10);
}

TEST_CASE("replayStep of KDA follows the recurrence", "[reference]") {
  for (Gate gate : {Gate::Softplus, Gate::LowerBound})
    for (int L : {1, 2, 4, 8, 16})
      for (int ratio : {1, 2, 3}) {
        DecodeSpec spec = makeSpec(2, 2 * ratio, 5, 3, L);
        spec.isKda = true;
        spec.gate = gate;
        spec.betaRound = ratio == 2;
        INFO("L = " << L << ", HV/H = " << ratio);
        compareOracles(spec, 40);
      }
}

TEST_CASE("replayStep of every ring format follows the recurrence",
          "[reference]") {
  for (RingFormat format : {RingFormat::Prefix, RingFormat::Predecayed})
    for (bool circular : {false, true})
      for (int L : {2, 3, 4, 8, 16}) {
        DecodeSpec spec = makeSpec(2, 2, 5, 3, L);
        spec.isKda = true;
        spec.gate = Gate::LowerBound;
        spec.ringFormat = format;
        spec.isCircular = circular;
        spec.hasSeparateQkv = L == 3;
        INFO("format " << int(format) << ", L = " << L << ", circular "
                       << circular);
        compareOracles(spec, 40);
      }
}

TEST_CASE("KDA with equal channels is GDN", "[reference]") {
  DecodeSpec spec = makeSpec(1, 2, 4, 3, 4), kda = spec;
  kda.isKda = true;
  Launch x(spec, 1, 1), y(kda, 1, 1);
  DecodeTensors gdn = x.tensors(), t = y.tensors();
  for (int i = 0; i < 2 * 3 * 4; ++i)
    t.state.set(0, i, gdn.state.get(0, i));
  for (int hv = 0; hv < 2; ++hv) {
    t.aLog.set(0, hv, gdn.aLog.get(0, hv));
    for (int k = 0; k < 4; ++k)
      t.dtBias.set(0, hv * 4 + k, gdn.dtBias.get(0, hv));
  }
  for (int step = 0; step < 9; ++step) {
    x.freshInputs();
    for (int i = 0; i < 2 * 4 + 2 * 3; ++i)
      t.mixedQkv.set(0, i, gdn.mixedQkv.get(0, i));
    for (int hv = 0; hv < 2; ++hv) {
      t.b.set(0, hv, gdn.b.get(0, hv));
      for (int k = 0; k < 4; ++k)
        t.a.set(0, hv * 4 + k, gdn.a.get(0, hv));
    }
    for (const DecodeTensors &tensors : {gdn, t})
      tensors.writePos.set(0, 0, step % 4);
    replayStep(spec, x.args);
    replayStep(kda, y.args);
    for (int i = 0; i < 6; ++i)
      CHECK(gdn.out.get(0, i) == t.out.get(0, i));
    for (int i = 0; i < 24; ++i)
      CHECK(gdn.state.get(0, i) == t.state.get(0, i));
  }
}

TEST_CASE("channels of KDA by hand", "[reference]") {
  // S' of an empty d: each column decays by its own gate.
  DecodeSpec spec = makeSpec(1, 2, 3, 2, 4);
  spec.isKda = true;
  spec.qkL2Norm = false;
  Launch launch(spec, 1, 1);
  launch.args.scale = 1;
  DecodeTensors t = launch.tensors();
  for (int i = 0; i < 2 * 3 + 2 * 2; ++i)
    t.mixedQkv.set(0, i, i < 3 ? i + 1 : 0); // q = (1, 2, 3), k = 0, v = 0
  for (int i = 0; i < 12; ++i)
    t.state.set(0, i, i + 1);
  t.b.set(0, 0, 0);
  t.b.set(0, 1, 0);
  // g of head hv and channel k is -log(2) (1 + 3 hv + k) in ring row 0, twice
  // that now.
  t.writePos.set(0, 0, 1);
  for (int hv = 0; hv < 2; ++hv) {
    t.aLog.set(0, hv, 0);
    for (int k = 0; k < 3; ++k) {
      const int halvings = 1 + 3 * hv + k;
      t.dtBias.set(0, hv * 3 + k, 0);
      // softplus(x) = n log(2) where exp(x) = 2^n - 1
      t.a.set(0, hv * 3 + k, std::log(std::ldexp(1, 2 * halvings) - 1));
      t.gRing.set(0, hv * 4 * 3 + k, -halvings * std::log(2));
    }
    for (int v = 0; v < 2; ++v)
      t.dRing.set(0, hv * 4 * 2 + v, 8 * (v + 1));
  }
  for (int k = 0; k < 3; ++k)
    t.kRing.set(0, k, k == 1);
  t.forceFlush.set(0, 0, 1);
  replayStep(spec, launch.args);
  for (int hv = 0; hv < 2; ++hv)
    for (int v = 0; v < 2; ++v) {
      double out = 0;
      for (int k = 0; k < 3; ++k) {
        const int at = (hv * 2 + v) * 3 + k, n = 1 + 3 * hv + k;
        const double S = std::ldexp(at + 1, -3 * n) + // twice now, once before
                         (k == 1 ? std::ldexp(8 * (v + 1), -2 * n) : 0);
        CHECK(t.state.get(0, at) == Approx(S).epsilon(1e-6));
        out += S * (k + 1);
      }
      CHECK(t.out.get(0, hv * 2 + v) == Approx(out).epsilon(1e-6));
    }
}

TEST_CASE("a bounded gate is a sigmoid, not a clamp", "[reference]") {
  DecodeSpec spec = makeSpec(1, 1, 4, 1, 4);
  spec.isKda = true;
  spec.gate = Gate::LowerBound;
  Launch launch(spec, 1, 1);
  launch.args.lowerBound = -5;
  DecodeTensors t = launch.tensors();
  t.aLog.set(0, 0, std::log(2.0));
  const double x[] = {0, 1, -3, 1000};
  for (int k = 0; k < 4; ++k) {
    t.a.set(0, k, x[k] - 0.25);
    t.dtBias.set(0, k, 0.25);
  }
  for (int i = 0; i < 9; ++i)
    t.mixedQkv.set(0, i, 1);
  t.b.set(0, 0, 0);
  DecodeToken token = readToken(spec, launch.args, 0);
  REQUIRE(token.g.size() == 4);
  CHECK(token.g[0] == -2.5);
  CHECK(token.g[1] == Approx(-5 / (1 + std::exp(-2.0))).epsilon(1e-6));
  CHECK(token.g[2] == Approx(-5 / (1 + std::exp(6.0))).epsilon(1e-6));
  CHECK(token.g[3] == -5);
  launch.args.lowerBound = -1;
  CHECK(readToken(spec, launch.args, 0).g[0] == -0.5);
}

TEST_CASE("gates and betas that are given", "[reference]") {
  DecodeSpec spec = makeSpec(1, 1, 4, 1, 4);
  spec.gate = Gate::LogDecay;
  spec.beta = Beta::Given;
  Launch launch(spec, 1, 1);
  launch.freshInputs();
  DecodeTensors t = launch.tensors();
  t.a.set(0, 0, -0.75);
  t.b.set(0, 0, 1.25);
  CHECK(readToken(spec, launch.args, 0).g[0] == -0.75);
  CHECK(readToken(spec, launch.args, 0).beta[0] == 1.25);
  launch.args.aLog = launch.args.dtBias = 0; // Nobody reads them.
  CHECK(readToken(spec, launch.args, 0).g[0] == -0.75);
  spec.beta = Beta::TwiceSigmoid;
  t.b.set(0, 0, 0.5);
  CHECK(readToken(spec, launch.args, 0).beta[0] ==
        Approx(2 * 0.6224593312018546));
}

TEST_CASE("one token by hand", "[reference]") {
  // beta = sigmoid(0.5), S = 0, k = v = e0: S' has beta at (0, 0).
  DecodeSpec spec = makeSpec(1, 1, 4, 3, 1);
  spec.actType = spec.gateType = spec.betaType = DataType::BF16;
  Launch launch(spec, 1, 1);
  DecodeTensors t = launch.tensors();
  for (int i = 0; i < 12; ++i)
    t.state.set(0, i, 0);
  for (int i = 0; i < 11; ++i)
    t.mixedQkv.set(0, i, i == 4 || i == 8 ? 1 : 0);
  t.a.set(0, 0, 0);
  t.b.set(0, 0, 0.5);
  replayStep(spec, launch.args);
  CHECK(std::abs(t.state.get(0, 0) - 0.62245935) < 1e-6);
  for (int i = 1; i < 12; ++i)
    CHECK(t.state.get(0, i) == 0);
  CHECK(t.out.get(0, 0) == 0);

  spec.betaRound = true;
  t.state.set(0, 0, 0);
  replayStep(spec, launch.args);
  // k is normalized: 1 / sqrt(1 + 1e-6)
  CHECK(std::abs(t.state.get(0, 0) - 0.62109375) < 1e-6);
}

TEST_CASE("beta is rounded where asked", "[reference]") {
  auto betaOf = [](DataType gateType, DataType betaType, bool isRounded) {
    DecodeSpec spec = makeSpec(1, 1, 4, 3, 1);
    spec.actType = DataType::BF16;
    spec.gateType = gateType;
    spec.betaType = betaType;
    spec.betaRound = isRounded;
    Launch launch(spec, 1, 1);
    launch.freshInputs();
    launch.tensors().b.set(0, 0, 0.5);
    return readToken(spec, launch.args, 0).beta[0];
  };
  using enum DataType;
  CHECK(betaOf(BF16, BF16, false) == Approx(0.62245935));
  CHECK(betaOf(BF16, BF16, true) == 0.62109375);
  CHECK(betaOf(F32, BF16, true) == 0.62109375);
  CHECK(betaOf(BF16, F32, true) == Approx(0.62245935));
}

TEST_CASE("gates and norms by hand", "[reference]") {
  DecodeSpec spec = makeSpec(1, 2, 2, 1, 4);
  Launch launch(spec, 1, 1);
  DecodeTensors t = launch.tensors();
  for (int i = 0; i < 6; ++i)
    t.mixedQkv.set(0, i, i + 1); // q = (1, 2), k = (3, 4), v = 5 and 6
  t.aLog.set(0, 0, 0);
  t.dtBias.set(0, 0, 0);
  t.a.set(0, 0, 0);
  t.aLog.set(0, 1, std::log(2.0));
  t.dtBias.set(0, 1, 20);
  t.a.set(0, 1, 5);
  t.b.set(0, 0, 0);
  t.b.set(0, 1, 100);
  DecodeToken token = readToken(spec, launch.args, 0);
  CHECK(token.q[1] == Approx(0.5 * 2 / std::sqrt(5 + 1e-6)).epsilon(1e-12));
  CHECK(token.k[0] == Approx(3 / std::sqrt(25 + 1e-6)).epsilon(1e-12));
  CHECK(token.v[1] == 6);
  CHECK(token.beta[0] == 0.5);
  CHECK(token.beta[1] == 1);
  CHECK(token.g[0] == Approx(-std::log(2.0)).epsilon(1e-12));
  CHECK(token.g[1] == Approx(-50).epsilon(1e-6)); // x > 20: softplus(x) = x
}

TEST_CASE("padding rows write zeros and nothing else", "[reference]") {
  DecodeSpec spec = makeSpec(1, 2, 4, 3, 4);
  for (auto nullSlot : {NullSlot::Negative, NullSlot::NonPositive}) {
    spec.nullSlot = nullSlot;
    Launch launch(spec, 6, 4);
    launch.freshInputs();
    DecodeTensors t = launch.tensors();
    const double slots[] = {-1, 4, 3, 2, 0, -1e9};
    for (int row = 0; row < 6; ++row)
      t.stateIndices.set(row, 0, slots[row]);
    t.writePos.set(2, 0, 4);  // == L
    t.writePos.set(3, 0, -1); // both: as a bad slot
    std::vector<double> before;
    for (int slot = 0; slot < 4; ++slot)
      for (int i = 0; i < 24; ++i)
        before.push_back(t.state.get(slot, i));
    t.forceFlush.set(4, 0, 1);
    replayStep(spec, launch.args);
    const bool zeroIsNull = nullSlot == NullSlot::NonPositive;
    for (int row = 0; row < 6; ++row)
      for (int i = 0; i < 6; ++i) {
        bool live = row == 4 && !zeroIsNull;
        CHECK((t.out.get(row, i) == 0) == !live);
      }
    for (int slot = 0; slot < 4; ++slot)
      for (int i = 0; i < 24; ++i) {
        bool same = t.state.get(slot, i) == before[slot * 24 + i];
        CHECK(same == (slot != 0 || zeroIsNull));
      }
    for (int slot = 0; slot < 4; ++slot)
      for (int i = 0; i < 8; ++i)
        CHECK(std::isnan(t.gRing.get(slot, i)));
    CHECK(launch.guardsIntact());
  }
  // An empty batch is a valid no-op.
  Launch empty(spec, 0, 1);
  replayStep(spec, empty.args);
}

TEST_CASE("what is stored is rounded to its type", "[reference]") {
  DecodeSpec spec = makeSpec(1, 1, 4, 3, 2);
  spec.stateType = DataType::BF16;
  spec.ringType = DataType::F16;
  Launch launch(spec, 1, 1);
  DecodeTensors t = launch.tensors();
  launch.freshInputs();
  replayStep(spec, launch.args);
  DecodeToken token = readToken(spec, launch.args, 0);
  for (int i = 0; i < 4; ++i)
    CHECK(t.kRing.get(0, i) == roundTo(DataType::F16, token.k[i]));
  CHECK(t.gRing.get(0, 0) == double(float(token.g[0])));

  // The flush adds the rounded ring row to the checkpoint and rounds the sum.
  t.writePos.set(0, 0, 1);
  launch.freshInputs();
  std::vector<double> S = materialize(spec, launch.args, 0, 0, 1);
  token = readToken(spec, launch.args, 0);
  DecodeRecurrence recurrence(spec, 1);
  recurrence.state(0) = S;
  recurrence.step(0, token);
  replayStep(spec, launch.args);
  for (int i = 0; i < 12; ++i)
    CHECK(t.state.get(0, i) == roundTo(DataType::BF16, recurrence.state(0)[i]));
}

TEST_CASE("infinite gates forget without NaN", "[reference]") {
  DecodeSpec spec = makeSpec(1, 1, 4, 3, 8);
  Launch launch(spec, 1, 1);
  DecodeTensors t = launch.tensors();
  for (int step = 0; step < 4; ++step) {
    launch.freshInputs();
    if (step == 1)
      t.a.set(0, 0, INFINITY);
    t.writePos.set(0, 0, step);
    replayStep(spec, launch.args);
    for (int i = 0; i < 3; ++i)
      CHECK(std::isfinite(t.out.get(0, i)));
  }

  // KDA: one channel forgets, the others do not.
  spec.isKda = true;
  Launch kda(spec, 1, 1);
  t = kda.tensors();
  for (int step = 0; step < 4; ++step) {
    kda.freshInputs();
    if (step == 1)
      t.a.set(0, 2, INFINITY);
    t.writePos.set(0, 0, step);
    t.forceFlush.set(0, 0, step == 3);
    replayStep(spec, kda.args);
    for (int i = 0; i < 3; ++i)
      CHECK(std::isfinite(t.out.get(0, i)));
  }
  for (int i = 0; i < 12; ++i)
    CHECK(std::isfinite(t.state.get(0, i)));
  CHECK(t.gRing.get(0, 4 + 2) == -INFINITY);
}

TEST_CASE("a gate is NaN only of NaN", "[reference]") {
  constexpr double inf = INFINITY;
  DecodeSpec spec;
  const DecodeArgs args;
  for (Gate gate : {Gate::Softplus, Gate::LowerBound}) {
    spec.gate = gate;
    for (double aLog : {-inf, -1e30, -100., 0., 100., 1e30, inf})
      for (double x : {-inf, -1e30, -800., 0., 800., 1e30, inf}) {
        const double g = gateOf(spec, args, aLog, x);
        CAPTURE(int(gate), aLog, x, g);
        CHECK(g <= 0); // Also not NaN.
        if (gate == Gate::LowerBound)
          CHECK(g >= -5);
      }
    CHECK(std::isnan(gateOf(spec, args, NAN, 1)));
    CHECK(std::isnan(gateOf(spec, args, 1, NAN)));
  }
  CHECK(gateOf(spec, args, inf, 0) == -2.5);
  spec.gate = Gate::Softplus;
  CHECK(gateOf(spec, args, inf, -inf) == 0);
  CHECK(gateOf(spec, args, -inf, inf) == -inf);
  CHECK(gateOf(spec, args, 200, 1) == gateOf(spec, args, 87, 1));
}
