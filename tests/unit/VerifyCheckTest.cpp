//===- VerifyCheckTest.cpp - Wrong kernels of rows with drafts ------------===//
//
// The harness passes the reference, and rejects one that is told something
// else than the launch says.
//
//===----------------------------------------------------------------------===//

#include "FakeDecodeDevice.h"
#include "checks/DecodeSuite.h"
#include "kernels/Verify/VerifyReference.h"

#include <catch2/catch.hpp>
#include <functional>
#include <string>
#include <vector>

using namespace replayjit::internal;

namespace {

using Change = std::function<void(DecodeSpec &, DecodeArgs &)>;

Verdict verdictOf(const DecodeProblem &problem, const Change &change) {
  FakeDevice device;
  FakeKernel kernel;
  kernel.run = [&](DecodeArgs args) {
    DecodeSpec spec = problem.spec;
    change(spec, args);
    verifyLaunch(spec, args);
  };
  Result<CheckReport> report = checkDecode(device, kernel, {}, problem);
  INFO(report.status().message);
  REQUIRE(report);
  CHECK(device.allocations.empty());
  return judge(*report, problem.spec, problem.tuning);
}

DecodeProblem makeProblem(RingFormat format, TokenRows tokenRows) {
  DecodeProblem problem;
  DecodeSpec &spec = problem.spec;
  spec.family = Family::Verify;
  spec.isKda = format != RingFormat::Raw;
  spec.gate = spec.isKda ? Gate::LowerBound : Gate::Softplus;
  spec.numKeyHeads = spec.numValueHeads = 2;
  spec.headDimK = 12;
  spec.headDimV = 20;
  spec.ringDepth = 8;
  spec.numTokens = 3;
  spec.tokenRows = tokenRows;
  spec.ringFormat = format;
  spec.isCircular = true;
  spec.outType = DataType::F32;
  problem.lowerBound = -4;
  problem.batch = 5;
  problem.slots = 7;
  problem.steps = 16;
  problem.rowSlots = {5, 2, -1, 3, 1};
  problem.forcedFlushes = {{1, 0}, {6, 1}, {7, 1}, {9, 3}};
  if (tokenRows != TokenRows::Full)
    problem.badCounts = {{4, 4}};
  problem.staggered = true;
  problem.rowPadding = 4;
  problem.slotPadding = 12;
  return problem;
}

} // namespace

TEST_CASE("the harness passes the reference of rows with drafts", "[check]") {
  for (RingFormat format :
       {RingFormat::Raw, RingFormat::Prefix, RingFormat::Predecayed})
    for (TokenRows rows :
         {TokenRows::Full, TokenRows::Counted, TokenRows::Ragged}) {
      CAPTURE(int(format), int(rows));
      const DecodeProblem problem = makeProblem(format, rows);
      CHECK(verdictOf(problem, [](DecodeSpec &, DecodeArgs &) {}).why == "");
    }
}

TEST_CASE("the harness rejects wrong kernels of rows with drafts", "[check]") {
  const std::vector<int32_t> zeros(8, 0), ones(8, 1);
  auto addressOf = [](const std::vector<int32_t> &values) {
    return reinterpret_cast<uint64_t>(values.data());
  };
  struct Wrong {
    const char *what;
    Change change;
  };
  const Wrong all[] = {
      {"takes every row for a full one",
       [](DecodeSpec &spec, DecodeArgs &) {
         spec.tokenRows = TokenRows::Full;
       }},
      {"sees one token a row",
       [&](DecodeSpec &spec, DecodeArgs &args) {
         spec.tokenRows = TokenRows::Counted;
         args.tokenCounts = addressOf(ones);
       }},
      {"never folds when told to",
       [](DecodeSpec &spec, DecodeArgs &) { spec.hasForceFlush = false; }},
      {"folds whenever it can",
       [&](DecodeSpec &, DecodeArgs &args) {
         args.forceFlush = addressOf(ones);
       }},
      {"ignores the base",
       [&](DecodeSpec &, DecodeArgs &args) {
         args.ringBase = addressOf(zeros);
       }},
      {"ignores the ring",
       [&](DecodeSpec &, DecodeArgs &args) {
         args.writePos = addressOf(zeros);
       }},
      {"reports nothing",
       [](DecodeSpec &, DecodeArgs &args) { args.errorWord = 0; }},
  };
  for (TokenRows rows : {TokenRows::Counted, TokenRows::Ragged})
    for (const Wrong &wrong : all) {
      CAPTURE(wrong.what, int(rows));
      CHECK(verdictOf(makeProblem(RingFormat::Raw, rows), wrong.change).why !=
            "");
    }
}

TEST_CASE("counts of tokens that a problem may have", "[check]") {
  auto said = [](TokenRows rows, int row, int32_t count) {
    DecodeProblem problem = makeProblem(RingFormat::Raw, rows);
    problem.badCounts = {{row, count}};
    return validateProblem(problem).message;
  };
  CHECK(said(TokenRows::Full, 0, 4) ==
        "badCounts: not allowed, since every row has all its tokens; leave it "
        "empty");
  CHECK(said(TokenRows::Counted, 5, 4) ==
        "badCounts.row: 5 is not allowed; it must be 0 to 4");
  CHECK(said(TokenRows::Counted, 0, -1) == "");
  CHECK(said(TokenRows::Counted, 0, 3) ==
        "badCounts.count: 3 is not allowed; it must be 4 to 1048576, or "
        "negative");
  CHECK(said(TokenRows::Ragged, 0, -1) ==
        "badCounts.count: -1 is not allowed; it must be 4 to 1048576");
}
