//===- DecodeSpecTest.cpp -------------------------------------------------===//
//
// What is legal, named and chosen. The sentences for what is not legal are
// tests/error/SpecErrorsTest.cpp.
//
//===----------------------------------------------------------------------===//

#include "kernels/Decode/DecodeSpec.h"
#include "kernels/Plan/PlanArgs.h"

#include <catch2/catch.hpp>
#include <cctype>
#include <functional>
#include <limits>
#include <set>
#include <vector>

using namespace replayjit::internal;

static void checkValid(const DecodeSpec &spec, const DecodeTuning &tuning) {
  Status status = validate(spec, tuning, Target{});
  INFO(status.message);
  CHECK(status.isOk());
}

TEST_CASE("the defaults are valid", "[spec]") { checkValid({}, {}); }

TEST_CASE("gates of both families", "[spec]") {
  DecodeSpec spec;
  CHECK(gateWidth(spec) == 1);
  spec.betaRound = true;
  checkValid(spec, {});
  spec.isKda = true;
  spec.headDimK = 96;
  CHECK(gateWidth(spec) == 96);
  for (Gate gate : {Gate::Softplus, Gate::LowerBound}) {
    spec.gate = gate;
    checkValid(spec, {});
    for (int ratio : {1, 2, 3, 8}) {
      spec.numValueHeads = ratio * spec.numKeyHeads;
      checkValid(spec, {});
    }
  }
}

TEST_CASE("the chosen tuning is valid for every spec", "[spec]") {
  std::vector<int> sizes = {1,  2,  3,  7,  8,   9,   15,  16,  17,  31,  32,
                            60, 64, 80, 96, 100, 127, 128, 129, 200, 255, 256};
  struct Kind {
    Readout readout;
    bool isKda;
  };
  for (auto [readout, isKda] : {Kind{Readout::OutputOnly, false},
                                {Readout::OutputOnly, true},
                                {Readout::Rebuild, false},
                                {Readout::Rebuild, true}})
    for (int K : sizes)
      for (int V : sizes)
        for (int L : {1, 2, 3, 16, 64})
          for (int rows : {0, 1, 4, 64, 100000}) {
            if (readout == Readout::Rebuild && K <= 8)
              continue; // not a legal spec
            DecodeSpec spec;
            spec.isKda = isKda;
            spec.readout = readout;
            spec.headDimK = K;
            spec.headDimV = V;
            spec.ringDepth = L;
            for (const char *chip : {"sm_80", "sm_90a"}) {
              Target target = *Target::parse(chip);
              DecodeTuning tuning = chooseTuning(spec, rows, target);
              if (Status status = validate(spec, tuning, target); !status)
                FAIL(chip << " K=" << K << " V=" << V << " L=" << L
                          << " rows=" << rows << ": " << status.message);
            }
          }
}

static Target targetOf(const char *chip) { return *Target::parse(chip); }

