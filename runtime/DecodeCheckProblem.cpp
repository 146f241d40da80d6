//===- DecodeCheckProblem.cpp - Which problems are legal ------------------===//

#include "runtime/DecodeCheck.h"

#include <cmath>
#include <fmt/format.h>
#include <set>

namespace replayjit {

static Status atLeast(const char *field, int value, int low) {
  if (value >= low)
    return Status::ok();
  return Status::invalid(fmt::format("{}: {} is not allowed; it must be {} or "
                                     "more",
                                     field, value, low));
}

static Status insideRange(const char *field, int value, int size) {
  if (value >= 0 && value < size)
    return Status::ok();
  return Status::invalid(fmt::format("{}: {} is not allowed; it must be 0 to "
                                     "{}",
                                     field, value, size - 1));
}

Status validateProblem(const DecodeProblem &problem) {
  const DecodeSpec &spec = problem.spec;
  if (Status status = validate(spec, chooseTuning(spec, 0, Target{}), Target{});
      !status)
    return status;
  for (Status status :
       {atLeast("batch", problem.batch, 0), atLeast("slots", problem.slots, 0),
        atLeast("steps", problem.steps, 1),
        atLeast("rowPadding", problem.rowPadding, 0),
        atLeast("slotPadding", problem.slotPadding, 0),
        atLeast("indexStride", problem.indexStride, 1)})
    if (!status)
      return status;

  if (!(std::isfinite(problem.lowerBound) && problem.lowerBound < 0))
    return Status::invalid(
        fmt::format("lowerBound: {} is not allowed; it must be finite and "
                    "negative",
                    problem.lowerBound));
  if (!problem.rowSlots.empty() &&
      problem.rowSlots.size() != size_t(problem.batch))
    return Status::invalid(
        fmt::format("rowSlots: {} entries are not allowed; there must be none "
                    "or one for each of the {} rows",
                    problem.rowSlots.size(), problem.batch));
  if (problem.rowSlots.empty() && problem.batch > problem.slots)
    return Status::invalid(
        fmt::format("batch: {} is not allowed; without rowSlots it must be at "
                    "most slots = {}",
                    problem.batch, problem.slots));
  const int64_t firstSlot = spec.nullSlot == NullSlot::NonPositive ? 1 : 0;
  std::set<int64_t> used;
  for (int64_t slot : problem.rowSlots)
    if (slot >= firstSlot && slot < problem.slots && !used.insert(slot).second)
      return Status::invalid(fmt::format(
          "rowSlots: slot {} appears twice; live rows must be distinct", slot));

  for (const DecodeProblem::ForcedFlush &forced : problem.forcedFlushes) {
    if (!spec.hasForceFlush)
      return Status::invalid("forcedFlushes: not allowed, since the spec has "
                             "hasForceFlush = false; leave it empty");
    if (Status status =
            insideRange("forcedFlushes.step", forced.step, problem.steps);
        !status)
      return status;
    if (Status status =
            insideRange("forcedFlushes.row", forced.row, problem.batch);
        !status)
      return status;
  }
  for (const DecodeProblem::BadCursor &bad : problem.badCursors) {
    if (Status status = insideRange("badCursors.row", bad.row, problem.batch);
        !status)
      return status;
    if (bad.writePos >= 0 && bad.writePos < spec.ringDepth)
      return Status::invalid(
          fmt::format("badCursors.writePos: {} is a legal cursor; it must be "
                      "outside 0 to {}",
                      bad.writePos, spec.ringDepth - 1));
  }
  if (problem.misaligned && spec.alignment != 0)
    return Status::invalid(
        fmt::format("misaligned: not allowed, since the spec promises "
                    "alignment = {}; it must be 0",
                    spec.alignment));
  return Status::ok();
}

} // namespace replayjit
