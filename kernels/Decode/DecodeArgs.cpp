//===- DecodeArgs.cpp - Which arguments are legal -------------------------===//

#include "kernels/Decode/DecodeArgs.h"

#include <cmath>
#include <fmt/format.h>
#include <initializer_list>
#include <limits>
#include <utility>

namespace replayjit {

/// (L-1) |lower_bound| where exp(-P) still leaves fp32 and bf16 room (2^126).
static constexpr double mostDecay = 80;

Status validateLowerBound(const DecodeSpec &spec, float lowerBound) {
  if (spec.gate != Gate::LowerBound)
    return Status::ok();
  if (!std::isfinite(lowerBound) || lowerBound >= 0)
    return Status::invalid(fmt::format(
        "lowerBound: {} is not allowed; it must be finite and negative",
        lowerBound));
  const int steps = spec.ringDepth - 1;
  if (spec.ringFormat == RingFormat::Predecayed &&
      steps * -double(lowerBound) > mostDecay)
    return Status::invalid(fmt::format(
        "lowerBound: {} is not allowed with a predecayed ring of ringDepth = "
        "{}; (ringDepth - 1) |lowerBound| must be at most {}, so it must be "
        "{:.4g} or more",
        lowerBound, spec.ringDepth, mostDecay, -mostDecay / steps));
  return Status::ok();
}

namespace {

struct PointerCheck {
  const char *name;
  uint64_t address;
  DataType type;
  bool isWide = false; ///< spec.alignment holds for it.
};

struct StrideCheck {
  const char *name;
  int64_t value;
  int64_t unit;  ///< What must divide it.
  int64_t least; ///< Elements that must fit; inputs may repeat and overlap.
};

} // namespace

static Status checkPointers(const DecodeSpec &spec,
                            std::initializer_list<PointerCheck> checks) {
  for (const PointerCheck &check : checks) {
    if (check.address == 0)
      return Status::invalid(fmt::format(
          "{}: 0 is not allowed; it must be a device address", check.name));
    uint64_t unit = byteSize(check.type);
    if (check.isWide && spec.alignment > 0)
      unit = spec.alignment;
    if (check.address % unit != 0)
      return Status::invalid(fmt::format(
          "{}: {:#x} is not allowed; the address must be a multiple of {} "
          "bytes",
          check.name, check.address, unit));
  }
  return Status::ok();
}

static constexpr int64_t any = std::numeric_limits<int64_t>::min();

static Status checkStrides(std::initializer_list<StrideCheck> checks) {
  for (const StrideCheck &check : checks) {
    if (check.value % check.unit != 0)
      return Status::invalid(
          fmt::format("{}: {} is not allowed; it must be a multiple of {}",
                      check.name, check.value, check.unit));
    if (check.value < check.least)
      return Status::invalid(
          fmt::format("{}: {} is not allowed; it must be {} or more",
                      check.name, check.value, check.least));
  }
  return Status::ok();
}

static Status
checkCounts(std::initializer_list<std::pair<const char *, int32_t>> counts) {
  for (auto [name, value] : counts)
    if (value < 0)
      return Status::invalid(fmt::format(
          "{}: {} is not allowed; it must be 0 or more", name, value));
  return Status::ok();
}

/// Elements of `type` in what spec.alignment promises.
static int64_t unitOf(const DecodeSpec &spec, DataType type) {
  return spec.alignment > 0 ? spec.alignment / byteSize(type) : 1;
}

Status validateArgs(const DecodeSpec &spec, const DecodeArgs &args) {
  const int64_t H = spec.numKeyHeads, HV = spec.numValueHeads;
  const int64_t K = spec.headDimK, V = spec.headDimV, L = spec.ringDepth;
  const bool hasCursor = spec.family == Family::Replay;
  const bool hasRing = hasCursor && L > 1;
  if (Status status = checkCounts({{"batch", args.batch},
                                   {"slots", args.slots},
                                   {"ringSlots", args.ringSlots}});
      !status)
    return status;
  if (!std::isfinite(args.scale))
    return Status::invalid(
        fmt::format("scale: {} is not allowed; it must be finite", args.scale));
  if (Status status = validateLowerBound(spec, args.lowerBound); !status)
    return status;
  if (args.batch == 0)
    return Status::ok();

  if (Status status = checkPointers(
          spec, {{"q", args.q, spec.actType, true},
                 {"a", args.a, spec.gateType, spec.isKda},
                 {"b", args.b, spec.gateType},
                 {"aLog", args.aLog, spec.paramType},
                 {"dtBias", args.dtBias, spec.paramType, spec.isKda},
                 {"out", args.out, spec.outType, true},
                 {"state", args.state, spec.stateType, true},
                 {"stateIndices", args.stateIndices, spec.indexType}});
      !status)
    return status;
  if (hasCursor)
    if (Status status =
            checkPointers(spec, {{"writePos", args.writePos, DataType::I32}});
        !status)
      return status;
  if (hasRing)
    if (Status status = checkPointers(
            spec, {{"dRing", args.dRing, spec.ringType, true},
                   {"kRing", args.kRing, spec.ringType, true},
                   {"gRing", args.gRing, DataType::F32, spec.isKda}});
        !status)
      return status;
  struct Optional {
    bool isThere;
    PointerCheck check;
  };
  for (const Optional &optional :
       {Optional{spec.hasSeparateQkv, {"k", args.k, spec.actType, true}},
        {spec.hasSeparateQkv, {"v", args.v, spec.actType, true}},
        {hasCursor && spec.hasForceFlush,
         {"forceFlush", args.forceFlush, DataType::I32}},
        {spec.isCircular, {"ringBase", args.ringBase, DataType::I32}},
        {spec.hasRingIndices,
         {"ringIndices", args.ringIndices, spec.indexType}},
        {spec.hasDstIndices, {"dstIndices", args.dstIndices, spec.indexType}},
        {spec.hasTrackIndices,
         {"trackIndices", args.trackIndices, spec.indexType}}})
    if (optional.isThere)
      if (Status status = checkPointers(spec, {optional.check}); !status)
        return status;

  // The stride of a single row is never used.
  if (args.batch > 1) {
    const int64_t act = unitOf(spec, spec.actType);
    const int64_t gate = spec.isKda ? unitOf(spec, spec.gateType) : 1;
    if (Status status = checkStrides(
            {{"qStride", args.qStride, act, any},
             {"kStride", args.kStride, spec.hasSeparateQkv ? act : 1, any},
             {"vStride", args.vStride, spec.hasSeparateQkv ? act : 1, any},
             {"aStride", args.aStride, gate, any},
             {"outStride", args.outStride, unitOf(spec, spec.outType),
              HV * V}});
        !status)
      return status;
  }
  if (Status status =
          checkStrides({{"statePitch", args.statePitch,
                         unitOf(spec, spec.stateType), HV * V * K}});
      !status || !hasRing)
    return status;
  const int64_t ring = unitOf(spec, spec.ringType);
  return checkStrides(
      {{"dPitch", args.dPitch, ring, HV * L * V},
       {"kPitch", args.kPitch, ring, H * L * K},
       {"gPitch", args.gPitch, spec.isKda ? unitOf(spec, DataType::F32) : 1,
        L * HV * gateWidth(spec)}});
}

Status validateArgs(const DecodeSpec &spec, const MaterializeArgs &args) {
  if (Status status = checkCounts({{"batch", args.batch},
                                   {"numLayers", args.numLayers},
                                   {"slots", args.slots},
                                   {"ringSlots", args.ringSlots}});
      !status)
    return status;
  if (args.batch == 0 || args.numLayers == 0)
    return Status::ok();
  if (Status status =
          checkPointers(spec, {{"layers", args.layers, DataType::I64},
                               {"srcIndices", args.srcIndices, spec.indexType},
                               {"dstIndices", args.dstIndices, spec.indexType},
                               {"writePos", args.writePos, DataType::I32}});
      !status)
    return status;
  if (spec.isCircular)
    if (Status status =
            checkPointers(spec, {{"ringBase", args.ringBase, DataType::I32}});
        !status)
      return status;
  if (spec.hasRingIndices)
    if (Status status = checkPointers(
            spec, {{"ringIndices", args.ringIndices, spec.indexType}});
        !status)
      return status;
  if (spec.hasMask)
    return checkPointers(spec, {{"mask", args.mask, DataType::I32}});
  return Status::ok();
}

} // namespace replayjit