TEST_CASE("the tuning follows the batch", "[spec]") {
  const Target target = targetOf("sm_90a");
  auto choose = [&](const DecodeSpec &spec, int rows, int SMs = 132) {
    return chooseTuning(spec, rows, target, SMs);
  };
  DecodeSpec spec; // 32 value heads, K = V = 128
  CHECK(choose(spec, 1).blockV == 32);
  CHECK(choose(spec, 2).blockV == 64);
  CHECK(choose(spec, 4).maxRegisters == 0); // 128 heads
  CHECK(choose(spec, 4).stageBytes == 0);
  CHECK(choose(spec, 5).stageBytes == 2048);
  CHECK(choose(spec, 0).stageBytes == 2048);
  CHECK(choose(spec, 0).blockK == 128);
  CHECK(choose(spec, 4, 64).stageBytes == 2048); // a smaller GPU
  CHECK(choose(spec, 1).numWarps == 4);
  CHECK(choose(spec, 16).numWarps == 2);

  spec.stateType = spec.ringType = DataType::BF16;
  CHECK(choose(spec, 1).blockV == 16);
  CHECK(choose(spec, 4).blockV == 32); // 128 heads
  CHECK(choose(spec, 4).flushRows == 0);
  CHECK_FALSE(choose(spec, 4).splitVectors);
  CHECK(choose(spec, 5).splitVectors);
  CHECK(choose(spec, 16).numWarps == 2); // 512 heads
  CHECK(choose(spec, 17).numWarps == 1);
  CHECK(choose(spec, 0).blockV == 64);
  CHECK(choose(spec, 0).blockK == 16);
  auto elsewhere = [&](const DecodeSpec &other, const char *chip, int rows) {
    return chooseTuning(other, rows, *Target::parse(chip));
  };
  // Exact products were measured on one kind of GPU, for one token a row.
  CHECK_FALSE(elsewhere(spec, "sm_100a", 64).splitVectors);
  CHECK(elsewhere(spec, "sm_100a", 64).stageBytes == 2048);
  CHECK(elsewhere(spec, "sm_80", 64).flushRows > 0);
  DecodeSpec drafts = spec;
  drafts.family = Family::Verify;
  drafts.isCircular = true;
  drafts.numTokens = 4;
  CHECK_FALSE(choose(drafts, 64).splitVectors);
  CHECK(choose(drafts, 64).flushRows > 0);
  spec.isKda = true;
  CHECK(choose(spec, 16).stageBytes == 0); // 512 heads
  CHECK(choose(spec, 17).stageBytes == 2048);
  CHECK(choose(spec, 17).blockK == 128);
  spec.stateType = spec.ringType = DataType::F16;
  CHECK(choose(spec, 8).blockV == 64);
  CHECK(choose(spec, 9).blockV == 128);
  CHECK(choose(spec, 0).stageBytes == 0);
  spec.isKda = false;
  CHECK(choose(spec, 16).blockV == 32); // 512 heads
  CHECK(choose(spec, 17).blockV == 64);
  CHECK_FALSE(choose(spec, 64).splitVectors); // 2048 heads
  CHECK(choose(spec, 65).splitVectors);

  spec = {};
  spec.headDimK = 256; // the whole K stays: fewer rows
  CHECK(choose(spec, 0).blockK == 256);
  CHECK(choose(spec, 0).blockV == 64);
  spec.headDimV = 20;
  CHECK(choose(spec, 0).blockV == 32);
  spec.headDimV = 3;
  CHECK(choose(spec, 0).blockV == 16);

  spec = {};
  spec.readout = Readout::Rebuild;
  for (int rows : {0, 1}) {
    CHECK(choose(spec, rows).blockV == 64);
    CHECK(choose(spec, rows).blockK == 64);
    CHECK(choose(spec, rows).numWarps == 4);
  }
  spec.headDimV = 16;
  CHECK(choose(spec, 0).numWarps == 1);
  spec = {};
  spec.isKda = true;
  spec.readout = Readout::Rebuild;
  CHECK(choose(spec, 0).numWarps == 8);
  // No product in 32 bits.
  CHECK(choose({}, 2000000000).stageBytes == 2048);
}

TEST_CASE("what was not measured with stages has none", "[spec]") {
  const Target target = targetOf("sm_90a");
  auto choose = [&](auto change, const Target &target) {
    DecodeSpec spec;
    change(spec);
    return chooseTuning(spec, 256, target);
  };
  auto nothing = [](DecodeSpec &) {};
  CHECK(choose(nothing, target).stageBytes > 0);
  CHECK(choose(nothing, targetOf("sm_80")).stageBytes == 0);
  CHECK(choose(nothing, targetOf("sm_120a")).stageBytes == 0);
  for (auto change : {+[](DecodeSpec &s) { s.alignment = 0; },
                      +[](DecodeSpec &s) { s.family = Family::Materialize; },
                      +[](DecodeSpec &s) { s.headDimK = 64; },
                      +[](DecodeSpec &s) { s.headDimV = 96; },
                      +[](DecodeSpec &s) { s.ringDepth = 17; },
                      +[](DecodeSpec &s) { s.ringType = DataType::BF16; },
                      +[](DecodeSpec &s) { s.hasDstIndices = true; },
                      +[](DecodeSpec &s) { s.hasTrackIndices = true; }}) {
    DecodeTuning tuning = choose(change, target);
    CHECK(tuning.stageBytes == 0);
    CHECK(tuning.blockV == 128);
  }
  CHECK(choose([](DecodeSpec &s) { s.isKda = true; }, target).stageBytes == 0);
}

