//===- OperatorCheckTest.cpp - Wrong kernels of the whole family ----------===//
//
// Ring formats, circular rings, index arguments, packed decode, materialize:
// the harness must reject what is wrong there, saying why.
//
//===----------------------------------------------------------------------===//

#include "FakeDecodeDevice.h"
#include "FakeDecodeKernel.h"
#include "checks/DecodeSuite.h"
#include "kernels/Decode/DecodeReference.h"
#include "kernels/Materialize/MaterializeReference.h"

#include <catch2/catch.hpp>
#include <string>
#include <utility>
#include <vector>

using namespace replayjit::internal;

namespace {

template <typename Run>
std::string verdict(const DecodeProblem &problem, Run run) {
  FakeDevice device;
  FakeKernel kernel;
  kernel.run = run;
  Result<CheckReport> report = checkDecode(device, kernel, {}, problem);
  INFO(report.status().message);
  REQUIRE(report);
  CHECK(device.allocations.empty());
  const Verdict verdict = judge(*report, problem.spec, problem.tuning);
  CHECK(verdict.failed.empty() == verdict.why.empty());
  return verdict.why;
}

std::string verdictOf(const DecodeProblem &problem, Bug bug) {
  return verdict(problem, [&](const DecodeArgs &args) {
    fakeDecode(problem.spec, args, bug);
  });
}

/// Three live rows and a bad one, every index of its own, odd sizes.
DecodeProblem makeProblem(RingFormat format, bool circular) {
  DecodeProblem problem;
  DecodeSpec &spec = problem.spec;
  spec.isKda = true;
  spec.gate = Gate::LowerBound;
  spec.numKeyHeads = spec.numValueHeads = 2;
  spec.headDimK = 12;
  spec.headDimV = 20;
  spec.ringDepth = 4;
  spec.outType = DataType::F32;
  spec.ringFormat = format;
  spec.isCircular = circular;
  spec.hasRingIndices = spec.hasDstIndices = spec.hasTrackIndices = true;
  spec.hasSeparateQkv = true;
  problem.batch = 4;
  problem.slots = 11;
  problem.ringSlots = 6;
  problem.steps = 18;
  problem.rowSlots = {5, 2, 3, 1};
  problem.rowDstSlots = {6, 7, 3, 11};
  problem.rowRingSlots = {1, 0, 5, 2};
  problem.forcedFlushes = {{1, 0}, {6, 1}, {7, 1}, {13, 2}};
  problem.tracks = {{2, 0, 8}, {3, 1, 9},  {5, 2, 8},   {7, 1, 8},
                    {8, 0, 9}, {9, 2, 10}, {12, 0, 11}, {14, 1, 10}};
  problem.staggered = true;
  problem.rowPadding = 4;
  problem.slotPadding = 12;
  problem.layer = 3;
  return problem;
}

struct Format {
  RingFormat format;
  bool circular;
};
constexpr Format formats[] = {{RingFormat::Raw, false},
                              {RingFormat::Prefix, false},
                              {RingFormat::Predecayed, false},
                              {RingFormat::Prefix, true},
                              {RingFormat::Predecayed, true}};

} // namespace

TEST_CASE("right kernels of every ring format pass", "[check]") {
  for (auto [format, circular] : formats)
    for (Poison poison : {Poison::NaN, Poison::Infinity, Poison::Large}) {
      DecodeProblem problem = makeProblem(format, circular);
      problem.poison = poison;
      INFO("format " << int(format) << ", circular " << circular);
      CHECK(verdictOf(problem, Bug::None) == "");
      CHECK(verdict(problem, [&](const DecodeArgs &args) {
              replayStep(problem.spec, args);
            }) == "");
      problem.firstSlot = 1'000'000'000;
      CHECK(verdictOf(problem, Bug::None) == "");
    }
}

