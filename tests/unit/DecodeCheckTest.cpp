//===- DecodeCheckTest.cpp - A harness that can fail ----------------------===//
//
// The harness must pass a right kernel, in every storage type and with every
// oddity of a batch, and must reject each wrong one, saying why.
//
//===----------------------------------------------------------------------===//

#include "checks/DecodeCheck.h"
#include "FakeDecodeDevice.h"
#include "FakeDecodeKernel.h"
#include "checks/DecodeSuite.h"
#include "kernels/Decode/DecodeReference.h"

#include <catch2/catch.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

using namespace replayjit::internal;

namespace {

/// Small, K != V, three value heads to a key head, and all that a batch can
/// contain: padding rows of each kind, phases, forced flushes, odd strides.
DecodeProblem makeProblem() {
  DecodeProblem problem;
  problem.spec.numKeyHeads = 2;
  problem.spec.numValueHeads = 6;
  problem.spec.headDimK = 12;
  problem.spec.headDimV = 20;
  problem.spec.ringDepth = 5;
  problem.spec.outType = DataType::F32;
  problem.batch = 6;
  problem.slots = 7;
  problem.steps = 14;
  problem.rowSlots = {5, -1, 2, 7, 6, 1};
  problem.badCursors = {{5, 5}};
  problem.forcedFlushes = {{1, 0}, {2, 2}, {3, 1}, {9, 4}};
  problem.staggered = true;
  problem.rowPadding = 3;
  problem.slotPadding = 9;
  problem.indexStride = 3;
  return problem;
}

DecodeProblem makeKdaProblem(Gate gate) {
  DecodeProblem problem = makeProblem();
  problem.spec.isKda = true;
  problem.spec.gate = gate;
  problem.spec.betaRound = true;
  problem.lowerBound = -3;
  return problem;
}

Result<CheckReport> run(const DecodeProblem &problem, Bug bug) {
  FakeDevice device;
  FakeKernel kernel;
  kernel.run = [&](const DecodeArgs &args) {
    fakeDecode(problem.spec, args, bug);
  };
  Result<CheckReport> report = checkDecode(device, kernel, {}, problem);
  CHECK(device.allocations.empty());
  return report;
}

/// The sentence of judge, empty if the kernel passed.
std::string verdict(const DecodeProblem &problem, Bug bug) {
  Result<CheckReport> report = run(problem, bug);
  REQUIRE(report);
  const Verdict verdict = judge(*report, problem.spec, problem.tuning);
  CHECK(verdict.failed.empty() == verdict.why.empty());
  CHECK(bool(verdict) == report->firstProblem.empty());
  return verdict.why;
}

} // namespace

TEST_CASE("a right kernel passes", "[check]") {
  DecodeProblem problem = makeProblem();
  Result<CheckReport> report = run(problem, Bug::None);
  REQUIRE(report);
  CHECK(judge(*report, problem.spec, problem.tuning).why == "");
  CHECK(report->firstProblem == "");
  CHECK(report->liveRowSteps == 3 * 14);
  CHECK(report->flushes > 6);
  CHECK(report->outError > 0);
  CHECK(report->outError < 5e-7);
  CHECK(report->stateError > 0);
  CHECK(report->stateError < 5e-7);
  CHECK(report->ringError > 0);
  CHECK(report->gateError > 0);
}

TEST_CASE("the fp64 step passes with only its storage rounding", "[check]") {
  DecodeProblem problem = makeProblem();
  FakeDevice device;
  FakeKernel kernel;
  kernel.run = [&](const DecodeArgs &args) { replayStep(problem.spec, args); };
  Result<CheckReport> report = checkDecode(device, kernel, {}, problem);
  REQUIRE(report);
  CHECK(judge(*report, problem.spec, problem.tuning));
  CHECK(report->outError < 1e-7);
  CHECK(report->stateError < 1e-7);
}