TEST_CASE("before sm_90 a thread holds less", "[spec]") {
  for (const char *chip : {"sm_80", "sm_86", "sm_89"}) {
    const Target target = targetOf(chip);
    DecodeSpec spec;
    for (int K : {64, 128, 256})
      for (int rows : {0, 1, 16}) {
        spec.headDimK = K;
        DecodeTuning tuning = chooseTuning(spec, rows, target);
        CHECK(tuning.blockV * tuning.blockK <= 16 * 32 * tuning.numWarps);
      }
    spec = {};
    CHECK(chooseTuning(spec, 0, target).blockV == 32);
    CHECK(chooseTuning(spec, 0, target).numWarps == 8);
    spec.readout = Readout::Rebuild;
    CHECK(chooseTuning(spec, 0, target).numWarps == 8);
  }
}

TEST_CASE("an illegal spec gets a choice too", "[spec]") {
  const int least = std::numeric_limits<int>::min();
  const int most = std::numeric_limits<int>::max();
  for (int size : {least, -1, 0, 257, (1 << 30) + 1, most}) {
    DecodeSpec spec;
    spec.headDimK = spec.headDimV = spec.ringDepth = size;
    spec.numKeyHeads = spec.numValueHeads = size;
    for (int rows : {least, 0, most}) {
      DecodeTuning tuning = chooseTuning(spec, rows, Target{}, size);
      CHECK(validate({}, {}, Target{}).isOk());
      CHECK(!validate(spec, tuning, Target{}).isOk());
    }
  }
  CHECK(nextPowerOfTwo(1) == 1);
  CHECK(nextPowerOfTwo(96) == 128);
  CHECK(nextPowerOfTwo(most) == 1 << 30);
}

using Change = std::function<void(DecodeSpec &, DecodeTuning &)>;
#define SPEC(change) [](DecodeSpec &s, DecodeTuning &) { s.change; }
#define TUNING(change) [](DecodeSpec &, DecodeTuning &t) { t.change; }

/// Facts of every family's program; "nothing" stands for the spec itself.
static const std::vector<Change> commonFacts = {
    [](DecodeSpec &, DecodeTuning &) {},
    SPEC(isKda = !s.isKda),
    SPEC(numKeyHeads = 8),
    SPEC(numValueHeads = 64),
    SPEC(headDimK = 64),
    SPEC(headDimV = 64),
    SPEC(stateType = DataType::BF16),
    SPEC(indexType = DataType::I64),
    SPEC(nullSlot = NullSlot::NonPositive),
    SPEC(trapOnError = true),
    SPEC(readout = Readout::Rebuild),
    SPEC(programmaticLaunch = ProgrammaticLaunch::Late),
    SPEC(alignment = 0),
    TUNING(blockV = 64),
    TUNING(blockK = 64),
    TUNING(numWarps = 8),
    TUNING(flushRows = 2),
    TUNING(maxRegisters = 128),
    TUNING(stageBytes = 2048),
    TUNING(splitVectors = true),
};
/// Facts of a token.
static const std::vector<Change> tokenFacts = {
    SPEC(actType = DataType::F16),   SPEC(gateType = DataType::F32),
    SPEC(betaType = DataType::F32),  SPEC(paramType = DataType::BF16),
    SPEC(biasType = DataType::BF16), SPEC(outType = DataType::F32),
    SPEC(gate = Gate::LowerBound),   SPEC(qkL2Norm = false),
    SPEC(betaRound = true),          SPEC(hasSeparateQkv = true),
    SPEC(gate = Gate::LogDecay),     SPEC(beta = Beta::TwiceSigmoid),
    SPEC(beta = Beta::Given),        SPEC(beta = Beta::Step),
    SPEC(beta = Beta::One),          SPEC(gate = Gate::Fixed),
    SPEC(gate = Gate::Rate),         SPEC(rule = Rule::Additive),
    SPEC(skip = Skip::Head),         SPEC(skip = Skip::Channel),
    SPEC(hasOutGate = true),         SPEC(hasStepLimits = true),
};
static const std::vector<Change> ringFacts = {
    SPEC(ringDepth = 8),
    SPEC(ringType = DataType::BF16),
    SPEC(ringFormat = RingFormat::Prefix),
    SPEC(ringFormat = RingFormat::Predecayed),
    SPEC(isCircular = true),
    SPEC(hasRingIndices = true),
};
static const std::vector<Change> indexFacts = {SPEC(hasDstIndices = true),
                                               SPEC(hasTrackIndices = true)};
static const std::vector<Change> forceFacts = {SPEC(hasForceFlush = false)};
static const std::vector<Change> maskFacts = {SPEC(hasMask = false)};

