//===- TuneSearchTest.cpp - The search for a tuning -----------------------===//

#include "tools/TuneSearch.h"
#include "tools/CompileAhead.h"

#include <catch2/catch.hpp>

#include <atomic>
#include <cmath>
#include <set>

using namespace replayjit::internal;

namespace {

/// A time with one least place, far from the start and not on an axis: blockV
/// and numWarps want to grow together.
double time(const DecodeTuning &tuning) {
  const double v = std::log2(tuning.blockV), w = std::log2(tuning.numWarps),
               k = std::log2(tuning.blockK);
  return 10 + std::pow(v - 6, 2) + std::pow(w - 2, 2) +
         4 * std::pow(v - w - 4, 2) + std::pow(k - 6, 2) +
         (tuning.stageBytes == 2048 ? 0 : 1) +
         (tuning.maxRegisters == 168 ? 0 : 0.5) +
         0.1 * std::abs(tuning.flushRows - 2) + tuning.splitVectors;
}

DecodeTuning start() {
  DecodeTuning tuning;
  tuning.blockV = 8;
  tuning.numWarps = 1;
  tuning.blockK = 128;
  return tuning;
}

bool anyIsLegal(const DecodeTuning &) { return true; }

} // namespace

TEST_CASE("a search finds the fastest and asks for each tuning once",
          "[tune]") {
  TuneSearch search(anyIsLegal, {start()});
  std::vector<DecodeTuning> asked;
  int rounds = 0;
  for (;;) {
    const std::vector<DecodeTuning> round = search.nextRound();
    if (round.empty())
      break;
    REQUIRE(++rounds < 30);
    for (const DecodeTuning &tuning : round) {
      CHECK(std::find(asked.begin(), asked.end(), tuning) == asked.end());
      asked.push_back(tuning);
      search.report(tuning, time(tuning));
    }
  }
  REQUIRE(search.best());
  CHECK(search.bestTime() == 10);
  CHECK(time(*search.best()) == 10);
  CHECK(asked.front() == start());
  CHECK(asked.size() < 1500); // of 24,000 that the values make
}

TEST_CASE("only legal tunings are asked for", "[tune]") {
  auto isLegal = [](const DecodeTuning &tuning) {
    return tuning.numWarps <= 2 && tuning.stageBytes == 0;
  };
  TuneSearch search(isLegal, {start()});
  for (std::vector<DecodeTuning> round; !(round = search.nextRound()).empty();)
    for (const DecodeTuning &tuning : round) {
      REQUIRE(isLegal(tuning));
      search.report(tuning, time(tuning));
    }
  // The least is at blockV = 32 and two warps, one off both, and no stages.
  CHECK(search.best()->blockV == 32);
  CHECK(search.bestTime() == 13);
}

TEST_CASE("what is not reported, or dropped, is not the best", "[tune]") {
  TuneSearch search(anyIsLegal, {start()});
  CHECK(search.nextRound() == std::vector<DecodeTuning>{start()});
  CHECK_FALSE(search.best());
  CHECK(search.nextRound().empty()); // nothing to start from

  TuneSearch other(anyIsLegal, {start()});
  (void)other.nextRound();
  other.report(start(), 5);
  const std::vector<DecodeTuning> round = other.nextRound();
  REQUIRE(round.size() > 2);
  other.report(round[0], 3);
  other.report(round[1], 4);
  CHECK(other.best() == round[0]);
  other.dropBest();
  CHECK(other.best() == round[1]);
  CHECK(other.bestTime() == 4);
}

TEST_CASE("a search ends when a round gains nothing", "[tune]") {
  TuneSearch search(anyIsLegal, {start()});
  (void)search.nextRound();
  search.report(start(), 5);
  for (const DecodeTuning &tuning : search.nextRound())
    search.report(tuning, 4.99); // 0.2 %
  CHECK(search.nextRound().empty());
}

TEST_CASE("jobs are done ahead, and taken in their order", "[tune]") {
  constexpr int count = 20;
  std::atomic<int> done = 0;
  std::set<const Compiler *> compilers;
  std::mutex mutex;
  std::vector<CompileAhead::Job> jobs;
  for (int i = 0; i < count; ++i)
    jobs.push_back([&, i](Compiler &compiler) -> Result<CompiledKernel> {
      {
        std::lock_guard lock(mutex);
        compilers.insert(&compiler);
      }
      ++done;
      if (i % 5 == 4)
        return Status::invalid(std::to_string(i));
      CompiledKernel kernel;
      kernel.name = std::to_string(i);
      return kernel;
    });
  {
    CompileAhead ahead(jobs, 3);
    for (int i = 0; i < count - 2; ++i) {
      Result<CompiledKernel> kernel = ahead.take();
      CHECK((kernel ? kernel->name : kernel.status().message) ==
            std::to_string(i));
      CHECK(bool(kernel) == (i % 5 != 4));
    }
  } // nobody takes the last two
  CHECK(done >= count - 2);
  CHECK(compilers.size() <= 3);
  CompileAhead none({}, 3);
}
