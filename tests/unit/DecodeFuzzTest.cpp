//===- DecodeFuzzTest.cpp - What is drawn, and how it becomes small -------===//

#include "checks/DecodeFuzz.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <functional>
#include <map>
#include <string>

using namespace replayjit::internal;

namespace {

constexpr int seeds = 2000;

/// A case of `seeds` for which `wanted` holds.
DecodeCase caseWith(const std::function<bool(const DecodeCase &)> &wanted) {
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    DecodeCase entry = randomCase(seed, Target{});
    if (wanted(entry))
      return entry;
  }
  FAIL("no such case");
  return {};
}

/// With no limit that counts.
DecodeCase shrunk(const DecodeCase &entry, const FailsFn &fails) {
  REQUIRE(fails(entry));
  DecodeCase small = shrinkCase(entry, Target{}, fails, 100000);
  INFO(describe(small));
  CHECK(fails(small));
  CHECK(small.name == entry.name);
  // What is as small as can be stays.
  CHECK(describe(shrinkCase(small, Target{}, fails, 100000)) ==
        describe(small));
  return small;
}

} // namespace

TEST_CASE("random cases are legal and reach every option", "[fuzz]") {
  std::map<std::string, int> seen;
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    const DecodeCase entry = randomCase(seed, Target{});
    INFO(describe(entry));
    const DecodeSpec &spec = entry.problem.spec;
    const DecodeTuning &tuning = entry.problem.tuning;
    REQUIRE(validate(spec, tuning, Target{}));
    CHECK(describe(randomCase(seed, Target{})) == describe(entry));
    auto count = [&](const char *what, bool is) { seen[what] += is; };
    const int threads = 32 * tuning.numWarps;
    count("staged", tuning.stageBytes > 0);
    count("split vectors", tuning.splitVectors);
    count("split flush", tuning.flushRows == 0);
    count("less than 16 bytes of state a thread",
          tuning.blockV * tuning.blockK * byteSize(spec.stateType) <
              16 * threads);
    count("warps share rows", // of 8 lanes each, where K fills them
          tuning.blockV < 4 * tuning.numWarps);
    const bool isRebuild = spec.readout == Readout::Rebuild;
    count("rebuild", isRebuild);
    count("separate qkv", spec.hasSeparateQkv);
    count("beta rounded", spec.betaRound);
    count("no norm", !spec.qkL2Norm);
    count("Triton's ABI", spec.abi == LaunchAbi::Triton);
    count("bounded gate", spec.gate == Gate::LowerBound);
    count("bounded gate of GDN", spec.gate == Gate::LowerBound && !spec.isKda);
    count("gate given", spec.gate == Gate::LogDecay);
    count("beta up to 2", spec.beta == Beta::TwiceSigmoid);
    count("beta given", spec.beta == Beta::Given);
    count("step", spec.beta == Beta::Step);
    count("step with limits", spec.hasStepLimits);
    count("beta 1 of the delta rule",
          spec.beta == Beta::One && spec.rule == Rule::Delta);
    count("gate fixed", spec.gate == Gate::Fixed);
    count("gate of a rate", spec.gate == Gate::Rate);
    count("additive KDA", spec.rule == Rule::Additive && spec.isKda);
    count("skip of heads", spec.skip == Skip::Head);
    count("skip of channels", spec.skip == Skip::Channel);
    count("out gate", spec.hasOutGate);
    count("sums of more value heads than key heads",
          spec.ringFormat == RingFormat::Prefix &&
              spec.numValueHeads > spec.numKeyHeads);
    count("K != V", spec.headDimK != spec.headDimV);
    const bool isLarge = std::max(spec.headDimK, spec.headDimV) > 130;
    const bool isReplay = spec.family == Family::Replay;
    count("large GDN", isLarge && isReplay && !spec.isKda);
    count("large KDA", isLarge && isReplay && spec.isKda);
    count("large format",
          isLarge && isReplay && spec.ringFormat != RingFormat::Raw);
    count("large packed", isLarge && spec.family == Family::Packed);
    count("large rebuild", isLarge && isReplay && isRebuild);
    count("large materialize", isLarge && spec.family == Family::Materialize);
    for (int rows : {1, 0}) {
      const DecodeTuning chosen = chooseTuning(spec, rows, Target{});
      count(rows ? "large, tiles for few rows" : "large, tiles for many rows",
            isLarge && tuning == chosen);
    }
    count("packed", spec.family == Family::Packed);
    count("materialize", spec.family == Family::Materialize);
    if (entry.materialize) {
      const MaterializeProblem &problem = *entry.materialize;
      REQUIRE(validateProblem(problem));
      CHECK(problem.spec == spec);
      count("materialize misaligned", problem.misaligned);
      count("materialize from a first slot", problem.firstSlot > 0);
      std::map<int64_t, int> users;
      for (const MaterializeProblem::Row &row : problem.rows) {
        count("one source for two", ++users[row.src] == 2 && row.src >= 0);
        count("in place", row.src == row.dst);
        count("src past the end", row.src >= problem.slots);
        count("dst past the end", row.dst >= problem.slots);
        count("masked", row.masked);
        const bool isOutside =
            spec.hasRingIndices &&
            (row.ringSlot < 0 || row.ringSlot >= problem.ringSlotCount());
        count("bad ring", isOutside && row.writePos != 0);
        count("no ring", isOutside && row.writePos == 0);
      }
      continue;
    }
    const DecodeProblem &problem = entry.problem;
    REQUIRE(validateProblem(problem));
    count("misaligned", problem.misaligned);
    count("first slot", problem.firstSlot > 0);
    count("shared", problem.sharedSlots);
    count("mixed gates", problem.mixedGates);
    count("slow gates", problem.slowGates);
    count("bad cursor", !problem.badCursors.empty());
    count("bad base", !problem.badBases.empty());
    for (int64_t slot : problem.rowSlots) {
      count("slot past the end", slot >= problem.slots);
      count("slot of 64 bits", slot > INT32_MAX);
    }
    for (int64_t slot : problem.rowDstSlots) {
      count("dst slot past the end", slot >= problem.slots);
      count("dst slot null", slot < 0);
    }
    for (int64_t slot : problem.rowRingSlots) {
      count("ring slot past the end", slot >= problem.ringSlotCount());
      count("ring slot negative", slot < 0);
    }
    for (const DecodeProblem::Track &track : problem.tracks)
      count("track past the end", track.slot >= problem.slots);
  }
  for (const auto &[what, times] : seen) {
    INFO(what << ": " << times);
    CHECK(times >= 10);
  }
}

