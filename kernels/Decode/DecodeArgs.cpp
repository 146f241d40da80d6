//===- DecodeArgs.cpp - Which arguments are legal -------------------------===//

#include "kernels/Decode/DecodeArgs.h"

#include "kernels/Decode/TritonArgs.h"
#include "kernels/Families.h"

#include <cmath>
#include <fmt/format.h>
#include <limits>

namespace replayjit::internal {

int tokensPerRow(const DecodeSpec &spec) {
  return traitsOf(spec).drafts ? spec.numTokens : 1;
}

TokenRows tokenRowsOf(const DecodeSpec &spec) {
  return traitsOf(spec).drafts ? spec.tokenRows : TokenRows::Full;
}

bool flushes(const DecodeSpec &spec, RingCursor cursor, bool forced) {
  const int L = spec.ringDepth;
  if (!traitsOf(spec).drafts)
    return forced || cursor.writePos == L - 1;
  return cursor.writePos > 0 &&
         (forced || cursor.writePos + 2 * spec.numTokens > L);
}

RingCursor acceptedCursor(const DecodeSpec &spec, RingCursor cursor,
                          bool forced, int accepted) {
  if (!flushes(spec, cursor, forced))
    return {cursor.writePos + accepted, cursor.base};
  return {accepted, (cursor.base + cursor.writePos) % spec.ringDepth};
}

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
  // The last row of a ring is left to drafts alone.
  const bool fills = traitsOf(spec).drafts;
  const int steps = fills ? spec.ringDepth : spec.ringDepth - 1;
  if (spec.ringFormat == RingFormat::Predecayed &&
      steps * -double(lowerBound) > mostDecay)
    return Status::invalid(fmt::format(
        "lowerBound: {} is not allowed with a predecayed ring of ringDepth = "
        "{}; inverse-prefix scaling is unsafe unless {} |lowerBound| is at "
        "most "
        "{}, so it must be {} or more",
        lowerBound, spec.ringDepth, fills ? "ringDepth" : "(ringDepth - 1)",
        mostDecay,
        -std::floor(1000 * mostDecay / steps) / 1000)); // rounded towards 0
  // Of two infinite sums of gates the difference would be NaN.
  constexpr double mostSum = std::numeric_limits<float>::max();
  if (spec.ringFormat == RingFormat::Prefix &&
      spec.ringDepth * -double(lowerBound) > mostSum)
    return Status::invalid(fmt::format(
        "lowerBound: {} is not allowed with a prefix ring of ringDepth = {}; "
        "ringDepth |lowerBound| must be a number of fp32",
        lowerBound, spec.ringDepth));
  return Status::ok();
}

Status validateStepLimits(const DecodeSpec &spec, float stepMin,
                          float stepMax) {
  if (!spec.hasStepLimits)
    return Status::ok();
  if (!(stepMin >= 0 && std::isfinite(stepMin)))
    return Status::invalid(fmt::format(
        "stepMin: {} is not allowed; it must be finite, 0 or more", stepMin));
  if (!(stepMax >= stepMin))
    return Status::invalid(
        fmt::format("stepMax: {} is not allowed; it must be stepMin = {} or "
                    "more",
                    stepMax, stepMin));
  return Status::ok();
}

ReplayLayer layerOf(const DecodeArgs &args) {
  ReplayLayer layer;
  for (const Argument &argument : layerArguments())
    memberOf(argument, &layer) =
        memberOf(find(decodeArguments(), argument.name), &args);
  return layer;
}

void setLayer(DecodeArgs &args, const ReplayLayer &layer) {
  for (const Argument &argument : layerArguments())
    memberOf(find(decodeArguments(), argument.name), &args) =
        memberOf(argument, &layer);
}

//===----------------------------------------------------------------------===//
// What is legal
//===----------------------------------------------------------------------===//

