//===- OtherRulesTest.cpp - Other models by the formulas of their papers --===//
//
// Recurrences in fp64, each written from its paper and in its words; they know
// neither our reference nor its rules. The fp64 reference and the kernels of
// the test device must do the same, over more steps than a ring has rows.
//
//===----------------------------------------------------------------------===//

#include "tests/unit/TestDevice.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <functional>

using namespace replayjit::internal;
using namespace replayjit::internal::test;

namespace {

using Vector = std::vector<double>;

/// One head of a model: its state, and what a token does.
struct Model {
  int V, K;
  Vector state; ///< [V, K]
};

/// "Transformers are SSMs" (Dao and Gu, 2024), with the discretization of the
/// Mamba-2 code: Delta = softplus(dt + dt_bias), within its limits, A =
/// -exp(A_log), h = exp(Delta A) h + Delta x B^T, y = h C + D x, and the gate:
/// y silu(z).
struct Mamba2Token {
  double dt, dtBias, aLog;
  double lowest = 0, highest = INFINITY;
  Vector x, B, C, D, z; ///< z: empty for none
};

Vector mamba2(Model &head, const Mamba2Token &token) {
  double delta = std::log(1 + std::exp(token.dt + token.dtBias));
  delta = std::fmin(std::fmax(delta, token.lowest), token.highest);
  const double A = -std::exp(token.aLog);
  Vector y(head.V);
  for (int p = 0; p < head.V; ++p) {
    for (int n = 0; n < head.K; ++n) {
      double &h = head.state[p * head.K + n];
      h = std::exp(delta * A) * h + delta * token.B[n] * token.x[p];
      y[p] += h * token.C[n];
    }
    if (!token.D.empty())
      y[p] += token.D[p] * token.x[p];
    if (!token.z.empty())
      y[p] *= token.z[p] / (1 + std::exp(-token.z[p]));
  }
  return y;
}

/// "Lightning Attention-2" (Qin et al., 2024), which MiniMax-01 has: kv =
/// lambda kv + k^T v, o = q kv, with lambda = exp(-slope) of the head;
/// "Retentive Network" (Sun et al., 2023) is the same with gamma.
Vector lightning(Model &head, double lambda, const Vector &q, const Vector &k,
                 const Vector &v) {
  Vector o(head.V);
  for (int i = 0; i < head.V; ++i)
    for (int j = 0; j < head.K; ++j) {
      double &kv = head.state[i * head.K + j];
      kv = lambda * kv + k[j] * v[i];
      o[i] += q[j] * kv;
    }
  return o;
}

/// "Gated Linear Attention" (Yang et al., 2024): S = diag(alpha) S + k^T v, o =
/// q S, with an alpha for each channel of k.
Vector gla(Model &head, const Vector &alpha, const Vector &q, const Vector &k,
           const Vector &v) {
  Vector o(head.V);
  for (int i = 0; i < head.V; ++i)
    for (int j = 0; j < head.K; ++j) {
      double &s = head.state[i * head.K + j];
      s = alpha[j] * s + k[j] * v[i];
      o[i] += q[j] * s;
    }
  return o;
}

//===----------------------------------------------------------------------===//
// The launch beside them
//===----------------------------------------------------------------------===//

/// The outputs of head `hv` of a row at the inputs of `launch`.
using StepFn =
    std::function<Vector(const Launch &launch, Model &head, int row, int hv)>;

Vector slice(const HostTensor &tensor, int row, int64_t first, int count) {
  Vector result(count);
  for (int i = 0; i < count; ++i)
    result[i] = tensor.get(row, first + i);
  return result;
}

/// ||x - y|| / ||y||
double difference(const Vector &x, const Vector &y) {
  double wrong = 0, all = 0;
  for (size_t i = 0; i < y.size(); ++i) {
    wrong += (x[i] - y[i]) * (x[i] - y[i]);
    all += y[i] * y[i];
  }
  REQUIRE(all > 0);
  return std::sqrt(wrong / all);
}

/// Steps `launch` by `step`, and each head by `truth`. At the end all rows
/// flush, so that the states can be compared too.
void follow(Launch &launch, int steps, const std::function<void()> &step,
            const StepFn &truth, double bound) {
  const DecodeSpec &spec = launch.spec;
  const int HV = spec.numValueHeads, V = spec.headDimV, K = spec.headDimK;
  const bool hasRing = spec.ringDepth > 1;
  const DecodeTensors t = launch.tensors();
  std::vector<Model> heads;
  for (int row = 0; row < launch.args.batch; ++row)
    for (int hv = 0; hv < HV; ++hv)
      heads.push_back({V, K,
                       slice(t.state, int(t.stateIndices.get(row, 0)),
                             int64_t(hv) * V * K, V * K)});
  RingCursor cursor;
  for (int i = 0; i < steps; ++i) {
    CAPTURE(i);
    launch.freshInputs();
    const bool isLast = hasRing && i == steps - 1;
    Vector expected, found;
    for (int row = 0; row < launch.args.batch; ++row) {
      t.writePos.set(row, 0, cursor.writePos);
      t.forceFlush.set(row, 0, isLast);
      for (int hv = 0; hv < HV; ++hv)
        for (double y : truth(launch, heads[row * HV + hv], row, hv))
          expected.push_back(y);
    }
    step();
    for (int row = 0; row < launch.args.batch; ++row)
      for (double y : slice(t.out, row, 0, HV * V))
        found.push_back(y);
    CHECK(difference(found, expected) <= bound);
    cursor = nextCursor(spec, cursor, isLast);
  }
  Vector expected, found;
  for (int row = 0; row < launch.args.batch; ++row)
    for (int hv = 0; hv < HV; ++hv) {
      const Vector &state = heads[row * HV + hv].state;
      expected.insert(expected.end(), state.begin(), state.end());
      const Vector stored = slice(t.state, int(t.stateIndices.get(row, 0)),
                                  int64_t(hv) * V * K, V * K);
      found.insert(found.end(), stored.begin(), stored.end());
    }
  CHECK(difference(found, expected) <= bound);
  CHECK(launch.error.count == 0);
  CHECK(launch.guardsIntact());
}

/// The reference, and the kernel, of replay and of packed decode.
void check(DecodeSpec spec, const StepFn &truth) {
  spec.rule = Rule::Additive;
  spec.qkL2Norm = false;
  spec.hasSeparateQkv = true;
  for (int depth : {6, 1}) {
    spec.ringDepth = depth;
    spec.family = depth == 1 ? Family::Packed : Family::Replay;
    auto fresh = [&] {
      auto launch = std::make_unique<Launch>(spec, 2, 3);
      launch->args.scale = 1;
      launch->args.stepMin = 0.5f;
      launch->args.stepMax = 0.875f;
      return launch;
    };
    const int steps = depth == 1 ? 3 : 8;
    INFO(kernelName(spec, {}));
    {
      INFO("reference");
      auto launch = fresh();
      follow(
          *launch, steps, [&] { replayStep(spec, launch->args); }, truth, 1e-6);
    }
    auto launch = fresh();
    TestKernel kernel(spec, launch->args.batch);
    follow(
        *launch, steps, [&] { kernel.step(*launch); }, truth, 2e-6);
  }
}

Vector keyOf(const HostTensor &tensor, const DecodeSpec &spec, int row,
             int hv) {
  const int group = hv / (spec.numValueHeads / spec.numKeyHeads);
  return slice(tensor, row, int64_t(group) * spec.headDimK, spec.headDimK);
}
Vector valueOf(const HostTensor &tensor, const DecodeSpec &spec, int row,
               int hv) {
  return slice(tensor, row, int64_t(hv) * spec.headDimV, spec.headDimV);
}

Vector mamba2Step(const Launch &launch, Model &head, int row, int hv) {
  const DecodeSpec &spec = launch.spec;
  const DecodeTensors t = launch.tensors();
  Mamba2Token token;
  token.dt = t.a.get(row, hv);
  token.dtBias = t.dtBias.get(0, hv);
  token.aLog = t.aLog.get(0, hv);
  if (spec.gate == Gate::Rate)
    token.aLog = std::log(-token.aLog);
  if (spec.hasStepLimits) {
    token.lowest = launch.args.stepMin;
    token.highest = launch.args.stepMax;
  }
  token.x = valueOf(t.v, spec, row, hv);
  token.B = keyOf(t.k, spec, row, hv);
  token.C = keyOf(t.q, spec, row, hv);
  if (spec.skip == Skip::Head)
    token.D.assign(spec.headDimV, t.skip.get(0, hv));
  if (spec.skip == Skip::Channel)
    token.D = valueOf(t.skip, spec, 0, hv);
  if (spec.hasOutGate)
    token.z = valueOf(t.outGate, spec, row, hv);
  return mamba2(head, token);
}

} // namespace

