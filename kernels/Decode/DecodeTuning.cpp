//===- DecodeTuning.cpp - Which variant of a kernel is fastest ------------===//

#include "kernels/Decode/DecodeSpec.h"

#include "kernels/Families.h"

#include <algorithm>
#include <limits>
#include <span>

namespace replayjit::internal {

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
  int stagedK = 0;  ///< Columns per K tile, if they are staged.
  bool splitVectors = false;
};
} // namespace

/// State and ring rows are worth a stage, a token's vectors are not.
constexpr int stageBytes = 2048;

constexpr int64_t anyNumber = std::numeric_limits<int64_t>::max();
// Measured on an H200 with K = V = 128 and HV = 32. Few heads do not fill the
// GPU: smaller blocks shorten the way of one token. Whole heads load the ring,
// q and k once. Half the state's bytes reach that point with fewer heads.
// Stages let more blocks share a multiprocessor, which pays once all of them
// have work; what cannot be staged takes the choice after it.
constexpr BlockChoice fp32Blocks[] = {{32, 32, 4, 144, 2},
                                      {128, 64, 4, 0, 2},
                                      {anyNumber, 32, 2, 168, 4, 128},
                                      {4096, 64, 4, 168, 2},
                                      {anyNumber, 128, 4, 0, 2}};
// Of two bytes a number, instructions bound it more than memory: exact products
// on tensor cores halve them, and a warp by itself never waits for another. 12
// blocks of one share a multiprocessor: that is worth a few spills.
constexpr BlockChoice bf16Blocks[] = {{32, 16, 2, 0, 2},
                                      {128, 32, 2, 168, 0, 128},
                                      {256, 32, 2, 128, 0, 32, true},
                                      {512, 64, 2, 128, 0, 16, true},
                                      {anyNumber, 64, 1, 168, 0, 16, true},
                                      {1024, 64, 4, 168, 2},
                                      {anyNumber, 64, 2, 128, 2, 64},
                                      {anyNumber, 128, 4, 0, 2}};
constexpr BlockChoice fp16Blocks[] = {{32, 16, 2, 0, 2},
                                      {512, 32, 2, 128, 0, 64},
                                      {2048, 64, 2, 168, 0, 32},
                                      {anyNumber, 64, 1, 255, 0, 16, true},
                                      {256, 64, 4, 168, 2},
                                      {2048, 128, 4, 0, 2},
                                      {anyNumber, 64, 2, 144, 2, 64},
                                      {anyNumber, 128, 4, 0, 2}};
// A scan of the gates for each block: larger ones pay sooner. Where the gates
// are sums, their exchange costs a whole head more than it saves.
constexpr BlockChoice kdaBlocks[] = {{32, 32, 4, 0, 2},
                                     {128, 64, 4, 0, 2},
                                     {4096, 64, 4, 168, 2},
                                     {anyNumber, 128, 4, 0, 2}};
// With a raw ring. A stage of the whole K: a flush scans the gates of each
// tile.
constexpr BlockChoice kdaBf16Blocks[] = {{32, 32, 4, 0, 2},
                                         {128, 64, 4, 0, 2},
                                         {512, 64, 4, 168, 2},
                                         {anyNumber, 128, 4, 168, 1, 128},
                                         {anyNumber, 128, 4, 0, 2}};
constexpr BlockChoice kdaFp16Blocks[] = {{32, 32, 4, 0, 2},
                                         {128, 64, 4, 0, 2},
                                         {256, 64, 4, 168, 2},
                                         {anyNumber, 128, 4, 0, 2}};
constexpr BlockChoice prefixBlocks[] = {
    {32, 32, 4, 0, 2}, {128, 64, 4, 0, 2}, {anyNumber, 64, 4, 168, 2}};
// Without a ring a head's rows share q and k alone, and a block of one warp
// never waits for another.
constexpr BlockChoice packedBlocks[] = {{anyNumber, 8, 1, 0, 1}};
constexpr BlockChoice packedHalfBlocks[] = {{128, 16, 4, 0, 1},
                                            {anyNumber, 16, 1, 0, 1}};
// Where a thread holds less, more warps share the rows.
constexpr BlockChoice smallThreadBlocks[] = {{anyNumber, 32, 8, 0, 2}};

static std::span<const BlockChoice> select(bool condition,
                                           std::span<const BlockChoice> yes,
                                           std::span<const BlockChoice> no) {
  return condition ? yes : no;
}