TEST_CASE("the report counts what was compared", "[check]") {
  DecodeProblem problem = makeProblem(RingFormat::Predecayed, true);
  FakeDevice device;
  FakeKernel kernel;
  int calls = 0;
  kernel.run = [&](const DecodeArgs &args) {
    ++calls;
    CHECK(args.slots == 7 + 11);
    CHECK(args.ringSlots == 7 + 6);
    CHECK(args.layer == 3);
    CHECK(args.errorWord != 0);
    fakeDecode(problem.spec, args, Bug::None);
  };
  problem.firstSlot = 7;
  Result<CheckReport> report = checkDecode(device, kernel, {}, problem);
  REQUIRE(report);
  CHECK(calls == 18);
  CHECK(report->liveRowSteps == 3 * 18 - 1); // row 0 is bad at step 12
  CHECK(report->flushes > 12);
  CHECK(report->stateError > 0);
  CHECK(report->stateError < 1e-5);
  CHECK(report->gateError > 0);
}

TEST_CASE("arguments that the host can see are checked", "[check]") {
  DecodeProblem problem = makeProblem(RingFormat::Prefix, false);
  problem.scale = INFINITY;
  FakeDevice device;
  FakeKernel kernel;
  kernel.run = [](const DecodeArgs &) { FAIL("launched"); };
  Result<CheckReport> report = checkDecode(device, kernel, {}, problem);
  REQUIRE(!report);
  CHECK(report.status().message ==
        "scale: inf is not allowed; it must be finite");
  CHECK(device.allocations.empty());
}

TEST_CASE("wrong indices are rejected", "[check]") {
  const std::vector<std::pair<Bug, std::string>> bugs = {
      {Bug::ReadsStateRing, ""},
      {Bug::FlushesToSource, ""},
      {Bug::ReadsDestination, "nan"},
      {Bug::IgnoresTrack, "state["},
      {Bug::TracksWithoutToken, "value: state["},
      {Bug::TrackingFlushes, "unusedSlotsIntact"},
      {Bug::TakesTrackForNull, "of a padding row"},
      {Bug::KeepsErrors, "errorWordRight"},
      {Bug::ErrorOfNextLayer, "errorWordRight"},
      {Bug::ForgetsFlush, "state["},
      {Bug::IgnoresForceFlush, ""},
      {Bug::ReadsRingRowM, "nan"},
      {Bug::LeavesPaddingRows, "paddingRowsZero"},
  };
  for (auto [format, circular] : formats) {
    const DecodeProblem problem = makeProblem(format, circular);
    for (const auto &[bug, topic] : bugs) {
      std::string why = verdictOf(problem, bug);
      INFO("bug " << int(bug) << ", format " << int(format) << ", circular "
                  << circular << ", said: " << why);
      CHECK(why != "");
      CHECK(why.find(topic) != std::string::npos);
    }
  }
}

TEST_CASE("wrong circular rings are rejected", "[check]") {
  const std::vector<std::pair<Bug, std::string>> bugs = {
      {Bug::BaseOffByOne, "nan"},
      {Bug::IgnoresBase, "nan"},
      {Bug::FoldsTokenToo, "value: state["},
      {Bug::DropsToken, "value: g_ring["},
      {Bug::ForgetsRebase, "value: g_ring["},
      {Bug::AppendsGate, "value: g_ring["},
  };
  for (RingFormat format : {RingFormat::Prefix, RingFormat::Predecayed})
    for (const auto &[bug, topic] : bugs) {
      std::string why = verdictOf(makeProblem(format, true), bug);
      INFO("bug " << int(bug) << ", said: " << why);
      CHECK(why.find(topic) != std::string::npos);
    }
  CHECK(verdictOf(makeProblem(RingFormat::Predecayed, false),
                  Bug::AppendsGate) != "");
  // The wrong format altogether.
  for (RingFormat format : {RingFormat::Prefix, RingFormat::Predecayed}) {
    const DecodeProblem problem = makeProblem(format, false);
    DecodeSpec raw = problem.spec;
    raw.ringFormat = RingFormat::Raw;
    CHECK(verdict(problem, [&](const DecodeArgs &args) {
            replayStep(raw, args);
          }) != "");
  }
}

