//===- DecodeSpec.cpp - Rules and names of decode kernels -----------------===//

#include "kernels/Decode/DecodeSpec.h"

#include "kernels/Decode/TritonArgs.h"
#include "kernels/Families.h"

#include <algorithm>
#include <cassert>
#include <fmt/format.h>
#include <initializer_list>
#include <utility>
#include <vector>

namespace replayjit::internal {

//===----------------------------------------------------------------------===//
// validate
//===----------------------------------------------------------------------===//

/// Floats of the state tile that a thread may be asked to hold.
static constexpr int maxTilePerThread = 256;

Status mustBeFalse(const char *field, const char *why) {
  return Status::invalid(fmt::format(
      "{}: true is not allowed for {}; it must be false", field, why));
}

/// Where a circular ring's token stays.
static Status checkDestinations(const DecodeSpec &spec) {
  if (spec.isCircular && spec.hasDstIndices && !spec.hasRingIndices)
    return mustBeFalse(
        "hasDstIndices",
        "a circular ring without ring indices: after a natural "
        "flush the last token would stay in the old slot's ring");
  return Status::ok();
}

Status checkCircularDepth(const DecodeSpec &spec) {
  if (!spec.isCircular || spec.ringDepth >= 2)
    return Status::ok();
  return Status::invalid(
      fmt::format("ringDepth: {} is not allowed with isCircular; it must be "
                  "2 to {}",
                  spec.ringDepth, maxRingDepth));
}

/// Expects what the family allows.
static Status checkRingFormat(const DecodeSpec &spec) {
  const std::string_view format = wordOf(spec.ringFormat);
  if (spec.ringFormat == RingFormat::Raw)
    return checkCircularDepth(spec);
  auto refused = [&](std::string_view where, std::string_view need) {
    return Status::invalid(fmt::format("ringFormat: {} is not allowed {}; {}",
                                       format, where, need));
  };
  const bool isPredecayed = spec.ringFormat == RingFormat::Predecayed;
  if (traitsOf(spec).tokens && spec.rule == Rule::Additive)
    return refused("with rule additive", "it must be raw");
  if (!spec.isKda)
    return refused("for GDN", "it must be raw");
  if (isPredecayed && spec.numKeyHeads != spec.numValueHeads)
    return refused(fmt::format("with numKeyHeads = {} and numValueHeads = {}",
                               spec.numKeyHeads, spec.numValueHeads),
                   "it needs one K head for each value head, so they must be "
                   "equal");
  if (traitsOf(spec).tokens && spec.gate != Gate::LowerBound)
    return refused(fmt::format("with the {} gate", wordOf(spec.gate)),
                   "it needs gate lowerBound with a finite negative bound");
  if (isPredecayed && traitsOf(spec).tokens && !spec.qkL2Norm &&
      !spec.hasUnitKeys)
    return refused(
        "with qkL2Norm = false",
        "inverse-prefix scaling is unsafe for long keys, so it needs "
        "the L2 norm of k or hasUnitKeys");
  if (isPredecayed && spec.ringType == DataType::F16)
    return Status::invalid("ringType: fp16 is not allowed with ringFormat "
                           "predecayed, which overflows it; allowed are fp32, "
                           "bf16");
  return checkCircularDepth(spec);
}

/// Where d and g come from.
static Status checkRule(const DecodeSpec &spec) {
  auto refused = [](const char *field, std::string_view value,
                    std::string_view where, std::string_view need) {
    return Status::invalid(
        fmt::format("{}: {} is not allowed {}; {}", field, value, where, need));
  };
  if (!traitsOf(spec).tokens)
    return Status::ok();
  const std::string_view gate = wordOf(spec.gate), beta = wordOf(spec.beta);
  if (spec.gate == Gate::Fixed && spec.isKda)
    return refused("gate", gate, "for KDA",
                   "a number for each head is no gate over K");
  if (spec.hasStepLimits && spec.beta != Beta::Step)
    return refused("hasStepLimits", "true", fmt::format("with beta {}", beta),
                   "it needs beta step");
  if (spec.beta != Beta::Step)
    return Status::ok();
  if (spec.isKda)
    return refused("beta", beta, "for KDA",
                   "an a of each channel is no number for the whole token");
  if (spec.gate != Gate::Softplus && spec.gate != Gate::Rate)
    return refused("beta", beta, fmt::format("with gate {}", gate),
                   "it needs gate softplus or rate, which have a step");
  if (spec.rule != Rule::Additive)
    return refused("beta", beta, fmt::format("with rule {}", wordOf(spec.rule)),
                   "it needs rule additive, since a step has no upper bound");
  return Status::ok();
}

/// What Triton's signature has no argument for. Expects a spec that is valid
/// with the native ABI.
static Status checkTritonAbi(const DecodeSpec &spec) {
  if (spec.abi == LaunchAbi::Native)
    return Status::ok();
  auto refused = [](std::string_view what, std::string_view need) {
    return Status::invalid(fmt::format(
        "abi: triton is not allowed with {}; its signature {}", what, need));
  };
  if (!traitsOf(spec).triton)
    return refused(fmt::format("family {}", wordOf(spec.family)),
                   "is that of the replay kernel");
  if (spec.gate != Gate::Softplus)
    return refused(fmt::format("gate {}", wordOf(spec.gate)),
                   spec.gate == Gate::LowerBound ? "has no lower bound"
                                                 : "means the softplus gate");
  if (spec.beta != Beta::Sigmoid)
    return refused(fmt::format("beta {}", wordOf(spec.beta)),
                   "means a sigmoid of b");
  if (spec.ringFormat != RingFormat::Raw)
    return refused(fmt::format("ringFormat {}", wordOf(spec.ringFormat)),
                   "means a raw ring");
  if (spec.rule != Rule::Delta)
    return refused(fmt::format("rule {}", wordOf(spec.rule)),
                   "means the delta rule");
  if (spec.skip != Skip::None)
    return refused(fmt::format("skip {}", wordOf(spec.skip)),
                   "has no argument for it");
  for (auto [has, field] : {std::pair{spec.isCircular, "isCircular"},
                            {spec.hasSeparateQkv, "hasSeparateQkv"},
                            {spec.hasRingIndices, "hasRingIndices"},
                            {spec.hasDstIndices, "hasDstIndices"},
                            {spec.hasTrackIndices, "hasTrackIndices"},
                            {spec.hasOutGate, "hasOutGate"},
                            {spec.trapOnError, "trapOnError"}})
    if (has)
      return refused(fmt::format("{} = true", field), "has no argument for it");
  if (spec.alignment == 0)
    return Status::ok();
  const DenseStrides dense = denseStrides(spec);
  struct Stride {
    const char *name;
    int64_t bytes;
  };
  for (Stride stride :
       {Stride{"mixed_qkv", dense.q * byteSize(spec.actType)},
        {"a", spec.isKda ? dense.a * byteSize(spec.gateType) : 0},
        {"out", dense.out * byteSize(spec.outType)},
        {"state", dense.state * byteSize(spec.stateType)},
        {"d_ring", dense.d * byteSize(spec.ringType)},
        {"k_ring", dense.k * byteSize(spec.ringType)},
        {"g_ring", spec.isKda ? dense.g * byteSize(DataType::F32) : 0}})
    if (stride.bytes % spec.alignment != 0)
      return Status::invalid(fmt::format(
          "alignment: {} is not allowed with abi triton and these sizes, since "
          "a dense row of {} has {} bytes; it must be 0",
          spec.alignment, stride.name, stride.bytes));
  return Status::ok();
}

static Status validateFacts(const DecodeSpec &spec,
                            Status (*checkOwn)(const DecodeSpec &spec)) {
  if (spec.numValueHeads % spec.numKeyHeads != 0)
    return Status::invalid(
        fmt::format("numValueHeads: {} is not allowed; it must be a multiple "
                    "of numKeyHeads = {}",
                    spec.numValueHeads, spec.numKeyHeads));
  if (Status status = checkDestinations(spec); !status)
    return status;
  if (Status status = checkOwn(spec); !status)
    return status;
  if (Status status = checkRule(spec); !status)
    return status;
  if (Status status = checkRingFormat(spec); !status)
    return status;
  if (Status status = checkTritonAbi(spec); !status)
    return status;
  if (spec.readout == Readout::Rebuild &&
      nextPowerOfTwo(spec.headDimK) < minDotWidth)
    return Status::invalid(
        fmt::format("headDimK: {} is not allowed with the rebuild readout; it "
                    "must be {} or more there",
                    spec.headDimK, minDotWidth / 2 + 1));
  return Status::ok();
}

/// Tensor cores take 16-bit numbers, and 16 rows and columns a warp.
static Status checkSplits(const DecodeSpec &spec, const DecodeTuning &tuning) {
  const bool flushes = tuning.flushRows == 0;
  if (!flushes && !tuning.splitVectors)
    return Status::ok();
  const std::string field =
      tuning.splitVectors ? "splitVectors: true" : "flushRows: 0";
  if (spec.readout == Readout::Rebuild)
    return Status::invalid(field + " is not allowed with the rebuild readout, "
                                   "which has tensor cores of its own");
  if (tuning.splitVectors && spec.stateType == DataType::F32)
    return Status::invalid(field + " is not allowed for an fp32 state; it must "
                                   "be bf16 or fp16");
  // A full row that is tracked folds twice, the second time in place. Lanes
  // must then find again what they found the first time, and products on tensor
  // cores may draw one of the folds into their layout.
  if (tuning.splitVectors && spec.isCircular && spec.hasTrackIndices)
    return Status::invalid(field + " is not allowed for a circular ring with "
                                   "hasTrackIndices");
  if (flushes && spec.ringType == DataType::F32)
    return Status::invalid("flushRows: 0 is not allowed for an fp32 ring; it "
                           "must be bf16 or fp16");
  const int paddedK = nextPowerOfTwo(spec.headDimK);
  const int narrowest = flushes ? std::min(paddedK, tuning.blockK) : paddedK;
  if (tuning.blockV < minDotWidth * tuning.numWarps || narrowest < minDotWidth)
    return Status::invalid(fmt::format("{} is not allowed for a tile of blockV "
                                       "= {} by {} and numWarps = {}; a "
                                       "warp needs {} rows and columns",
                                       field, tuning.blockV, narrowest,
                                       tuning.numWarps, minDotWidth));
  return Status::ok();
}

/// Expects a valid `spec`.
static Status validateTuning(const DecodeSpec &spec,
                             const DecodeTuning &tuning) {
  if (Status status = checkFacts(tuning, tuningFacts()); !status)
    return status;

  int paddedK = nextPowerOfTwo(spec.headDimK);
  bool usesDot = spec.readout == Readout::Rebuild;
  if (usesDot && tuning.blockV < minDotWidth)
    return Status::invalid(
        fmt::format("blockV: {} is not allowed with the rebuild readout; it "
                    "must be {} or more there",
                    tuning.blockV, minDotWidth));
  int lowest = std::min(minDotWidth, paddedK);
  if (tuning.blockK < lowest || tuning.blockK > paddedK)
    return Status::invalid(
        fmt::format("blockK: {} is not allowed for headDimK = {}; it must be "
                    "{} to {}",
                    tuning.blockK, spec.headDimK, lowest, paddedK));

  if (Status status = checkSplits(spec, tuning); !status)
    return status;
  int tile = tuning.blockV * tuning.blockK;
  int threads = 32 * tuning.numWarps;
  // No two threads may hold one element: a flush stores it in place, while the
  // other may still have to read it.
  int perWarp = usesDot ? minDotWidth * minDotWidth / 2 : 32;
  if (tile < perWarp * tuning.numWarps)
    return Status::invalid(
        fmt::format("numWarps: {} is not allowed for a tile of blockV = {} by "
                    "blockK = {}; every {}, so it must be at most {}",
                    tuning.numWarps, tuning.blockV, tuning.blockK,
                    usesDot ? "warp needs an MMA fragment of 128 elements"
                            : "thread needs an element",
                    tile / perWarp));
  if (tile > maxTilePerThread * threads)
    return Status::invalid(fmt::format(
        "numWarps: {} is not allowed for a tile of blockV = {} by blockK = "
        "{}; a thread holds at most {} elements, so it must be at least {}",
        tuning.numWarps, tuning.blockV, tuning.blockK, maxTilePerThread,
        tile / (32 * maxTilePerThread)));
  return Status::ok();
}

Status validatePool(const DecodeSpec &spec, const DecodeTuning &tuning,
                    const Target &target,
                    Status (*checkOwn)(const DecodeSpec &spec)) {
  if (Status status = validateFacts(spec, checkOwn); !status)
    return status;
  if (Status status = validateTuning(spec, tuning); !status)
    return status;
  if (spec.programmaticLaunch != ProgrammaticLaunch::None &&
      target.capability < 90)
    return Status::error(
        StatusCode::Unsupported,
        fmt::format("programmaticLaunch: {} is not allowed for {}; it needs "
                    "sm_90 or later",
                    wordOf(spec.programmaticLaunch), target.chip));
  if (tuning.stageBytes > 0 && !target.hasBulkCopy)
    return Status::error(
        StatusCode::Unsupported,
        fmt::format("stageBytes: {} is not allowed for {}; bulk copies need "
                    "sm_90 or later",
                    tuning.stageBytes, target.chip));
  if (spec.readout == Readout::Rebuild && target.capability < 80)
    return Status::error(
        StatusCode::Unsupported,
        fmt::format("target: {} has no TF32 or bf16 tensor core, which the "
                    "rebuild readout needs; allowed are sm_80 and later",
                    target.chip));
  return Status::ok();
}

Status validate(const DecodeSpec &spec, const DecodeTuning &tuning,
                const Target &target) {
  if (Status status = checkFacts(spec, decodeFacts()); !status)
    return status;
  return familyOf(spec.family).validate(spec, tuning, target);
}

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

bool storesF16(const DecodeSpec &spec) {
  const FamilyTraits &traits = traitsOf(spec);
  const bool appends = traits.tokens && traits.rings && spec.ringDepth > 1;
  return (traits.states && spec.stateType == DataType::F16) ||
         (appends && spec.ringType == DataType::F16) ||
         (traits.tokens && spec.outType == DataType::F16);
}

DecodeSpec canonical(DecodeSpec spec) {
  return canonicalOf(spec, decodeFacts());
}

std::string kernelName(const DecodeSpec &spec, const DecodeTuning &tuning) {
  // The operator goes before the family: "gdn_decode_h16".
  const auto facts = decodeFacts();
  assert(facts[0].name == std::string_view("family") &&
         facts[1].name == std::string_view("isKda"));
  std::string name;
  addNameParts(name, spec, facts.subspan(1, 1));
  const std::string_view part = familyOf(spec.family).part;
  name += fmt::format("{}{}", name.empty() ? "" : "_", part);
  addNameParts(name, spec, facts.subspan(2));
  if (traitsOf(spec).states)
    addNameParts(name, tuning, tuningFacts());
  return name;
}

} // namespace replayjit::internal
