//===- DecodeSuiteOperators.cpp - Families, ring formats, indices ---------===//

#include "checks/DecodeSuiteCases.h"

#include <fmt/format.h>

#include <iterator>
#include <span>
#include <string_view>

namespace replayjit::internal {

//===----------------------------------------------------------------------===//
// Programmatic launches
//===----------------------------------------------------------------------===//

static constexpr Variation programmaticVariations[] = {
    {"late",
     [](P &p) { p.spec.programmaticLaunch = ProgrammaticLaunch::Late; }},
    {"early", // with rows that are padding
     [](P &p) {
       p.spec.programmaticLaunch = ProgrammaticLaunch::Early;
       p.rowSlots = {5, -1, 2, 1 << 20};
     }},
    {"all-dependent",
     [](P &p) {
       p.spec.programmaticLaunch = ProgrammaticLaunch::Late;
       p.spec.dependents = Dependents::All;
     }},
};

/// Those of `problem`, where there are such launches.
static void addProgrammatic(std::vector<DecodeCase> &cases,
                            const std::string &name,
                            const DecodeProblem &problem,
                            const Target &target) {
  if (target.capability < 90)
    return;
  for (const Variation &variation : programmaticVariations)
    addCase(cases, fmt::format("{}-{}", name, variation.name), problem,
            variation, target);
}

//===----------------------------------------------------------------------===//
// Packed decode
//===----------------------------------------------------------------------===//

/// For GDN and KDA.
static constexpr Variation packedVariations[] = {
    {"base", [](P &) {}},
    {"fp32", [](P &p) { setTypes(p.spec, F32, F32, F32, F32); }},
    {"bf16", [](P &p) { setTypes(p.spec, BF16, BF16, BF16, F32); }},
    {"fp16", [](P &p) { setTypes(p.spec, F16, F16, F16, F32); }},
    {"bf16-out-fp32", [](P &p) { setTypes(p.spec, BF16, F32, F32, F32); }},
    {"gate-fp32", gatesFp32},
    {"beta-fp32-bias-bf16", betaFp32},
    {"gate-fp32-param-bf16", gateFp32},
    {"gate-fp16", gatesFp16},
    {"gate-given", gatesGiven},
    {"beta-twice", [](P &p) { p.spec.beta = Beta::TwiceSigmoid; }},
    {"k64-v128", [](P &p) { setSizes(p.spec, 1, 1, 64, 128, 1); }},
    {"k128-v64-r3", [](P &p) { setSizes(p.spec, 2, 6, 128, 64, 1); }},
    {"k96-v80", [](P &p) { setSizes(p.spec, 1, 2, 96, 80, 1); }},
    {"k60-v100",
     [](P &p) {
       setSizes(p.spec, 1, 2, 60, 100, 1);
       p.poison = Poison::Large;
     }},
    {"k1-v1", [](P &p) { setSizes(p.spec, 1, 3, 1, 1, 1); }},
    {"k128-v128", [](P &p) { setSizes(p.spec, 1, 1, 128, 128, 1); }},
    {"unaligned",
     [](P &p) {
       setSizes(p.spec, 1, 2, 60, 60, 1);
       setUnaligned(p);
     }},
    {"beta-round", [](P &p) { p.spec.betaRound = true; }},
    {"no-l2norm", [](P &p) { p.spec.qkL2Norm = false; }},
    {"padding-rows",
     [](P &p) {
       p.spec.indexType = I64;
       p.spec.nullSlot = NullSlot::NonPositive;
       p.batch = 6;
       p.rowSlots = {5, 0, 7, 2, int64_t(1) << 40, -3};
       p.layer = 4;
     }},
    {"separate-qkv",
     [](P &p) {
       setTypes(p.spec, F16, F16, F32, F32);
       p.spec.hasSeparateQkv = true;
     }},
    {"dst",
     [](P &p) {
       p.spec.hasDstIndices = true;
       p.rowDstSlots = {4, 7, 2, 8}; // the last row: too large
     }},
    {"track",
     [](P &p) {
       p.spec.hasTrackIndices = true;
       p.tracks = {{0, 0, 6}, {2, 2, 1}, {3, 0, 3}, {3, 3, 7}, {5, 3, 1}};
     }},
    {"first-slot", [](P &p) { p.firstSlot = 1'000'000'000; }},
};

void addPacked(std::vector<DecodeCase> &cases, const Target &target) {
  for (bool isKda : {false, true})
    for (const Variation &variation : packedVariations) {
      DecodeProblem problem = baseProblem(Readout::OutputOnly);
      problem.spec.family = Family::Packed;
      problem.spec.hasForceFlush = false;
      problem.forcedFlushes = {};
      problem.steps = 8;
      setSizes(problem.spec, 1, 2, 64, 32, 1);
      if (isKda)
        setKda(problem.spec);
      addCase(
          cases,
          fmt::format("packed-{}-{}", isKda ? "kda" : "gdn", variation.name),
          problem, variation, target);
    }
  const Variation bounded = {"", [](P &p) {
                               p.spec.gate = Gate::LowerBound;
                               p.lowerBound = -1.5f;
                             }};
  DecodeProblem problem = cases.back().problem;
  problem.firstSlot = 0;
  for (bool isKda : {false, true}) {
    problem.spec.isKda = isKda;
    const std::string kind = fmt::format("packed-{}", isKda ? "kda" : "gdn");
    addCase(cases, kind + "-bounded", problem, bounded, target);
    addProgrammatic(cases, kind, problem, target);
  }
}

//===----------------------------------------------------------------------===//
// Ring formats
//===----------------------------------------------------------------------===//

static void setFormat(P &p, RingFormat format, bool circular) {
  setBounded(p);
  p.spec.ringFormat = format;
  p.spec.isCircular = circular;
}

namespace {

struct Format {
  const char *name;
  RingFormat format;
  bool circular;
};

} // namespace

static constexpr Format formats[] = {
    {"prefix", RingFormat::Prefix, false},
    {"predecayed", RingFormat::Predecayed, false},
    {"prefix-circular", RingFormat::Prefix, true},
    {"predecayed-circular", RingFormat::Predecayed, true},
};

/// For each of the formats. The gates may reach their bound in most rows: the
/// decays of a predecayed ring of 16 rows then span 32 powers of ten.
static constexpr Variation formatVariations[] = {
    {"base", [](P &) {}},
    {"l2", [](P &p) { p.spec.ringDepth = 2; }},
    {"l3", [](P &p) { p.spec.ringDepth = 3; }},
    {"l8-fp32",
     [](P &p) {
       setTypes(p.spec, F32, F32, F32, F32);
       p.spec.ringDepth = 8;
     }},
    {"l16-fp32-large-gates",
     [](P &p) {
       setTypes(p.spec, F32, F32, F32, F32);
       p.spec.ringDepth = 16;
       p.mixedGates = true;
     }},
    {"l16-ring-bf16",
     [](P &p) {
       p.spec.ringType = BF16;
       p.spec.ringDepth = 16;
       p.mixedGates = true;
     }},
    {"ring-bf16", [](P &p) { setTypes(p.spec, BF16, BF16, F32, BF16); }},
    {"bf16", [](P &p) { setTypes(p.spec, BF16, BF16, BF16, BF16); }},
    {"state-fp16", [](P &p) { setTypes(p.spec, F16, F16, F16, F32); }},
    {"k96-v80", [](P &p) { setSizes(p.spec, 1, 1, 96, 80, 4); }},
    {"k60-v100",
     [](P &p) {
       setSizes(p.spec, 2, 2, 60, 100, 4);
       p.poison = Poison::Large;
     }},
    {"k128-v128", [](P &p) { setSizes(p.spec, 1, 1, 128, 128, 4); }},
    {"tiles-16-16-w1-f1", [](P &) {}, {16, 16, 1, 1}},
    {"rebuild", [](P &p) { p.spec.readout = Readout::Rebuild; }},
    {"unaligned",
     [](P &p) {
       setSizes(p.spec, 1, 1, 60, 60, 4);
       setUnaligned(p);
     }},
    {"padding-rows",
     [](P &p) {
       p.spec.indexType = I64;
       p.batch = 6;
       p.rowSlots = {5, -1, 7, 2, 1, 3};
       p.badCursors = {{4, 4}, {5, -1}};
       if (p.spec.isCircular)
         p.badBases = {{4, 9}, {0, -1}};
     }},
    {"no-force-flush",
     [](P &p) {
       p.spec.hasForceFlush = false;
       p.forcedFlushes = {};
     }},
};

void addFormats(std::vector<DecodeCase> &cases, const Target &target) {
  for (const Format &format : formats) {
    DecodeProblem problem = baseProblem(Readout::OutputOnly);
    problem.steps = 20;
    // The first and the last step, mid ring, and at a full ring.
    problem.forcedFlushes = {{0, 2}, {3, 0}, {4, 0}, {9, 2}, {17, 3}, {19, 0}};
    setSizes(problem.spec, 2, 2, 32, 64, 4);
    setFormat(problem, format.format, format.circular);
    for (const Variation &variation : formatVariations)
      addCase(cases, fmt::format("{}-{}", format.name, variation.name), problem,
              variation, target);
  }
  // What only the predecayed ring asks for.
  const Variation prefixAlone = {"", [](P &p) {
                                   setSizes(p.spec, 2, 6, 32, 64, 4);
                                   p.spec.qkL2Norm = false;
                                 }};
  const Variation unitKeys = {"", [](P &p) {
                                p.spec.qkL2Norm = false;
                                p.spec.hasUnitKeys = true;
                              }};
  const DecodeProblem last = cases.back().problem;
  for (const Format &format : formats) {
    const bool isPrefix = format.format == RingFormat::Prefix;
    DecodeProblem problem = last;
    setFormat(problem, format.format, format.circular);
    addCase(cases,
            fmt::format("{}-{}", format.name,
                        isPrefix ? "r3-no-l2norm" : "unit-keys"),
            problem, isPrefix ? prefixAlone : unitKeys, target);
  }
  const Variation ringFp16 = {"", [](P &p) {
                                setTypes(p.spec, F16, F32, F16, F16);
                                setFormat(p, RingFormat::Prefix, false);
                              }};
  DecodeProblem problem = last;
  problem.spec.hasForceFlush = false;
  addCase(cases, "prefix-ring-fp16", problem, ringFp16, target);
}

//===----------------------------------------------------------------------===//
// Indices and errors
//===----------------------------------------------------------------------===//

static void setRingIndices(P &p) {
  p.spec.hasRingIndices = true;
  p.ringSlots = 5;
  p.rowRingSlots = {1, 0, 4, 2};
}

static void setDstIndices(P &p) {
  p.spec.hasDstIndices = true;
  p.rowDstSlots = {4, -7, 6, 0}; // row 1 is padding, row 3 stays in place
}

static void setTracks(P &p) {
  p.spec.hasTrackIndices = true;
  // At the start of a ring, in its middle, with a forced and with a natural
  // flush, two rows in one step, the same slot again, and one past the end.
  p.tracks = {{0, 0, 1},  {2, 2, 3},  {3, 0, 3},  {5, 3, 1},  {6, 0, 1},
              {7, 0, 3},  {7, 2, 1},  {8, 2, 3},  {9, 2, 1},  {10, 0, 7},
              {11, 3, 3}, {12, 0, 1}, {13, 0, 3}, {19, 0, 1}, {19, 3, 3}};
}

static void setAllIndices(P &p) {
  setRingIndices(p);
  setDstIndices(p);
  setTracks(p);
  p.spec.hasSeparateQkv = true;
}

/// For raw rings of GDN and KDA and for circular predecayed rings.
static constexpr Variation indexVariations[] = {
    {"ring", setRingIndices},
    {"ring-more-than-states",
     [](P &p) {
       setRingIndices(p);
       p.ringSlots = 20;
       p.rowRingSlots = {19, 0, 7, 12};
     }},
    {"ring-dst",
     [](P &p) {
       setRingIndices(p);
       setDstIndices(p);
     }},
    {"track", setTracks},
    {"separate-qkv", [](P &p) { p.spec.hasSeparateQkv = true; }},
    {"separate-qkv-unaligned",
     [](P &p) {
       p.spec.hasSeparateQkv = true;
       setSizes(p.spec, 2, 2, 30, 50, 4);
       setUnaligned(p);
     }},
    {"all", setAllIndices},
    {"all-bf16",
     [](P &p) {
       setAllIndices(p);
       setTypes(p.spec, BF16, BF16, BF16, BF16);
     }},
    {"all-int64-nonpositive",
     [](P &p) {
       setAllIndices(p);
       p.spec.indexType = I64;
       p.spec.nullSlot = NullSlot::NonPositive;
       p.indexStride = 3;
       p.rowSlots = {5, 0, 2, -4};
       p.rowDstSlots = {4, 0, 6, 0};
       p.tracks.push_back({4, 2, 0}); // none
     }},
    {"first-slot", [](P &p) { p.firstSlot = 1'000'000'000; }},
    {"all-first-slot",
     [](P &p) {
       setAllIndices(p);
       p.firstSlot = 2'000'000'000;
     }},
    {"l1",
     [](P &p) {
       setDstIndices(p);
       setTracks(p);
       if (!p.spec.isCircular)
         p.spec.ringDepth = 1;
       else
         setRingIndices(p);
     }},
    {"rebuild",
     [](P &p) {
       setAllIndices(p);
       p.spec.readout = Readout::Rebuild;
     }},
    // Each kind of error alone, beside a live row, and none to be reported.
    {"bad-ring-slots",
     [](P &p) {
       setRingIndices(p);
       p.layer = 68;
       p.rowSlots = {5, 1, 2, 0};
       p.rowRingSlots = {1, -1, 5, INT32_MAX};
     }},
    {"bad-dst-slots",
     [](P &p) {
       p.spec.hasDstIndices = p.spec.hasRingIndices = true;
       p.rowSlots = {5, 1, 2, 0};
       p.rowDstSlots = {4, -1, 7, INT32_MIN};
     }},
    {"bad-track-slots",
     [](P &p) {
       p.spec.hasTrackIndices = true;
       p.tracks = {{2, 0, 7}, {3, 2, INT32_MAX}, {4, 0, 1}, {7, 3, 7}};
     }},
    {"bad-cursors",
     [](P &p) {
       p.rowSlots = {5, 1, 2, 0};
       p.badCursors = {{1, 4}, {2, INT32_MIN}, {3, INT32_MAX}};
     }},
    {"bad-all",
     [](P &p) {
       setAllIndices(p);
       p.spec.indexType = I64;
       p.batch = 9;
       p.layer = -1;
       p.rowSlots = {5, -1, 7, 1, 2, 3, 0, int64_t(1) << 33, 6};
       p.rowRingSlots = {1, 9, 9, 0, 5, 3, 2, 9, 4};
       p.rowDstSlots = {5, 9, 9, 9, 9, 7, 0, -1, 6};
       p.tracks = {{3, 6, 7}, {4, 6, int64_t(1) << 32}, {5, 0, 4}};
       p.badCursors = {{3, 4}};
     }},
    {"no-error-word",
     [](P &p) {
       p.hasErrorWord = false;
       p.rowSlots = {5, 7, 2, 0};
       p.badCursors = {{3, -1}};
     }},
    {"padding-only",
     [](P &p) {
       p.rowSlots = {-1, 7, -5, 8};
       p.steps = 3;
       p.forcedFlushes = {{1, 2}};
     }},
    {"same-slot", // two rows at once: no fault, no harm to the third
     [](P &p) {
       p.sharedSlots = true;
       p.rowSlots = {5, 5, 2, 5};
     }},
};

/// Not for circular rings: the ring moves with the state.
static constexpr Variation dstAlone = {"dst", setDstIndices};

static constexpr Variation badBases = {
    "", [](P &p) {
      p.rowSlots = {5, 1, 2, 0};
      p.badBases = {{0, 4}, {1, -1}, {3, INT32_MAX}};
      p.badCursors = {{3, 7}}; // comes before the base
    }};

void addIndices(std::vector<DecodeCase> &cases, const Target &target) {
  DecodeProblem circular;
  for (std::string_view kind : {"gdn", "kda", "circular"}) {
    DecodeProblem problem = baseProblem(Readout::OutputOnly);
    problem.steps = 20;
    problem.forcedFlushes = {{0, 2}, {3, 0}, {4, 0}, {9, 2}, {17, 3}, {19, 0}};
    problem.layer = 2;
    setSizes(problem.spec, 2, 2, 32, 64, 4);
    if (kind == "kda")
      setKda(problem.spec);
    if (kind == "circular")
      setFormat(problem, RingFormat::Predecayed, true);
    for (const Variation &variation : indexVariations)
      addCase(cases, fmt::format("indices-{}-{}", kind, variation.name),
              problem, variation, target);
    if (!problem.spec.isCircular)
      addCase(cases, fmt::format("indices-{}-dst", kind), problem, dstAlone,
              target);
    addProgrammatic(cases, fmt::format("indices-{}", kind), problem, target);
    circular = problem;
  }
  addCase(cases, "indices-circular-bad-bases", circular, badBases, target);
}

//===----------------------------------------------------------------------===//
// Triton's launch ABI
//===----------------------------------------------------------------------===//

/// For GDN and KDA.
static constexpr Variation tritonVariations[] = {
    {"base", [](P &) {}},
    {"rebuild", [](P &p) { p.spec.readout = Readout::Rebuild; }},
    {"bf16", [](P &p) { setTypes(p.spec, BF16, BF16, BF16, BF16); }},
    {"fp32", [](P &p) { setTypes(p.spec, F32, F32, F32, F32); }},
    {"k128-v128-tiles", // a grid of more than one V tile
     [](P &p) {
       setSizes(p.spec, 1, 2, 128, 128, 4);
       p.steps = 10;
       p.forcedFlushes = {{0, 2}, {3, 0}};
     },
     {16, 128, 2, 2}},
    {"k60-v100",
     [](P &p) {
       setSizes(p.spec, 1, 3, 60, 100, 5);
       p.spec.alignment = 0;
       p.poison = Poison::Large;
     }},
    {"l1", [](P &p) { p.spec.ringDepth = 1; }},
    {"no-force", // the cursor stands in its place
     [](P &p) {
       p.spec.hasForceFlush = false;
       p.forcedFlushes = {};
     }},
    {"padding-rows",
     [](P &p) {
       p.spec.indexType = I64;
       p.spec.nullSlot = NullSlot::NonPositive;
       p.rowSlots = {0, -1, 2, 5};
       p.badCursors = {{3, 8}};
     }},
};

void addTriton(std::vector<DecodeCase> &cases, const Target &target) {
  for (bool isKda : {false, true}) {
    DecodeProblem problem = baseProblem(Readout::OutputOnly);
    problem.spec.abi = LaunchAbi::Triton;
    problem.rowPadding = problem.slotPadding = 0;
    problem.hasErrorWord = false;
    problem.steps = 20;
    problem.forcedFlushes = {{0, 2}, {3, 0}, {4, 0}, {9, 3}, {17, 3}, {19, 0}};
    setSizes(problem.spec, 2, 4, 32, 64, 8);
    if (isKda)
      setKda(problem.spec);
    for (const Variation &variation : tritonVariations)
      addCase(
          cases,
          fmt::format("triton-{}-{}", isKda ? "kda" : "gdn", variation.name),
          problem, variation, target);
  }
}

//===----------------------------------------------------------------------===//
// Long runs
//===----------------------------------------------------------------------===//

void addLong(std::vector<DecodeCase> &cases, const Target &target) {
  const Variation states[] = {
      {"fp32", [](P &p) { p.spec.stateType = F32; }},
      {"bf16", [](P &p) { p.spec.stateType = p.spec.ringType = BF16; }},
      {"fp16", [](P &p) { p.spec.stateType = F16; }},
      {"fp32-slow", [](P &p) { p.slowGates = true; }},
  };
  auto add = [&](const std::string &name, const DecodeProblem &problem) {
    // Where nothing forgets, the dots of a rebuilt state are no small part of
    // d, for which the bounds take them.
    const bool hasSlow = problem.spec.readout == Readout::OutputOnly;
    for (const Variation &variation : std::span(states).first(hasSlow ? 4 : 3))
      addCase(cases, fmt::format("long-{}-{}", name, variation.name), problem,
              variation, target);
  };
  DecodeProblem problem;
  setSizes(problem.spec, 1, 1, 16, 16, 4);
  setTypes(problem.spec, F32, F32, F32, F32);
  problem.batch = problem.slots = 2;
  problem.steps = 2000;
  problem.staggered = true;
  for (int step = 50; step < problem.steps; step += 50)
    problem.forcedFlushes.push_back({step, step / 50 % 2});
  for (const char *family : {"gdn", "kda"}) {
    problem.spec.readout = Readout::OutputOnly;
    add(family, problem);
    problem.spec.readout = Readout::Rebuild;
    add(fmt::format("{}-rebuild", family), problem);
    setKda(problem.spec);
  }
  problem.spec.readout = Readout::OutputOnly;
  for (const Format &format : formats) {
    setFormat(problem, format.format, format.circular);
    add(format.name, problem);
  }
  problem.forcedFlushes = {};
  setSizes(problem.spec, 1, 1, 16, 16, 1);
  problem.spec.family = Family::Packed;
  problem.spec.hasForceFlush = problem.spec.isCircular = false;
  problem.spec.ringFormat = RingFormat::Raw;
  add("packed-kda", problem);
  problem.spec.isKda = false;
  problem.spec.gate = Gate::Softplus;
  add("packed-gdn", problem);
}

} // namespace replayjit::internal
