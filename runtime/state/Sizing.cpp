//===- Sizing.cpp - What a pool costs, and which kernels to run -----------===//

#include "runtime/state/Sizing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace replayjit {

static int64_t roundedUp(int64_t elements, DataType type) {
  const int64_t unit = 16 / byteSize(type);
  return (elements + unit - 1) / unit * unit;
}

SlotPitches slotPitches(const DecodeSpec &spec) {
  const int64_t H = spec.numKeyHeads, HV = spec.numValueHeads;
  const int64_t K = spec.headDimK, V = spec.headDimV;
  const int64_t L = spec.ringDepth > 1 ? spec.ringDepth : 0; // no ring
  return {roundedUp(HV * V * K, spec.stateType),
          roundedUp(HV * L * V, spec.ringType),
          roundedUp(H * L * K, spec.ringType),
          roundedUp(HV * L * gateWidth(spec), DataType::F32)};
}

int64_t stateBytes(const DecodeSpec &spec) {
  return slotPitches(spec).state * byteSize(spec.stateType);
}

int64_t ringBytes(const DecodeSpec &spec) {
  const SlotPitches pitches = slotPitches(spec);
  return (pitches.dRing + pitches.kRing) * byteSize(spec.ringType) +
         pitches.gRing * byteSize(DataType::F32);
}

int64_t poolBytes(std::span<const LayerCount> layers, int64_t states,
                  int64_t rings, int64_t numKeys) {
  int64_t bytes = 0;
  bool isCircular = false;
  for (const LayerCount &entry : layers) {
    bytes += entry.layers *
             (states * stateBytes(entry.spec) + rings * ringBytes(entry.spec));
    isCircular |= entry.spec.isCircular;
  }
  return bytes + numKeys * int64_t(sizeof(int32_t)) * (isCircular ? 2 : 1);
}

Result<int64_t> statesForBudget(std::span<const LayerCount> layers,
                                int64_t rings, int64_t numKeys,
                                int64_t budget) {
  const int64_t fixed = poolBytes(layers, 0, rings, numKeys);
  const int64_t each = poolBytes(layers, 1, 0, 0);
  if (each == 0)
    return Status::invalid("layers: none is not allowed; there must be one");
  if (budget - fixed < each)
    return Status::invalid(fmt::format(
        "budget: {} bytes are not allowed; {} rings, {} cursors and one state "
        "need {}",
        budget, rings, numKeys, fixed + each));
  return std::min<int64_t>((budget - fixed) / each, INT32_MAX);
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

Recommendation recommend(const DecodeSpec &spec, int rows, float lowerBound) {
  const double K = spec.headDimK, V = spec.headDimV;
  const double heads = double(rows) * spec.numValueHeads * K * V / (128 * 128);
  if (heads < double(breakEven(spec)))
    return {Family::Packed, 1};
  // One flush in L tokens writes a state; a token reads L/2 rows of d and of k,
  // the latter shared by HV/H value heads, and of gates where they are read.
  const double state = 2 * K * V * byteSize(spec.stateType);
  double row =
      byteSize(spec.ringType) * (V + K * spec.numKeyHeads / spec.numValueHeads);
  if (spec.isKda && spec.ringFormat != RingFormat::Predecayed)
    row += K * byteSize(DataType::F32);
  int depth = 4 * int(std::lround(std::sqrt(state / row) / 4));
  if (spec.ringFormat == RingFormat::Predecayed)
    depth = std::min(depth, 1 + int(80 / -lowerBound)); // validateLowerBound
  return {Family::Replay, std::clamp(depth, 2, maxRingDepth)};
}

} // namespace replayjit
