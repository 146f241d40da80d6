//===- DecodeCheckProblem.cpp - Which problems are legal ------------------===//

#include "checks/DecodeCheck.h"
#include "checks/DecodeCheckMemory.h"
#include "kernels/Families.h"

#include "kernels/Decode/DecodeReference.h" // and with it DecodeArgs.h

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <set>
#include <string>
#include <unistd.h>
#include <vector>

namespace replayjit::internal {

static Status atLeast(const char *field, int value, int low) {
  if (value >= low)
    return Status::ok();
  return Status::invalid(fmt::format("{}: {} is not allowed; it must be {} or "
                                     "more",
                                     field, value, low));
}

static Status within(const char *field, int value, int low, int high) {
  if (value >= low && value <= high)
    return Status::ok();
  return Status::invalid(fmt::format(
      "{}: {} is not allowed; it must be {} to {}", field, value, low, high));
}

Status checkSpacing(int slotPadding, int indexStride) {
  Status status = within("slotPadding", slotPadding, 0, mostSpacing);
  return status ? within("indexStride", indexStride, 1, mostSpacing) : status;
}

Status checkMemory(const DecodeSpec &spec, const MemoryShape &shape) {
  // In double, which no product here overflows, and as if all were fp32.
  const double H = spec.numKeyHeads, HV = spec.numValueHeads, K = spec.headDimK,
               V = spec.headDimV, L = spec.ringDepth, G = gateWidth(spec);
  const double row = 2 * H * K + 2 * HV * V + HV * (G + 1) +
                     9.0 * shape.rowPadding + 8 * (shape.indexStride + 3.0);
  const double slot = HV * V * K + L * (HV * V + H * K + HV * G) +
                      4 * (shape.slotPadding + 8.0 * shape.layers);
  constexpr double copies = 3; // expected, on the device, read back
  const double bytes =
      copies * sizeof(float) *
          (shape.rows * row + shape.layers * (shape.slots * slot)) +
      sizeof(double) * shape.rows * shape.layers * HV * K * V;
  const double there =
      double(sysconf(_SC_PHYS_PAGES)) * double(sysconf(_SC_PAGESIZE));
  if (bytes <= there)
    return Status::ok();
  constexpr double mebibyte = 1 << 20;
  return Status::invalid(fmt::format(
      "memory: a problem of about {:.0f} MiB is not allowed; this machine has "
      "{:.0f}, so it must have fewer rows, slots or layers, or less padding",
      bytes / mebibyte, there / mebibyte));
}

static Status insideRange(const char *field, int value, int size) {
  if (value >= 0 && value < size)
    return Status::ok();
  return Status::invalid(fmt::format("{}: {} is not allowed; it must be 0 to "
                                     "{}",
                                     field, value, size - 1));
}

static Status onePerRow(const char *field, size_t entries, int batch) {
  if (entries == 0 || entries == size_t(batch))
    return Status::ok();
  return Status::invalid(
      fmt::format("{}: {} entries are not allowed; there must be none or one "
                  "for each of the {} rows",
                  field, entries, batch));
}

/// For what needs a part of the spec that it does not have.
static Status onlyWith(const char *field, const char *needed, bool isThere,
                       bool isUsed) {
  if (isThere || !isUsed)
    return Status::ok();
  return Status::invalid(fmt::format("{}: not allowed, since the spec has {} = "
                                     "false; leave it empty",
                                     field, needed));
}

/// Adds the legal ones of `slots`; the first that is there already is refused.
static Status addDistinct(const char *field, const std::vector<int64_t> &slots,
                          int64_t low, int64_t high, std::set<int64_t> &used) {
  for (int64_t slot : slots)
    if (slot >= low && slot < high && !used.insert(slot).second)
      return Status::invalid(
          fmt::format("{}: slot {} appears twice; live rows must be distinct",
                      field, slot));
  return Status::ok();
}

/// Which slots the rows may have.
static Status checkSlots(const DecodeProblem &problem) {
  const DecodeSpec &spec = problem.spec;
  const int batch = problem.batch, slots = problem.slots;
  const int ringSlots = problem.ringSlotCount();
  for (Status status :
       {onePerRow("rowSlots", problem.rowSlots.size(), batch),
        onePerRow("rowRingSlots", problem.rowRingSlots.size(), batch),
        onePerRow("rowDstSlots", problem.rowDstSlots.size(), batch),
        onlyWith("rowRingSlots", "hasRingIndices", spec.hasRingIndices,
                 !problem.rowRingSlots.empty()),
        onlyWith("rowDstSlots", "hasDstIndices", spec.hasDstIndices,
                 !problem.rowDstSlots.empty())})
    if (!status)
      return status;
  if (int64_t(problem.firstSlot) + std::max(slots, ringSlots) > INT32_MAX)
    return Status::invalid(
        fmt::format("firstSlot: {} is not allowed; with the slots it must be "
                    "at most {}",
                    problem.firstSlot, INT32_MAX));
  if (problem.rowSlots.empty() && batch > slots)
    return Status::invalid(
        fmt::format("batch: {} is not allowed; without rowSlots it must be at "
                    "most slots = {}",
                    batch, slots));
  if (spec.hasRingIndices && problem.rowRingSlots.empty() && batch > ringSlots)
    return Status::invalid(
        fmt::format("batch: {} is not allowed; without rowRingSlots it must "
                    "be at most ringSlots = {}",
                    batch, ringSlots));
  if (spec.isCircular && !spec.hasRingIndices && !problem.rowDstSlots.empty())
    return Status::invalid("rowDstSlots: not allowed with a circular ring "
                           "without hasRingIndices, which would stay behind "
                           "with its token; leave it empty");

  const int64_t low =
      spec.nullSlot == NullSlot::NonPositive && problem.firstSlot == 0 ? 1 : 0;
  std::set<int64_t> used, usedRings;
  if (!problem.sharedSlots)
    for (Status status :
         {addDistinct("rowSlots", problem.rowSlots, low, slots, used),
          addDistinct("rowRingSlots", problem.rowRingSlots, 0, ringSlots,
                      usedRings)})
      if (!status)
        return status;
  std::vector<int64_t> others; // that are not the row's own
  for (int i = 0; i < int(problem.rowDstSlots.size()); ++i)
    if (problem.rowSlots.empty() ||
        problem.rowDstSlots[i] != problem.rowSlots[i])
      others.push_back(problem.rowDstSlots[i]);
  if (Status status = addDistinct("rowDstSlots", others, low, slots, used);
      !status)
    return status;
  for (const DecodeProblem::Track &track : problem.tracks)
    if (used.contains(track.slot))
      return Status::invalid(fmt::format(
          "tracks.slot: {} is a row's slot; it must be one of its own",
          track.slot));
  return Status::ok();
}

/// What happens to single rows.
static Status checkEvents(const DecodeProblem &problem) {
  const DecodeSpec &spec = problem.spec;
  const bool hasCursor = traitsOf(spec).rings;
  for (Status status :
       {onlyWith("forcedFlushes", "hasForceFlush", spec.hasForceFlush,
                 !problem.forcedFlushes.empty()),
        onlyWith("badBases", "isCircular", spec.isCircular,
                 !problem.badBases.empty()),
        onlyWith("tracks", "hasTrackIndices", spec.hasTrackIndices,
                 !problem.tracks.empty())})
    if (!status)
      return status;
  if (!hasCursor &&
      !(problem.forcedFlushes.empty() && problem.badCursors.empty()))
    return Status::invalid("forcedFlushes, badCursors: not allowed for the "
                           "packed family, which has no cursor; leave them "
                           "empty");
  auto at = [&](const char *stepField, int step, const char *rowField,
                int row) {
    Status status = insideRange(stepField, step, problem.steps);
    return status ? insideRange(rowField, row, problem.batch) : status;
  };
  for (const DecodeProblem::ForcedFlush &forced : problem.forcedFlushes)
    if (Status status = at("forcedFlushes.step", forced.step,
                           "forcedFlushes.row", forced.row);
        !status)
      return status;
  for (const DecodeProblem::Track &track : problem.tracks)
    if (Status status = at("tracks.step", track.step, "tracks.row", track.row);
        !status)
      return status;
  auto outside = [](const char *field, int32_t value, const char *what,
                    int end) {
    if (value < 0 || value >= end)
      return Status::ok();
    return Status::invalid(
        fmt::format("{}: {} is a legal {}; it must be outside 0 to {}", field,
                    value, what, end - 1));
  };
  for (const DecodeProblem::BadCursor &bad : problem.badCursors)
    for (Status status : {insideRange("badCursors.row", bad.row, problem.batch),
                          outside("badCursors.writePos", bad.writePos, "cursor",
                                  cursorEnd(spec))})
      if (!status)
        return status;
  for (const DecodeProblem::BadBase &bad : problem.badBases)
    for (Status status :
         {insideRange("badBases.row", bad.row, problem.batch),
          outside("badBases.base", bad.base, "base", spec.ringDepth)})
      if (!status)
        return status;
  return Status::ok();
}

/// What LaunchAbi::Triton fixes or does not check.
static Status checkTritonProblem(const DecodeProblem &problem) {
  struct Fixed {
    const char *field;
    bool isUsed;
    const char *allowed;
  };
  bool isOutside = false;
  for (int64_t slot : problem.rowSlots)
    isOutside |= slot >= problem.slots;
  for (Fixed fixed :
       {Fixed{"hasErrorWord", problem.hasErrorWord, "must be false"},
        {"rowPadding", problem.rowPadding != 0, "must be 0"},
        {"slotPadding", problem.slotPadding != 0, "must be 0"},
        {"indexStride", problem.indexStride != 1, "must be 1"},
        {"rowSlots", isOutside, "must be below slots"}})
    if (fixed.isUsed)
      return Status::invalid(
          fmt::format("{}: not allowed with abi triton; it {}", fixed.field,
                      fixed.allowed));
  return Status::ok();
}

/// Whether a row may be reported in the error word.
static bool mayReport(const DecodeProblem &problem) {
  const int first = problem.spec.nullSlot == NullSlot::NonPositive ? 1 : 0;
  auto isOutside = [](const std::vector<int64_t> &slots, int64_t low,
                      int64_t end) {
    return std::any_of(slots.begin(), slots.end(),
                       [=](int64_t slot) { return slot < low || slot >= end; });
  };
  return !problem.badCursors.empty() || !problem.badBases.empty() ||
         !problem.badCounts.empty() ||
         isOutside(problem.rowSlots, INT64_MIN, problem.slots) ||
         isOutside(problem.rowRingSlots, 0, problem.ringSlotCount()) ||
         isOutside(problem.rowDstSlots, first, problem.slots) ||
         std::any_of(problem.tracks.begin(), problem.tracks.end(),
                     [&](const DecodeProblem::Track &track) {
                       return track.slot >= problem.slots;
                     });
}

int64_t DecodeProblem::tokenCount() const {
  const int64_t T = tokensPerRow(spec);
  return batch * T + (tokenRowsOf(spec) == TokenRows::Ragged ? T + 1 : 0);
}

/// Of rows that differ in their tokens.
static Status checkBadCounts(const DecodeProblem &problem) {
  const DecodeSpec &spec = problem.spec;
  const TokenRows rows = tokenRowsOf(spec);
  if (rows == TokenRows::Full && !problem.badCounts.empty())
    return Status::invalid("badCounts: not allowed, since every row has all "
                           "its tokens; leave it empty");
  constexpr int32_t most = 1 << 20;
  for (const DecodeProblem::BadCount &bad : problem.badCounts) {
    if (Status status = insideRange("badCounts.row", bad.row, problem.batch);
        !status)
      return status;
    const bool isBelow = rows == TokenRows::Counted && bad.count < 0;
    if (!isBelow && (bad.count <= spec.numTokens || bad.count > most))
      return Status::invalid(fmt::format(
          "badCounts.count: {} is not allowed; it must be {} to {}{}",
          bad.count, spec.numTokens + 1, most,
          rows == TokenRows::Counted ? ", or negative" : ""));
  }
  return Status::ok();
}

Status validateProblem(const DecodeProblem &problem) {
  const DecodeSpec &spec = problem.spec;
  if (Status status = validate(spec, chooseTuning(spec, 0, Target{}), Target{});
      !status)
    return status;
  for (Status status :
       {atLeast("batch", problem.batch, 0), atLeast("slots", problem.slots, 0),
        atLeast("ringSlots", problem.ringSlots, 0),
        atLeast("firstSlot", problem.firstSlot, 0),
        atLeast("steps", problem.steps, 1),
        within("rowPadding", problem.rowPadding, 0, mostSpacing),
        checkSpacing(problem.slotPadding, problem.indexStride),
        checkMemory(spec,
                    {.rows = problem.tokenCount(),
                    .slots = std::max(problem.slots, problem.ringSlotCount()),
                    .rowPadding = problem.rowPadding,
                    .slotPadding = problem.slotPadding,
                    .indexStride = problem.indexStride})})
    if (!status)
      return status;

  if (!traitsOf(spec).tokens)
    return Status::invalid(fmt::format("family: {} is not allowed here; it "
                                       "must be one that has tokens",
                                       wordOf(spec.family)));
  if (!(std::isfinite(problem.lowerBound) && problem.lowerBound < 0))
    return Status::invalid(
        fmt::format("lowerBound: {} is not allowed; it must be finite and "
                    "negative",
                    problem.lowerBound));
  for (Status status :
       {validateLowerBound(spec, problem.lowerBound), checkSlots(problem),
        checkEvents(problem), checkBadCounts(problem)})
    if (!status)
      return status;
  if (spec.abi == LaunchAbi::Triton)
    if (Status status = checkTritonProblem(problem); !status)
      return status;
  if (spec.trapOnError && mayReport(problem))
    return Status::invalid("trapOnError: true is not allowed with rows that "
                           "are reported, which end the launch");
  if (problem.misaligned && spec.alignment != 0)
    return Status::invalid(
        fmt::format("misaligned: not allowed, since the spec promises "
                    "alignment = {}; it must be 0",
                    spec.alignment));
  return Status::ok();
}

} // namespace replayjit::internal
