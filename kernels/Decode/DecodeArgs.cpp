//===- DecodeArgs.cpp - Which arguments are legal -------------------------===//

#include "kernels/Decode/DecodeArgs.h"

#include "kernels/Decode/TritonArgs.h"

#include <array>
#include <cmath>
#include <fmt/format.h>
#include <initializer_list>
#include <span>
#include <utility>

namespace replayjit::internal {

/// exp(80) = 2^115 times a key, and exp(-80) times a decay, are normal numbers
/// of fp32 and bf16.
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
        "{} or more",
        lowerBound, spec.ringDepth, mostDecay,
        -std::floor(1000 * mostDecay / steps) / 1000)); // rounded towards 0
  return Status::ok();
}

namespace {

struct PointerCheck {
  const char *name;
  uint64_t address;
  DataType type;
  bool isWide = false; ///< spec.alignment holds for it.
  bool isThere = true; ///< The spec has it.
};

struct StrideCheck {
  const char *name;
  int64_t value;
  DataType type; ///< Of the elements that it counts.
  int64_t unit;  ///< What must divide it.
  int64_t least; ///< Elements that must fit; inputs may repeat and overlap.
};

} // namespace

static Status checkPointers(const DecodeSpec &spec,
                            std::span<const PointerCheck> checks) {
  for (const PointerCheck &check : checks) {
    if (!check.isThere)
      continue;
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

static Status checkErrorWord(uint64_t address) {
  if (address % alignof(ErrorWord) == 0)
    return Status::ok();
  return Status::invalid(fmt::format("errorWord: {:#x} is not allowed; it must "
                                     "be 0 or a multiple of {} bytes",
                                     address, alignof(ErrorWord)));
}

/// Of a stride; times any count of rows or slots it is within 63 bits.
static constexpr int64_t mostStrideBytes = int64_t(1) << 32;
static constexpr int64_t any = -mostStrideBytes;

static Status checkStrides(std::initializer_list<StrideCheck> checks) {
  for (const StrideCheck &check : checks) {
    const int64_t most = mostStrideBytes / byteSize(check.type);
    if (check.value > most || check.value < -most)
      return Status::invalid(
          fmt::format("{}: {} is not allowed; it must be "
                      "{} to {} (2^32 bytes)",
                      check.name, check.value,
                      check.least == any ? -most : check.least, most));
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

static std::array<PointerCheck, 4> pointersOf(const DecodeSpec &spec,
                                              const ReplayLayer &layer) {
  const bool hasRing = spec.ringDepth > 1; // Packed decode has none.
  return {{{"state", layer.state, spec.stateType, true},
           {"dRing", layer.dRing, spec.ringType, true, hasRing},
           {"kRing", layer.kRing, spec.ringType, true, hasRing},
           {"gRing", layer.gRing, DataType::F32, spec.isKda, hasRing}}};
}

Status validateLayer(const DecodeSpec &spec, const ReplayLayer &layer) {
  const int64_t H = spec.numKeyHeads, HV = spec.numValueHeads;
  const int64_t K = spec.headDimK, V = spec.headDimV, L = spec.ringDepth;
  if (Status status = checkPointers(spec, pointersOf(spec, layer)); !status)
    return status;
  const DataType stateType = spec.stateType, ringType = spec.ringType;
  if (Status status = checkStrides({{"statePitch", layer.statePitch, stateType,
                                     unitOf(spec, stateType), HV * V * K}});
      !status || L == 1)
    return status;
  constexpr DataType F32 = DataType::F32;
  const int64_t ring = unitOf(spec, ringType);
  const int64_t gate = spec.isKda ? unitOf(spec, F32) : 1;
  return checkStrides(
      {{"dPitch", layer.dPitch, ringType, ring, HV * L * V},
       {"kPitch", layer.kPitch, ringType, ring, H * L * K},
       {"gPitch", layer.gPitch, F32, gate, HV * L * gateWidth(spec)}});
}

static ReplayLayer layerOf(const DecodeArgs &args) {
  return {args.state,      args.dRing,  args.kRing,  args.gRing,
          args.statePitch, args.dPitch, args.kPitch, args.gPitch};
}

/// But for those of layerOf and the error word.
static std::array<PointerCheck, 15> pointersOf(const DecodeSpec &spec,
                                               const DecodeArgs &args) {
  constexpr DataType I32 = DataType::I32;
  const bool hasCursor = spec.family == Family::Replay;
  const bool isSplit = spec.hasSeparateQkv, isKda = spec.isKda;
  return {{{"q", args.q, spec.actType, true},
           {"k", args.k, spec.actType, true, isSplit},
           {"v", args.v, spec.actType, true, isSplit},
           {"a", args.a, spec.gateType, isKda},
           {"b", args.b, spec.betaType},
           {"aLog", args.aLog, spec.paramType},
           {"dtBias", args.dtBias, spec.biasType, isKda},
           {"out", args.out, spec.outType, true},
           {"stateIndices", args.stateIndices, spec.indexType},
           {"writePos", args.writePos, I32, false, hasCursor},
           {"forceFlush", args.forceFlush, I32, false,
            hasCursor && spec.hasForceFlush},
           {"ringBase", args.ringBase, I32, false, spec.isCircular},
           {"ringIndices", args.ringIndices, spec.indexType, false,
            spec.hasRingIndices},
           {"dstIndices", args.dstIndices, spec.indexType, false,
            spec.hasDstIndices},
           {"trackIndices", args.trackIndices, spec.indexType, false,
            spec.hasTrackIndices}}};
}

/// Of LaunchAbi::Triton: what its kernels are compiled for.
static Status checkTritonArgs(const DecodeSpec &spec, const DecodeArgs &args) {
  const DenseStrides dense = denseStrides(spec);
  struct Fixed {
    const char *name;
    int64_t value, allowed;
    bool isOfRows = false; ///< The stride of a single row is never used.
  };
  for (Fixed fixed : {Fixed{"stateIndexStride", args.stateIndexStride, 1, true},
                      {"qStride", args.qStride, dense.q, true},
                      {"aStride", args.aStride, dense.a, true},
                      {"bStride", args.bStride, dense.b, true},
                      {"outStride", args.outStride, dense.out, true},
                      {"statePitch", args.statePitch, dense.state},
                      {"dPitch", args.dPitch, dense.d},
                      {"kPitch", args.kPitch, dense.k},
                      {"gPitch", args.gPitch, dense.g}})
    if (fixed.value != fixed.allowed && (args.batch > 1 || !fixed.isOfRows))
      return Status::invalid(
          fmt::format("{}: {} is not allowed with abi triton, whose kernel is "
                      "compiled for {}",
                      fixed.name, fixed.value, fixed.allowed));
  if (args.errorWord != 0)
    return Status::invalid(fmt::format("errorWord: {:#x} is not allowed with "
                                       "abi triton, which has none; it must be "
                                       "0",
                                       args.errorWord));
  if (args.batch > maxTritonRows)
    return Status::invalid(
        fmt::format("batch: {} is not allowed with abi triton, whose grid has "
                    "at most {} rows",
                    args.batch, maxTritonRows));
  return Status::ok();
}

Status validateArgs(const DecodeSpec &spec, const DecodeArgs &args) {
  const int64_t HV = spec.numValueHeads, V = spec.headDimV;
  const bool isSplit = spec.hasSeparateQkv, isKda = spec.isKda;
  if (Status status = checkCounts(
          {{"batch", args.batch},
           {"slots", args.slots},
           {"ringSlots", spec.hasRingIndices ? args.ringSlots : 0}});
      !status)
    return status;
  if (!std::isfinite(args.scale))
    return Status::invalid(
        fmt::format("scale: {} is not allowed; it must be finite", args.scale));
  if (Status status = validateLowerBound(spec, args.lowerBound); !status)
    return status;
  if (args.batch == 0)
    return Status::ok();

  if (Status status = checkPointers(spec, pointersOf(spec, args)); !status)
    return status;
  if (Status status = checkErrorWord(args.errorWord); !status)
    return status;
  if (spec.abi == LaunchAbi::Triton)
    if (Status status = checkTritonArgs(spec, args); !status)
      return status;

  // The stride of a single row is never used.
  if (args.batch > 1) {
    const DataType actType = spec.actType, gateType = spec.gateType;
    const int64_t act = unitOf(spec, actType);
    const int64_t gate = isKda ? unitOf(spec, gateType) : 1;
    auto ifThere = [](bool isThere, int64_t stride) {
      return isThere ? stride : 0;
    };
    if (Status status = checkStrides(
            {{"qStride", args.qStride, actType, act, any},
             {"kStride", ifThere(isSplit, args.kStride), actType, act, any},
             {"vStride", ifThere(isSplit, args.vStride), actType, act, any},
             {"aStride", args.aStride, gateType, gate, any},
             {"bStride", args.bStride, spec.betaType, 1, any},
             {"outStride", args.outStride, spec.outType,
              unitOf(spec, spec.outType), HV * V},
             {"stateIndexStride", args.stateIndexStride, spec.indexType, 1,
              any},
             {"ringIndexStride",
              ifThere(spec.hasRingIndices, args.ringIndexStride),
              spec.indexType, 1, any},
             {"dstIndexStride",
              ifThere(spec.hasDstIndices, args.dstIndexStride), spec.indexType,
              1, any},
             {"trackIndexStride",
              ifThere(spec.hasTrackIndices, args.trackIndexStride),
              spec.indexType, 1, any}});
        !status)
      return status;
  }
  return validateLayer(spec, layerOf(args));
}

static std::array<PointerCheck, 7> pointersOf(const DecodeSpec &spec,
                                              const MaterializeArgs &args) {
  constexpr DataType I32 = DataType::I32;
  return {{{"layers", args.layers, DataType::I64},
           {"srcIndices", args.srcIndices, spec.indexType},
           {"dstIndices", args.dstIndices, spec.indexType},
           {"ringIndices", args.ringIndices, spec.indexType, false,
            spec.hasRingIndices},
           {"writePos", args.writePos, I32},
           {"ringBase", args.ringBase, I32, false, spec.isCircular},
           {"mask", args.mask, I32, false, spec.hasMask}}};
}

Status validateArgs(const DecodeSpec &spec, const MaterializeArgs &args) {
  if (Status status = checkCounts(
          {{"batch", args.batch},
           {"numLayers", args.numLayers},
           {"slots", args.slots},
           {"ringSlots", spec.hasRingIndices ? args.ringSlots : 0}});
      !status)
    return status;
  if (args.batch == 0 || args.numLayers == 0)
    return Status::ok();
  if (Status status = checkPointers(spec, pointersOf(spec, args)); !status)
    return status;
  if (args.batch > 1)
    if (Status status = checkStrides(
            {{"srcIndexStride", args.srcIndexStride, spec.indexType, 1, any},
             {"dstIndexStride", args.dstIndexStride, spec.indexType, 1, any},
             {"ringIndexStride", spec.hasRingIndices ? args.ringIndexStride : 0,
              spec.indexType, 1, any}});
        !status)
      return status;
  return checkErrorWord(args.errorWord);
}

//===----------------------------------------------------------------------===//
// The pointers by name
//===----------------------------------------------------------------------===//

static void append(std::vector<NamedAddress> &all,
                   std::span<const PointerCheck> pointers) {
  for (const PointerCheck &pointer : pointers)
    if (pointer.isThere)
      all.push_back({pointer.name, pointer.address});
}

static void appendErrorWord(std::vector<NamedAddress> &all, uint64_t address) {
  if (address)
    all.push_back({"errorWord", address});
}

std::vector<NamedAddress> addressesOf(const DecodeSpec &spec,
                                      const DecodeArgs &args) {
  std::vector<NamedAddress> all;
  if (args.batch == 0)
    return all;
  append(all, pointersOf(spec, args));
  append(all, pointersOf(spec, layerOf(args)));
  appendErrorWord(all, args.errorWord);
  return all;
}

std::vector<NamedAddress> addressesOf(const DecodeSpec &spec,
                                      const MaterializeArgs &args) {
  std::vector<NamedAddress> all;
  if (args.batch == 0 || args.numLayers == 0)
    return all;
  append(all, pointersOf(spec, args));
  appendErrorWord(all, args.errorWord);
  return all;
}

} // namespace replayjit::internal
