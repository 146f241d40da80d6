//===- DecodeSuiteRules.cpp - Other models than those of the delta rule ---===//

#include "checks/DecodeSuiteCases.h"

#include "kernels/Families.h"

#include <algorithm>
#include <fmt/format.h>

namespace replayjit::internal {

static constexpr Variation variations[] = {
    {"mamba2", setMamba2},
    {"mamba2-fp32",
     [](P &p) {
       setMamba2(p);
       setTypes(p.spec, F32, F32, F32, F32);
       p.spec.gate = Gate::Softplus;
     }},
    {"mamba2-fp16",
     [](P &p) {
       setMamba2(p);
       setTypes(p.spec, F16, F16, F16, F16);
     }},
    {"mamba2-bf16",
     [](P &p) {
       setMamba2(p);
       setTypes(p.spec, BF16, BF16, BF16, BF16);
     }},
    {"mamba2-v64-k128",
     [](P &p) {
       setMamba2(p);
       setSizes(p.spec, 1, 4, 128, 64, 8);
     }},
    {"mamba2-v80-k128",
     [](P &p) {
       setMamba2(p);
       setSizes(p.spec, 2, 4, 128, 80, 8);
     }},
    {"mamba2-v64-k256",
     [](P &p) {
       setMamba2(p);
       setSizes(p.spec, 1, 2, 256, 64, 4);
     }},
    {"mamba2-skip-of-channels",
     [](P &p) {
       setMamba2(p);
       p.spec.skip = Skip::Channel;
       p.spec.biasType = BF16;
     }},
    {"mamba2-out-gate",
     [](P &p) {
       setMamba2(p);
       p.spec.hasOutGate = true;
     }},
    {"mamba2-limits",
     [](P &p) {
       setMamba2(p);
       p.spec.hasStepLimits = true;
       p.spec.gateType = F32;
     }},
    {"mamba2-unaligned",
     [](P &p) {
       setMamba2(p);
       setSizes(p.spec, 2, 4, 60, 100, 5);
       p.spec.hasOutGate = true;
       setUnaligned(p);
     }},
    {"mamba2-rebuild",
     [](P &p) {
       setMamba2(p);
       p.spec.readout = Readout::Rebuild;
     }},
    {"lightning", setFixedGate},
    {"gla",
     [](P &p) {
       setKda(p.spec, Gate::LogDecay);
       p.spec.rule = Rule::Additive;
       p.spec.beta = Beta::One;
     }},
    {"additive-of-a-beta", [](P &p) { p.spec.rule = Rule::Additive; }},
    {"delta-of-no-beta", [](P &p) { p.spec.beta = Beta::One; }},
    {"delta-out-gate",
     [](P &p) {
       p.spec.skip = Skip::Channel;
       p.spec.hasOutGate = true;
     }},
};

void addRules(std::vector<DecodeCase> &cases, const Target &target) {
  for (Family family : {Family::Replay, Family::Packed})
    for (const Variation &variation : variations) {
      DecodeProblem problem = baseProblem(Readout::OutputOnly);
      problem.spec.family = family;
      addCase(cases, fmt::format("rules-{}-{}", wordOf(family), variation.name),
              problem, variation, target);
      DecodeProblem &added = cases.back().problem;
      if (family == Family::Replay)
        continue;
      added.spec.ringDepth = 1;
      added.spec.hasForceFlush = false;
      added.forcedFlushes = {};
      added.steps = 8;
      added.tuning = chooseTuning(added.spec, added.batch, target);
    }
}

/// The presets.
void addRulesReal(std::vector<DecodeCase> &cases, const Target &target) {
  for (const char *model :
       {"nemotron-h-8b", "nemotron-nano-9b-v2", "granite-4-h-small",
        "falcon-h1-1.5b", "minimax-01"})
    for (Family family : {Family::Replay, Family::Packed})
      for (int batch : {1, 16}) {
        DecodeCase added;
        DecodeProblem &problem = added.problem;
        problem.spec = *modelPreset(model, 1);
        problem.spec.family = family;
        problem.spec.ringDepth = family == Family::Packed ? 1 : 16;
        problem.scale = 1;
        problem.batch = batch;
        problem.slots = batch + 2;
        problem.steps = batch == 1 ? 20 : 6;
        problem.staggered = family == Family::Replay;
        problem.tuning = chooseTuning(problem.spec, batch, target);
        added.name = fmt::format("{}-{}-b{}", model, wordOf(family), batch);
        cases.push_back(std::move(added));
      }
}

} // namespace replayjit::internal