/// `own` change the name of a kernel of that family, each in its way; the
/// others do not, since its program is the same.
static void checkNames(std::set<std::string> &names, const DecodeSpec &good,
                       std::initializer_list<std::vector<Change>> own,
                       std::initializer_list<std::vector<Change>> others) {
  auto named = [&](const Change &change) {
    DecodeSpec spec = good;
    DecodeTuning tuning;
    change(spec, tuning);
    return kernelName(spec, tuning);
  };
  for (const std::vector<Change> &facts : own)
    for (const Change &change : facts) {
      std::string name = named(change);
      INFO(name);
      CHECK(names.insert(name).second);
      for (char c : name)
        CHECK((std::isalnum(static_cast<unsigned char>(c)) || c == '_'));
    }
  for (const std::vector<Change> &facts : others)
    for (const Change &change : facts)
      CHECK(named(change) == kernelName(good, {}));
}

TEST_CASE("a name says every specialized fact", "[spec]") {
  std::set<std::string> names;
  DecodeSpec spec;
  checkNames(names, spec,
             {commonFacts, tokenFacts, ringFacts, indexFacts, forceFacts},
             {maskFacts});
  // What one fact says of another.
  DecodeSpec without = spec;
  without.gate = Gate::LogDecay;
  checkNames(names, without, {},
             {{SPEC(paramType = DataType::BF16), SPEC(hasUnitKeys = true)}});
  without.beta = Beta::Given;
  checkNames(names, without, {}, {{SPEC(betaRound = true)}});
  // Without an a and a b, or an A_log, their types say nothing; D is as
  // dt_bias.
  without = spec;
  without.gate = Gate::Fixed;
  without.beta = Beta::One;
  checkNames(names, without, {},
             {{SPEC(gateType = DataType::F32), SPEC(betaType = DataType::F32),
               SPEC(biasType = DataType::BF16), SPEC(betaRound = true)}});
  without.gate = Gate::LogDecay;
  without.skip = Skip::Head;
  checkNames(names, without, {{SPEC(biasType = DataType::BF16)}},
             {{SPEC(paramType = DataType::BF16)}});
  without = spec;
  without.ringFormat = RingFormat::Predecayed;
  without.qkL2Norm = false;
  checkNames(names, without, {{SPEC(hasUnitKeys = true)}}, {});
  spec.family = Family::Packed;
  spec.ringDepth = 1;
  checkNames(names, spec, {commonFacts, tokenFacts, indexFacts},
             {forceFacts, maskFacts, {SPEC(ringType = DataType::BF16)}});
  spec = {};
  spec.family = Family::Materialize;
  checkNames(names, spec, {commonFacts, ringFacts, maskFacts},
             {tokenFacts, forceFacts});

  // A plan knows no shape, no tensor and no tuning.
  const std::vector<Change> planFacts = {[](DecodeSpec &, DecodeTuning &) {},
                                         SPEC(ringDepth = 8),
                                         SPEC(isCircular = true),
                                         SPEC(indexType = DataType::I64),
                                         SPEC(nullSlot = NullSlot::NonPositive),
                                         SPEC(trapOnError = true)};
  for (Family family : {Family::PlanBegin, Family::PlanCommit}) {
    spec = {};
    spec.family = family;
    checkNames(
        names, spec, {planFacts},
        {tokenFacts,
         forceFacts,
         maskFacts,
         indexFacts,
         {SPEC(isKda = true), SPEC(headDimK = 64), TUNING(blockV = 64)}});
    CHECK(planSpec(spec, family) == spec);
  }
  CHECK(kernelName(spec, {}) == "plan_commit_l16_idx32_nullneg");

  spec = {};
  spec.family = Family::Materialize;
  CHECK(kernelName({}, {}) ==
        "gdn_decode_h16_hv32_k128_v128_l16_actbf16_gatebf16_paramfp32_outbf16_"
        "statefp32_ringfp32_idx32_l2norm_force_nullneg_outonly_al16_bv32_bk128_"
        "w4_fr4");
  CHECK(kernelName(spec, {}) ==
        "gdn_materialize_h16_hv32_k128_v128_l16_statefp32_ringfp32_idx32_mask_"
        "nullneg_outonly_al16_bv32_bk128_w4_fr4");
  spec.family = Family::Packed;
  spec.ringDepth = 1;
  CHECK(kernelName(spec, {}) ==
        "gdn_packed_h16_hv32_k128_v128_l1_actbf16_gatebf16_paramfp32_outbf16_"
        "statefp32_idx32_l2norm_nullneg_outonly_al16_bv32_bk128_w4_fr4");
}