TEST_CASE("a right kernel passes in all shapes and types", "[check]") {
  using enum DataType;
  const std::vector<std::array<DataType, 4>> types = {
      {BF16, BF16, F32, F32},   {F16, F16, F32, F32},  {F32, F32, F32, F32},
      {BF16, BF16, BF16, BF16}, {F16, F16, F16, F16},  {F32, F32, BF16, F32},
      {F32, F32, F32, F16},     {BF16, F32, F32, BF16}};
  const std::vector<std::array<int, 5>> shapes = {
      {1, 1, 8, 4, 3},    {2, 2, 16, 60, 1}, {1, 2, 1, 1, 4},
      {1, 3, 96, 80, 16}, {2, 4, 64, 32, 2}, {1, 1, 7, 31, 64}};
  for (auto [act, out, state, ring] : types)
    for (auto [H, HV, K, V, L] : shapes)
      for (int kind = 0; kind < 6; ++kind) {
        const bool mixed = kind % 2;
        DecodeProblem problem;
        problem.spec.isKda = kind >= 2;
        problem.spec.gate = kind < 4 ? Gate::Softplus : Gate::LowerBound;
        problem.spec.betaRound = kind == 3;
        problem.spec.numKeyHeads = H;
        problem.spec.numValueHeads = HV;
        problem.spec.headDimK = K;
        problem.spec.headDimV = V;
        problem.spec.ringDepth = L;
        problem.spec.actType = problem.spec.gateType = problem.spec.betaType =
            act;
        problem.spec.outType = out;
        problem.spec.stateType = state;
        problem.spec.ringType = ring;
        problem.batch = 3;
        problem.staggered = mixed;
        problem.mixedGates = mixed;
        problem.steps = L == 64 ? 70 : 20;
        INFO((kind < 2 ? "GDN" : "KDA")
             << ", kind " << kind << ", K = " << K << ", V = " << V
             << ", L = " << L << ", state " << wordOf(state) << ", ring "
             << wordOf(ring) << ", out " << wordOf(out));
        CHECK(verdict(problem, Bug::None) == "");
      }
}

TEST_CASE("a right kernel passes the suites", "[check]") {
  for (const char *suite : {"kda", "packed", "formats", "indices", "long"}) {
    Result<std::vector<DecodeCase>> cases = decodeSuite(suite, Target{});
    REQUIRE(cases);
    for (const DecodeCase &entry : *cases) {
      INFO(entry.name);
      CHECK(verdict(entry.problem, Bug::None) == "");
    }
  }
}

TEST_CASE("every case of every suite is legal", "[check]") {
  for (const char *suite : {"small", "emulation", "real", "gpu", "kda-real"})
    for (const char *chip : {"sm_80", "sm_90a"}) {
      const Target target = *Target::parse(chip);
      Result<std::vector<DecodeCase>> cases = decodeSuite(suite, target);
      REQUIRE(cases);
      std::set<std::string> names;
      for (const DecodeCase &entry : *cases) {
        INFO(suite << " " << entry.name);
        CHECK(names.insert(entry.name).second);
        const DecodeProblem &problem = entry.problem;
        CHECK(validate(problem.spec, problem.tuning, target).message == "");
        if (entry.materialize)
          CHECK(validateProblem(*entry.materialize).message == "");
        else
          CHECK(validateProblem(problem).message == "");
      }
    }
}

TEST_CASE("options of the spec and the problem", "[check]") {
  DecodeProblem problem = makeProblem();
  problem.spec.alignment = 0;
  problem.misaligned = true;
  problem.spec.indexType = DataType::I64;
  problem.spec.gateType = DataType::F32;
  problem.spec.paramType = DataType::BF16;
  problem.spec.nullSlot = NullSlot::NonPositive;
  problem.rowSlots = {5, 0, 2, int64_t(1) << 33, 6, 1};
  CHECK(verdict(problem, Bug::None) == "");

  problem = makeProblem();
  problem.spec.qkL2Norm = false;
  problem.spec.hasForceFlush = false;
  problem.forcedFlushes.clear();
  CHECK(verdict(problem, Bug::None) == "");

  problem = {};
  problem.spec.numKeyHeads = problem.spec.numValueHeads = 1;
  problem.batch = 0;
  problem.slots = 0;
  problem.steps = 2;
  CHECK(verdict(problem, Bug::None) == "");

  problem.batch = 2; // padding only
  problem.rowSlots = {-1, -1};
  CHECK(verdict(problem, Bug::None) == "");
}

