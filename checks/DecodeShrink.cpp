//===- DecodeShrink.cpp - Makes a failing case small ----------------------===//

#include "checks/DecodeFuzz.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace replayjit::internal {
namespace {

/// One respect in which a problem can be simpler: its candidates, the simplest
/// first. What is as simple as can be comes back as it is, or not at all.
template <typename Problem>
using Respect = std::function<std::vector<Problem>(const Problem &)>;
template <typename Problem> using Respects = std::vector<Respect<Problem>>;

/// From `low` up to one less than `value`, in ever smaller steps.
std::vector<int> smallerNumbers(int value, int low) {
  std::vector<int> numbers;
  for (int step = value - low; step > 0; step /= 2)
    numbers.push_back(value - step);
  return numbers;
}

template <typename Problem, typename Change>
Respect<Problem> one(Change change) {
  return [change](const Problem &problem) {
    std::vector<Problem> result{problem};
    change(result[0]);
    return result;
  };
}

template <typename Problem>
Respect<Problem> number(int Problem::*field, int low) {
  return [field, low](const Problem &problem) {
    std::vector<Problem> result;
    for (int value : smallerNumbers(problem.*field, low)) {
      result.push_back(problem);
      result.back().*field = value;
    }
    return result;
  };
}

/// A fact as simple as can be: fp32 rounds nothing, and a number of a range may
/// be smaller.
template <typename Problem>
Respect<Problem> simplest(const Fact<DecodeSpec> &fact) {
  return [&fact](const Problem &problem) {
    const Allowed &allowed = fact.allowed;
    std::vector<int> values = {fact.usual()};
    if (allowed.kind == FactKind::Type && allowed.has(int(DataType::F32)))
      values = {int(DataType::F32)};
    else if (allowed.low <= allowed.high)
      values = smallerNumbers(fact.get(problem.spec), allowed.low);
    std::vector<Problem> result;
    for (int value : values) {
      result.push_back(problem);
      fact.set(result.back().spec, value);
    }
    return result;
  };
}

/// Without any one entry of a list.
template <typename Problem, typename Entry>
Respect<Problem> entries(std::vector<Entry> Problem::*list) {
  return [list](const Problem &problem) {
    std::vector<Problem> result;
    for (size_t i = 0; i < (problem.*list).size(); ++i) {
      result.push_back(problem);
      auto &copy = result.back().*list;
      copy.erase(copy.begin() + i);
    }
    return result;
  };
}

/// Facts of a spec and of the memory, each to its default.
template <typename Problem> Respects<Problem> commonRespects() {
  using P = Problem;
  Respects<P> respects;
  auto add = [&](auto change) { respects.push_back(one<P>(change)); };
  add([](P &p) { p.lowerBound = P().lowerBound; });
  add([](P &p) { p.firstSlot = 0; });
  add([](P &p) { p.misaligned = false; });
  add([](P &p) { p.slotPadding = 0; });
  add([](P &p) { p.indexStride = 1; });
  add([](P &p) { p.poison = Poison::NaN; });
  add([](P &p) { p.hasErrorWord = true; });
  add([](P &p) { p.tuning.maxRegisters = 0; });
  add([](P &p) { p.tuning.stageBytes = 0; });
  add([](P &p) { p.tuning.splitVectors = false; });
  add([](P &p) { p.tuning.flushRows = std::max(p.tuning.flushRows, 1); });
  add([](P &p) {
    p.spec.rule = Rule::Delta;
    p.spec.beta = Beta::Sigmoid;
    p.spec.hasStepLimits = false;
  });
  add([](P &p) {
    p.spec.isKda = false;
    p.spec.gate = Gate::Softplus;
  });
  add([](P &p) {
    p.spec.actType = p.spec.gateType = p.spec.betaType = DataType::F32;
  });
  add([](P &p) { p.spec.numKeyHeads = p.spec.numValueHeads = 1; });
  add([](P &p) { p.spec.numValueHeads = p.spec.numKeyHeads; });
  for (const Fact<DecodeSpec> &fact :
       decodeFacts().subspan(1)) // not the family
    respects.push_back(simplest<P>(fact));
  return respects;
}

//===----------------------------------------------------------------------===//
// Decode
//===----------------------------------------------------------------------===//

template <typename T> void dropEntry(std::vector<T> &list, int row) {
  if (int(list.size()) > row)
    list.erase(list.begin() + row);
}

/// Takes a row out of every list.
void dropRow(DecodeProblem &problem, int row) {
  dropEntry(problem.rowSlots, row);
  dropEntry(problem.rowRingSlots, row);
  dropEntry(problem.rowDstSlots, row);
  auto adjust = [row](auto &list) {
    std::erase_if(list, [row](const auto &entry) { return entry.row == row; });
    for (auto &entry : list)
      entry.row -= entry.row > row;
  };
  adjust(problem.forcedFlushes);
  adjust(problem.badCursors);
  adjust(problem.badBases);
  adjust(problem.badCounts);
  adjust(problem.tracks);
  --problem.batch;
}

void cutSteps(DecodeProblem &problem, int steps) {
  problem.steps = steps;
  auto cut = [steps](auto &list) {
    std::erase_if(list,
                  [steps](const auto &entry) { return entry.step >= steps; });
  };
  cut(problem.forcedFlushes);
  cut(problem.tracks);
}

Respects<DecodeProblem> respectsOf(const DecodeProblem &) {
  using P = DecodeProblem;
  Respects<P> respects;
  respects.push_back([](const P &problem) {
    std::vector<P> result;
    for (int steps : smallerNumbers(problem.steps, 1)) {
      result.push_back(problem);
      cutSteps(result.back(), steps);
    }
    return result;
  });
  respects.push_back([](const P &problem) {
    std::vector<P> result;
    for (int row = 0; row < problem.batch; ++row) {
      result.push_back(problem);
      dropRow(result.back(), row);
    }
    return result;
  });
  auto add = [&](auto change) { respects.push_back(one<P>(change)); };
  add([](P &p) {
    p.rowDstSlots.clear();
    p.spec.hasDstIndices = false;
  });
  add([](P &p) {
    p.tracks.clear();
    p.spec.hasTrackIndices = false;
  });
  add([](P &p) {
    p.rowRingSlots.clear();
    p.ringSlots = 0;
    p.spec.hasRingIndices = false;
  });
  respects.push_back(entries(&P::forcedFlushes));
  respects.push_back(entries(&P::tracks));
  respects.push_back(entries(&P::badCursors));
  respects.push_back(entries(&P::badBases));
  respects.push_back(entries(&P::badCounts));
  add([](P &p) { p.rowSlots.clear(); });
  for (bool P::*field :
       {&P::sharedSlots, &P::staggered, &P::mixedGates, &P::slowGates})
    add([=](P &p) { p.*field = false; });
  respects.push_back(number(&P::slots, 1));
  respects.push_back(number(&P::rowPadding, 0));
  respects.push_back(number(&P::layer, 0));
  return respects;
}

//===----------------------------------------------------------------------===//
// Materialize
//===----------------------------------------------------------------------===//

Respects<MaterializeProblem> respectsOf(const MaterializeProblem &) {
  using P = MaterializeProblem;
  Respects<P> respects;
  respects.push_back(number(&P::numLayers, 1));
  respects.push_back(entries(&P::rows));
  respects.push_back(one<P>([](P &p) {
    p.ringSlots = 0;
    p.spec.hasRingIndices = false;
    for (P::Row &row : p.rows)
      row.ringSlot = 0;
  }));
  respects.push_back([](const P &problem) { // emptier rings
    std::vector<P> result;
    for (size_t i = 0; i < problem.rows.size(); ++i)
      for (int writePos : smallerNumbers(problem.rows[i].writePos, 0)) {
        result.push_back(problem);
        result.back().rows[i].writePos = writePos;
      }
    return result;
  });
  respects.push_back(number(&P::slots, 1));
  return respects;
}

//===----------------------------------------------------------------------===//
// The search
//===----------------------------------------------------------------------===//

/// The problem's own tuning where it still fits, else one chosen for it.
template <typename Problem> bool refit(Problem &problem, const Target &target) {
  if (!validate(problem.spec, problem.tuning, target))
    problem.tuning = chooseTuning(problem.spec, 1, target);
  return validate(problem.spec, problem.tuning, target) &&
         validateProblem(problem);
}

template <typename Problem, typename Fails>
Problem shrink(Problem problem, const Target &target, int tries, Fails fails) {
  Respects<Problem> respects = respectsOf(problem);
  for (Respect<Problem> &common : commonRespects<Problem>())
    respects.push_back(std::move(common));

  // True if a candidate took the place of the problem.
  auto isSimplified = [&](const Respect<Problem> &respect) {
    const std::string before = describe(problem);
    for (Problem &candidate : respect(problem)) {
      if (!refit(candidate, target) || describe(candidate) == before)
        continue;
      if (tries-- <= 0)
        return false;
      if (fails(candidate)) {
        problem = std::move(candidate);
        return true;
      }
    }
    return false;
  };
  for (bool isSmaller = true; isSmaller;) {
    isSmaller = false;
    for (const Respect<Problem> &respect : respects)
      while (isSimplified(respect))
        isSmaller = true;
  }
  return problem;
}

} // namespace

DecodeCase shrinkCase(DecodeCase entry, const Target &target,
                      const FailsFn &fails, int tries) {
  if (entry.materialize)
    return materializeCase(
        entry.name, shrink(*entry.materialize, target, tries,
                           [&](const MaterializeProblem &problem) {
                             return fails(materializeCase(entry.name, problem));
                           }));
  return {entry.name,
          shrink(entry.problem, target, tries,
                 [&](const DecodeProblem &problem) {
                   return fails({entry.name, problem, {}});
                 }),
          {}};
}

} // namespace replayjit::internal