TEST_CASE("an error word must count once and stay", "[check]") {
  const DecodeProblem problem = makeProblem(RingFormat::Raw, false);
  auto says = [&](auto change) {
    return verdict(problem, [&](const DecodeArgs &args) {
      auto *word = reinterpret_cast<ErrorWord *>(args.errorWord);
      const ErrorWord before = *word;
      replayStep(problem.spec, args);
      change(*word, before);
    });
  };
  const std::string wrong = "errorWordRight does not hold: error_word has ";
  CHECK(says([](ErrorWord &word, const ErrorWord &before) {
          word.count += word.count - before.count; // once per block
        }).starts_with(wrong + "count 2, "));
  CHECK(says([](ErrorWord &word, const ErrorWord &before) {
          if (before.count)
            word.row = 0; // the last one in place of the first
        }) != "");
  CHECK(says([](ErrorWord &word, const ErrorWord &) { word.value = 0; })
            .find("value 0; it should have count 1 and kind 4 of row 3, layer "
                  "3, value 11") != std::string::npos);
}

TEST_CASE("rows of one slot are run and not compared", "[check]") {
  DecodeProblem problem = makeProblem(RingFormat::Raw, false);
  problem.rowDstSlots = {};
  problem.sharedSlots = true;
  problem.spec.hasRingIndices = false;
  problem.rowRingSlots = {};
  problem.rowSlots = {5, 5, 3, -1};
  CHECK(verdictOf(problem, Bug::None) == "");
  CHECK(verdictOf(problem, Bug::WritesUnusedSlot) != "");
  problem.sharedSlots = false;
  CHECK(!validateProblem(problem));
}

TEST_CASE("packed decode is checked", "[check]") {
  for (bool isKda : {false, true}) {
    DecodeProblem problem = makeProblem(RingFormat::Raw, false);
    problem.spec.isKda = isKda;
    problem.spec.gate = Gate::Softplus;
    problem.spec.family = Family::Packed;
    problem.spec.ringDepth = 1;
    problem.spec.hasRingIndices = problem.spec.hasForceFlush = false;
    problem.rowRingSlots = {};
    problem.forcedFlushes = {};
    CHECK(verdictOf(problem, Bug::None) == "");
    for (Bug bug : {Bug::ForgetsFlush, Bug::FlushesToSource, Bug::IgnoresTrack,
                    Bug::TransposedState, Bug::KeepsErrors, Bug::DecaysKq})
      CHECK(verdictOf(problem, bug) != "");
  }
}

TEST_CASE("an error that grows with the flushes is rejected", "[check]") {
  DecodeProblem problem;
  problem.spec.numKeyHeads = problem.spec.numValueHeads = 1;
  problem.spec.headDimK = 8;
  problem.spec.headDimV = 6;
  problem.spec.ringDepth = 4;
  problem.spec.outType = DataType::BF16;
  problem.batch = problem.slots = 2;
  problem.steps = 600;
  CHECK(verdictOf(problem, Bug::None) == "");
  // Late launches are less exact, but within the bounds.
  int launches = 0;
  std::string why = verdict(problem, [&](const DecodeArgs &args) {
    fakeDecode(problem.spec, args, Bug::None);
    if (++launches > 450)
      for (int i = 0; i < 2 * 48; ++i) {
        const int64_t at = i / 48 * args.statePitch + i % 48;
        auto *state = reinterpret_cast<float *>(args.state);
        if (launches % 4 == 0)
          state[at] *= 1 + 4e-7f;
      }
  });
  CHECK(why.find("errorsSteady does not hold: the error of the state grows") ==
        0);
}

//===----------------------------------------------------------------------===//
// Materialize
//===----------------------------------------------------------------------===//

