//===- SizingTest.cpp - Bytes, budgets and recommendations ----------------===//

#include "runtime/state/Sizing.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <tuple>

using namespace replayjit::internal;

namespace {

DecodeSpec qwen() { return *modelPreset("qwen3-next", 1); }
DecodeSpec kimi() { return *modelPreset("kimi-k3", 8); }

} // namespace

TEST_CASE("bytes of a slot", "[state]") {
  CHECK(stateBytes(qwen()) == 32 * 128 * 128 * 4);
  CHECK(ringBytes(qwen()) ==
        32 * 16 * 128 * 4 + 16 * 16 * 128 * 4 + 32 * 16 * 4);
  DecodeSpec kda = kimi(); // a gate for each channel; 16-bit rings
  kda.ringType = DataType::BF16;
  CHECK(ringBytes(kda) ==
        12 * 16 * 128 * 2 + 12 * 16 * 128 * 2 + 12 * 16 * 128 * 4);

  DecodeSpec packed = qwen();
  packed.family = Family::Packed;
  packed.ringDepth = 1;
  CHECK(ringBytes(packed) == 0);

  // 3 * 3 * 5 elements of 2 bytes are 90 bytes, in steps of 16.
  DecodeSpec odd = qwen();
  odd.numKeyHeads = odd.numValueHeads = 3;
  odd.headDimK = 3;
  odd.headDimV = 5;
  odd.stateType = DataType::F16;
  CHECK(stateBytes(odd) == 96);
}

TEST_CASE("bytes of a pool, and slots for a budget", "[state]") {
  const LayerCount layers[] = {{qwen(), 36}, {kimi(), 2}};
  const int64_t state = 36 * stateBytes(qwen()) + 2 * stateBytes(kimi());
  const int64_t ring = 36 * ringBytes(qwen()) + 2 * ringBytes(kimi());
  CHECK(*poolBytes(layers, 10, 3, 7) == 10 * state + 3 * ring + 7 * 4);

  const int64_t budget = *poolBytes(layers, 10, 3, 7);
  CHECK(*statesForBudget(layers, 3, 7, budget) == 10);
  CHECK(*statesForBudget(layers, 3, 7, budget - 1) == 9);
  CHECK(*statesForBudget(layers, 3, 7, budget + state - 1) == 10);
  auto none = statesForBudget(layers, 3, 7, 3 * ring + state);
  CHECK(none.status().message ==
        "budget: " + std::to_string(3 * ring + state) +
            " bytes are not allowed; 3 rings, 7 cursors and one state need " +
            std::to_string(3 * ring + state + 28));

  DecodeSpec circular = *modelPreset("ling-flash", 1);
  circular.ringFormat = RingFormat::Predecayed;
  circular.isCircular = true;
  const LayerCount rings[] = {{circular, 1}};
  CHECK(*poolBytes(rings, 0, 0, 100) == 800); // cursors and bases
}

TEST_CASE("sizes that cannot be", "[state][error]") {
  const LayerCount layers[] = {{qwen(), 1}, {qwen(), 36}};
  auto bytes = [&](int64_t states, int64_t rings, int64_t numKeys) {
    return poolBytes(layers, states, rings, numKeys).status().message;
  };
  CHECK(bytes(-1, 0, 0) == "states: -1 is not allowed; it must be 0 or more");
  CHECK(bytes(0, -2, 0) == "rings: -2 is not allowed; it must be 0 or more");
  CHECK(bytes(0, 0, -3) == "numKeys: -3 is not allowed; it must be 0 or more");
  const int64_t each = 37 * stateBytes(qwen()), most = INT64_MAX / each;
  CHECK(bytes(most, 0, 0) == "");
  CHECK(bytes(most + 1, 0, 0) ==
        "layers: " + std::to_string(most + 1) +
            " states, 0 rings and 0 cursors of them are not allowed; there "
            "must be less than 2^63 bytes");
  for (auto [states, rings, keys] :
       {std::tuple(INT64_MAX, int64_t(0), int64_t(0)),
        {most, INT64_MAX, 0},
        {most, 0, INT64_MAX / 4},
        {0, 0, INT64_MAX}})
    CHECK_THAT(bytes(states, rings, keys),
               Catch::Contains("there must be less than 2^63 bytes"));

  auto ofOne = [](const LayerCount &layer) {
    const std::string alone = poolBytes({&layer, 1}, 1, 1, 1).status().message;
    CHECK(statesForBudget({&layer, 1}, 1, 1, 1 << 30).status().message ==
          alone);
    return alone;
  };
  CHECK(ofOne({qwen(), -1}) ==
        "layers[0]: layers: -1 is not allowed; it must be 0 or more");
  DecodeSpec spec = qwen();
  spec.numKeyHeads = 0;
  CHECK(ofOne({spec, 1}) ==
        "layers[0]: numKeyHeads: 0 is not allowed; it must be 1 to 1024");

  auto states = [&](int64_t rings, int64_t numKeys, int64_t budget) {
    return statesForBudget(layers, rings, numKeys, budget).status().message;
  };
  CHECK(states(-1, 0, 1) == "rings: -1 is not allowed; it must be 0 or more");
  CHECK(states(0, -1, 1) == "numKeys: -1 is not allowed; it must be 0 or more");
  CHECK_THAT(states(1, 1, INT64_MIN), Catch::Contains("bytes are not allowed"));
  CHECK_THAT(states(0, INT64_MAX, INT64_MAX),
             Catch::Contains("there must be less than 2^63 bytes"));
  CHECK(statesForBudget({}, 0, 0, 1).status().message ==
        "layers: none is not allowed; there must be one");
}

