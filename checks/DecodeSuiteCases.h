//===- DecodeSuiteCases.h - What the lists of cases share -------*- C++ -*-===//
#ifndef REPLAYJIT_CHECKS_DECODESUITECASES_H
#define REPLAYJIT_CHECKS_DECODESUITECASES_H

#include "checks/DecodeSuite.h"

#include <string>
#include <utility>
#include <vector>

namespace replayjit::internal {

using enum DataType;

using P = DecodeProblem;

/// What a case changes in the base problem, and its tuning, where that is not
/// the one chosen for it.
struct Variation {
  const char *name;
  void (*change)(P &);
  DecodeTuning tuning = {0, 0, 0, 0};
};

/// Types of the gates' inputs: all four other than usual,
inline void gatesFp32(P &p) {
  p.spec.gateType = p.spec.betaType = F32;
  p.spec.paramType = p.spec.biasType = BF16;
}
/// as Kimi and Qwen3-Next are served,
inline void betaFp32(P &p) {
  p.spec.betaType = F32;
  p.spec.biasType = BF16;
  p.spec.betaRound = true;
}
/// and the other way round.
inline void gateFp32(P &p) {
  p.spec.gateType = F32;
  p.spec.paramType = BF16;
  p.spec.betaRound = true;
}

/// Types of which none is another's, as mixed checkpoints have them.
inline void gatesFp16(P &p) {
  p.spec.gateType = p.spec.biasType = F16;
  p.spec.betaType = F32;
  p.spec.paramType = F16;
}
/// As flash-linear-attention calls its operators.
inline void gatesGiven(P &p) {
  p.spec.gate = Gate::LogDecay;
  p.spec.beta = Beta::Given;
  p.spec.gateType = F32;
}

/// Mamba-2, as engines run it: A is there in place of its logarithm.
inline void setMamba2(P &p) {
  p.spec.rule = Rule::Additive;
  p.spec.beta = Beta::Step;
  p.spec.gate = Gate::Rate;
  p.spec.skip = Skip::Head;
  p.spec.qkL2Norm = false;
  p.spec.hasSeparateQkv = true;
  p.scale = 1;
}
/// Lightning attention and RetNet.
inline void setFixedGate(P &p) {
  p.spec.rule = Rule::Additive;
  p.spec.beta = Beta::One;
  p.spec.gate = Gate::Fixed;
  p.spec.qkL2Norm = false;
}

/// Small, and with all that a batch can contain: rows at different ring phases,
/// a null slot, forced flushes (two in a row, the first and the last step),
/// space between rows and slots.
inline DecodeProblem baseProblem(Readout readout) {
  DecodeProblem problem;
  problem.spec.numKeyHeads = 2;
  problem.spec.numValueHeads = 4;
  problem.spec.headDimK = problem.spec.headDimV = 64;
  problem.spec.ringDepth = 8;
  problem.spec.readout = readout;
  problem.slots = 7;
  problem.rowSlots = {5, -1, 2, 0};
  problem.forcedFlushes = {{0, 2}, {3, 0}, {4, 0}, {17, 3}, {39, 0}};
  problem.staggered = true;
  problem.rowPadding = problem.slotPadding = 8;
  return problem;
}

inline void setTypes(DecodeSpec &spec, DataType act, DataType out,
                     DataType state, DataType ring) {
  spec.actType = spec.gateType = spec.betaType = act;
  spec.outType = out;
  spec.stateType = state;
  spec.ringType = ring;
}

inline void setSizes(DecodeSpec &spec, int heads, int valueHeads, int k, int v,
                     int depth) {
  spec.numKeyHeads = heads;
  spec.numValueHeads = valueHeads;
  spec.headDimK = k;
  spec.headDimV = v;
  spec.ringDepth = depth;
}

inline void setUnaligned(P &p) {
  p.spec.alignment = 0;
  p.misaligned = true;
  p.rowPadding = 3;
  p.slotPadding = 5;
}

inline void setKda(DecodeSpec &spec, Gate gate = Gate::Softplus) {
  spec.isKda = true;
  spec.gate = gate;
}

inline void setBounded(P &p, float lowerBound = -5) {
  setKda(p.spec, Gate::LowerBound);
  p.lowerBound = lowerBound;
}

/// Adds the variation of `problem`, tuned for its batch. What must not be read
/// changes from case to case.
void addCase(std::vector<DecodeCase> &cases, std::string name,
             DecodeProblem problem, const Variation &variation,
             const Target &target);

// The lists of DecodeSuiteOperators.cpp.
void addPacked(std::vector<DecodeCase> &cases, const Target &target);
void addFormats(std::vector<DecodeCase> &cases, const Target &target);
void addIndices(std::vector<DecodeCase> &cases, const Target &target);
void addVerify(std::vector<DecodeCase> &cases, const Target &target);
void addMaterialize(std::vector<DecodeCase> &cases, const Target &target);
void addTriton(std::vector<DecodeCase> &cases, const Target &target);
void addRules(std::vector<DecodeCase> &cases, const Target &target);
void addRulesReal(std::vector<DecodeCase> &cases, const Target &target);
void addLong(std::vector<DecodeCase> &cases, const Target &target);

} // namespace replayjit::internal

#endif