namespace {

template <typename Change>
std::string materialized(const MaterializeProblem &problem, Change change) {
  FakeDevice device;
  FakeKernel kernel;
  kernel.runMaterialize = [&](MaterializeArgs args) {
    DecodeSpec spec = problem.spec;
    std::vector<ReplayLayer> layers(args.numLayers);
    for (int i = 0; i < args.numLayers; ++i)
      layers[i] = reinterpret_cast<ReplayLayer *>(args.layers)[i];
    args.layers = reinterpret_cast<uint64_t>(layers.data());
    change(spec, args, layers);
    materializeLaunch(spec, args);
  };
  LaunchConfig launch;
  launch.blocksPerRow = 2;
  Result<CheckReport> report =
      checkMaterialize(device, kernel, launch, problem);
  INFO(report.status().message);
  REQUIRE(report);
  CHECK(device.allocations.empty());
  CHECK(device.lastBlocks == 2 * problem.numLayers * problem.rows.size());
  const Verdict verdict = judge(*report, problem.spec, problem.tuning);
  CHECK(verdict.failed.empty() == verdict.why.empty());
  return verdict.why;
}

using Layers = std::vector<ReplayLayer>;

} // namespace

TEST_CASE("right materialize kernels pass, wrong ones do not", "[check]") {
  Result<std::vector<DecodeCase>> cases = decodeSuite("materialize", Target{});
  REQUIRE(cases);
  for (const DecodeCase &entry : *cases) {
    INFO(entry.name);
    REQUIRE(entry.materialize);
    const MaterializeProblem &problem = *entry.materialize;
    CHECK(materialized(problem,
                       [](DecodeSpec &, MaterializeArgs &, Layers &) {}) == "");
    auto fails = [&](const char *topic, auto change) {
      const std::string why = materialized(problem, change);
      INFO(topic << ", said: " << why);
      CHECK(why != "");
      CHECK(why.find(topic) != std::string::npos);
    };
    if (problem.rows.empty())
      continue;
    fails("", [](DecodeSpec &, MaterializeArgs &args, Layers &) {
      args.batch = 1; // rows are missing
    });
    if (problem.numLayers > 1) {
      if (problem.firstSlot == 0)
        fails("of layer 1",
              [](DecodeSpec &, MaterializeArgs &, Layers &layers) {
                layers[1].statePitch = layers[0].statePitch;
              });
      fails("of layer 2", [](DecodeSpec &, MaterializeArgs &args, Layers &) {
        args.numLayers = 2;
      });
    }
    if (problem.spec.hasMask)
      fails("unusedSlotsIntact", [](DecodeSpec &spec, MaterializeArgs &,
                                    Layers &) { spec.hasMask = false; });
    if (problem.spec.isCircular)
      fails("nan", [](DecodeSpec &spec, MaterializeArgs &, Layers &) {
        spec.isCircular = false;
      });
    if (problem.spec.hasRingIndices)
      fails("", [](DecodeSpec &, MaterializeArgs &args, Layers &) {
        args.ringIndexStride = 0;
      });
    if (entry.name.find("bad-rows") != std::string::npos)
      fails("errorWordRight", [](DecodeSpec &, MaterializeArgs &args,
                                 Layers &) { args.errorWord = 0; });
  }
}

TEST_CASE("illegal materialize problems are refused", "[check]") {
  MaterializeProblem problem;
  problem.spec.family = Family::Materialize;
  using Rows = std::vector<MaterializeProblem::Row>;
  auto says = [&](Rows rows) {
    problem.rows = std::move(rows);
    return validateProblem(problem).message;
  };
  CHECK(says({{.src = 1, .dst = 1}, {.src = 2, .dst = 3}}) == "");
  CHECK(says({{.src = 1, .dst = 3}, {.src = 2, .dst = 3}}) ==
        "rows.dst: slot 3 appears twice; dst must be distinct");
  CHECK(says({{.src = 1, .dst = 1}, {.src = 1, .dst = 3}}) ==
        "rows.src: slot 1 is the dst of another row; they must be distinct");
  CHECK(says({{.src = 1, .dst = 2, .writePos = 1}, {.src = 1, .dst = 3}}) ==
        "rows.writePos: the ring of slot 1 has two cursors");
  problem.spec.hasMask = false;
  CHECK(says({{.src = 1, .dst = 1, .masked = true}}) ==
        "rows.masked: not allowed, since the spec has hasMask = false");
  problem.spec.family = Family::Replay;
  CHECK(says({}) == "family: it must be materialize here; checkDecode serves "
                    "the others");
}
