//===- DecodeFuzz.cpp - Decode problems drawn at random -------------------===//

#include "checks/DecodeFuzz.h"

#include "kernels/Decode/DecodeArgs.h"
#include "kernels/Families.h"

#include <algorithm>
#include <fmt/format.h>
#include <initializer_list>
#include <optional>
#include <span>
#include <vector>

namespace replayjit::internal {
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

//===----------------------------------------------------------------------===//
// Facts
//===----------------------------------------------------------------------===//

/// A value of one fact, as its row says.
template <typename Struct> int drawFact(Draw &draw, const Fact<Struct> &fact) {
  const Allowed &allowed = fact.allowed;
  const std::vector<int> listed =
      fact.draws.empty() ? allowed.list()
                         : std::vector(fact.draws.begin(), fact.draws.end());
  if (listed.empty())
    return draw.between(allowed.low, allowed.high);
  if (allowed.low > allowed.high || !draw.once(3))
    return listed[draw.below(int(listed.size()))];
  const auto [least, most] = std::minmax_element(listed.begin(), listed.end());
  for (;;)
    if (int value = draw.between(*least, *most); allowed.has(value))
      return value;
}

template <typename Struct>
void drawFacts(Draw &draw, std::span<const Fact<Struct>> table, Struct &all) {
  for (const Fact<Struct> &fact : table)
    fact.set(all, drawFact(draw, fact));
}

Family drawFamily(Draw &draw) {
  std::vector<Family> listed; // as often as each says
  for (size_t i = 0; i < allFamilies().size(); ++i)
    listed.insert(listed.end(), allFamilies()[i]->draws, Family(i));
  return listed[draw.below(int(listed.size()))];
}

/// Heads as large as they may be, so few and with so small a ring that an
/// emulated step stays short.
void drawLargeHeads(Draw &draw, DecodeSpec &spec) {
  spec.numKeyHeads = 1;
  spec.numValueHeads = draw.of({1, 1, 2});
  spec.headDimK = draw.of({draw.between(129, 256), 256, spec.headDimK});
  spec.headDimV = draw.of({draw.between(129, 256), 256, spec.headDimV});
  spec.ringDepth = draw.of({1, 2, 3, 4});
}

bool hasLargeHeads(const DecodeSpec &spec) {
  return std::max(spec.headDimK, spec.headDimV) > 130;
}

/// What a ring format asks for.
void fitToFormat(DecodeSpec &spec, float &lowerBound) {
  spec.isKda = true;
  spec.gate = Gate::LowerBound;
  spec.rule = Rule::Delta;
  if (spec.beta == Beta::Step)
    spec.beta = Beta::Sigmoid;
  spec.ringDepth = std::max(spec.ringDepth, 2);
  if (spec.ringFormat != RingFormat::Predecayed)
    return;
  spec.numValueHeads = spec.numKeyHeads;
  spec.hasUnitKeys = spec.hasUnitKeys || !spec.qkL2Norm;
  if (spec.ringType == DataType::F16)
    spec.ringType = DataType::BF16;
  const int steps = spec.ringDepth - (traitsOf(spec).drafts ? 0 : 1);
  lowerBound = std::max(lowerBound, -80.0f / float(steps));
}

/// What the rule of d and g asks for.
void fitToRule(DecodeSpec &spec) {
  if (spec.gate == Gate::Fixed)
    spec.isKda = false;
  if (spec.beta == Beta::Step) {
    spec.rule = Rule::Additive;
    spec.isKda = false;
    if (spec.gate != Gate::Rate)
      spec.gate = Gate::Softplus;
  } else {
    spec.hasStepLimits = false;
  }
  // Where beta |k|^2 passes 2 the delta rule diverges.
  if (spec.rule == Rule::Delta && !spec.qkL2Norm &&
      (spec.beta == Beta::TwiceSigmoid || spec.beta == Beta::One))
    spec.beta = Beta::Sigmoid;
}

/// What Triton's signature has no argument for.
void fitToTriton(DecodeSpec &spec) {
  spec.rule = Rule::Delta;
  spec.skip = Skip::None;
  spec.hasOutGate = spec.hasStepLimits = false;
  spec.ringFormat = RingFormat::Raw;
  spec.gate = Gate::Softplus;
  spec.beta = Beta::Sigmoid;
  spec.isCircular = spec.hasSeparateQkv = spec.hasRingIndices =
      spec.hasDstIndices = spec.hasTrackIndices = spec.trapOnError = false;
}

/// Each fact by itself, and then what facts ask of each other.
DecodeSpec drawSpec(Draw &draw, float &lowerBound) {
  DecodeSpec spec;
  spec.family = drawFamily(draw);
  drawFacts(draw, decodeFacts().subspan(1), spec);
  const FamilyTraits &traits = traitsOf(spec);
  spec.numValueHeads *= spec.numKeyHeads;
  if (draw.once(10))
    drawLargeHeads(draw, spec);
  lowerBound = draw.of({-5.0f, -5.0f, -3.0f, -2.0f});
  if (!traits.triton)
    spec.abi = LaunchAbi::Native;
  if (!traits.rings) {
    spec.ringDepth = 1;
    spec.ringFormat = RingFormat::Raw;
    spec.isCircular = spec.hasRingIndices = false;
  }
  if (!traits.tokens) {
    if (spec.programmaticLaunch == ProgrammaticLaunch::Early)
      spec.programmaticLaunch = ProgrammaticLaunch::Late;
    spec.ringDepth = std::max(spec.ringDepth, 2);
    spec.hasDstIndices = spec.hasTrackIndices = false;
    spec.hasRingIndices = draw.once(2);
  }
  if (spec.abi == LaunchAbi::Triton)
    fitToTriton(spec);
  if (traits.drafts) {
    spec.isCircular = true;
    spec.hasTrackIndices = false;
    spec.ringDepth = std::max(spec.ringDepth, spec.numTokens);
  }
  if (spec.isCircular)
    spec.ringDepth = std::max(spec.ringDepth, 2);
  if (spec.ringFormat != RingFormat::Raw)
    fitToFormat(spec, lowerBound);
  fitToRule(spec);
  return spec;
}

DecodeTuning drawTuning(Draw &draw, const DecodeSpec &spec,
                        const Target &target) {
  for (int tries = 0; tries < 20 && !draw.once(3); ++tries) {
    DecodeTuning any;
    drawFacts(draw, tuningFacts(), any);
    // What warps exchange of each token's vectors must fit in shared memory.
    const bool fits = any.numWarps * tokensPerRow(spec) <= 32;
    if (fits && validate(spec, any, target))
      return any;
  }
  return chooseTuning(spec, draw.of({1, 16, 256, 0}), target);
}

//===----------------------------------------------------------------------===//
// Slots
//===----------------------------------------------------------------------===//

/// Slots that no row has yet.
class FreeSlots {
public:
  FreeSlots(int first, int end) {
    for (int slot = first; slot < end; ++slot)
      slots.push_back(slot);
  }
  bool empty() const { return slots.empty(); }
  int64_t take(Draw &draw) {
    int at = draw.below(int(slots.size()));
    int64_t slot = slots[at];
    slots.erase(slots.begin() + at);
    return slot;
  }

private:
  std::vector<int64_t> slots;
};

int firstFree(const DecodeSpec &spec) {
  return spec.nullSlot == NullSlot::NonPositive ? 1 : 0;
}

int64_t negativeSlot(Draw &draw) {
  return draw.of<int64_t>({-1, -2, INT32_MIN});
}

/// Past the last of `count` slots; among them one that 32 bits would cut to a
/// legal one. A null one where what is reported ends the launch.
int64_t slotPastEnd(Draw &draw, const DecodeSpec &spec, int count) {
  if (spec.trapOnError)
    return negativeSlot(draw);
  if (spec.indexType == DataType::I64 && draw.once(2))
    return int64_t(1) << 32;
  return count * draw.of({1, 1, 2});
}

/// Outside of 0..count-1.
int32_t outside(Draw &draw, int count) {
  return draw.of({-1, count, INT32_MIN, INT32_MAX});
}

/// Distinct slots, among them null ones and some past the end; sometimes two
/// rows share theirs.
void drawSlots(Draw &draw, DecodeProblem &problem) {
  const DecodeSpec &spec = problem.spec;
  // Where a null slot is reported too, or stands for another row.
  auto isBad = [&](int times) { return !spec.trapOnError && draw.once(times); };
  FreeSlots free(firstFree(spec), problem.slots);
  for (int row = 0; row < problem.batch; ++row) {
    int kind = draw.below(10);
    problem.rowSlots.push_back(kind == 0 ? negativeSlot(draw)
                               : kind == 1
                                   ? slotPastEnd(draw, spec, problem.slots)
                                   : free.take(draw));
    if (spec.hasDstIndices)
      problem.rowDstSlots.push_back(isBad(10)
                                        ? slotPastEnd(draw, spec, problem.slots)
                                    : isBad(10) ? negativeSlot(draw)
                                                : free.take(draw));
  }
  if (problem.batch > 1 && draw.once(6)) {
    problem.sharedSlots = true;
    problem.rowSlots.back() = problem.rowSlots.front();
  }
  if (spec.hasTrackIndices)
    for (int i = draw.below(4); i > 0 && problem.batch > 0 && !free.empty();
         --i)
      problem.tracks.push_back(
          {draw.below(problem.steps), draw.below(problem.batch),
           isBad(5) ? slotPastEnd(draw, spec, problem.slots)
                    : free.take(draw)});
  if (spec.hasRingIndices) {
    problem.ringSlots = problem.batch + draw.between(1, 3);
    for (int row = 0; row < problem.batch; ++row)
      problem.rowRingSlots.push_back(
          isBad(10)   ? slotPastEnd(draw, spec, problem.ringSlots)
          : isBad(10) ? negativeSlot(draw)
                      : problem.batch - row);
  }
}

//===----------------------------------------------------------------------===//
// Runs
//===----------------------------------------------------------------------===//

/// Where tensors lie, and what is around them.
template <typename Problem> void drawMemory(Draw &draw, Problem &problem) {
  problem.poison = draw.of({Poison::NaN, Poison::Infinity, Poison::Large});
  problem.hasErrorWord = !draw.once(5);
  if (draw.once(5))
    problem.firstSlot = draw.of({1, 5000, 100000000});
  problem.slotPadding = draw.of({0, 0, 5, 8, 1000});
  problem.indexStride = draw.of({1, 1, 3});
  problem.misaligned = problem.spec.alignment == 0 && draw.once(2);
}

void drawRun(Draw &draw, DecodeProblem &problem) {
  const DecodeSpec &spec = problem.spec;
  const bool hasCursor = traitsOf(spec).rings;
  problem.batch =
      hasLargeHeads(spec) ? draw.of({1, 1, 2}) : draw.of({0, 1, 2, 3, 4, 5});
  problem.slots = 3 * problem.batch + draw.between(1, 4);
  problem.steps = draw.between(1, 2 * spec.ringDepth + 4);
  problem.layer = draw.below(70);
  problem.rowPadding = draw.of({0, 0, 3, 8});
  drawMemory(draw, problem);
  drawSlots(draw, problem);
  const bool mayReport = problem.batch > 0 && !spec.trapOnError;
  if (hasCursor && mayReport && draw.once(4))
    problem.badCursors.push_back(
        {draw.below(problem.batch), outside(draw, spec.ringDepth)});
  if (spec.isCircular && mayReport && draw.once(4))
    problem.badBases.push_back(
        {draw.below(problem.batch), outside(draw, spec.ringDepth)});
  if (tokenRowsOf(spec) != TokenRows::Full && mayReport && draw.once(4))
    problem.badCounts.push_back(
        {draw.below(problem.batch), spec.numTokens + draw.between(1, 20)});
  if (hasCursor && spec.hasForceFlush)
    for (int i = draw.below(5); i > 0 && problem.batch > 0; --i)
      problem.forcedFlushes.push_back(
          {draw.below(problem.steps), draw.below(problem.batch)});
  problem.staggered = hasCursor && draw.once(2);
  problem.mixedGates = draw.once(5);
  // Roundings to 16 bits add up where nothing forgets them.
  problem.slowGates = !problem.mixedGates && draw.once(6) &&
                      spec.stateType == DataType::F32 &&
                      spec.ringType == DataType::F32;
  if (spec.abi == LaunchAbi::Triton) { // dense, and without bounds or reports
    problem.rowPadding = problem.slotPadding = 0;
    problem.indexStride = 1;
    problem.hasErrorWord = false;
    for (int64_t &slot : problem.rowSlots)
      slot = slot >= problem.slots ? -1 : slot;
  }
}

int64_t noRing(Draw &draw, const MaterializeProblem &problem) {
  return draw.once(2) ? negativeSlot(draw)
                      : slotPastEnd(draw, problem.spec, problem.ringSlots);
}

/// A row that is skipped or bad, between slots that others may have.
MaterializeProblem::Row drawIdleRow(Draw &draw,
                                    const MaterializeProblem &problem) {
  const DecodeSpec &spec = problem.spec;
  MaterializeProblem::Row row{.src = draw.below(problem.slots),
                              .dst = draw.below(problem.slots)};
  switch (draw.below(spec.trapOnError ? 4 : 6)) {
  case 0:
    row.src = negativeSlot(draw);
    break;
  case 1:
    row.dst = negativeSlot(draw);
    break;
  case 2:
    row.src = slotPastEnd(draw, spec, problem.slots);
    break;
  case 3:
    row.dst = slotPastEnd(draw, spec, problem.slots);
    break;
  case 4:
    if (spec.hasRingIndices) {
      row.writePos = draw.between(1, spec.ringDepth - 1);
      row.ringSlot = noRing(draw, problem);
      break;
    }
    [[fallthrough]];
  default:
    if (spec.hasMask && draw.once(2))
      row.masked = true;
    else if (spec.isCircular && draw.once(2))
      row.base = outside(draw, spec.ringDepth);
    else
      row.writePos = outside(draw, spec.ringDepth);
  }
  return row;
}

/// In place, to another slot, several from one, skipped and bad ones.
void drawRun(Draw &draw, MaterializeProblem &problem) {
  const DecodeSpec &spec = problem.spec;
  const bool isLarge = hasLargeHeads(spec);
  const int rows = draw.below(isLarge ? 3 : 7);
  problem.numLayers = isLarge ? 1 : draw.of({0, 1, 1, 2, 3, 4});
  problem.slots = 2 * rows + draw.between(2, 4);
  problem.ringSlots = spec.hasRingIndices ? rows + draw.between(1, 3) : 0;
  drawMemory(draw, problem);
  FreeSlots free(firstFree(spec), problem.slots);
  FreeSlots freeRings(0, problem.ringSlots);
  std::vector<MaterializeProblem::Row> sources; // that another row may have too
  for (int i = 0; i < rows; ++i) {
    if (draw.once(3)) {
      problem.rows.push_back(drawIdleRow(draw, problem));
      continue;
    }
    if (!sources.empty() && draw.once(3)) {
      problem.rows.push_back(sources[draw.below(int(sources.size()))]);
      problem.rows.back().dst = free.take(draw);
      continue;
    }
    MaterializeProblem::Row row{.src = free.take(draw), .dst = 0};
    row.writePos = draw.below(spec.ringDepth);
    row.base = spec.isCircular ? draw.below(spec.ringDepth) : 0;
    if (spec.hasRingIndices)
      row.ringSlot =
          row.writePos == 0 ? noRing(draw, problem) : freeRings.take(draw);
    row.dst = draw.once(3) ? row.src : free.take(draw);
    if (row.dst != row.src)
      sources.push_back(row);
    problem.rows.push_back(row);
  }
}

/// A problem of that spec, unless what comes out is not legal, such as a
/// rebuild readout of K = 3.
template <typename Problem>
std::optional<Problem> drawProblem(Draw &draw, uint64_t seed,
                                   const Target &target, const DecodeSpec &spec,
                                   float lowerBound) {
  Problem problem;
  problem.seed = seed;
  problem.spec = spec;
  problem.lowerBound = lowerBound;
  problem.tuning = drawTuning(draw, spec, target);
  if (!validate(spec, problem.tuning, target))
    return std::nullopt;
  drawRun(draw, problem);
  if (!validateProblem(problem))
    return std::nullopt;
  return problem;
}

} // namespace

DecodeCase randomCase(uint64_t seed, const Target &target) {
  Draw draw(seed);
  const std::string name = fmt::format("seed {}", seed);
  for (;;) {
    float lowerBound;
    const DecodeSpec spec = drawSpec(draw, lowerBound);
    if (!traitsOf(spec).tokens) {
      if (auto problem = drawProblem<MaterializeProblem>(draw, seed, target,
                                                         spec, lowerBound))
        return materializeCase(name, *problem);
    } else if (auto problem = drawProblem<DecodeProblem>(draw, seed, target,
                                                         spec, lowerBound))
      return {name, *problem, {}};
  }
}

host::LaneOrder randomLaneOrder(uint64_t seed) {
  Draw draw(~seed);
  return draw.of({host::LaneOrder::forward(), host::LaneOrder::reverse(),
                  host::LaneOrder::shuffled(uint32_t(seed)),
                  host::LaneOrder::shuffled(uint32_t(seed))});
}

} // namespace replayjit::internal
