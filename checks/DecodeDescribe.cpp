//===- DecodeDescribe.cpp - A random case in one line ---------------------===//

#include "checks/DecodeFuzz.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string_view>

namespace replayjit::internal {
namespace {

/// A line that grows by what is not as usual.
struct Line {
  std::string text;

  template <typename T>
  void add(std::string_view name, const T &value, const T &usual) {
    if (value != usual)
      text += fmt::format(", {} {}", name, value);
  }
  void add(std::string_view name, const std::vector<int64_t> &slots) {
    if (!slots.empty())
      text += fmt::format(", {} [{}]", name, fmt::join(slots, ","));
  }
  /// What all problems have.
  template <typename Problem> void addMemory(const Problem &problem) {
    const Problem usual;
    add("lowerBound", problem.lowerBound, usual.lowerBound);
    add("firstSlot", problem.firstSlot, usual.firstSlot);
    add("poison", int(problem.poison), int(usual.poison));
    add("hasErrorWord", problem.hasErrorWord, usual.hasErrorWord);
    add("ringSlots", problem.ringSlots, usual.ringSlots);
    add("slotPadding", problem.slotPadding, usual.slotPadding);
    add("indexStride", problem.indexStride, usual.indexStride);
    add("misaligned", problem.misaligned, usual.misaligned);
  }
};

} // namespace

std::string describe(const DecodeProblem &problem) {
  Line line{fmt::format("{}, batch {}, slots {}, steps {}, seed {}",
                        kernelName(problem.spec, problem.tuning), problem.batch,
                        problem.slots, problem.steps, problem.seed)};
  line.addMemory(problem);
  line.add("layer", problem.layer, 0);
  line.add("rowPadding", problem.rowPadding, 0);
  line.add("staggered", problem.staggered, false);
  line.add("mixedGates", problem.mixedGates, false);
  line.add("slowGates", problem.slowGates, false);
  line.add("sharedSlots", problem.sharedSlots, false);
  line.add("rowSlots", problem.rowSlots);
  line.add("rowRingSlots", problem.rowRingSlots);
  line.add("rowDstSlots", problem.rowDstSlots);
  for (const auto &forced : problem.forcedFlushes)
    line.text += fmt::format(", flush step {} row {}", forced.step, forced.row);
  for (const auto &bad : problem.badCursors)
    line.text += fmt::format(", writePos {} row {}", bad.writePos, bad.row);
  for (const auto &bad : problem.badBases)
    line.text += fmt::format(", ringBase {} row {}", bad.base, bad.row);
  for (const auto &bad : problem.badCounts)
    line.text += fmt::format(", tokens {} row {}", bad.count, bad.row);
  for (const auto &track : problem.tracks)
    line.text += fmt::format(", track step {} row {} slot {}", track.step,
                             track.row, track.slot);
  return line.text;
}

std::string describe(const MaterializeProblem &problem) {
  Line line{fmt::format("{}, layers {}, slots {}, seed {}",
                        kernelName(problem.spec, problem.tuning),
                        problem.numLayers, problem.slots, problem.seed)};
  line.addMemory(problem);
  for (const MaterializeProblem::Row &row : problem.rows) {
    line.text += fmt::format(", row {} -> {} writePos {}", row.src, row.dst,
                             row.writePos);
    if (problem.spec.isCircular)
      line.text += fmt::format(" base {}", row.base);
    if (problem.spec.hasRingIndices)
      line.text += fmt::format(" ring {}", row.ringSlot);
    if (row.masked)
      line.text += " masked";
  }
  return line.text;
}

std::string describe(const DecodeCase &entry) {
  return entry.materialize ? describe(*entry.materialize)
                           : describe(entry.problem);
}

} // namespace replayjit::internal