TEST_CASE("the longest name is a file name", "[spec]") {
  DecodeSpec spec = *modelPreset("kimi-k3", 1);
  spec.numKeyHeads = spec.numValueHeads = maxHeads;
  spec.headDimK = spec.headDimV = maxHeadDim;
  spec.ringDepth = maxRingDepth;
  spec.indexType = DataType::I64;
  spec.betaRound = spec.isCircular = spec.hasSeparateQkv = true;
  spec.hasRingIndices = spec.hasDstIndices = spec.hasTrackIndices = true;
  spec.hasForceFlush = false;
  spec.skip = Skip::Channel;
  spec.hasOutGate = true;
  spec.trapOnError = true;
  spec.programmaticLaunch = ProgrammaticLaunch::Early;
  spec.dependents = Dependents::All;
  spec.ringFormat = RingFormat::Predecayed;
  spec.nullSlot = NullSlot::NonPositive;
  spec.readout = Readout::Rebuild;
  DecodeTuning tuning;
  tuning.blockV = 256;
  tuning.numWarps = 8;
  tuning.maxRegisters = 255;
  tuning.stageBytes = 1 << 20;
  checkValid(spec, tuning);
  // 255 bytes, of which a dumped stage adds "00-" and ".optimized.ll".
  CHECK(kernelName(spec, tuning).size() + 16 <= 255);
}

TEST_CASE("model presets split their heads over ranks", "[spec]") {
  struct Row {
    const char *model;
    int ranks, keyHeads, valueHeads;
    bool isKda = false;
    Gate gate = Gate::Softplus;
    int k = 128, v = 128;
    Beta beta = Beta::Sigmoid;
  };
  for (const Row &row :
       {Row{"qwen3-next", 1, 16, 32},
        {"qwen3-next", 4, 4, 8},
        {"qwen3.5-27b", 1, 16, 48},
        {"qwen3.5-27b", 8, 2, 6},
        {"qwen3.5-397b", 1, 16, 64},
        {"qwen3.5-397b", 8, 2, 8},
        {"kimi-linear", 1, 32, 32, true},
        {"kimi-linear", 8, 4, 4, true},
        {"kimi-k3", 1, 96, 96, true, Gate::LowerBound},
        {"kimi-k3", 8, 12, 12, true, Gate::LowerBound},
        {"ling-flash", 4, 8, 8, true, Gate::LowerBound},
        {"nemotron-h-8b", 8, 1, 16, false, Gate::Softplus, 128, 64, Beta::Step},
        {"nemotron-3-super", 2, 4, 64, false, Gate::Softplus, 128, 64,
         Beta::Step},
        {"nemotron-nano-9b-v2", 1, 8, 128, false, Gate::Softplus, 128, 80,
         Beta::Step},
        {"granite-4-h-small", 4, 1, 32, false, Gate::Softplus, 128, 64,
         Beta::Step},
        {"bamba-9b", 1, 1, 128, false, Gate::Softplus, 128, 64, Beta::Step},
        {"falcon-h1-1.5b", 2, 1, 24, false, Gate::Softplus, 256, 64,
         Beta::Step},
        {"falcon-h1-7b", 1, 1, 24, false, Gate::Softplus, 256, 128, Beta::Step},
        {"minimax-01", 8, 8, 8, false, Gate::Fixed, 128, 128, Beta::One}}) {
    Result<DecodeSpec> spec = modelPreset(row.model, row.ranks);
    REQUIRE(spec);
    CHECK(spec->numKeyHeads == row.keyHeads);
    CHECK(spec->numValueHeads == row.valueHeads);
    CHECK(spec->headDimK == row.k);
    CHECK(spec->headDimV == row.v);
    CHECK(spec->isKda == row.isKda);
    CHECK(spec->gate == row.gate);
    CHECK(spec->beta == row.beta);
    const bool isDelta = row.beta == Beta::Sigmoid;
    CHECK(spec->rule == (isDelta ? Rule::Delta : Rule::Additive));
    CHECK(spec->qkL2Norm == isDelta);
    checkValid(*spec, chooseTuning(*spec, 0, Target{}));
  }
}