TEST_CASE("aligned problems keep the promise of their spec", "[check]") {
  DecodeProblem problem = makeProblem();
  FakeDevice device;
  FakeKernel kernel;
  kernel.run = [&](const DecodeArgs &args) {
    CHECK(args.qStride * 2 % 16 == 0);
    CHECK(args.aStride * 2 % 16 == 0);
    CHECK(args.outStride * 4 % 16 == 0);
    CHECK(args.statePitch * 4 % 16 == 0);
    CHECK(args.gPitch * 4 % 16 == 0);
    CHECK(args.statePitch >= 6 * 12 * 20 + 9);
    CHECK(args.stateIndexStride == 3);
    CHECK(args.batch == 6);
    fakeDecode(problem.spec, args, Bug::None);
  };
  LaunchConfig launch;
  launch.blocksPerRow = 12;
  REQUIRE(checkDecode(device, kernel, launch, problem));
  CHECK(device.lastBlocks == 6 * 12);

  problem = makeKdaProblem(Gate::LowerBound);
  kernel.run = [&](const DecodeArgs &args) {
    CHECK(args.aStride >= 6 * 12 + 3);
    CHECK(args.aStride * 2 % 16 == 0);
    CHECK(args.gPitch >= 6 * 5 * 12 + 9);
    CHECK(args.gPitch * 4 % 16 == 0);
    CHECK(args.lowerBound == -3);
    fakeDecode(problem.spec, args, Bug::None);
  };
  REQUIRE(checkDecode(device, kernel, launch, problem));
}

TEST_CASE("a wrong kernel is rejected", "[check]") {
  // What the sentence must speak of.
  const std::vector<std::pair<Bug, std::string>> bugs = {
      {Bug::ForgetsFlush, "first problem is wrong value: state["},
      {Bug::FlushesAlways, "checkpointsIntact"},
      {Bug::ReadsRingRowM, "nan"},
      {Bug::IgnoresForceFlush, "unreadRowsUntouched"},
      {Bug::WritesUnusedSlot, "unusedSlotsIntact"},
      {Bug::WritesUnusedRing, "unusedSlotsIntact"},
      {Bug::LeavesOutputUnwritten, "outputsAllWritten"},
      {Bug::WrongHeadMapping, "value: d_ring["},
      {Bug::TransposedState, "value: d_ring["},
      {Bug::AppendsOnFlush, "unreadRowsUntouched"},
      {Bug::AppendsOneRowLate, "unreadRowsUntouched"},
      {Bug::WritesRowPadding, "unreadRowsUntouched"},
      {Bug::MovesCursor, "inputsIntact"},
      {Bug::LeavesPaddingRows, "paddingRowsZero"},
      {Bug::TakesBadCursor, "unusedSlotsIntact"},
      {Bug::TakesBadSlot, "unusedSlotsIntact"},
      {Bug::DecaysKq, "value: out["},
      {Bug::StoresScaledK, "value: k_ring["},
      {Bug::RingByRow, "unusedSlotsIntact"},
      {Bug::IgnoresIndexStride, "g_ring"},
      {Bug::RoundsState, "value: state["},
      {Bug::RoundsDotOperands, "Error"},
      {Bug::OneWrongElement, "value: out[0, 0, 1]"},
      {Bug::KeepsErrors, "errorWordRight"},
      {Bug::ErrorOfNextLayer, "errorWordRight"},
  };
  for (const auto &[bug, topic] : bugs) {
    DecodeProblem problem = makeProblem();
    if (bug == Bug::RoundsDotOperands)
      problem.spec.outType = DataType::BF16;
    std::string why = verdict(problem, bug);
    INFO("bug " << int(bug) << ", topic " << topic << ", said: " << why);
    CHECK(why != "");
    CHECK(why.find(topic) != std::string::npos);
  }
}

TEST_CASE("a wrong KDA kernel is rejected", "[check]") {
  const std::vector<std::pair<Bug, std::string>> bugs = {
      {Bug::ForgetsFlush, "first problem is wrong value: state["},
      {Bug::ReadsRingRowM, "nan"},
      {Bug::WrongHeadMapping, "value: d_ring["},
      {Bug::TransposedState, "value: d_ring["},
      {Bug::DecaysKq, "value: out["},
      {Bug::WritesUnusedRing, "unusedSlotsIntact"},
      {Bug::RingByRow, "unusedSlotsIntact"},
      {Bug::OneWrongElement, "value: out[0, 0, 1]"},
      {Bug::ForgetsBetaRound, "value: d_ring["},
      {Bug::CountsOwnGate, "value: d_ring["},
      {Bug::OneGateForAll, "value: d_ring["},
      {Bug::AlphaOfNextChannel, "value: d_ring["},
      {Bug::ForgetsAlpha, "value: d_ring["},
      {Bug::GateOfNextHead, "value: g_ring["},
      {Bug::StaleChannel, "g_ring["},
      {Bug::TransposedDtBias, "value: g_ring["},
  };
  for (Gate gate : {Gate::Softplus, Gate::LowerBound})
    for (const auto &[bug, topic] : bugs) {
      std::string why = verdict(makeKdaProblem(gate), bug);
      INFO("bug " << int(bug) << ", topic " << topic << ", said: " << why);
      CHECK(why != "");
      CHECK(why.find(topic) != std::string::npos);
    }
  for (Bug bug : {Bug::ConstantLowerBound, Bug::ClampsGate}) {
    std::string why = verdict(makeKdaProblem(Gate::LowerBound), bug);
    INFO("bug " << int(bug) << ", said: " << why);
    CHECK(why.find("value: g_ring[") != std::string::npos);
  }
  for (Bug bug : {Bug::CountsOwnGate, Bug::ForgetsAlpha})
    CHECK(verdict(makeProblem(), bug) != "");
  DecodeProblem rounded = makeProblem();
  rounded.spec.betaRound = true;
  CHECK(verdict(rounded, Bug::None) == "");
  CHECK(verdict(rounded, Bug::ForgetsBetaRound) != "");
}

