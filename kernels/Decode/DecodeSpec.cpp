//===- DecodeSpec.cpp - Rules, names and presets of decode kernels --------===//

#include "kernels/Decode/DecodeSpec.h"

#include <algorithm>
#include <bit>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <initializer_list>
#include <limits>
#include <span>
#include <vector>

namespace replayjit {

//===----------------------------------------------------------------------===//
// validate
//===----------------------------------------------------------------------===//

static constexpr int maxHeads = 1024;
static constexpr int maxHeadDim = 256;
static constexpr int maxRingDepth = 64;
/// A tile row narrower than this has no tensor-core fragment.
static constexpr int minDotWidth = 16;
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

static Status validateSpec(const DecodeSpec &spec) {
  using enum DataType;
  if (Status status = firstError({
          checkRange("numKeyHeads", spec.numKeyHeads, 1, maxHeads),
          checkRange("numValueHeads", spec.numValueHeads, 1, maxHeads),
          checkRange("headDimK", spec.headDimK, 1, maxHeadDim),
          checkRange("headDimV", spec.headDimV, 1, maxHeadDim),
          checkRange("ringDepth", spec.ringDepth, 1, maxRingDepth),
          checkType("actType", spec.actType, {F32, BF16, F16}),
          checkType("gateType", spec.gateType, {spec.actType, F32}),
          checkType("paramType", spec.paramType, {F32, BF16}),
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
  if (spec.gate == Gate::LowerBound && !spec.isKda)
    return Status::invalid("gate: lowerBound is not allowed for GDN; it must "
                           "be softplus");
  if (spec.readout == Readout::Rebuild && spec.isKda)
    return Status::error(StatusCode::Unsupported,
                         "readout: rebuild is not available for KDA yet; use "
                         "outputOnly");
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
          checkOneOf("blockV", tuning.blockV, {16, 32, 64, 128, 256}),
          checkOneOf("numWarps", tuning.numWarps, {1, 2, 4, 8}),
          checkOneOf("flushRows", tuning.flushRows, {1, 2, 4, 8}),
      });
      !status)
    return status;

  int paddedK = nextPowerOfTwo(spec.headDimK);
  bool usesDot = spec.readout == Readout::Rebuild ||
                 tuning.flushPrecision == FlushPrecision::Tf32x3;
  if (usesDot && paddedK < minDotWidth)
    return Status::invalid(
        fmt::format("flushPrecision: tf32x3 is not allowed for headDimK = {}; "
                    "it needs {} or more, use ieee",
                    spec.headDimK, minDotWidth / 2 + 1));
  int lowest = std::min(minDotWidth, paddedK);
  if (!isPowerOfTwo(tuning.blockK) || tuning.blockK < lowest ||
      tuning.blockK > paddedK)
    return Status::invalid(
        fmt::format("blockK: {} is not allowed; it must be a power of two "
                    "from {} to {} for headDimK = {}",
                    tuning.blockK, lowest, paddedK, spec.headDimK));

  int tile = tuning.blockV * tuning.blockK;
  int threads = 32 * tuning.numWarps;
  if (tile < threads)
    return Status::invalid(
        fmt::format("numWarps: {} is not allowed for a tile of blockV = {} by "
                    "blockK = {}; every thread needs an element, so it must "
                    "be at most {}",
                    tuning.numWarps, tuning.blockV, tuning.blockK, tile / 32));
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
  if (Status status = validateSpec(spec); !status)
    return status;
  if (Status status = validateTuning(spec, tuning); !status)
    return status;
  if (tuning.maxRegisters != 0 &&
      (tuning.maxRegisters < 32 || tuning.maxRegisters > 255))
    return Status::invalid(fmt::format(
        "maxRegisters: {} is not allowed; it must be 0 or from 32 to 255",
        tuning.maxRegisters));
  if (tuning.prefetchDistance < 0 || tuning.prefetchDistance > (1 << 20))
    return Status::invalid(fmt::format(
        "prefetchDistance: {} is not allowed; it must be from 0 to {}",
        tuning.prefetchDistance, 1 << 20));
  if (tuning.prefetchDistance > 0 && !target.hasBulkCopy)
    return Status::error(
        StatusCode::Unsupported,
        fmt::format("prefetchDistance: {} is not allowed for {}; bulk prefetch "
                    "needs sm_90 or later, use 0",
                    tuning.prefetchDistance, target.chip));
  bool usesDot = spec.readout == Readout::Rebuild ||
                 tuning.flushPrecision == FlushPrecision::Tf32x3;
  if (usesDot && target.capability < 80)
    return Status::error(
        StatusCode::Unsupported,
        fmt::format("target: {} has no TF32 or bf16 tensor core, which the "
                    "rebuild readout and the tf32x3 flush need; allowed are "
                    "sm_80 and later",
                    target.chip));
  return Status::ok();
}

//===----------------------------------------------------------------------===//
// chooseTuning
//===----------------------------------------------------------------------===//

/// State elements per thread that the registers hold without spilling. Before
/// sm_90 ptxas keeps all of a block's loads in flight in registers of their
/// own.
static int elementsPerThread(const Target &target) {
  return target.capability >= 90 ? 128 : 16;
}

namespace {
/// A block of the output-only kernel for up to `heads` value heads at once.
struct BlockChoice {
  int64_t heads; ///< On a GPU with 132 SMs.
  int blockV, numWarps;
  int maxRegisters; ///< So that more blocks share a multiprocessor; K = 128.
  int flushRows;    ///< Fewer are less code to fetch, more are fewer trips.
};
} // namespace

constexpr int64_t anyNumber = std::numeric_limits<int64_t>::max();
// Measured on an H200 with K = V = 128 and HV = 32. Few heads do not fill the
// GPU: smaller blocks shorten the way of one token. Whole heads load the ring,
// q and k once. Half the state's bytes reach that point with fewer heads.
constexpr BlockChoice fp32Blocks[] = {
    {64, 32, 4, 144, 2}, {4096, 64, 4, 168, 2}, {anyNumber, 128, 4, 0, 4}};
constexpr BlockChoice halfBlocks[] = {
    {64, 32, 4, 144, 2}, {256, 64, 4, 168, 2}, {anyNumber, 128, 4, 0, 4}};
// Where a thread holds less, more warps share the rows.
constexpr BlockChoice smallThreadBlocks[] = {{anyNumber, 32, 8, 0, 4}};

static BlockChoice chooseBlock(std::span<const BlockChoice> choices,
                               int64_t heads) {
  return *std::find_if(
      choices.begin(), choices.end() - 1,
      [heads](const BlockChoice &choice) { return heads <= choice.heads; });
}

DecodeTuning chooseTuning(const DecodeSpec &spec, int rows,
                          const Target &target, int multiprocessors) {
  // Sizes that are not legal count as the nearest that are.
  int paddedK = nextPowerOfTwo(std::clamp(spec.headDimK, 1, maxHeadDim));
  int headDimV = std::clamp(spec.headDimV, 1, maxHeadDim);
  int paddedV = std::max(16, nextPowerOfTwo(headDimV));
  int mostPerThread = elementsPerThread(target);
  bool smallThreads = mostPerThread < 128;

  DecodeTuning tuning;
  tuning.flushRows =
      std::min(4, nextPowerOfTwo(std::clamp(spec.ringDepth, 1, maxRingDepth)));
  if (spec.readout == Readout::Rebuild) {
    // A warp per 16 rows of an MMA fragment; four share them where threads hold
    // little.
    tuning.blockV = std::min(smallThreads ? 32 : 64, paddedV);
    tuning.blockK = std::clamp(paddedK, minDotWidth, 64);
    tuning.numWarps = tuning.blockV / (smallThreads ? 4 : 16);
    return tuning;
  }

  int64_t heads = anyNumber;
  if (rows > 0)
    heads = int64_t(rows) * std::clamp(spec.numValueHeads, 1, maxHeads) *
            ((headDimV + 127) / 128) * 132 / std::max(1, multiprocessors);
  std::span<const BlockChoice> blocks = fp32Blocks;
  if (smallThreads)
    blocks = smallThreadBlocks;
  else if (spec.stateType != DataType::F32)
    blocks = halfBlocks;
  BlockChoice block = chooseBlock(blocks, heads);
  tuning.flushRows = std::min(block.flushRows, tuning.flushRows);
  tuning.blockV = std::min(block.blockV, paddedV);
  tuning.numWarps = block.numWarps;
  // The whole K of a row stays in registers, so that a flush need not read the
  // state again.
  tuning.blockK = paddedK;
  while (tuning.blockV * paddedK > mostPerThread * 32 * tuning.numWarps &&
         tuning.blockV > 16)
    tuning.blockV /= 2;
  while (tuning.blockV * paddedK < 32 * tuning.numWarps && tuning.numWarps > 1)
    tuning.numWarps /= 2;
  if (tuning.blockV * paddedK < 32) // only headDimK = 1
    tuning.blockV = 32;
  // A thread that holds more than at K = 128, or KDA's gates, needs them all.
  if (!spec.isKda && paddedK <= 128 && tuning.blockV == block.blockV)
    tuning.maxRegisters = block.maxRegisters;
  return tuning;
}

//===----------------------------------------------------------------------===//
// Names and presets
//===----------------------------------------------------------------------===//

std::string kernelName(const DecodeSpec &spec, const DecodeTuning &tuning) {
  std::string name =
      fmt::format("{}_decode_h{}_hv{}_k{}_v{}_l{}", spec.isKda ? "kda" : "gdn",
                  spec.numKeyHeads, spec.numValueHeads, spec.headDimK,
                  spec.headDimV, spec.ringDepth);
  name += fmt::format("_act{}_gate{}_param{}_out{}_state{}_ring{}_idx{}",
                      toString(spec.actType), toString(spec.gateType),
                      toString(spec.paramType), toString(spec.outType),
                      toString(spec.stateType), toString(spec.ringType),
                      8 * byteSize(spec.indexType));
  if (spec.gate == Gate::LowerBound)
    name += "_lowerbound";
  if (spec.betaRound)
    name += "_betaround";
  name += spec.qkL2Norm ? "_l2norm" : "_nonorm";
  name += spec.hasForceFlush ? "_force" : "_noforce";
  name += spec.nullSlot == NullSlot::Negative ? "_nullneg" : "_nullnonpos";
  name += spec.readout == Readout::OutputOnly ? "_outonly" : "_rebuild";
  name += fmt::format("_al{}_bv{}_bk{}_w{}_fr{}", spec.alignment, tuning.blockV,
                      tuning.blockK, tuning.numWarps, tuning.flushRows);
  name += tuning.flushPrecision == FlushPrecision::Ieee ? "_ieee" : "_tf32x3";
  if (tuning.maxRegisters)
    name += fmt::format("_mr{}", tuning.maxRegisters);
  if (tuning.prefetchDistance)
    name += fmt::format("_pf{}", tuning.prefetchDistance);
  return name;
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

} // namespace replayjit