static std::span<const BlockChoice> blocksFor(const DecodeSpec &spec,
                                              bool smallThreads) {
  if (smallThreads)
    return smallThreadBlocks;
  if (spec.ringDepth == 1 && spec.stateType != DataType::F32)
    return packedHalfBlocks;
  if (spec.ringDepth == 1)
    return packedBlocks;
  if (spec.ringFormat == RingFormat::Prefix)
    return prefixBlocks;
  if (spec.isKda && spec.ringFormat != RingFormat::Raw)
    return kdaBlocks;
  if (spec.stateType == DataType::BF16)
    return select(spec.isKda, kdaBf16Blocks, bf16Blocks);
  if (spec.stateType == DataType::F16)
    return select(spec.isKda, kdaFp16Blocks, fp16Blocks);
  return select(spec.isKda, kdaBlocks, fp32Blocks);
}

/// True for what was measured with stages, of which several blocks fit in a
/// multiprocessor's shared memory. A state that is stored to other slots is not
/// staged in parts.
static bool canStage(const DecodeSpec &spec, const Target &target) {
  const FamilyTraits &traits = traitsOf(spec);
  return traits.tokens && traits.rings && target.hasBulkCopy &&
         target.maxSharedBytes > 200 * 1024 && spec.alignment % 16 == 0 &&
         spec.alignment > 0 && spec.headDimK == 128 &&
         spec.headDimV % 128 == 0 && spec.ringDepth <= 16 &&
         spec.ringType == spec.stateType && !spec.hasDstIndices &&
         !spec.hasTrackIndices;
}

static BlockChoice chooseBlock(std::span<const BlockChoice> choices,
                               int64_t heads, bool canStage,
                               bool hasExactProducts) {
  return *std::find_if(
      choices.begin(), choices.end() - 1, [&](const BlockChoice &choice) {
        return heads <= choice.heads && (canStage || !choice.stagedK) &&
               (hasExactProducts || choice.flushRows > 0);
      });
}

DecodeTuning choosePoolTuning(const DecodeSpec &spec, int rows,
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
    // A warp per 16 rows of an MMA fragment; two share them where many channels
    // have gates of their own to hold, and four where threads hold little.
    tuning.blockV = std::clamp(paddedV, minDotWidth, smallThreads ? 32 : 64);
    tuning.blockK = std::clamp(paddedK, minDotWidth, 64);
    const bool hasManyGates = spec.isKda && tuning.blockK == 64;
    tuning.numWarps = tuning.blockV / (smallThreads   ? 4
                                       : hasManyGates ? 8
                                                      : 16);
    const int fragments =
        tuning.blockV * tuning.blockK / (minDotWidth * minDotWidth / 2);
    tuning.numWarps = std::min(tuning.numWarps, fragments);
    return tuning;
  }

  int64_t heads = anyNumber;
  if (rows > 0)
    heads = int64_t(rows) * std::clamp(spec.numValueHeads, 1, maxHeads) *
            ((headDimV + 127) / 128) * 132 / std::max(1, multiprocessors);
  // Exact products were measured on sm_90, for one token a row.
  const bool hasExactProducts =
      target.capability == 90 && !traitsOf(spec).drafts;
  BlockChoice block = chooseBlock(blocksFor(spec, smallThreads), heads,
                                  canStage(spec, target), hasExactProducts);
  tuning.flushRows = std::min(block.flushRows, tuning.flushRows);
  tuning.blockV = std::min(block.blockV, paddedV);
  tuning.numWarps = block.numWarps;
  // The whole K of a row stays in registers, so that a flush need not read the
  // state again; or it lies in a stage.
  tuning.blockK = block.stagedK ? block.stagedK : paddedK;
  while (tuning.blockV * tuning.blockK > mostPerThread * 32 * tuning.numWarps &&
         tuning.blockV > 16)
    tuning.blockV /= 2;
  while (tuning.blockV * tuning.blockK < 32 * tuning.numWarps &&
         tuning.numWarps > 1)
    tuning.numWarps /= 2;
  if (tuning.blockV * tuning.blockK < 32) // only headDimK = 1
    tuning.blockV = 32;
  // A thread that holds more than at K = 128 needs them all.
  if (paddedK <= 128 && tuning.blockV == block.blockV)
    tuning.maxRegisters = block.maxRegisters;
  if (block.stagedK) {
    tuning.stageBytes = stageBytes;
    tuning.splitVectors = block.splitVectors;
  }
  return tuning;
}

DecodeTuning chooseTuning(const DecodeSpec &spec, int rows,
                          const Target &target, int multiprocessors) {
  const auto choose = familyOf(spec.family).chooseTuning;
  return choose ? choose(spec, rows, target, multiprocessors) : DecodeTuning();
}

} // namespace replayjit::internal