TEST_CASE("a transposed square state is rejected too", "[check]") {
  DecodeProblem problem = makeProblem();
  problem.spec.headDimV = problem.spec.headDimK = 16;
  CHECK(verdict(problem, Bug::None) == "");
  CHECK(verdict(problem, Bug::TransposedState) != "");
}

TEST_CASE("one wrong element hides in a norm, not in the worst", "[check]") {
  DecodeProblem problem;
  problem.spec.headDimK = 16;
  problem.spec.headDimV = 128;
  problem.spec.numKeyHeads = 16;
  problem.spec.numValueHeads = 32;
  problem.batch = 8;
  problem.steps = 4;
  Result<CheckReport> report = run(problem, Bug::OneWrongElement);
  REQUIRE(report);
  CHECK(report->outError < tolerancesFor(problem.spec, problem.tuning).out);
  const Verdict verdict = judge(*report, problem.spec, problem.tuning);
  CHECK(verdict.failed == "out");
  CHECK(verdict.why.find("outWorst") == 0);
  CHECK(verdict.why.find("out[0, 0, 1] at step 2") != std::string::npos);
}

TEST_CASE("gates of mixed size show subtracted sums", "[check]") {
  DecodeProblem problem = makeProblem();
  problem.spec.ringDepth = 16;
  problem.badCursors = {{5, 16}};
  problem.steps = 20;
  CHECK(verdict(problem, Bug::SubtractsGates) == "");
  problem.mixedGates = true;
  CHECK(verdict(problem, Bug::None) == "");
  CHECK(verdict(problem, Bug::SubtractsGates) != "");
  problem.spec.isKda = true;
  CHECK(verdict(problem, Bug::None) == "");
  CHECK(verdict(problem, Bug::SubtractsGates) != "");
}

TEST_CASE("the rebuild readout may round its operands", "[check]") {
  for (DataType out : {DataType::BF16, DataType::F16}) {
    DecodeProblem problem = makeProblem();
    problem.spec.outType = out;
    CHECK(verdict(problem, Bug::RoundsDotOperands) != "");
    problem.spec.readout = Readout::Rebuild;
    CHECK(verdict(problem, Bug::RoundsDotOperands) == "");
    CHECK(verdict(problem, Bug::ForgetsFlush) != "");
    CHECK(verdict(problem, Bug::DecaysKq) != "");
  }
}

TEST_CASE("bugs show in 16-bit storage too", "[check]") {
  DecodeProblem problem = makeProblem();
  problem.spec.outType = problem.spec.stateType = problem.spec.ringType =
      DataType::BF16;
  CHECK(verdict(problem, Bug::None) == "");
  for (Bug bug : {Bug::ForgetsFlush, Bug::ReadsRingRowM, Bug::WrongHeadMapping,
                  Bug::TransposedState, Bug::DecaysKq, Bug::StoresScaledK,
                  Bug::OneWrongElement})
    CHECK(verdict(problem, bug) != "");
}

TEST_CASE("the error does not grow with the flushes", "[check]") {
  DecodeProblem problem;
  problem.spec.numKeyHeads = problem.spec.numValueHeads = 1;
  problem.spec.headDimK = 8;
  problem.spec.headDimV = 6;
  problem.spec.ringDepth = 4;
  problem.batch = 2;
  problem.steps = 2000;
  CHECK(verdict(problem, Bug::None) == "");
  problem.spec.isKda = true;
  for (Gate gate : {Gate::Softplus, Gate::LowerBound}) {
    problem.spec.gate = gate;
    CHECK(verdict(problem, Bug::None) == "");
  }
}

