//===- Fields.h - Every field of a spec, by name ----------------*- C++ -*-===//
//
// Private to runtime: the one list of fields that kernel.json and the cache key
// are made from. The structured bindings name every field of a
// struct, so that one more field does not compile until it is listed here.
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_RUNTIME_CACHE_FIELDS_H
#define REPLAYJIT_RUNTIME_CACHE_FIELDS_H

#include "kernels/Decode/DecodeSpec.h"

#include <concepts>
#include <type_traits>

namespace replayjit::internal {

/// The word of an enum's value; null past the last. Values count from zero.
constexpr const char *wordOf(Family family) {
  switch (family) {
  case Family::Replay:
    return "replay";
  case Family::Packed:
    return "packed";
  case Family::Materialize:
    return "materialize";
  case Family::PlanBegin:
    return "planBegin";
  case Family::PlanCommit:
    return "planCommit";
  }
  return nullptr;
}

constexpr const char *wordOf(RingFormat format) {
  switch (format) {
  case RingFormat::Raw:
    return "raw";
  case RingFormat::Prefix:
    return "prefix";
  case RingFormat::Predecayed:
    return "predecayed";
  }
  return nullptr;
}

constexpr const char *wordOf(Readout readout) {
  switch (readout) {
  case Readout::OutputOnly:
    return "outputOnly";
  case Readout::Rebuild:
    return "rebuild";
  }
  return nullptr;
}

constexpr const char *wordOf(NullSlot slot) {
  switch (slot) {
  case NullSlot::Negative:
    return "negative";
  case NullSlot::NonPositive:
    return "nonPositive";
  }
  return nullptr;
}

constexpr const char *wordOf(Gate gate) {
  switch (gate) {
  case Gate::Softplus:
    return "softplus";
  case Gate::LowerBound:
    return "lowerBound";
  }
  return nullptr;
}

constexpr const char *wordOf(LaunchAbi abi) {
  switch (abi) {
  case LaunchAbi::Native:
    return "native";
  case LaunchAbi::Triton:
    return "triton";
  }
  return nullptr;
}

constexpr const char *wordOf(DataType type) {
  switch (type) {
  case DataType::F32:
    return "fp32";
  case DataType::BF16:
    return "bf16";
  case DataType::F16:
    return "fp16";
  case DataType::I32:
    return "int32";
  case DataType::I64:
    return "int64";
  }
  return nullptr;
}

template <typename Struct, typename Wanted>
concept Is = std::same_as<std::remove_const_t<Struct>, Wanted>;

/// Calls visit(name, field) for every field, in order.
template <Is<DecodeSpec> Spec, typename Visit>
void visitFields(Spec &spec, Visit &&visit) {
  auto &[family, isKda, numKeyHeads, numValueHeads, headDimK, headDimV,
         ringDepth, actType, gateType, betaType, paramType, biasType, outType,
         stateType, ringType, indexType, qkL2Norm, gate, betaRound,
         hasForceFlush, ringFormat, isCircular, hasSeparateQkv, hasRingIndices,
         hasDstIndices, hasTrackIndices, hasMask, trapOnError,
         hasProgrammaticLaunch, nullSlot, readout, alignment, abi] = spec;
  visit("family", family);
  visit("isKda", isKda);
  visit("numKeyHeads", numKeyHeads);
  visit("numValueHeads", numValueHeads);
  visit("headDimK", headDimK);
  visit("headDimV", headDimV);
  visit("ringDepth", ringDepth);
  visit("actType", actType);
  visit("gateType", gateType);
  visit("betaType", betaType);
  visit("paramType", paramType);
  visit("biasType", biasType);
  visit("outType", outType);
  visit("stateType", stateType);
  visit("ringType", ringType);
  visit("indexType", indexType);
  visit("qkL2Norm", qkL2Norm);
  visit("gate", gate);
  visit("betaRound", betaRound);
  visit("hasForceFlush", hasForceFlush);
  visit("ringFormat", ringFormat);
  visit("isCircular", isCircular);
  visit("hasSeparateQkv", hasSeparateQkv);
  visit("hasRingIndices", hasRingIndices);
  visit("hasDstIndices", hasDstIndices);
  visit("hasTrackIndices", hasTrackIndices);
  visit("hasMask", hasMask);
  visit("trapOnError", trapOnError);
  visit("hasProgrammaticLaunch", hasProgrammaticLaunch);
  visit("nullSlot", nullSlot);
  visit("readout", readout);
  visit("alignment", alignment);
  visit("abi", abi);
}

template <Is<DecodeTuning> Tuning, typename Visit>
void visitFields(Tuning &tuning, Visit &&visit) {
  auto &[blockV, blockK, numWarps, flushRows, maxRegisters] = tuning;
  visit("blockV", blockV);
  visit("blockK", blockK);
  visit("numWarps", numWarps);
  visit("flushRows", flushRows);
  visit("maxRegisters", maxRegisters);
}

template <typename Visit>
void visitFields(const Target &target, Visit &&visit) {
  const auto &[chip, capability, ptxVersion, maxSharedBytes, hasBulkCopy] =
      target;
  visit("chip", chip);
  visit("capability", capability);
  visit("ptxVersion", ptxVersion);
  visit("maxSharedBytes", maxSharedBytes);
  visit("hasBulkCopy", hasBulkCopy);
}

} // namespace replayjit::internal

#endif
