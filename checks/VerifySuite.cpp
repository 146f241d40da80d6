//===- VerifySuite.cpp - Several tokens of a row --------------------------===//

#include "checks/DecodeSuiteCases.h"

#include <fmt/format.h>

namespace replayjit::internal {

/// For GDN and each ring format of KDA.
static constexpr Variation common[] = {
    {"base", [](P &) {}},
    {"t1", [](P &p) { p.spec.numTokens = 1; }},
    {"t3-counted",
     [](P &p) {
       p.spec.numTokens = 3;
       p.spec.tokenRows = TokenRows::Counted;
     }},
    {"ragged", [](P &p) { p.spec.tokenRows = TokenRows::Ragged; }},
    // A ring that other launches must fold; one that holds just two.
    {"l4", [](P &p) { p.spec.ringDepth = 4; }},
    {"l6-ragged",
     [](P &p) {
       p.spec.ringDepth = 6;
       p.spec.tokenRows = TokenRows::Ragged;
     }},
    {"l8", [](P &p) { p.spec.ringDepth = 8; }},
    {"fp32", [](P &p) { setTypes(p.spec, F32, F32, F32, F32); }},
    {"bf16-counted",
     [](P &p) {
       setTypes(p.spec, BF16, BF16, BF16, BF16);
       p.spec.tokenRows = TokenRows::Counted;
     }},
    {"mixed-gates",
     [](P &p) {
       setTypes(p.spec, F32, F32, F32, F32);
       p.mixedGates = true;
     }},
    {"k60-v100-ragged",
     [](P &p) {
       setSizes(p.spec, 2, 2, 60, 100, 11);
       p.spec.tokenRows = TokenRows::Ragged;
       p.poison = Poison::Large;
     }},
    {"unaligned",
     [](P &p) {
       setSizes(p.spec, 1, 1, 60, 60, 11);
       setUnaligned(p);
     }},
    {"no-force-flush",
     [](P &p) {
       p.spec.hasForceFlush = false;
       p.forcedFlushes = {};
     }},
    {"indices",
     [](P &p) {
       p.spec.hasRingIndices = p.spec.hasDstIndices = true;
       p.spec.hasSeparateQkv = true;
       p.spec.tokenRows = TokenRows::Counted;
       p.ringSlots = 5;
       p.rowRingSlots = {1, 0, 4, 2};
       p.rowDstSlots = {4, -7, 6, 0}; // row 1 is padding, row 3 stays in place
     }},
    {"padding-rows",
     [](P &p) {
       p.spec.indexType = I64;
       p.spec.tokenRows = TokenRows::Ragged;
       p.batch = 7;
       p.rowSlots = {5, -1, 7, 2, 1, 3, 0};
       p.badCursors = {{4, 8}, {5, -1}}; // beyond L-T
       p.badBases = {{4, 11}, {6, -1}};
       p.layer = 68;
     }},
};

/// For GDN alone.
static constexpr Variation headGates[] = {
    {"t8-l16",
     [](P &p) {
       setSizes(p.spec, 1, 2, 32, 32, 16);
       p.spec.numTokens = 8;
       p.spec.tokenRows = TokenRows::Ragged;
     }},
    {"t16-l33",
     [](P &p) {
       setSizes(p.spec, 1, 2, 16, 32, 33);
       p.spec.numTokens = 16;
       p.spec.tokenRows = TokenRows::Counted;
       p.steps = 8;
       p.forcedFlushes = {{3, 0}};
     }},
    {"fp16", [](P &p) { setTypes(p.spec, F16, F16, F16, F16); }},
    {"k128-v128", [](P &p) { setSizes(p.spec, 1, 2, 128, 128, 16); }},
    {"gate-given", gatesGiven},
    {"beta-twice", [](P &p) { p.spec.beta = Beta::TwiceSigmoid; }},
    {"beta-round", [](P &p) { p.spec.betaRound = true; }},
    {"no-l2norm", [](P &p) { p.spec.qkL2Norm = false; }},
    {"null-nonpositive",
     [](P &p) {
       p.spec.nullSlot = NullSlot::NonPositive;
       p.rowSlots = {5, 0, 2, -3};
     }},
    {"first-slot", [](P &p) { p.firstSlot = 1'000'000'000; }},
    {"tiles-16-32-w1-f1", [](P &) {}, {16, 32, 1, 1}},
    {"tiles-64-16-w4-f8", [](P &) {}, {64, 16, 4, 8}},
    {"rebuild", [](P &p) { p.spec.readout = Readout::Rebuild; }},
};

static DecodeProblem verifyProblem() {
  DecodeProblem problem = baseProblem(Readout::OutputOnly);
  problem.spec.family = Family::Verify;
  problem.spec.isCircular = true;
  problem.spec.numTokens = 4;
  problem.steps = 16;
  problem.forcedFlushes = {{0, 2}, {3, 0}, {4, 0}, {9, 2}, {15, 3}};
  setSizes(problem.spec, 2, 2, 32, 64, 11);
  return problem;
}

void addVerify(std::vector<DecodeCase> &cases, const Target &target) {
  DecodeProblem problem = verifyProblem();
  for (const Variation &variation : common)
    addCase(cases, fmt::format("verify-gdn-{}", variation.name), problem,
            variation, target);
  for (const Variation &variation : headGates)
    addCase(cases, fmt::format("verify-gdn-{}", variation.name), problem,
            variation, target);
  for (RingFormat format :
       {RingFormat::Raw, RingFormat::Prefix, RingFormat::Predecayed}) {
    problem = verifyProblem();
    setBounded(problem, -4);
    problem.spec.ringFormat = format;
    for (const Variation &variation : common)
      addCase(cases,
              fmt::format("verify-kda-{}-{}", wordOf(format), variation.name),
              problem, variation, target);
  }
}

} // namespace replayjit::internal