TEST_CASE("device errors come through and free the memory", "[check]") {
  DecodeProblem problem = makeProblem();
  FakeDevice device;
  device.failAtLaunch = 3;
  FakeKernel kernel;
  kernel.run = [&](const DecodeArgs &args) {
    fakeDecode(problem.spec, args, Bug::None);
  };
  std::vector<int> done;
  Result<CheckReport> report =
      checkDecode(device, kernel, {}, problem, [&](int step, int steps) {
        CHECK(steps == 14);
        done.push_back(step);
      });
  REQUIRE(!report);
  CHECK(report.status().code == StatusCode::DriverError);
  CHECK(report.status().message == "launch: as told");
  CHECK(done == std::vector<int>{1, 2});
  CHECK(device.allocations.empty());
}

TEST_CASE("illegal problems are refused", "[check]") {
  auto refuses = [](auto change, const std::string &sentence) {
    DecodeProblem problem = makeProblem();
    change(problem);
    Status status = validateProblem(problem);
    CHECK(status.message == sentence);
    Result<CheckReport> report = run(problem, Bug::None);
    CHECK(!report);
  };
  using P = DecodeProblem;
  refuses([](P &p) { p.spec.headDimK = 0; },
          "headDimK: 0 is not allowed; it must be 1 to 256");
  refuses([](P &p) { p.lowerBound = 0; },
          "lowerBound: 0 is not allowed; it must be finite and negative");
  refuses([](P &p) { p.steps = 0; },
          "steps: 0 is not allowed; it must be 1 or more");
  refuses([](P &p) { p.batch = -1; },
          "batch: -1 is not allowed; it must be 0 or more");
  refuses([](P &p) { p.rowSlots = {5, 5, -1, -1, 1, 0}; },
          "rowSlots: slot 5 appears twice; live rows must be distinct");
  refuses([](P &p) { p.rowSlots.resize(2); },
          "rowSlots: 2 entries are not allowed; there must be none or one for "
          "each of the 6 rows");
  refuses([](P &p) { p.rowSlots.clear(), p.slots = 3; },
          "batch: 6 is not allowed; without rowSlots it must be at most slots "
          "= 3");
  refuses(
      [](P &p) {
        p.forcedFlushes = {{14, 0}};
      },
      "forcedFlushes.step: 14 is not allowed; it must be 0 to 13");
  refuses(
      [](P &p) {
        p.forcedFlushes = {{0, 6}};
      },
      "forcedFlushes.row: 6 is not allowed; it must be 0 to 5");
  refuses([](P &p) { p.spec.hasForceFlush = false; },
          "forcedFlushes: not allowed, since the spec has hasForceFlush = "
          "false; leave it empty");
  refuses(
      [](P &p) {
        p.badCursors = {{0, 4}};
      },
      "badCursors.writePos: 4 is a legal cursor; it must be outside 0 to "
      "4");
  refuses([](P &p) { p.rowRingSlots = {0, 1, 2, 3, 4, 5}; },
          "rowRingSlots: not allowed, since the spec has hasRingIndices = "
          "false; leave it empty");
  refuses(
      [](P &p) {
        p.spec.hasRingIndices = true;
        p.rowRingSlots = {0, 1, 2, 3, 4, 0};
      },
      "rowRingSlots: slot 0 appears twice; live rows must be distinct");
  refuses(
      [](P &p) {
        p.spec.hasDstIndices = true;
        p.rowDstSlots = {5, 0, 6, 3, 4, 0};
      },
      "rowDstSlots: slot 6 appears twice; live rows must be distinct");
  refuses(
      [](P &p) {
        p.tracks = {{0, 0, 3}};
      },
      "tracks: not allowed, since the spec has hasTrackIndices = false; "
      "leave it empty");
  refuses(
      [](P &p) {
        p.spec.hasTrackIndices = true;
        p.tracks = {{0, 0, 6}};
      },
      "tracks.slot: 6 is a row's slot; it must be one of its own");
  refuses(
      [](P &p) {
        p.badBases = {{0, 9}};
      },
      "badBases: not allowed, since the spec has isCircular = false; leave "
      "it empty");
  refuses([](P &p) { p.firstSlot = INT32_MAX; },
          "firstSlot: 2147483647 is not allowed; with the slots it must be at "
          "most 2147483647");
  refuses([](P &p) { p.spec.family = Family::Materialize; },
          "family: materialize is not allowed here; it must be one "
          "that has tokens");
  refuses([](P &p) { p.misaligned = true; },
          "misaligned: not allowed, since the spec promises alignment = 16; it "
          "must be 0");
}