Status validateLayer(const DecodeSpec &spec, const ReplayLayer &layer) {
  const ArgumentRules rules(spec, layerArguments());
  const ArgumentValues values{rules, &layer};
  if (Status status = checkPointers(values); !status)
    return status;
  return checkStrides(values, /*hasRows=*/false);
}

/// Of LaunchAbi::Triton: what its kernels are compiled for.
static Status checkTritonArgs(const DecodeSpec &spec, const DecodeArgs &args) {
  for (const Argument &argument : decodeArguments()) {
    if (argument.kind != Argument::Kind::Stride || !argument.isThere(spec))
      continue;
    const Argument &pointer = decodeArguments()[argument.pointer];
    const int64_t dense = innerElements(spec, pointer);
    const int64_t value = int64_t(memberOf(argument, &args));
    // The stride of a single row is never used.
    if (value != dense && (args.batch > 1 || !argument.isOfRows))
      return Status::invalid(
          fmt::format("{}: {} is not allowed with abi triton, whose kernel is "
                      "compiled for {}",
                      argument.name, value, dense));
  }
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

Status
checkOwnSlots(int32_t rows,
              std::initializer_list<std::pair<const char *, int64_t>> strides) {
  for (auto [name, stride] : strides)
    if (rows > 1 && stride == 0)
      return Status::invalid(
          fmt::format("{}: 0 is not allowed with {} rows; it gives all of them "
                      "one slot, which they would write at once",
                      name, rows));
  return Status::ok();
}

/// Rows may read one state, and forks do, where they write no part of it.
static Status checkOwnSlots(const DecodeSpec &spec, const DecodeArgs &args) {
  const bool hasRing = spec.ringDepth > 1;
  const bool ownsState =
      !spec.hasDstIndices || (hasRing && !spec.hasRingIndices);
  auto strideIf = [](bool counts, int64_t stride) {
    return counts ? stride : 1;
  };
  return checkOwnSlots(
      args.batch,
      {{"stateIndexStride", strideIf(ownsState, args.stateIndexStride)},
       {"ringIndexStride",
        strideIf(hasRing && spec.hasRingIndices, args.ringIndexStride)},
       {"dstIndexStride", strideIf(spec.hasDstIndices, args.dstIndexStride)},
       {"trackIndexStride",
        strideIf(spec.hasTrackIndices, args.trackIndexStride)}});
}

Status validateArgs(const LaunchRules &rules, const DecodeArgs &args) {
  const DecodeSpec &spec = rules.spec;
  const ArgumentValues values{rules.tables[0], &args};
  if (Status status = checkCounts(values); !status)
    return status;
  if (!std::isfinite(args.scale))
    return Status::invalid(
        fmt::format("scale: {} is not allowed; it must be finite", args.scale));
  if (Status status = validateLowerBound(spec, args.lowerBound); !status)
    return status;
  if (Status status = validateStepLimits(spec, args.stepMin, args.stepMax);
      !status)
    return status;
  if (args.batch == 0)
    return Status::ok();
  if (Status status = checkPointers(values); !status)
    return status;
  if (spec.abi == LaunchAbi::Triton)
    if (Status status = checkTritonArgs(spec, args); !status)
      return status;
  const bool hasRows = args.batch > 1 || tokensPerRow(spec) > 1;
  if (Status status = checkStrides(values, hasRows); !status)
    return status;
  return checkOwnSlots(spec, args);
}

//===----------------------------------------------------------------------===//
// The pointers by name
//===----------------------------------------------------------------------===//

std::vector<NamedAddress> addressesOf(const LaunchRules &rules,
                                      const DecodeArgs &args) {
  std::vector<NamedAddress> all;
  if (args.batch > 0)
    appendAddresses({rules.tables[0], &args}, all);
  return all;
}

std::vector<Parameter> decodeParameters(const DecodeSpec &spec) {
  std::vector<Parameter> all;
  appendParameters(all, spec.abi == LaunchAbi::Triton ? tritonArguments()
                                                      : decodeArguments());
  return all;
}

} // namespace replayjit::internal
