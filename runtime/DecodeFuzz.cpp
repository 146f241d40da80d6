//===- DecodeFuzz.cpp - Decode problems drawn at random -------------------===//

#include "runtime/DecodeFuzz.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <initializer_list>
#include <vector>

namespace replayjit {
namespace {

/// Numbers that are the same with every standard library.
class Draw {
public:
  explicit Draw(uint64_t seed) : state(seed) {}

  /// 0 .. count-1, by splitmix64 (Steele, Lea and Flood, OOPSLA 2014).
  int below(int count) {
    state += 0x9e3779b97f4a7c15;
    uint64_t x = state;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return int((x ^ (x >> 31)) % uint64_t(count));
  }
  int between(int low, int high) { return low + below(high - low + 1); }
  /// True once in `times`.
  bool once(int times) { return below(times) == 0; }
  template <typename T> T of(std::initializer_list<T> list) {
    return list.begin()[below(int(list.size()))];
  }

private:
  uint64_t state;
};

DataType anyFloat(Draw &draw) {
  return draw.of({DataType::F32, DataType::F32, DataType::BF16, DataType::F16});
}

int anySize(Draw &draw) {
  return draw.once(3) ? draw.between(1, 130)
                      : draw.of({8, 16, 32, 60, 64, 80, 96, 100, 128});
}

void drawFormat(Draw &draw, DecodeProblem &problem) {
  DecodeSpec &spec = problem.spec;
  spec.isKda = true;
  spec.gate = Gate::LowerBound;
  spec.qkL2Norm = true;
  spec.numValueHeads = spec.numKeyHeads;
  spec.ringFormat = draw.of({RingFormat::Prefix, RingFormat::Predecayed});
  spec.ringDepth = std::max(spec.ringDepth, 2);
  spec.isCircular = draw.once(2);
  if (spec.ringFormat != RingFormat::Predecayed)
    return;
  if (spec.ringType == DataType::F16)
    spec.ringType = DataType::BF16;
  problem.lowerBound =
      std::max(problem.lowerBound, -80.0f / float(spec.ringDepth - 1));
}

void drawSpec(Draw &draw, DecodeProblem &problem) {
  DecodeSpec &spec = problem.spec;
  spec.isKda = draw.once(2);
  spec.numKeyHeads = draw.of({1, 1, 1, 2, 3});
  spec.numValueHeads = spec.numKeyHeads * draw.of({1, 1, 2, 3});
  spec.headDimK = anySize(draw);
  spec.headDimV = anySize(draw);
  spec.ringDepth = draw.of({1, 2, 3, 4, 5, 8, 8, 11, 16, 16, 19});
  spec.actType = anyFloat(draw);
  spec.gateType = draw.once(3) ? DataType::F32 : spec.actType;
  spec.paramType = draw.once(3) ? DataType::BF16 : DataType::F32;
  spec.outType = anyFloat(draw);
  spec.stateType = anyFloat(draw);
  spec.ringType = anyFloat(draw);
  spec.indexType = draw.once(4) ? DataType::I64 : DataType::I32;
  spec.qkL2Norm = !draw.once(6);
  if (spec.isKda && draw.once(2))
    spec.gate = Gate::LowerBound;
  problem.lowerBound = draw.of({-5.0f, -5.0f, -3.0f, -2.0f});
  spec.betaRound = draw.once(6);
  spec.hasForceFlush = !draw.once(4);
  spec.nullSlot = draw.once(4) ? NullSlot::NonPositive : NullSlot::Negative;
  spec.readout = draw.once(4) ? Readout::Rebuild : Readout::OutputOnly;
  spec.alignment = draw.once(3) ? 0 : 16;
  spec.hasSeparateQkv = draw.once(5);
  spec.hasRingIndices = draw.once(6);
  spec.hasDstIndices = draw.once(6);
  spec.hasTrackIndices = draw.once(6);
  if (draw.once(4))
    drawFormat(draw, problem);
  if (draw.once(8) && spec.ringFormat == RingFormat::Raw) {
    spec.family = Family::Packed;
    spec.ringDepth = 1;
    spec.hasForceFlush = spec.hasRingIndices = false;
  }
}

DecodeTuning drawTuning(Draw &draw, const DecodeSpec &spec,
                        const Target &target) {
  DecodeTuning chosen = chooseTuning(spec, draw.of({1, 16, 256, 0}), target);
  for (int tries = 0; tries < 20 && !draw.once(3); ++tries) {
    DecodeTuning tuning;
    tuning.blockV = draw.of({16, 32, 64, 128});
    tuning.blockK = draw.of({16, 32, 64, 128});
    tuning.numWarps = draw.of({1, 2, 4, 8});
    tuning.flushRows = draw.of({1, 2, 4, 8});
    if (draw.once(6))
      tuning.flushPrecision = FlushPrecision::Tf32x3;
    if (validate(spec, tuning, target))
      return tuning;
  }
  return chosen;
}

/// Distinct slots, among them null ones and some past the end.
void drawSlots(Draw &draw, DecodeProblem &problem) {
  const int first = problem.spec.nullSlot == NullSlot::NonPositive ? 1 : 0;
  std::vector<int64_t> free;
  for (int slot = first; slot < problem.slots; ++slot)
    free.push_back(slot);
  auto take = [&] {
    int at = draw.below(int(free.size()));
    int64_t slot = free[at];
    free.erase(free.begin() + at);
    return slot;
  };
  for (int row = 0; row < problem.batch; ++row) {
    int kind = draw.below(10);
    problem.rowSlots.push_back(kind == 0   ? -1 - draw.below(3)
                               : kind == 1 ? problem.slots + draw.below(3)
                                           : take());
    if (problem.spec.hasDstIndices)
      problem.rowDstSlots.push_back(draw.once(8) ? problem.slots + draw.below(2)
                                                 : take());
  }
  if (problem.spec.hasTrackIndices)
    for (int i = draw.below(4); i > 0 && problem.batch > 0 && !free.empty();
         --i)
      problem.tracks.push_back(
          {draw.below(problem.steps), draw.below(problem.batch), take()});
  if (problem.spec.hasRingIndices) {
    problem.ringSlots = problem.batch + draw.between(1, 3);
    for (int row = 0; row < problem.batch; ++row)
      problem.rowRingSlots.push_back(draw.once(10) ? problem.ringSlots
                                                   : problem.batch - row);
  }
}

void drawRun(Draw &draw, DecodeProblem &problem) {
  const DecodeSpec &spec = problem.spec;
  const bool hasCursor = spec.family == Family::Replay;
  problem.batch = draw.of({0, 1, 2, 3, 4, 5});
  problem.slots = 3 * problem.batch + draw.between(1, 4);
  problem.steps = draw.between(1, 2 * spec.ringDepth + 4);
  problem.poison = draw.of({Poison::NaN, Poison::Infinity, Poison::Large});
  problem.layer = draw.below(70);
  problem.hasErrorWord = !draw.once(5);
  if (draw.once(5))
    problem.firstSlot = draw.of({1, 5000, 100000000});
  drawSlots(draw, problem);
  if (hasCursor && problem.batch > 0 && draw.once(4))
    problem.badCursors.push_back(
        {draw.below(problem.batch), draw.of({-1, spec.ringDepth, INT32_MIN})});
  if (spec.isCircular && problem.batch > 0 && draw.once(4))
    problem.badBases.push_back(
        {draw.below(problem.batch), draw.of({-1, spec.ringDepth, INT32_MAX})});
  if (hasCursor && spec.hasForceFlush)
    for (int i = draw.below(5); i > 0 && problem.batch > 0; --i)
      problem.forcedFlushes.push_back(
          {draw.below(problem.steps), draw.below(problem.batch)});
  problem.staggered = hasCursor && draw.once(2);
  problem.rowPadding = draw.of({0, 0, 3, 8});
  problem.slotPadding = draw.of({0, 0, 5, 8, 1000});
  problem.indexStride = draw.of({1, 1, 3});
  problem.misaligned = spec.alignment == 0 && draw.once(2);
}

} // namespace

DecodeProblem randomProblem(uint64_t seed, const Target &target) {
  Draw draw(seed);
  for (;;) {
    DecodeProblem problem;
    problem.seed = seed;
    drawSpec(draw, problem);
    problem.tuning = drawTuning(draw, problem.spec, target);
    if (!validate(problem.spec, problem.tuning, target))
      continue; // such as a rebuild readout of K = 3
    drawRun(draw, problem);
    if (validateProblem(problem))
      return problem;
  }
}

//===----------------------------------------------------------------------===//
// Shrinking
//===----------------------------------------------------------------------===//

using Change = std::function<void(DecodeProblem &)>;

template <typename T> static void dropRow(std::vector<T> &list, int row) {
  if (int(list.size()) > row)
    list.erase(list.begin() + row);
}

/// Takes a row out of every list.
static void dropRow(DecodeProblem &problem, int row) {
  dropRow(problem.rowSlots, row);
  dropRow(problem.rowRingSlots, row);
  dropRow(problem.rowDstSlots, row);
  auto adjust = [row](auto &list) {
    std::erase_if(list, [row](const auto &entry) { return entry.row == row; });
    for (auto &entry : list)
      entry.row -= entry.row > row;
  };
  adjust(problem.forcedFlushes);
  adjust(problem.badCursors);
  adjust(problem.badBases);
  adjust(problem.tracks);
  --problem.batch;
}

static void cutSteps(DecodeProblem &problem, int steps) {
  problem.steps = steps;
  auto cut = [steps](auto &list) {
    std::erase_if(list,
                  [steps](const auto &entry) { return entry.step >= steps; });
  };
  cut(problem.forcedFlushes);
  cut(problem.tracks);
}

/// Ways to make a problem simpler, the largest steps first.
static std::vector<Change> changesOf(const DecodeProblem &problem) {
  std::vector<Change> changes;
  for (int steps : {1, problem.steps / 2, problem.steps - 1})
    if (steps >= 1 && steps < problem.steps)
      changes.push_back([=](DecodeProblem &p) { cutSteps(p, steps); });
  for (int row = 0; row < problem.batch; ++row)
    changes.push_back([=](DecodeProblem &p) { dropRow(p, row); });
  changes.push_back([](DecodeProblem &p) { p.forcedFlushes.clear(); });
  changes.push_back([](DecodeProblem &p) { p.tracks.clear(); });
  changes.push_back([](DecodeProblem &p) { p.badCursors.clear(); });
  changes.push_back([](DecodeProblem &p) { p.badBases.clear(); });
  changes.push_back([](DecodeProblem &p) {
    p.rowDstSlots.clear();
    p.spec.hasDstIndices = false;
  });
  changes.push_back([](DecodeProblem &p) {
    p.tracks.clear();
    p.spec.hasTrackIndices = false;
  });
  changes.push_back([](DecodeProblem &p) {
    p.rowRingSlots.clear();
    p.ringSlots = 0;
    p.spec.hasRingIndices = false;
  });
  changes.push_back([](DecodeProblem &p) { p.firstSlot = 0; });
  changes.push_back([](DecodeProblem &p) { p.staggered = false; });
  changes.push_back([](DecodeProblem &p) { p.misaligned = false; });
  changes.push_back([](DecodeProblem &p) { p.rowPadding = p.slotPadding = 0; });
  changes.push_back([](DecodeProblem &p) { p.indexStride = 1; });
  changes.push_back([](DecodeProblem &p) { p.poison = Poison::NaN; });
  // Facts of the spec, each to its default.
  changes.push_back([](DecodeProblem &p) { p.spec.hasSeparateQkv = false; });
  changes.push_back([](DecodeProblem &p) { p.spec.isCircular = false; });
  changes.push_back(
      [](DecodeProblem &p) { p.spec.ringFormat = RingFormat::Raw; });
  changes.push_back([](DecodeProblem &p) { p.spec.betaRound = false; });
  changes.push_back([](DecodeProblem &p) { p.spec.qkL2Norm = true; });
  changes.push_back([](DecodeProblem &p) { p.spec.gate = Gate::Softplus; });
  changes.push_back([](DecodeProblem &p) {
    p.spec.isKda = false;
    p.spec.gate = Gate::Softplus;
  });
  changes.push_back(
      [](DecodeProblem &p) { p.spec.readout = Readout::OutputOnly; });
  changes.push_back(
      [](DecodeProblem &p) { p.spec.nullSlot = NullSlot::Negative; });
  changes.push_back([](DecodeProblem &p) { p.spec.indexType = DataType::I32; });
  for (DataType DecodeSpec::*field :
       {&DecodeSpec::actType, &DecodeSpec::gateType, &DecodeSpec::paramType,
        &DecodeSpec::outType, &DecodeSpec::stateType, &DecodeSpec::ringType})
    changes.push_back([=](DecodeProblem &p) { p.spec.*field = DataType::F32; });
  changes.push_back([](DecodeProblem &p) { p.spec.numKeyHeads = 1; });
  changes.push_back(
      [](DecodeProblem &p) { p.spec.numKeyHeads = p.spec.numValueHeads = 1; });
  for (int DecodeSpec::*field :
       {&DecodeSpec::headDimK, &DecodeSpec::headDimV, &DecodeSpec::ringDepth})
    for (int size : {1, 2, 4, 16, 32, 64})
      if (size < problem.spec.*field)
        changes.push_back([=](DecodeProblem &p) { p.spec.*field = size; });
  return changes;
}

/// The problem's own tuning where it still fits, else one chosen for it.
static bool refit(DecodeProblem &problem, const Target &target) {
  if (!validate(problem.spec, problem.tuning, target))
    problem.tuning = chooseTuning(problem.spec, 1, target);
  return validate(problem.spec, problem.tuning, target) &&
         validateProblem(problem);
}

DecodeProblem shrinkProblem(DecodeProblem problem, const Target &target,
                            const FailsFn &fails, int tries) {
  for (bool isSmaller = true; isSmaller;) {
    isSmaller = false;
    const std::string before = describe(problem);
    for (const Change &change : changesOf(problem)) {
      DecodeProblem candidate = problem;
      change(candidate);
      if (!refit(candidate, target) || describe(candidate) == before)
        continue;
      if (tries-- <= 0)
        return problem;
      if (fails(candidate)) {
        problem = std::move(candidate);
        isSmaller = true;
        break;
      }
    }
  }
  return problem;
}

//===----------------------------------------------------------------------===//
// Description
//===----------------------------------------------------------------------===//

std::string describe(const DecodeProblem &problem) {
  std::string text =
      fmt::format("{}, batch {}, slots {}, steps {}, seed {}",
                  kernelName(problem.spec, problem.tuning), problem.batch,
                  problem.slots, problem.steps, problem.seed);
  auto add = [&](std::string_view name, auto value, auto usual) {
    if (value != usual)
      text += fmt::format(", {} {}", name, value);
  };
  add("lowerBound", problem.lowerBound, -5.0f);
  add("firstSlot", problem.firstSlot, 0);
  add("poison", int(problem.poison), int(Poison::NaN));
  add("layer", problem.layer, 0);
  add("hasErrorWord", problem.hasErrorWord, true);
  add("ringSlots", problem.ringSlots, 0);
  add("staggered", problem.staggered, false);
  add("rowPadding", problem.rowPadding, 0);
  add("slotPadding", problem.slotPadding, 0);
  add("indexStride", problem.indexStride, 1);
  add("misaligned", problem.misaligned, false);
  auto list = [&](std::string_view name, const std::vector<int64_t> &slots) {
    if (!slots.empty())
      text += fmt::format(", {} [{}]", name, fmt::join(slots, ","));
  };
  list("rowSlots", problem.rowSlots);
  list("rowRingSlots", problem.rowRingSlots);
  list("rowDstSlots", problem.rowDstSlots);
  for (const auto &forced : problem.forcedFlushes)
    text += fmt::format(", flush step {} row {}", forced.step, forced.row);
  for (const auto &bad : problem.badCursors)
    text += fmt::format(", writePos {} row {}", bad.writePos, bad.row);
  for (const auto &bad : problem.badBases)
    text += fmt::format(", ringBase {} row {}", bad.base, bad.row);
  for (const auto &track : problem.tracks)
    text += fmt::format(", track step {} row {} slot {}", track.step, track.row,
                        track.slot);
  return text;
}

} // namespace replayjit
