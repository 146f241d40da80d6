//===- Sizing.cpp - What a pool costs, and which kernels to run -----------===//

#include "runtime/state/Sizing.h"

#include "kernels/Families.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace replayjit::internal {

static int64_t roundedUp(int64_t elements, DataType type) {
  const int64_t unit = 16 / byteSize(type);
  return (elements + unit - 1) / unit * unit;
}

SlotPitches slotPitches(const DecodeSpec &spec) {
  auto pitchOf = [&](const char *name) {
    const Argument &tensor = find(layerArguments(), name);
    return tensor.isThere(spec)
               ? roundedUp(innerElements(spec, tensor), tensor.type.of(spec))
               : 0;
  };
  return {pitchOf("state"), pitchOf("dRing"), pitchOf("kRing"),
          pitchOf("gRing")};
}

int64_t stateBytes(const DecodeSpec &spec) {
  return slotPitches(spec).state * byteSize(spec.stateType);
}

int64_t ringBytes(const DecodeSpec &spec) {
  const SlotPitches pitches = slotPitches(spec);
  return (pitches.dRing + pitches.kRing) * byteSize(spec.ringType) +
         pitches.gRing * byteSize(DataType::F32);
}

static Status checkCount(std::string_view name, int64_t count, int64_t least) {
  if (count >= least)
    return Status::ok();
  return Status::invalid(fmt::format(
      "{}: {} is not allowed; it must be {} or more", name, count, least));
}

Result<int64_t> poolBytes(std::span<const LayerCount> layers, int64_t states,
                          int64_t rings, int64_t numKeys) {
  for (const Status &status :
       {checkCount("states", states, 0), checkCount("rings", rings, 0),
        checkCount("numKeys", numKeys, 0)})
    if (!status)
      return status;
  int64_t bytes = 0;
  bool isCircular = false, fits = true;
  auto add = [&](int64_t count, int64_t each) {
    int64_t product = 0;
    fits = fits && !__builtin_mul_overflow(count, each, &product) &&
           !__builtin_add_overflow(bytes, product, &bytes);
  };
  for (size_t i = 0; i < layers.size(); ++i) {
    const LayerCount &entry = layers[i];
    for (Status status : {supports(entry.spec, Target()),
                          checkCount("layers", entry.layers, 0)})
      if (!status)
        return std::move(status).within(fmt::format("layers[{}]", i));
    // A valid slot has less than 2^30 bytes, so all layers' have less than
    // 2^61.
    add(states, entry.layers * stateBytes(entry.spec));
    add(rings, entry.layers * ringBytes(entry.spec));
    isCircular |= entry.spec.isCircular;
  }
  add(numKeys, int64_t(sizeof(int32_t)) * (isCircular ? 2 : 1));
  if (!fits)
    return Status::invalid(
        fmt::format("layers: {} states, {} rings and {} cursors of them are "
                    "not allowed; there must be less than 2^63 bytes",
                    states, rings, numKeys));
  return bytes;
}

Result<int64_t> statesForBudget(std::span<const LayerCount> layers,
                                int64_t rings, int64_t numKeys,
                                int64_t budget) {
  const Result<int64_t> fixed = poolBytes(layers, 0, rings, numKeys);
  const Result<int64_t> least = poolBytes(layers, 1, rings, numKeys);
  for (const Result<int64_t> *bytes : {&fixed, &least})
    if (!*bytes)
      return bytes->status();
  if (*least == *fixed)
    return Status::invalid("layers: none is not allowed; there must be one");
  if (budget < *least)
    return Status::invalid(fmt::format(
        "budget: {} bytes are not allowed; {} rings, {} cursors and one state "
        "need {}",
        budget, rings, numKeys, *least));
  return std::min<int64_t>((budget - *fixed) / (*least - *fixed), INT32_MAX);
}

Status supports(const DecodeSpec &spec, const Target &target) {
  return validate(spec, chooseTuning(spec, /*rows=*/0, target), target);
}

/// Value heads of 128 x 128 at once from which on replay decode was faster than
/// packed decode, of the batches measured.
static int64_t breakEven(const DecodeSpec &spec) {
  if (spec.stateType != DataType::F32)
    return 2048;
  return spec.isKda ? 512 : 128;
}

/// The fastest of a table, if it has any that does what `spec` does.
static std::optional<Recommendation> fastest(const TuningTable &measured,
                                             const DecodeSpec &spec, int rows,
                                             float lowerBound) {
  std::optional<Recommendation> best;
  double bestUs = 0;
  for (const TunedSpec &entry : measured.specs) {
    DecodeSpec other = spec;
    other.family = entry.spec.family;
    other.ringDepth = entry.spec.ringDepth;
    if (traitsOf(entry.spec).rings)
      other.ringType = entry.spec.ringType;
    if (measured.find(other) != &entry ||
        !validateLowerBound(other, lowerBound))
      continue;
    const double us = entry.forRows(rows).us;
    if (best && us >= bestUs)
      continue;
    best = {other.family, other.ringDepth, other.ringType};
    bestUs = us;
  }
  return best;
}

Result<Recommendation> recommend(const DecodeSpec &spec, int rows,
                                 float lowerBound,
                                 const TuningTable *measured) {
  DecodeSpec replay = spec;
  replay.family = Family::Replay;
  replay.ringDepth = 2; // The least that is recommended.
  for (const Status &status :
       {supports(replay, Target()), validateLowerBound(replay, lowerBound),
        checkCount("rows", rows, 1)})
    if (!status)
      return status;
  if (measured)
    if (auto best = fastest(*measured, spec, rows, lowerBound))
      return *best;
  const double K = spec.headDimK, V = spec.headDimV;
  const double heads = double(rows) * spec.numValueHeads * K * V / (128 * 128);
  if (heads < double(breakEven(spec)))
    return Recommendation{Family::Packed, 1, spec.ringType};
  // One flush in L tokens writes a state; a token reads L/2 rows of d and of k,
  // the latter shared by HV/H value heads, and of gates where they are read.
  const double state = 2 * K * V * byteSize(spec.stateType);
  double row =
      byteSize(spec.ringType) * (V + K * spec.numKeyHeads / spec.numValueHeads);
  if (spec.isKda && spec.ringFormat != RingFormat::Predecayed)
    row += K * byteSize(DataType::F32);
  int depth = 4 * int(std::lround(std::sqrt(state / row) / 4));
  if (spec.ringFormat == RingFormat::Predecayed) // See validateLowerBound.
    depth = int(std::min<double>(depth, 1 + 80 / -double(lowerBound)));
  return Recommendation{Family::Replay, std::clamp(depth, 2, maxRingDepth),
                        spec.ringType};
}

} // namespace replayjit::internal