TEST_CASE("supports says why not", "[state]") {
  CHECK(supports(qwen(), *Target::parse("sm_90a")).isOk());
  DecodeSpec spec = qwen();
  spec.headDimK = 300;
  CHECK(supports(spec, *Target::parse("sm_90a")).message ==
        "headDimK: 300 is not allowed; it must be 1 to 256");
}

TEST_CASE("recommendations follow the measurements", "[state]") {
  auto depth = [](const DecodeSpec &spec) {
    return recommend(spec, 256)->ringDepth;
  };
  Recommendation packed = {Family::Packed, 1};
  DecodeSpec gdn = qwen();
  CHECK(*recommend(gdn, 1) == packed);                // 3.81 us against 3.86
  CHECK(recommend(gdn, 4)->family == Family::Replay); // 6.23 against 6.39
  CHECK(depth(gdn) == 12); // sqrt(2*128*128*4 / (4*192)) = 13.06
  gdn.ringType = DataType::BF16;
  CHECK(depth(gdn) == 20); // 18.5
  CHECK(recommend(gdn, 256)->ringType == DataType::BF16);
  gdn.stateType = gdn.ringType = packed.ringType = DataType::F16;
  CHECK(*recommend(gdn, 16) == packed); // 10.80 against 11.68
  CHECK(recommend(gdn, 64)->family == Family::Replay);

  DecodeSpec kda = *modelPreset("ling-flash", 1);
  packed.ringType = kda.ringType;
  CHECK(*recommend(kda, 4) == packed); // 6.56 against 7.10
  CHECK(recommend(kda, 16)->family == Family::Replay);
  CHECK(depth(kda) == 8); // sqrt(131072 / 1536) = 9.2
  kda.ringFormat = RingFormat::Predecayed;
  CHECK(depth(kda) == 12); // no gate rows: 11.3
  // (L - 1) * 8 may be at most 80.
  CHECK(recommend(kda, 256, -8)->ringDepth == 11);
  CHECK(recommend(kda, 256, -80)->ringDepth == 2);
  CHECK(recommend(kda, 256, -1e-38f)->ringDepth == 12);
}

TEST_CASE("what was measured is recommended first", "[state]") {
  DecodeSpec gdn = qwen(), packed = gdn, half = gdn;
  packed.family = Family::Packed;
  packed.ringDepth = 1;
  half.ringDepth = 24;
  half.ringType = DataType::BF16;
  TuningTable table;
  table.add(packed).add({1, 3.0, 3.5, {}});
  table.add(packed).add({64, 70, 75, {}});
  table.add(half).add({1, 4.0, 4.0, {}});
  table.add(half).add({64, 40, 44, {}});
  auto best = [&](const DecodeSpec &spec, int rows) {
    return *recommend(spec, rows, -5, &table);
  };
  CHECK(best(gdn, 1) == Recommendation{Family::Packed, 1, DataType::F32});
  for (int rows : {2, 64, 1000}) // at least so many, or the most
    CHECK(best(gdn, rows) ==
          Recommendation{Family::Replay, 24, DataType::BF16});
  // Of minor facts, other values are the same spec; of others they are not.
  gdn.hasMask = false;
  CHECK(best(gdn, 64).ringDepth == 24);
  gdn.headDimK = 64;
  CHECK(best(gdn, 64) == *recommend(gdn, 64));
}

TEST_CASE("nothing is recommended for what cannot run", "[state][error]") {
  DecodeSpec kda = *modelPreset("ling-flash", 1);
  kda.ringFormat = RingFormat::Predecayed;
  auto why = [&](int rows, float lowerBound) {
    return recommend(kda, rows, lowerBound).status().message;
  };
  for (float bound : {0.0f, -0.0f, 5.0f, std::nanf(""), -INFINITY})
    CHECK_THAT(why(256, bound),
               Catch::Contains("lowerBound: ") &&
                   Catch::Contains("it must be finite and negative"));
  CHECK_THAT(why(256, -81), Catch::Contains("is at most 80"));
  CHECK(why(0, -5) == "rows: 0 is not allowed; it must be 1 or more");
  kda.numValueHeads = 0;
  CHECK(why(256, -5) ==
        "numValueHeads: 0 is not allowed; it must be 1 to 1024");
}
