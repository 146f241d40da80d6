//===- Json.cpp - A kernel's record as JSON -------------------------------===//

#include "tools/Json.h"

#include <nlohmann/json.hpp>

using namespace replayjit;
using Json = nlohmann::ordered_json;

static Json specToJson(const DecodeSpec &spec) {
  return {
      {"family", toString(spec.family)},
      {"isKda", spec.isKda},
      {"numKeyHeads", spec.numKeyHeads},
      {"numValueHeads", spec.numValueHeads},
      {"headDimK", spec.headDimK},
      {"headDimV", spec.headDimV},
      {"ringDepth", spec.ringDepth},
      {"actType", toString(spec.actType)},
      {"gateType", toString(spec.gateType)},
      {"paramType", toString(spec.paramType)},
      {"outType", toString(spec.outType)},
      {"stateType", toString(spec.stateType)},
      {"ringType", toString(spec.ringType)},
      {"indexType", toString(spec.indexType)},
      {"qkL2Norm", spec.qkL2Norm},
      {"gate", spec.gate == Gate::Softplus ? "softplus" : "lowerBound"},
      {"betaRound", spec.betaRound},
      {"hasForceFlush", spec.hasForceFlush},
      {"ringFormat", toString(spec.ringFormat)},
      {"isCircular", spec.isCircular},
      {"hasSeparateQkv", spec.hasSeparateQkv},
      {"hasRingIndices", spec.hasRingIndices},
      {"hasDstIndices", spec.hasDstIndices},
      {"hasTrackIndices", spec.hasTrackIndices},
      {"hasMask", spec.hasMask},
      {"nullSlot",
       spec.nullSlot == NullSlot::Negative ? "negative" : "nonPositive"},
      {"readout",
       spec.readout == Readout::OutputOnly ? "outputOnly" : "rebuild"},
      {"alignment", spec.alignment},
  };
}

static Json tuningToJson(const DecodeTuning &tuning) {
  return {
      {"blockV", tuning.blockV},
      {"blockK", tuning.blockK},
      {"numWarps", tuning.numWarps},
      {"flushRows", tuning.flushRows},
      {"maxRegisters", tuning.maxRegisters},
      {"prefetchDistance", tuning.prefetchDistance},
      {"flushPrecision",
       tuning.flushPrecision == FlushPrecision::Ieee ? "ieee" : "tf32x3"},
  };
}

static const char *kindName(KernelParam::Kind kind) {
  switch (kind) {
  case KernelParam::Kind::Pointer:
    return "pointer";
  case KernelParam::Kind::I64:
    return "i64";
  case KernelParam::Kind::I32:
    return "i32";
  case KernelParam::Kind::F32:
    return "f32";
  }
  return "";
}

/// `madeFrom` comes after the target.
static std::string record(const CompiledKernel &kernel, const Json &madeFrom) {
  Json params = Json::array();
  for (const KernelParam &param : kernel.signature.params)
    params.push_back({{"name", param.name},
                      {"kind", kindName(param.kind)},
                      {"offset", param.offset}});
  const ResourceUsage &usage = kernel.resources;
  Json record = {{"name", kernel.name}, {"target", kernel.target.chip}};
  record.update(madeFrom);
  record.update(Json{
      {"launch",
       {{"blocksPerRow", kernel.launch.blocksPerRow},
        {"threads", kernel.launch.threads},
        {"sharedBytes", kernel.launch.sharedBytes}}},
      {"params", params},
      {"paramBytes", kernel.signature.bytes},
      {"resources",
       {{"registers", usage.registers},
        {"spillStoreBytes", usage.spillStoreBytes},
        {"spillLoadBytes", usage.spillLoadBytes},
        {"stackBytes", usage.stackBytes},
        {"staticSharedBytes", usage.staticSharedBytes}}},
      {"assembler", kernel.assembler},
      {"ptxBytes", kernel.ptx.size()},
      {"cubinBytes", kernel.cubin.size()},
  });
  return record.dump(2) + "\n";
}

std::string replayjit::toJson(const CompiledKernel &kernel,
                              const DecodeSpec &spec,
                              const DecodeTuning &tuning) {
  return record(kernel,
                {{"spec", specToJson(spec)}, {"tuning", tuningToJson(tuning)}});
}

std::string replayjit::toJson(const CompiledKernel &kernel) {
  return record(kernel, Json::object());
}