TEST_CASE("lane orders are drawn", "[fuzz]") {
  std::map<host::LaneOrder::Kind, int> seen;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    const host::LaneOrder order = randomLaneOrder(seed);
    CHECK(order.seed == randomLaneOrder(seed).seed);
    ++seen[order.kind];
  }
  CHECK(seen.size() == 3);
}

TEST_CASE("a case shrinks to exactly what fails", "[fuzz]") {
  auto fails = [](const DecodeCase &entry) {
    const DecodeSpec &spec = entry.problem.spec;
    return !entry.materialize && spec.headDimK == 96 && spec.ringDepth >= 3;
  };
  const DecodeProblem small = shrunk(caseWith(fails), fails).problem;
  CHECK(small.spec.headDimK == 96);
  CHECK(small.spec.ringDepth == 3);
  CHECK(small.spec.headDimV == 1);
  CHECK(small.spec.numValueHeads == 1);
  CHECK(small.steps == 1);
  CHECK(small.batch == 0);
  // All else is as usual, but for the seed and what makes no problem simpler.
  DecodeProblem usual;
  usual.spec = {.family = small.spec.family,
                .numKeyHeads = 1,
                .numValueHeads = 1,
                .headDimK = 96,
                .headDimV = 1,
                .ringDepth = 3,
                .actType = DataType::F32,
                .gateType = DataType::F32,
                .betaType = DataType::F32,
                .outType = DataType::F32,
                .hasForceFlush = small.spec.hasForceFlush,
                .isCircular = small.spec.isCircular};
  usual.tuning = small.tuning;
  usual.batch = 0;
  usual.slots = 1;
  usual.steps = 1;
  usual.seed = small.seed;
  CHECK(describe(small) == describe(usual));
}

TEST_CASE("what a failure needs stays", "[fuzz]") {
  // A row that flushes by force while another, later one is padding.
  auto fails = [](const DecodeCase &entry) {
    const DecodeProblem &problem = entry.problem;
    return std::any_of(problem.forcedFlushes.begin(),
                       problem.forcedFlushes.end(), [&](const auto &forced) {
                         return forced.step >= 2 &&
                                std::any_of(problem.badCursors.begin(),
                                            problem.badCursors.end(),
                                            [&](const auto &bad) {
                                              return bad.row > forced.row;
                                            });
                       });
  };
  const DecodeProblem small = shrunk(caseWith(fails), fails).problem;
  CHECK(small.batch == 2);
  REQUIRE(small.forcedFlushes.size() == 1);
  CHECK(small.steps == small.forcedFlushes[0].step + 1);
  CHECK(small.forcedFlushes[0].row == 0);
  REQUIRE(small.badCursors.size() == 1);
  CHECK(small.badCursors[0].row == 1);
  CHECK(small.rowSlots.empty());
}

TEST_CASE("a materialize case shrinks too", "[fuzz]") {
  auto fails = [](const DecodeCase &entry) {
    if (!entry.materialize || entry.materialize->numLayers < 2)
      return false;
    const auto &rows = entry.materialize->rows;
    return std::any_of(rows.begin(), rows.end(), [](const auto &row) {
      return row.src == row.dst && row.writePos >= 2;
    });
  };
  const DecodeCase small = shrunk(caseWith(fails), fails);
  CHECK(small.materialize->numLayers == 2);
  REQUIRE(small.materialize->rows.size() == 1);
  CHECK(small.materialize->rows[0].writePos == 2);
  CHECK(small.materialize->spec.headDimK == 1);
  CHECK(small.problem.batch == 1); // it repeats what is small now
  CHECK(small.problem.spec == small.materialize->spec);
}

TEST_CASE("another failure is not taken for the same", "[fuzz]") {
  // As a run names them: small ones meet another fault.
  auto failure = [](const DecodeCase &entry) -> std::string {
    if (entry.problem.steps < 3)
      return "status 7";
    return entry.problem.spec.headDimV > 20 ? "state" : "";
  };
  const DecodeCase first = caseWith([&](const DecodeCase &entry) {
    return failure(entry) == "state" && entry.problem.steps > 8;
  });
  const DecodeCase small = shrunk(first, [&](const DecodeCase &entry) {
    return failure(entry) == failure(first);
  });
  CHECK(small.problem.steps == 3);
  CHECK(small.problem.spec.headDimV == 21);
}

TEST_CASE("shrinking stops after so many tries", "[fuzz]") {
  int calls = 0;
  const DecodeCase entry = randomCase(1, Target{});
  shrinkCase(
      entry, Target{},
      [&](const DecodeCase &) {
        ++calls;
        return false;
      },
      7);
  CHECK(calls == 7);
}
