//===- DecodeSpec.cpp - Rules, names and presets of decode kernels --------===//

#include "kernels/Decode/DecodeSpec.h"

#include <algorithm>
#include <bit>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <initializer_list>
#include <vector>

namespace replayjit {

//===----------------------------------------------------------------------===//
// validate
//===----------------------------------------------------------------------===//

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
  if (spec.isKda)
    return Status::error(StatusCode::Unsupported,
                         "isKda: KDA is not available yet; use GDN");
  if (Status status = firstError({
          checkRange("numKeyHeads", spec.numKeyHeads, 1, 1024),
          checkRange("numValueHeads", spec.numValueHeads, 1, 1024),
          checkRange("headDimK", spec.headDimK, 1, 256),
          checkRange("headDimV", spec.headDimV, 1, 256),
          checkRange("ringDepth", spec.ringDepth, 1, 64),
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

DecodeTuning chooseTuning(const DecodeSpec &spec, int rows,
                          int multiprocessors) {
  int paddedK = nextPowerOfTwo(spec.headDimK);
  int paddedV = std::max(16, nextPowerOfTwo(spec.headDimV));
  bool rebuild = spec.readout == Readout::Rebuild;

  // Whole heads (blockV 128) load the ring, q and k once, and are faster as
  // soon as they fill the GPU. A small batch does not: there more, smaller
  // blocks shorten the way of one token. Measured on an H200.
  int64_t wholeHeads =
      int64_t(rows) * spec.numValueHeads * ((spec.headDimV + 127) / 128);
  bool fillsGpu = rows == 0 || wholeHeads >= 4 * int64_t(multiprocessors);

  DecodeTuning tuning;
  tuning.flushRows = std::min(4, nextPowerOfTwo(spec.ringDepth));
  if (rebuild) {
    // One warp per 16 rows of an MMA fragment.
    tuning.blockV = std::min(fillsGpu ? 64 : 32, paddedV);
    tuning.blockK = std::clamp(paddedK, 16, 64);
    tuning.numWarps = tuning.blockV / 16;
    return tuning;
  }
  // The whole K of a row stays in registers, so that a flush need not read the
  // state again; 128 floats of it per thread is what fits.
  tuning.blockV = std::min(fillsGpu ? 128 : 32, paddedV);
  tuning.blockK = paddedK;
  tuning.numWarps = 4;
  while (tuning.blockV * paddedK > 128 * 32 * tuning.numWarps)
    tuning.blockV /= 2;
  while (tuning.blockV * paddedK < 32 * tuning.numWarps && tuning.numWarps > 1)
    tuning.numWarps /= 2;
  if (tuning.blockV * paddedK < 32) // only headDimK = 1
    tuning.blockV = 32;
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
  name += spec.qkL2Norm ? "_l2norm" : "_nonorm";
  name += spec.hasForceFlush ? "_force" : "_noforce";
  name += spec.nullSlot == NullSlot::Negative ? "_nullneg" : "_nullnonpos";
  name += spec.readout == Readout::OutputOnly ? "_outonly" : "_rebuild";
  name += fmt::format("_al{}_bv{}_bk{}_w{}_fr{}", spec.alignment, tuning.blockV,
                      tuning.blockK, tuning.numWarps, tuning.flushRows);
  name += tuning.flushPrecision == FlushPrecision::Ieee ? "_ieee" : "_tf32x3";
  return name;
}

namespace {
struct ModelHeads {
  const char *name;
  int keyHeads, valueHeads; ///< Of the whole model; K = V = 128.
};
constexpr ModelHeads models[] = {
    {"qwen3-next", 16, 32},
    {"qwen3.5-27b", 16, 48},
    {"qwen3.5-397b", 16, 64},
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
  spec.numKeyHeads = heads.keyHeads / tensorParallel;
  spec.numValueHeads = heads.valueHeads / tensorParallel;
  spec.headDimK = spec.headDimV = 128;
  return spec;
}

} // namespace replayjit
