//===- TuneSearch.h - Which tunings to measure ------------------*- C++ -*-===//
#ifndef REPLAYJIT_TOOLS_TUNESEARCH_H
#define REPLAYJIT_TOOLS_TUNESEARCH_H

#include "kernels/Decode/DecodeSpec.h"

#include <functional>
#include <optional>
#include <vector>

namespace replayjit::internal {

/// Looks for the fastest tuning of a spec, in rounds. The first is where to
/// start. Each other one has the legal neighbours of the three fastest so far:
/// those that differ in one fact, whatever its value, and those that differ in
/// two, each by one step of its values. Values are those the fuzzer draws, or
/// all that are allowed. It ends when a round gains less than half a percent.
class TuneSearch {
public:
  using IsLegal = std::function<bool(const DecodeTuning &)>;

  TuneSearch(IsLegal isLegal, const std::vector<DecodeTuning> &starts);

  /// What to measure now, each tuning once in a search; empty: nothing is left.
  std::vector<DecodeTuning> nextRound();
  /// The time of one of the round; a tuning without a report is out.
  void report(const DecodeTuning &tuning, double us);
  /// The fastest, whatever was dropped.
  std::optional<DecodeTuning> best() const;
  double bestTime() const;
  /// Takes out the fastest, which turned out to be of no use.
  void dropBest();

private:
  struct Measured {
    DecodeTuning tuning;
    double us;
  };
  void addIfNew(const DecodeTuning &tuning);
  void addNeighbours(const DecodeTuning &tuning);

  IsLegal isLegal;
  std::vector<std::vector<int>> values; ///< Of each fact, ascending.
  std::vector<DecodeTuning> seen, round;
  std::vector<Measured> measured; ///< The fastest first.
  double timeBefore = 0; ///< The best before the round; 0: there was none.
};

} // namespace replayjit::internal

#endif
