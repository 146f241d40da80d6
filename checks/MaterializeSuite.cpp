//===- MaterializeSuite.cpp - Materialize kernels to check ----------------===//

#include "checks/DecodeSuiteCases.h"

#include <fmt/format.h>

#include <string_view>

namespace replayjit::internal {

using M = MaterializeProblem;

namespace {

/// What a case changes in the base problem.
struct MaterializeVariation {
  const char *name;
  void (*change)(M &);
};

} // namespace

/// In place, to another slot, twice from one source, an empty and a full ring,
/// and rows to be skipped.
static M baseMaterialize() {
  M problem;
  DecodeSpec &spec = problem.spec;
  spec.family = Family::Materialize;
  spec.hasForceFlush = false;
  setSizes(spec, 1, 2, 64, 32, 8);
  problem.slotPadding = 8;
  problem.rows = {{.src = 11, .dst = 11, .writePos = 5},
                  {.src = 3, .dst = 9, .writePos = 7},
                  {.src = 4, .dst = 1, .writePos = 2},
                  {.src = 4, .dst = 2, .writePos = 2},
                  {.src = 8, .dst = 0, .writePos = 0},
                  {.src = 4, .dst = 5, .writePos = 2, .masked = true},
                  {.src = -1, .dst = 6, .writePos = 99},
                  {.src = 7, .dst = -1, .writePos = 1}};
  return problem;
}

static void setMaterializeRings(M &p) {
  p.spec.hasRingIndices = true;
  p.ringSlots = 9;
  const int64_t rings[] = {4, 8, 0, 0, -1, 0, 99, 1}; // row 4's is empty
  for (size_t i = 0; i < p.rows.size(); ++i)
    p.rows[i].ringSlot = rings[i];
}

static void addBadRows(M &p) {
  p.rows.push_back({.src = 12, .dst = 6});
  p.rows.push_back({.src = 10, .dst = 12});
  p.rows.push_back({.src = 10, .dst = 6, .writePos = 8});
  p.rows.push_back({.src = 10, .dst = 6, .writePos = -1});
  if (p.spec.hasRingIndices) {
    p.rows.push_back({.src = 10, .dst = 6, .writePos = 1, .ringSlot = 9});
    p.rows.push_back({.src = 10, .dst = 6, .writePos = 1, .ringSlot = -1});
    p.rows.push_back({.src = 10, .dst = 6, .ringSlot = 9}); // empty: none read
  }
  if (p.spec.isCircular)
    p.rows.push_back({.src = 10, .dst = 6, .base = 8});
}

static constexpr MaterializeVariation materializeVariations[] = {
    {"base", [](M &) {}},
    {"one-layer", [](M &p) { p.numLayers = 1; }},
    {"ring-indices", setMaterializeRings},
    {"no-mask",
     [](M &p) {
       p.spec.hasMask = false;
       p.rows[5].masked = false;
     }},
    {"bad-rows", addBadRows},
    {"bad-rows-ring-indices",
     [](M &p) {
       setMaterializeRings(p);
       addBadRows(p);
     }},
    {"no-error-word",
     [](M &p) {
       addBadRows(p);
       p.hasErrorWord = false;
     }},
    {"int64-nonpositive",
     [](M &p) {
       p.spec.indexType = I64;
       p.spec.nullSlot = NullSlot::NonPositive;
       p.indexStride = 3;
     }},
    {"first-slot",
     [](M &p) {
       setMaterializeRings(p);
       p.firstSlot = 1'000'000'000;
     }},
    {"fp32-ring-bf16", [](M &p) { setTypes(p.spec, F32, F32, F32, BF16); }},
    {"bf16", [](M &p) { setTypes(p.spec, BF16, BF16, BF16, BF16); }},
    {"fp16-ring-fp32", [](M &p) { setTypes(p.spec, F16, F16, F16, F32); }},
    {"k96-v80-l16", [](M &p) { setSizes(p.spec, 1, 1, 96, 80, 16); }},
    {"k60-v100",
     [](M &p) {
       setSizes(p.spec, 1, 1, 60, 100, 8);
       p.poison = Poison::Large;
     }},
    {"unaligned",
     [](M &p) {
       setSizes(p.spec, 1, 1, 30, 50, 8);
       p.spec.alignment = 0;
       p.misaligned = true;
       p.slotPadding = 5;
     }},
    {"empty",
     [](M &p) {
       p.rows = {};
       p.slots = 0;
     }},
};

/// Value heads per key head, which only raw rings have.
static constexpr MaterializeVariation rawVariations[] = {
    {"h2-hv6", [](M &p) { setSizes(p.spec, 2, 6, 32, 32, 8); }},
    {"ring-fp16", [](M &p) { setTypes(p.spec, F32, F32, F32, F16); }},
    {"l64", [](M &p) { p.spec.ringDepth = 64; }},
};

DecodeCase materializeCase(std::string name, MaterializeProblem problem) {
  DecodeCase result;
  result.name = std::move(name);
  result.problem.spec = problem.spec;
  result.problem.tuning = problem.tuning;
  result.problem.batch = int(problem.rows.size());
  result.problem.steps = 1;
  result.materialize = std::move(problem);
  return result;
}

static void add(std::vector<DecodeCase> &cases, std::string name, M problem,
                const MaterializeVariation &variation, const Target &target) {
  problem.poison = Poison(cases.size() % 3);
  variation.change(problem);
  problem.tuning = chooseTuning(problem.spec, 0, target);
  cases.push_back(materializeCase(std::move(name), std::move(problem)));
}

void addMaterialize(std::vector<DecodeCase> &cases, const Target &target) {
  struct Kind {
    const char *name;
    bool isKda;
    RingFormat format = RingFormat::Raw;
    bool circular = false;
  };
  for (const Kind &kind : {Kind{"gdn", false},
                           {"kda", true},
                           {"prefix", true, RingFormat::Prefix},
                           {"predecayed", true, RingFormat::Predecayed},
                           {"circular", true, RingFormat::Predecayed, true}}) {
    M problem = baseMaterialize();
    DecodeSpec &spec = problem.spec;
    if (kind.isKda)
      setKda(spec);
    if (kind.format != RingFormat::Raw) {
      spec.numValueHeads = spec.numKeyHeads = 1;
      spec.gate = Gate::LowerBound;
      spec.ringFormat = kind.format;
    }
    spec.isCircular = kind.circular;
    for (size_t i = 0; i < problem.rows.size() && kind.circular; ++i)
      problem.rows[i].base = int(problem.rows[i].src * 5 % 8 + 8) % 8;
    for (const MaterializeVariation &variation : materializeVariations)
      add(cases, fmt::format("materialize-{}-{}", kind.name, variation.name),
          problem, variation, target);
    for (const MaterializeVariation &variation : rawVariations)
      if (kind.format == RingFormat::Raw)
        add(cases, fmt::format("materialize-{}-{}", kind.name, variation.name),
            problem, variation, target);
  }
}

} // namespace replayjit::internal
