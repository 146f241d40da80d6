//===- DecodeSpec.cpp - Rules, names and presets of decode kernels --------===//

#include "kernels/Decode/DecodeSpec.h"

#include "kernels/Decode/TritonArgs.h"

#include <algorithm>
#include <bit>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <initializer_list>
#include <utility>
#include <vector>

namespace replayjit::internal {

//===----------------------------------------------------------------------===//
// validate
//===----------------------------------------------------------------------===//

/// Floats of the state tile that a thread may be asked to hold.
static constexpr int maxTilePerThread = 256;

static bool isPowerOfTwo(int n) {
  return n > 0 && std::has_single_bit(static_cast<unsigned>(n));
}

static Status checkRange(const char *field, int value, int low, int high) {
  if (value >= low && value <= high)
    return Status::ok();
  return Status::invalid(fmt::format("{}: {} is not allowed; it must be {} to "
                                     "{}",
                                     field, value, low, high));
}

static Status checkOneOf(const char *field, int value,
                         std::initializer_list<int> allowed) {
  if (std::find(allowed.begin(), allowed.end(), value) != allowed.end())
    return Status::ok();
  return Status::invalid(fmt::format("{}: {} is not allowed; allowed are {}",
                                     field, value, fmt::join(allowed, ", ")));
}

static Status checkType(const char *field, DataType value,
                        std::initializer_list<DataType> allowed) {
  if (std::find(allowed.begin(), allowed.end(), value) != allowed.end())
    return Status::ok();
  std::vector<std::string_view> names;
  for (DataType type : allowed)
    if (std::find(names.begin(), names.end(), toString(type)) == names.end())
      names.push_back(toString(type));
  return Status::invalid(fmt::format("{}: {} is not allowed; allowed are {}",
                                     field, toString(value),
                                     fmt::join(names, ", ")));
}

/// The first failure in the order written: a rule may rely on those before it.
static Status firstError(std::initializer_list<Status> checks) {
  for (const Status &status : checks)
    if (!status)
      return status;
  return Status::ok();
}

static Status checkFamily(const DecodeSpec &spec) {
  auto mustBeFalse = [](const char *field, const char *why) {
    return Status::invalid(fmt::format(
        "{}: true is not allowed for {}; it must be false", field, why));
  };
  if (spec.family == Family::Replay && spec.ringDepth == 1 &&
      spec.hasRingIndices)
    return mustBeFalse("hasRingIndices", "ringDepth = 1, which has no ring");
  if (spec.isCircular && spec.hasDstIndices && !spec.hasRingIndices)
    return mustBeFalse(
        "hasDstIndices",
        "a circular ring without ring indices: after a natural "
        "flush the last token would stay in the old slot's ring");
  if (spec.family == Family::Packed) {
    if (spec.ringDepth != 1)
      return Status::invalid(
          fmt::format("ringDepth: {} is not allowed for the packed family, "
                      "which has no ring; it must be 1",
                      spec.ringDepth));
    const char *why = "the packed family, which has no ring";
    if (spec.isCircular)
      return mustBeFalse("isCircular", why);
    if (spec.hasRingIndices)
      return mustBeFalse("hasRingIndices", why);
    if (spec.ringFormat != RingFormat::Raw)
      return Status::invalid(
          fmt::format("ringFormat: {} is not allowed for {}; it must be raw",
                      toString(spec.ringFormat), why));
  }
  if (spec.family == Family::Materialize) {
    if (spec.hasDstIndices)
      return mustBeFalse("hasDstIndices", "the materialize family, which "
                                          "always has destinations");
    if (spec.hasTrackIndices)
      return mustBeFalse("hasTrackIndices", "the materialize family");
  }
  return Status::ok();
}

static Status checkCircularDepth(const DecodeSpec &spec) {
  if (!spec.isCircular || spec.ringDepth >= 2)
    return Status::ok();
  return Status::invalid(
      fmt::format("ringDepth: {} is not allowed with isCircular; it must be "
                  "2 to {}",
                  spec.ringDepth, maxRingDepth));
}

/// Expects what checkFamily allows.
static Status checkRingFormat(const DecodeSpec &spec) {
  const std::string_view format = toString(spec.ringFormat);
  if (spec.ringFormat == RingFormat::Raw) {
    if (spec.isCircular)
      return Status::invalid("isCircular: true is not allowed with ringFormat "
                             "raw; it needs prefix or predecayed");
    return Status::ok();
  }
  auto refused = [&](std::string_view where, std::string_view need) {
    return Status::invalid(fmt::format("ringFormat: {} is not allowed {}; {}",
                                       format, where, need));
  };
  if (!spec.isKda)
    return refused("for GDN", "it must be raw");
  if (hasTokens(spec) && spec.gate != Gate::LowerBound)
    return refused("with the softplus gate", "it needs gate lowerBound");
  if (hasTokens(spec) && !spec.qkL2Norm)
    return refused("with qkL2Norm = false", "it needs the L2 norm of k");
  if (spec.numKeyHeads != spec.numValueHeads)
    return refused(fmt::format("with numKeyHeads = {} and numValueHeads = {}",
                               spec.numKeyHeads, spec.numValueHeads),
                   "they must be equal");
  if (spec.ringFormat == RingFormat::Predecayed &&
      spec.ringType == DataType::F16)
    return Status::invalid("ringType: fp16 is not allowed with ringFormat "
                           "predecayed, which overflows it; allowed are fp32, "
                           "bf16");
  return checkCircularDepth(spec);
}

/// The facts that a plan has.
static Status checkPlan(const DecodeSpec &spec) {
  if (Status status = firstError({
          checkRange("ringDepth", spec.ringDepth, 1, maxRingDepth),
          checkType("indexType", spec.indexType,
                    {DataType::I32, DataType::I64}),
      });
      !status)
    return status;
  return checkCircularDepth(spec);
}

/// What only a token's inputs and output say.
static Status checkToken(const DecodeSpec &spec) {
  using enum DataType;
  if (Status status = firstError({
          checkType("actType", spec.actType, {F32, BF16, F16}),
          checkType("gateType", spec.gateType, {spec.actType, F32}),
          checkType("betaType", spec.betaType, {spec.actType, F32}),
          checkType("paramType", spec.paramType, {F32, BF16}),
          checkType("biasType", spec.biasType, {F32, BF16}),
      });
      !status)
    return status;
  if (spec.gate == Gate::LowerBound && !spec.isKda)
    return Status::invalid("gate: lowerBound is not allowed for GDN; it must "
                           "be softplus");
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
  if (spec.family != Family::Replay)
    return refused(fmt::format("family {}", toString(spec.family)),
                   "is that of the replay kernel");
  if (spec.gate != Gate::Softplus)
    return refused("gate lowerBound", "has no lower bound");
  if (spec.ringFormat != RingFormat::Raw)
    return refused(fmt::format("ringFormat {}", toString(spec.ringFormat)),
                   "means a raw ring");
  for (auto [has, field] : {std::pair{spec.hasSeparateQkv, "hasSeparateQkv"},
                            {spec.hasRingIndices, "hasRingIndices"},
                            {spec.hasDstIndices, "hasDstIndices"},
                            {spec.hasTrackIndices, "hasTrackIndices"},
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

static Status validateSpec(const DecodeSpec &spec) {
  using enum DataType;
  if (Status status = firstError({
          checkRange("numKeyHeads", spec.numKeyHeads, 1, maxHeads),
          checkRange("numValueHeads", spec.numValueHeads, 1, maxHeads),
          checkRange("headDimK", spec.headDimK, 1, maxHeadDim),
          checkRange("headDimV", spec.headDimV, 1, maxHeadDim),
          checkRange("ringDepth", spec.ringDepth, 1, maxRingDepth),
          hasTokens(spec) ? checkToken(spec) : Status::ok(),
          checkType("outType", spec.outType, {F32, BF16, F16}),
          checkType("stateType", spec.stateType, {F32, BF16, F16}),
          checkType("ringType", spec.ringType, {F32, BF16, F16}),
          checkType("indexType", spec.indexType, {I32, I64}),
          checkOneOf("alignment", spec.alignment, {0, 16}),
      });
      !status)
    return status;
  if (spec.numValueHeads % spec.numKeyHeads != 0)
    return Status::invalid(
        fmt::format("numValueHeads: {} is not allowed; it must be a multiple "
                    "of numKeyHeads = {}",
                    spec.numValueHeads, spec.numKeyHeads));
  if (Status status = checkFamily(spec); !status)
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

/// Expects a valid `spec`.
static Status validateTuning(const DecodeSpec &spec,
                             const DecodeTuning &tuning) {
  if (Status status = firstError({
          checkOneOf("blockV", tuning.blockV, {8, 16, 32, 64, 128, 256}),
          checkOneOf("numWarps", tuning.numWarps, {1, 2, 4, 8}),
          checkOneOf("flushRows", tuning.flushRows, {1, 2, 4, 8}),
      });
      !status)
    return status;

  int paddedK = nextPowerOfTwo(spec.headDimK);
  bool usesDot = spec.readout == Readout::Rebuild;
  if (usesDot && tuning.blockV < minDotWidth)
    return Status::invalid(
        fmt::format("blockV: {} is not allowed with the rebuild readout; it "
                    "must be {} or more there",
                    tuning.blockV, minDotWidth));
  int lowest = std::min(minDotWidth, paddedK);
  if (!isPowerOfTwo(tuning.blockK) || tuning.blockK < lowest ||
      tuning.blockK > paddedK)
    return Status::invalid(
        fmt::format("blockK: {} is not allowed; it must be a power of two "
                    "from {} to {} for headDimK = {}",
                    tuning.blockK, lowest, paddedK, spec.headDimK));

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

Status validate(const DecodeSpec &spec, const DecodeTuning &tuning,
                const Target &target) {
  if (isPlan(spec))
    return checkPlan(spec); // A plan has no tiles to choose.
  if (Status status = validateSpec(spec); !status)
    return status;
  if (Status status = validateTuning(spec, tuning); !status)
    return status;
  if (tuning.maxRegisters != 0 &&
      (tuning.maxRegisters < 32 || tuning.maxRegisters > 255))
    return Status::invalid(fmt::format(
        "maxRegisters: {} is not allowed; it must be 0 or from 32 to 255",
        tuning.maxRegisters));
  if (spec.hasProgrammaticLaunch && target.capability < 90)
    return Status::error(
        StatusCode::Unsupported,
        fmt::format("hasProgrammaticLaunch: true is not allowed for {}; it "
                    "needs sm_90 or later",
                    target.chip));
  if (spec.readout == Readout::Rebuild && target.capability < 80)
    return Status::error(
        StatusCode::Unsupported,
        fmt::format("target: {} has no TF32 or bf16 tensor core, which the "
                    "rebuild readout needs; allowed are sm_80 and later",
                    target.chip));
  return Status::ok();
}

//===----------------------------------------------------------------------===//
// Names and presets
//===----------------------------------------------------------------------===//

std::string_view toString(Family family) {
  constexpr std::string_view names[] = {"replay", "packed", "materialize",
                                        "plan-begin", "plan-commit"};
  return names[int(family)];
}

std::string_view toString(RingFormat format) {
  constexpr std::string_view names[] = {"raw", "prefix", "predecayed"};
  return names[int(format)];
}

DecodeSpec planSpec(const DecodeSpec &pool, Family family) {
  DecodeSpec spec;
  spec.family = family;
  spec.ringDepth = pool.ringDepth;
  spec.isCircular = pool.isCircular;
  spec.indexType = pool.indexType;
  spec.nullSlot = pool.nullSlot;
  spec.trapOnError = pool.trapOnError;
  return spec;
}

static std::string planName(const DecodeSpec &spec) {
  return fmt::format(
      "plan_{}_l{}_idx{}{}{}{}",
      spec.family == Family::PlanBegin ? "begin" : "commit", spec.ringDepth,
      8 * byteSize(spec.indexType), spec.isCircular ? "_circ" : "",
      spec.trapOnError ? "_trap" : "",
      spec.nullSlot == NullSlot::Negative ? "_nullneg" : "_nullnonpos");
}

std::string kernelName(const DecodeSpec &spec, const DecodeTuning &tuning) {
  if (isPlan(spec))
    return planName(spec);
  const bool replays = spec.family == Family::Replay;
  const bool isRebuild = spec.readout == Readout::Rebuild;
  std::string name = fmt::format(
      "{}_{}_h{}_hv{}_k{}_v{}_l{}", spec.isKda ? "kda" : "gdn",
      replays ? "decode" : toString(spec.family), spec.numKeyHeads,
      spec.numValueHeads, spec.headDimK, spec.headDimV, spec.ringDepth);
  auto addIf = [&](bool has, std::string_view fact) {
    if (has)
      name += fact;
  };
  auto addType = [&](bool has, std::string_view field, DataType type) {
    if (has)
      name += fmt::format("_{}{}", field, toString(type));
  };
  // A family's name is silent on what its program does not have.
  const bool tokens = hasTokens(spec), rings = spec.family != Family::Packed;
  addType(tokens, "act", spec.actType);
  addType(tokens, "gate", spec.gateType);
  addType(tokens && spec.betaType != spec.gateType, "beta", spec.betaType);
  addType(tokens, "param", spec.paramType);
  addType(tokens && spec.biasType != spec.paramType, "bias", spec.biasType);
  addType(tokens || isRebuild, "out", spec.outType); // a dot rounds to it
  addType(true, "state", spec.stateType);
  addType(rings, "ring", spec.ringType);
  name += fmt::format("_idx{}", 8 * byteSize(spec.indexType));
  if (spec.ringFormat != RingFormat::Raw)
    name += fmt::format("_{}", toString(spec.ringFormat));
  addIf(spec.isCircular, "_circ");
  addIf(spec.hasRingIndices, "_ringidx");
  addIf(spec.hasDstIndices, "_dst");
  addIf(spec.hasTrackIndices, "_track");
  if (tokens) {
    // The other formats have no other gate.
    addIf(spec.gate == Gate::LowerBound && spec.ringFormat == RingFormat::Raw,
          "_lowerbound");
    addIf(spec.betaRound, "_betaround");
    name += spec.qkL2Norm ? "_l2norm" : "_nonorm";
    addIf(spec.hasSeparateQkv, "_qkv");
  } else {
    name += spec.hasMask ? "_mask" : "_nomask";
  }
  if (replays)
    name += spec.hasForceFlush ? "_force" : "_noforce";
  addIf(spec.trapOnError, "_trap");
  addIf(spec.hasProgrammaticLaunch, "_pdl");
  name += spec.nullSlot == NullSlot::Negative ? "_nullneg" : "_nullnonpos";
  name += isRebuild ? "_rebuild" : "_outonly";
  name += fmt::format("_al{}_bv{}_bk{}_w{}_fr{}", spec.alignment, tuning.blockV,
                      tuning.blockK, tuning.numWarps, tuning.flushRows);
  if (tuning.maxRegisters)
    name += fmt::format("_mr{}", tuning.maxRegisters);
  addIf(spec.abi == LaunchAbi::Triton, "_triton");
  return name;
}

DecodeSpec canonical(DecodeSpec spec) {
  if (isPlan(spec))
    return planSpec(spec, spec.family);
  const DecodeSpec usual;
  if (spec.family != Family::Replay)
    spec.hasForceFlush = usual.hasForceFlush;
  if (spec.family == Family::Packed)
    spec.ringType = usual.ringType;
  if (spec.family != Family::Materialize) {
    spec.hasMask = usual.hasMask;
    return spec;
  }
  spec.actType = usual.actType;
  spec.gateType = usual.gateType;
  spec.betaType = usual.betaType;
  spec.paramType = usual.paramType;
  spec.biasType = usual.biasType;
  if (spec.readout == Readout::OutputOnly)
    spec.outType = usual.outType; // else the dot rounds to it
  spec.gate = usual.gate;
  spec.qkL2Norm = usual.qkL2Norm;
  spec.betaRound = usual.betaRound;
  spec.hasSeparateQkv = usual.hasSeparateQkv;
  return spec;
}

namespace {
struct ModelHeads {
  const char *name;
  int keyHeads, valueHeads; ///< Of the whole model; K = V = 128.
  bool isKda = false;
  Gate gate = Gate::Softplus;
};
constexpr ModelHeads models[] = {
    {"qwen3-next", 16, 32},
    {"qwen3.5-27b", 16, 48},
    {"qwen3.5-397b", 16, 64},
    {"kimi-linear", 32, 32, true},
    {"kimi-k3", 96, 96, true, Gate::LowerBound},
    {"ling-flash", 32, 32, true, Gate::LowerBound},
};
} // namespace

Result<DecodeSpec> modelPreset(const std::string &model, int tensorParallel) {
  std::vector<std::string_view> names;
  for (const ModelHeads &entry : models)
    names.push_back(entry.name);
  auto found = std::find(names.begin(), names.end(), model);
  if (found == names.end())
    return Status::invalid(fmt::format("model: '{}' is unknown; allowed are {}",
                                       model, fmt::join(names, ", ")));

  const ModelHeads &heads = models[found - names.begin()];
  std::vector<int> allowed;
  for (int ranks = 1; ranks <= heads.keyHeads; ++ranks)
    if (heads.keyHeads % ranks == 0 && heads.valueHeads % ranks == 0)
      allowed.push_back(ranks);
  if (std::find(allowed.begin(), allowed.end(), tensorParallel) ==
      allowed.end())
    return Status::invalid(fmt::format(
        "tensorParallel: {} does not divide the {} key and {} value heads of "
        "{}; allowed are {}",
        tensorParallel, heads.keyHeads, heads.valueHeads, model,
        fmt::join(allowed, ", ")));

  DecodeSpec spec;
  spec.isKda = heads.isKda;
  spec.gate = heads.gate;
  spec.numKeyHeads = heads.keyHeads / tensorParallel;
  spec.numValueHeads = heads.valueHeads / tensorParallel;
  spec.headDimK = spec.headDimV = 128;
  return spec;
}

} // namespace replayjit::internal
