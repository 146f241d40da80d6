//===- TuneSearch.cpp - Which tunings to measure --------------------------===//

#include "tools/TuneSearch.h"

#include "kernels/Facts.h"

#include <algorithm>

using namespace replayjit::internal;

static constexpr size_t beam = 3;
static constexpr double leastGain = 0.005;

TuneSearch::TuneSearch(IsLegal isLegal, const std::vector<DecodeTuning> &starts)
    : isLegal(std::move(isLegal)) {
  for (const Fact<DecodeTuning> &fact : tuningFacts()) {
    std::vector<int> list =
        fact.draws.empty()
            ? fact.allowed.list()
            : std::vector<int>(fact.draws.begin(), fact.draws.end());
    for (const DecodeTuning &tuning : starts)
      list.push_back(fact.get(tuning));
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
    values.push_back(std::move(list));
  }
  for (const DecodeTuning &tuning : starts)
    addIfNew(tuning);
}

void TuneSearch::addIfNew(const DecodeTuning &tuning) {
  if (std::find(seen.begin(), seen.end(), tuning) != seen.end() ||
      !isLegal(tuning))
    return;
  seen.push_back(tuning);
  round.push_back(tuning);
}

void TuneSearch::addNeighbours(const DecodeTuning &tuning) {
  const std::span<const Fact<DecodeTuning>> facts = tuningFacts();
  /// The value `step` places from the tuning's, or nothing.
  auto beside = [&](size_t i, int step) -> std::optional<int> {
    const auto found =
        std::find(values[i].begin(), values[i].end(), facts[i].get(tuning));
    const auto place = found - values[i].begin() + step;
    if (place < 0 || place >= std::ssize(values[i]))
      return std::nullopt;
    return values[i][place];
  };
  for (size_t i = 0; i < facts.size(); ++i)
    for (int value : values[i]) {
      DecodeTuning other = tuning;
      facts[i].set(other, value);
      addIfNew(other);
    }
  for (size_t i = 0; i < facts.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      for (int steps : {-1, 1})
        for (int others : {-1, 1}) {
          const auto one = beside(i, steps), two = beside(j, others);
          if (!one || !two)
            continue;
          DecodeTuning other = tuning;
          facts[i].set(other, *one);
          facts[j].set(other, *two);
          addIfNew(other);
        }
}

std::vector<DecodeTuning> TuneSearch::nextRound() {
  if (round.empty() && !measured.empty() &&
      (timeBefore == 0 || bestTime() < timeBefore * (1 - leastGain))) {
    timeBefore = bestTime();
    for (size_t i = 0; i < std::min(beam, measured.size()); ++i)
      addNeighbours(measured[i].tuning);
  }
  return std::exchange(round, {});
}

void TuneSearch::report(const DecodeTuning &tuning, double us) {
  const auto place = std::find_if(measured.begin(), measured.end(),
                                  [&](const Measured &m) { return us < m.us; });
  measured.insert(place, {tuning, us});
}

std::optional<DecodeTuning> TuneSearch::best() const {
  if (measured.empty())
    return std::nullopt;
  return measured.front().tuning;
}

double TuneSearch::bestTime() const {
  return measured.empty() ? 0 : measured.front().us;
}

void TuneSearch::dropBest() { measured.erase(measured.begin()); }
