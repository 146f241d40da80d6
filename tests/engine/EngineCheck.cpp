//===- EngineCheck.cpp - What is compared with the recurrence -------------===//

#include "tests/engine/Engine.h"

#include "tests/engine/Expect.h"

#include <fmt/format.h>

#include <cmath>

namespace replayjit::internal::engine {

/// ||seen - expected|| / ||expected||
static double distance(const std::vector<double> &seen,
                       const std::vector<double> &expected) {
  double error = 0, norm = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    error += (seen[i] - expected[i]) * (seen[i] - expected[i]);
    norm += expected[i] * expected[i];
  }
  return std::sqrt(error / norm);
}

/// Not-a-number is above every bound.
static void require(double error, double bound, const std::string &what) {
  expect(error <= bound,
         fmt::format("{}: error {:.3g}, at most {:.3g} is allowed", what, error,
                     bound));
}

void Engine::checkOutput(const Outputs &expected, int batch, int row) {
  for (int layer = 0; layer < model.numLayers(); ++layer) {
    std::vector<double> seen;
    for (const auto &rank : ranks) {
      const std::vector<double> part = rank->output(batch, layer, row);
      seen.insert(seen.end(), part.begin(), part.end());
    }
    const double error = distance(seen, expected[layer]);
    const int group = model.groupOf(layer);
    require(error, model.groups[group].outBound,
            fmt::format("{}, step {}, row {} of {}, layer {}: output",
                        model.name, stepId, row, batch, layer));
    worstOut[group] = std::max(worstOut[group], error);
  }
  features.add(Feature::OutputsChecked);
}

void Engine::checkZeros(int batch, int row) {
  for (int layer = 0; layer < model.numLayers(); ++layer)
    for (const auto &rank : ranks)
      for (double value : rank->output(batch, layer, row))
        expect(value == 0,
               fmt::format("step {}, row {} of {}, layer {}: {} in the output "
                           "of a padding row",
                           stepId, row, batch, layer, value));
}

void Engine::compareStates(const Oracle &oracle, const GroupSlots &slots,
                           const GroupSlots &rings, RingCursor cursor,
                           const std::string &what) {
  for (int layer = 0; layer < model.numLayers(); ++layer) {
    const int group = model.groupOf(layer);
    std::vector<double> seen;
    for (const auto &rank : ranks) {
      const std::vector<double> part = rank->foldedState(
          layer, slots[group], rings.empty() ? 0 : rings[group], cursor);
      seen.insert(seen.end(), part.begin(), part.end());
    }
    const double error = distance(seen, oracle.state(layer));
    require(error, model.groups[group].stateBound,
            fmt::format("{}, step {}, {}, layer {}: state after {} tokens",
                        model.name, stepId, what, layer, oracle.fed()));
    worstState[group] = std::max(worstState[group], error);
  }
  features.add(Feature::StatesChecked);
}

void Engine::checkState(const Request &request) {
  if (request.fed > 0)
    compareStates(request.oracle, request.state, request.ring,
                  cursorOf(request), fmt::format("request {}", request.id));
}

void Engine::checkPrefix(const Prefix &prefix) {
  compareStates(*prefix.truth, prefix.slots, {}, RingCursor(), "cached prefix");
}

void Engine::checkCached() {
  for (const auto &[tokens, prefix] : cache.all())
    checkPrefix(prefix);
  checkErrors();
}

void Engine::checkErrors() const {
  for (const auto &rank : ranks)
    if (const ErrorWord word = rank->pool().pollErrors(); word.count != 0)
      stop(fmt::format("step {}: {}", stepId, describe(word)));
}

std::string Engine::worst() const {
  std::string text =
      fmt::format("{}, {} rank(s); largest errors:", model.name, ranks.size());
  for (int g = 0; g < model.numGroups(); ++g)
    text += fmt::format(" group {} output {:.1e} state {:.1e}", g, worstOut[g],
                        worstState[g]);
  return text;
}

} // namespace replayjit::internal::engine
