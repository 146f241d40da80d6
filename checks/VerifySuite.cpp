//===- VerifySuite.cpp - Rows with drafts ---------------------------------===//

#include "checks/DecodeSuiteCases.h"

#include <fmt/format.h>

namespace replayjit::internal {

/// Tokens a row, and a ring that they may fill.
static void setTokens(P &p, int tokens, int depth,
                      TokenRows rows = TokenRows::Counted) {
  p.spec.numTokens = tokens;
  p.spec.ringDepth = depth;
  p.spec.tokenRows = rows;
}

/// For every kind of ring.
static constexpr Variation verifyVariations[] = {
    {"base", [](P &) {}},
    {"t1", [](P &p) { setTokens(p, 1, 4, TokenRows::Full); }},
    {"t2-ragged", [](P &p) { setTokens(p, 2, 5, TokenRows::Ragged); }},
    {"t3-full", [](P &p) { setTokens(p, 3, 7, TokenRows::Full); }},
    // No room for the drafts of two launches, and none but for those of one.
    {"t4-l6", [](P &p) { setTokens(p, 4, 6); }},
    {"t4-l4", [](P &p) { setTokens(p, 4, 4, TokenRows::Ragged); }},
    {"t8-l16-ragged", [](P &p) { setTokens(p, 8, 16, TokenRows::Ragged); }},
    {"fp32", [](P &p) { setTypes(p.spec, F32, F32, F32, F32); }},
    {"bf16", [](P &p) { setTypes(p.spec, BF16, BF16, BF16, BF16); }},
    {"fp32-bf16-state", [](P &p) { setTypes(p.spec, F32, F32, BF16, F32); }},
    {"no-force-flush",
     [](P &p) {
       p.spec.hasForceFlush = false;
       p.forcedFlushes = {};
     }},
    {"bad-rows",
     [](P &p) {
       p.batch = 9;
       p.rowSlots = {5, 7, 2, 0, -1, 1, 3, 4, 6};
       p.badCursors = {{2, p.spec.ringDepth - p.spec.numTokens + 1}, {5, -1}};
       p.badBases = {{6, p.spec.ringDepth}};
       p.badCounts = {{7, p.spec.numTokens + 1}, {8, -1}};
       p.layer = 3;
     }},
    {"bad-offsets",
     [](P &p) {
       p.spec.tokenRows = TokenRows::Ragged;
       p.badCounts = {{2, 1000}};
     }},
    {"indices",
     [](P &p) {
       p.spec.indexType = I64;
       p.spec.nullSlot = NullSlot::NonPositive;
       p.spec.hasRingIndices = p.spec.hasDstIndices = true;
       p.rowSlots = {5, 0, 2, 3};
       p.ringSlots = 5;
       p.rowRingSlots = {4, 0, 2, 1};
       p.rowDstSlots = {4, 1, 6, 3};
     }},
    {"separate-qkv-unaligned",
     [](P &p) {
       p.spec.hasSeparateQkv = true;
       setUnaligned(p);
     }},
    {"first-slot", [](P &p) { p.firstSlot = 1'000'000'000; }},
    {"tiles-16-16-w1-f1", [](P &) {}, {16, 16, 1, 1}},
    {"staged", [](P &) {}, {32, 32, 2, 2, 0, 256}},
};

/// Of raw rings alone: value heads a key head, gates, T = 16, real heads.
static constexpr Variation rawVariations[] = {
    {"r3-k60-v100", [](P &p) { setSizes(p.spec, 1, 3, 60, 100, 9); }},
    {"t16-l32",
     [](P &p) {
       setSizes(p.spec, 1, 1, 32, 16, 32);
       setTokens(p, 16, 32);
     }},
    {"k128-v128-t4",
     [](P &p) {
       setSizes(p.spec, 1, 2, 128, 128, 16);
       setTokens(p, 4, 16);
     }},
    {"gate-given", gatesGiven},
    {"beta-twice", [](P &p) { p.spec.beta = Beta::TwiceSigmoid; }},
    {"mixed-gates",
     [](P &p) {
       setTypes(p.spec, F32, F32, F32, F32);
       p.mixedGates = true;
     }},
    {"rebuild", [](P &p) { p.spec.readout = Readout::Rebuild; }},
};

void addVerify(std::vector<DecodeCase> &cases, const Target &target) {
  struct Kind {
    const char *name;
    bool isKda;
    RingFormat format = RingFormat::Raw;
  };
  for (const Kind &kind : {Kind{"gdn", false},
                           {"kda", true},
                           {"prefix", true, RingFormat::Prefix},
                           {"predecayed", true, RingFormat::Predecayed}}) {
    const bool isRaw = kind.format == RingFormat::Raw;
    DecodeProblem problem = baseProblem(Readout::OutputOnly);
    problem.spec.family = Family::Verify;
    problem.spec.isCircular = true;
    problem.forcedFlushes = {{0, 2}, {3, 0}, {4, 0}, {9, 3}};
    problem.steps = 12;
    setSizes(problem.spec, isRaw ? 1 : 2, 2, 32, 48, 8);
    setTokens(problem, 3, 8);
    if (kind.isKda)
      setKda(problem.spec);
    if (!isRaw)
      setBounded(problem, -2.5f); // 32 rows of it are 80
    problem.spec.ringFormat = kind.format;
    auto add = [&](const Variation &variation) {
      addCase(cases, fmt::format("verify-{}-{}", kind.name, variation.name),
              problem, variation, target);
    };
    for (const Variation &variation : verifyVariations)
      add(variation);
    for (const Variation &variation : rawVariations)
      if (isRaw)
        add(variation);
    // What rounds must not add up while drafts come and go.
    add({"long", [](P &p) {
           setSizes(p.spec, 1, 1, 16, 16, 8);
           p.steps = 600;
         }});
  }
}

} // namespace replayjit::internal