TEST_CASE("Mamba-2", "[kernel][device]") {
  struct Sizes {
    int groups, heads, V, K;
  };
  for (Sizes sizes : {Sizes{1, 4, 64, 128},
                      {8, 8, 64, 128},
                      {1, 3, 80, 128},
                      {8, 16, 80, 128},
                      {1, 2, 64, 256},
                      {1, 1, 128, 256}}) {
    DecodeSpec spec = makeSpec(sizes.groups, sizes.heads, sizes.K, sizes.V, 1);
    spec.beta = Beta::Step;
    spec.skip = Skip::Head;
    check(spec, mamba2Step);
  }
}

TEST_CASE("Mamba-2 with all that it can have", "[kernel][device]") {
  for (Skip skip : {Skip::None, Skip::Head, Skip::Channel})
    for (bool hasOutGate : {false, true})
      for (bool hasStepLimits : {false, true})
        for (Gate gate : {Gate::Softplus, Gate::Rate}) {
          DecodeSpec spec = makeSpec(2, 4, 32, 20, 1);
          spec.beta = Beta::Step;
          spec.gate = gate;
          spec.skip = skip;
          spec.hasOutGate = hasOutGate;
          spec.hasStepLimits = hasStepLimits;
          check(spec, mamba2Step);
        }
}

