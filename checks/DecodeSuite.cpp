//===- DecodeSuite.cpp - Lists of decode kernels to check -----------------===//

#include "checks/DecodeSuiteCases.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <span>
#include <string_view>

namespace replayjit::internal {

/// For GDN with both readouts, and for KDA.
static constexpr Variation commonVariations[] = {
    {"base", [](P &) {}},
    {"l5-r3", [](P &p) { setSizes(p.spec, 2, 6, 32, 32, 5); }},
    {"fp32", [](P &p) { setTypes(p.spec, F32, F32, F32, F32); }},
    {"fp16", [](P &p) { setTypes(p.spec, F16, F16, F16, F16); }},
    {"bf16-ring-fp32", [](P &p) { setTypes(p.spec, F32, F16, BF16, F32); }},
    {"ring-bf16", [](P &p) { setTypes(p.spec, BF16, BF16, F32, BF16); }},
    {"ring-fp16", [](P &p) { setTypes(p.spec, F32, BF16, F32, F16); }},
    {"gate-fp32", gatesFp32},
    {"beta-fp32-bias-bf16", betaFp32},
    {"gate-fp32-param-bf16", gateFp32},
    {"gate-fp16", gatesFp16},
    {"gate-given", gatesGiven},
    {"beta-twice", [](P &p) { p.spec.beta = Beta::TwiceSigmoid; }},
    {"k64-v128", [](P &p) { setSizes(p.spec, 1, 2, 64, 128, 8); }},
    {"k128-v64", [](P &p) { setSizes(p.spec, 1, 2, 128, 64, 8); }},
    {"k96-v80", [](P &p) { setSizes(p.spec, 1, 2, 96, 80, 8); }},
    {"padding-rows",
     [](P &p) {
       p.batch = 7;
       p.rowSlots = {5, -1, 7, 2, -2147483647, 1, 3};
       p.badCursors = {{5, 8}, {6, -1}};
     }},
    {"no-l2norm", [](P &p) { p.spec.qkL2Norm = false; }},
    {"no-force-flush",
     [](P &p) {
       p.spec.hasForceFlush = false;
       p.forcedFlushes = {};
     }},
    {"mixed-gates",
     [](P &p) {
       setTypes(p.spec, F32, F32, F32, F32);
       p.mixedGates = true;
     }},
    {"k128-v128-mixed-gates",
     [](P &p) {
       setSizes(p.spec, 1, 1, 128, 128, 8);
       p.mixedGates = true;
     }},
    {"long",
     [](P &p) {
       setSizes(p.spec, 1, 1, 32, 32, 4);
       p.steps = 1000;
     }},
};

/// For GDN alone, both readouts.
static constexpr Variation variations[] = {
    {"bounded", [](P &p) { p.spec.gate = Gate::LowerBound; }},
    // Ring depths, and value heads per key head.
    {"l1", [](P &p) { p.spec.ringDepth = 1; }},
    {"l1-fp32",
     [](P &p) {
       setTypes(p.spec, F32, F32, F32, F32);
       p.spec.ringDepth = 1;
     }},
    {"l1-bf16",
     [](P &p) {
       setTypes(p.spec, BF16, BF16, BF16, BF16);
       p.spec.ringDepth = 1;
     }},
    {"l1-fp16",
     [](P &p) {
       setTypes(p.spec, F16, F16, F16, F16);
       p.spec.ringDepth = 1;
     }},
    {"l4-r1", [](P &p) { setSizes(p.spec, 3, 3, 64, 64, 4); }},
    {"l16-r3", [](P &p) { setSizes(p.spec, 1, 3, 64, 64, 16); }},
    // Types: activations, output, state, ring.
    {"out-fp32", [](P &p) { setTypes(p.spec, BF16, F32, F32, F32); }},
    {"fp16-ring-bf16", [](P &p) { setTypes(p.spec, F16, F32, F16, BF16); }},
    {"bf16", [](P &p) { setTypes(p.spec, BF16, BF16, BF16, BF16); }},
    // Shapes.
    {"k96-v64-r3", [](P &p) { setSizes(p.spec, 1, 3, 96, 64, 4); }},
    {"k60-v100", [](P &p) { setSizes(p.spec, 1, 2, 60, 100, 8); }},
    {"k60-v60", [](P &p) { setSizes(p.spec, 2, 2, 60, 60, 8); }},
    {"k128-v128", [](P &p) { setSizes(p.spec, 1, 2, 128, 128, 16); }},
    // Memory and padding rows.
    {"unaligned",
     [](P &p) {
       setSizes(p.spec, 2, 4, 60, 60, 8);
       setUnaligned(p);
     }},
    {"unaligned-bf16",
     [](P &p) {
       setTypes(p.spec, BF16, BF16, BF16, BF16);
       setUnaligned(p);
     }},
    {"int64",
     [](P &p) {
       p.spec.indexType = I64;
       p.indexStride = 3;
     }},
    {"null-nonpositive",
     [](P &p) {
       p.spec.nullSlot = NullSlot::NonPositive;
       p.rowSlots = {5, 0, 2, -3};
     }},
    // Slots that an int32 would cut to a legal one, and the first too large.
    {"slots-past-end",
     [](P &p) {
       p.spec.indexType = I64;
       p.batch = 6;
       p.rowSlots = {5, (int64_t(1) << 32) + 5, 7,
                     2, int64_t(1) << 52,       -(int64_t(1) << 40)};
     }},
    {"bad-cursors",
     [](P &p) {
       p.batch = 6;
       p.rowSlots = {5, 1, 2, 0, 3, 4};
       p.badCursors = {{1, 8}, {2, -1}, {4, INT32_MAX}, {5, INT32_MIN}};
     }},
};

static void withLargeHeads(P &p) { setSizes(p.spec, 1, 2, 128, 128, 8); }

static void with16Bits(P &p) {
  setTypes(p.spec, BF16, BF16, BF16, BF16);
  setSizes(p.spec, 1, 2, 128, 128, 16);
}

/// Tiles that the choice for a small batch does not make: blockV, blockK, warps
/// and flush rows; a cap of registers, and what comes through shared memory.
/// For GDN and KDA.
static constexpr Variation commonTiles[] = {
    {"tiles-64-64-w4-f8", [](P &) {}, {64, 64, 4, 8}},
    {"tiles-16-32-w1-f1", [](P &) {}, {16, 32, 1, 1}},
    {"tiles-32-16-w2-f2", [](P &) {}, {32, 16, 2, 2}},
    {"tiles-64-128-w8-f4", withLargeHeads, {64, 128, 8, 4}},
    {"staged", withLargeHeads, {64, 64, 2, 2, 0, 256}},
    {"staged-bf16", with16Bits, {64, 64, 2, 2, 128, 2048}},
    {"split-bf16", with16Bits, {64, 64, 4, 0, 0, 0, true}},
    {"split-staged-bf16", with16Bits, {64, 64, 2, 0, 128, 2048, true}},
    {"staged-ragged",
     [](P &p) { setSizes(p.spec, 1, 2, 80, 100, 5); },
     {32, 64, 4, 1, 0, 256}},
};

/// The same for GDN alone.
static constexpr Variation outputOnlyTiles[] = {
    {"tiles-128-128-w4-f4", withLargeHeads, {128, 128, 4, 4}},
    // Sizes at the ends, warps that share rows, blocks larger than a head.
    {"k1-v1-l2-r3", [](P &p) { setSizes(p.spec, 1, 3, 1, 1, 2); }},
    {"k9-v64-l3", [](P &p) { setSizes(p.spec, 1, 2, 9, 64, 3); }},
    {"k8-v16-w8",
     [](P &p) { setSizes(p.spec, 1, 1, 8, 16, 4); },
     {256, 8, 8, 4}},
    {"k16-v256-l64",
     [](P &p) { setSizes(p.spec, 1, 1, 16, 256, 64); },
     {16, 16, 8, 4}},
    {"k256-v256-l33",
     [](P &p) { setSizes(p.spec, 1, 1, 256, 256, 33); },
     {64, 256, 8, 4}},
    {"k100-v60-l33-unaligned",
     [](P &p) {
       setSizes(p.spec, 1, 1, 100, 60, 33);
       setUnaligned(p);
     },
     {32, 32, 1, 4}},
};
static constexpr Variation rebuildTiles[] = {
    {"tiles-64-32-w4", [](P &) {}, {64, 32, 4, 4}},
    {"tiles-16-16-w1", [](P &) {}, {16, 16, 1, 4}},
    {"tiles-64-64-w4-k128", withLargeHeads, {64, 64, 4, 4}},
    {"staged", withLargeHeads, {64, 64, 4, 4, 0, 256}},
    {"tiles-32-64-w8", [](P &) {}, {32, 64, 8, 4}},
    {"tiles-16-16-w2", [](P &) {}, {16, 16, 2, 4}},
};

/// On a problem of fewer heads and steps than those above: K times the gates.
static constexpr Variation kdaVariations[] = {
    {"bounded", [](P &p) { setBounded(p); }},
    // Ring depths, and value heads per key head.
    {"l1", [](P &p) { setSizes(p.spec, 1, 2, 64, 32, 1); }},
    {"l1-fp32-bounded",
     [](P &p) {
       setTypes(p.spec, F32, F32, F32, F32);
       setSizes(p.spec, 1, 2, 64, 128, 1);
       setBounded(p);
     }},
    {"l4-r1", [](P &p) { setSizes(p.spec, 2, 2, 64, 64, 4); }},
    {"l4-r3-bounded",
     [](P &p) {
       setSizes(p.spec, 1, 3, 64, 32, 4);
       setBounded(p);
     }},
    {"l16-r2-bounded",
     [](P &p) {
       setSizes(p.spec, 1, 2, 64, 64, 16);
       setBounded(p, -1.5f);
     }},
    {"l16-r3", [](P &p) { setSizes(p.spec, 1, 3, 32, 64, 16); }},
    // Shapes.
    {"k60-v100-bounded",
     [](P &p) {
       setSizes(p.spec, 1, 2, 60, 100, 8);
       setBounded(p);
     }},
    {"k100-v60-r3", [](P &p) { setSizes(p.spec, 1, 3, 100, 60, 4); }},
    {"k128-v128", [](P &p) { setSizes(p.spec, 1, 1, 128, 128, 16); }},
    // Beyond the gates of K lies 1e30, in a row of memory and between rows.
    {"k60-v32-large",
     [](P &p) {
       setSizes(p.spec, 2, 6, 60, 32, 4);
       p.poison = Poison::Large;
     }},
    {"k100-v32-large",
     [](P &p) {
       setSizes(p.spec, 1, 1, 100, 32, 4);
       p.poison = Poison::Large;
       p.rowPadding = 28;
       p.slotPadding = 28;
     }},
    {"k16-v16-h96-bounded",
     [](P &p) {
       setSizes(p.spec, 96, 96, 16, 16, 2);
       setBounded(p);
       p.steps = 4;
       p.forcedFlushes = {{1, 2}};
     }},
    {"k128-v128-h12-bounded",
     [](P &p) {
       setSizes(p.spec, 12, 12, 128, 128, 2);
       setBounded(p);
       p.steps = 3;
       p.forcedFlushes = {{1, 2}};
     }},
    // Types: activations, output, state, ring.
    {"bf16-bounded",
     [](P &p) {
       setTypes(p.spec, BF16, BF16, BF16, BF16);
       setBounded(p);
     }},
    // Gates.
    {"mixed-gates-l16-k60",
     [](P &p) {
       setTypes(p.spec, F32, F32, F32, F32);
       setSizes(p.spec, 1, 2, 60, 32, 16);
       p.mixedGates = true;
     }},
    {"mixed-gates-bounded",
     [](P &p) {
       setTypes(p.spec, F32, F32, F32, F32);
       setBounded(p);
       p.mixedGates = true;
     }},
    {"beta-round", [](P &p) { p.spec.betaRound = true; }},
    // Memory, padding rows and optional parts.
    {"unaligned",
     [](P &p) {
       setSizes(p.spec, 1, 2, 60, 60, 8);
       setUnaligned(p);
     }},
    {"unaligned-bf16-bounded",
     [](P &p) {
       setTypes(p.spec, BF16, BF16, BF16, BF16);
       setUnaligned(p);
       setBounded(p);
     }},
    {"int64-null-nonpositive",
     [](P &p) {
       p.spec.indexType = I64;
       p.spec.nullSlot = NullSlot::NonPositive;
       p.indexStride = 3;
       p.rowSlots = {5, 0, 2, -3};
     }},
};

static constexpr Variation kdaRebuildVariations[] = {
    {"base", [](P &) {}},
    {"bounded", [](P &p) { setBounded(p); }},
    {"l1", [](P &p) { p.spec.ringDepth = 1; }},
    {"l3-h2-hv6-bounded",
     [](P &p) {
       setSizes(p.spec, 2, 6, 32, 32, 3);
       setBounded(p);
     }},
    {"h1-hv1", [](P &p) { setSizes(p.spec, 1, 1, 64, 32, 4); }},
    {"k96-v80-r3", [](P &p) { setSizes(p.spec, 1, 3, 96, 80, 4); }},
    {"k60-v100-bounded",
     [](P &p) {
       setSizes(p.spec, 1, 2, 60, 100, 8);
       setBounded(p);
       p.poison = Poison::Large;
     }},
    {"fp32", [](P &p) { setTypes(p.spec, F32, F32, F32, F32); }},
    {"bf16", [](P &p) { setTypes(p.spec, BF16, BF16, BF16, BF16); }},
    {"fp16-bounded",
     [](P &p) {
       setTypes(p.spec, F16, F16, F16, F16);
       setBounded(p);
     }},
    {"ring-bf16", [](P &p) { setTypes(p.spec, BF16, BF16, F32, BF16); }},
    {"mixed-gates",
     [](P &p) {
       setTypes(p.spec, F32, F32, F32, F32);
       p.mixedGates = true;
     }},
    {"unaligned",
     [](P &p) {
       setSizes(p.spec, 1, 2, 60, 60, 8);
       setUnaligned(p);
     }},
    {"padding-rows",
     [](P &p) {
       p.batch = 7;
       p.rowSlots = {5, -1, 7, 2, -2147483647, 1, 3};
       p.badCursors = {{5, 8}, {6, -1}};
     }},
};

static std::string_view prefixOf(Readout readout) {
  return readout == Readout::OutputOnly ? "outonly-" : "rebuild-";
}

void addCase(std::vector<DecodeCase> &cases, std::string name,
             DecodeProblem problem, const Variation &variation,
             const Target &target) {
  if (variation.tuning.stageBytes && !target.hasBulkCopy)
    return;
  DecodeCase added;
  added.name = std::move(name);
  problem.poison = Poison(cases.size() % 3);
  variation.change(problem);
  problem.tuning = chooseTuning(problem.spec, problem.batch, target);
  if (variation.tuning.blockV)
    problem.tuning = variation.tuning;
  added.problem = std::move(problem);
  cases.push_back(std::move(added));
}

static void addEmulation(std::vector<DecodeCase> &cases, const Target &target) {
  auto add = [&](Readout readout, std::span<const Variation> list) {
    for (const Variation &variation : list)
      addCase(cases, fmt::format("{}{}", prefixOf(readout), variation.name),
              baseProblem(readout), variation, target);
  };
  for (Readout readout : {Readout::OutputOnly, Readout::Rebuild}) {
    add(readout, commonVariations);
    add(readout, variations);
  }
  add(Readout::OutputOnly, commonTiles);
  add(Readout::OutputOnly, outputOnlyTiles);
  add(Readout::Rebuild, rebuildTiles);
}

static void addKda(std::vector<DecodeCase> &cases, const Target &target) {
  auto add = [&](Readout readout, std::span<const Variation> list) {
    DecodeProblem problem = baseProblem(readout);
    problem.steps = 24;
    problem.forcedFlushes = {{0, 2}, {3, 0}, {4, 0}, {17, 3}, {23, 0}};
    setSizes(problem.spec, 1, 2, 64, 64, 8);
    setKda(problem.spec);
    const char *prefix = readout == Readout::Rebuild ? "kda-rebuild-" : "kda-";
    for (const Variation &variation : list)
      addCase(cases, fmt::format("{}{}", prefix, variation.name), problem,
              variation, target);
  };
  add(Readout::OutputOnly, commonVariations);
  add(Readout::OutputOnly, kdaVariations);
  add(Readout::OutputOnly, commonTiles);
  add(Readout::Rebuild, kdaRebuildVariations);
}

/// The reference takes seconds a step where rows are many, but then each step
/// meets every ring phase.
static int stepsFor(int batch) {
  return batch <= 4 ? 40 : batch <= 16 ? 20 : batch <= 64 ? 6 : 2;
}

static void addReal(std::vector<DecodeCase> &cases, const Target &target) {
  auto add = [&](Readout readout, int valueHeads, int batch,
                 const Variation &variation) {
    DecodeCase added;
    DecodeProblem &problem = added.problem;
    setSizes(problem.spec, 16, valueHeads, 128, 128, 16);
    problem.spec.readout = readout;
    problem.batch = batch;
    problem.slots = batch + 2;
    problem.steps = stepsFor(batch);
    problem.staggered = true;
    variation.change(problem);
    problem.tuning = chooseTuning(problem.spec, batch, target);
    added.name = fmt::format("{}h16-hv{}-b{}{}", prefixOf(readout), valueHeads,
                             batch, variation.name);
    cases.push_back(std::move(added));
  };
  const Variation plain = {"", [](DecodeProblem &) {}};
  for (int valueHeads : {32, 48, 64}) {
    for (int batch : {1, 4, 16, 64, 256})
      add(Readout::OutputOnly, valueHeads, batch, plain);
    for (int batch : {1, 64})
      add(Readout::Rebuild, valueHeads, batch, plain);
  }
  const Variation types[] = {
      {"-ring-bf16", [](DecodeProblem &p) { p.spec.ringType = BF16; }},
      {"-bf16",
       [](DecodeProblem &p) { setTypes(p.spec, BF16, BF16, BF16, BF16); }},
      {"-fp16", [](DecodeProblem &p) { setTypes(p.spec, F16, F16, F16, F16); }},
      {"-l1-fp32",
       [](DecodeProblem &p) {
         setTypes(p.spec, F32, F32, F32, F32);
         p.spec.ringDepth = 1;
       }},
  };
  for (const Variation &variation : types)
    for (int batch : {4, 64})
      add(Readout::OutputOnly, 32, batch, variation);
}

/// Kimi-Linear and Ling-flash, and a rank of Kimi-K3.
static void addKdaReal(std::vector<DecodeCase> &cases, const Target &target) {
  struct Shape {
    int heads;
    Gate gate;
    const char *name;
  };
  for (const Shape &shape : {Shape{32, Gate::Softplus, ""},
                             {32, Gate::LowerBound, "-bounded"},
                             {12, Gate::LowerBound, "-bounded"},
                             {96, Gate::LowerBound, "-bounded"}})
    for (int batch : {1, 4, 16, 64}) {
      if (shape.heads == 96 && batch > 4)
        continue; // minutes in the reference
      DecodeCase added;
      DecodeProblem &problem = added.problem;
      setSizes(problem.spec, shape.heads, shape.heads, 128, 128, 16);
      setKda(problem.spec, shape.gate);
      problem.batch = batch;
      problem.slots = batch + 2;
      problem.steps = stepsFor(batch);
      problem.staggered = true;
      problem.tuning = chooseTuning(problem.spec, batch, target);
      added.name = fmt::format("kda-h{}-hv{}-b{}{}", shape.heads, shape.heads,
                               batch, shape.name);
      cases.push_back(std::move(added));
    }
}

static std::vector<DecodeCase> smallSuite(const Target &target) {
  std::vector<DecodeCase> all, chosen;
  addEmulation(all, target);
  for (DecodeCase &entry : all)
    for (std::string_view name :
         {"outonly-base", "outonly-l1-fp32", "outonly-k96-v80", "outonly-bf16",
          "outonly-padding-rows", "rebuild-base", "rebuild-unaligned"})
      if (entry.name == name) {
        entry.problem.steps = 12;
        std::erase_if(entry.problem.forcedFlushes,
                      [](auto forced) { return forced.step >= 12; });
        chosen.push_back(std::move(entry));
        break;
      }
  return chosen;
}

Result<std::vector<DecodeCase>> decodeSuite(const std::string &suite,
                                            const Target &target) {
  std::vector<DecodeCase> cases;
  if (suite == "small")
    return smallSuite(target);
  if (suite == "emulation" || suite == "gpu")
    addEmulation(cases, target);
  if (suite == "real" || suite == "gpu")
    addReal(cases, target);
  if (suite == "kda" || suite == "emulation" || suite == "gpu")
    addKda(cases, target);
  if (suite == "kda-real" || suite == "real" || suite == "gpu")
    addKdaReal(cases, target);
  if (suite == "rules-real" || suite == "real" || suite == "gpu")
    addRulesReal(cases, target);
  struct List {
    const char *name;
    void (*add)(std::vector<DecodeCase> &, const Target &);
  };
  for (const List &list : {List{"packed", addPacked},
                           {"formats", addFormats},
                           {"indices", addIndices},
                           {"materialize", addMaterialize},
                           {"verify", addVerify},
                           {"triton", addTriton},
                           {"rules", addRules},
                           {"long", addLong}})
    if (suite == list.name || suite == "emulation" || suite == "gpu")
      list.add(cases, target);
  if (cases.empty())
    return Status::invalid(
        fmt::format("suite: '{}' is unknown; allowed are small, emulation, "
                    "real, gpu, kda, kda-real, packed, formats, indices, "
                    "materialize, verify, triton, rules, rules-real, long",
                    suite));
  return cases;
}

Result<CheckReport> checkCase(Device &device, LoadedKernel &kernel,
                              const LaunchConfig &launch,
                              const DecodeCase &entry,
                              const ProgressFn &progress) {
  if (entry.materialize)
    return checkMaterialize(device, kernel, launch, *entry.materialize);
  return checkDecode(device, kernel, launch, entry.problem, progress);
}

} // namespace replayjit::internal