TEST_CASE("lightning attention and RetNet", "[kernel][device]") {
  for (int heads : {1, 3}) {
    DecodeSpec spec = makeSpec(heads, heads, 128, 128, 1);
    spec.gate = Gate::Fixed;
    spec.beta = Beta::One;
    check(spec, [](const Launch &launch, Model &head, int row, int hv) {
      const DecodeTensors t = launch.tensors();
      const double slope = -t.aLog.get(0, hv);
      return lightning(head, std::exp(-slope), keyOf(t.q, launch.spec, row, hv),
                       keyOf(t.k, launch.spec, row, hv),
                       valueOf(t.v, launch.spec, row, hv));
    });
  }
}

TEST_CASE("gated linear attention", "[kernel][device]") {
  for (bool isSimple : {false, true}) { // a number in place of a vector
    DecodeSpec spec = makeSpec(2, 2, 64, 48, 1);
    spec.isKda = !isSimple;
    spec.gate = Gate::LogDecay;
    spec.beta = Beta::One;
    check(spec, [](const Launch &launch, Model &head, int row, int hv) {
      const DecodeTensors t = launch.tensors();
      Vector alpha(head.K);
      for (int j = 0; j < head.K; ++j)
        alpha[j] = std::exp(launch.spec.isKda ? t.a.get(row, hv * head.K + j)
                                              : t.a.get(row, hv));
      return gla(head, alpha, keyOf(t.q, launch.spec, row, hv),
                 keyOf(t.k, launch.spec, row, hv),
                 valueOf(t.v, launch.spec, row, hv));
    });
  }
}
