//===- FamilyErrorsTest.cpp - Specs that a family does not allow ----------===//
//
// Whole sentences: field, value, where it is not allowed, what is.
//
//===----------------------------------------------------------------------===//

#include "kernels/Decode/DecodeSpec.h"

#include <catch2/catch.hpp>

using namespace replayjit::internal;

namespace {
using Change = void (*)(DecodeSpec &);
struct Case {
  Change change;
  const char *sentence;
};
} // namespace

static Status validated(const DecodeSpec &spec) {
  return validate(spec, chooseTuning(spec, 1, Target{}), Target{});
}

static void checkRefused(const DecodeSpec &good,
                         std::initializer_list<Case> cases) {
  CHECK(validated(good).message == "");
  for (const Case &entry : cases) {
    DecodeSpec spec = good;
    entry.change(spec);
    Status status = validated(spec);
    CHECK(status.code == StatusCode::InvalidArgument);
    CHECK(status.message == entry.sentence);
  }
}

static void checkAllowed(const DecodeSpec &good,
                         std::initializer_list<Change> changes) {
  for (Change change : changes) {
    DecodeSpec spec = good;
    change(spec);
    CHECK(validated(spec).message == "");
  }
}

static DecodeSpec packed() {
  DecodeSpec spec;
  spec.family = Family::Packed;
  spec.ringDepth = 1;
  return spec;
}

static DecodeSpec materialize() {
  DecodeSpec spec;
  spec.family = Family::Materialize;
  return spec;
}

static DecodeSpec prefix() {
  DecodeSpec spec = *modelPreset("kimi-k3", 8);
  spec.ringFormat = RingFormat::Prefix;
  return spec;
}

static DecodeSpec predecayed() {
  DecodeSpec spec = prefix();
  spec.ringFormat = RingFormat::Predecayed;
  return spec;
}

TEST_CASE("packed decode has no ring", "[error]") {
  checkRefused(
      packed(),
      {{[](DecodeSpec &s) { s.ringDepth = 8; },
        "ringDepth: 8 is not allowed for the packed family, which has no ring; "
        "it must be 1"},
       {[](DecodeSpec &s) { s.isCircular = true; },
        "isCircular: true is not allowed for the packed family, which has no "
        "ring; it must be false"},
       {[](DecodeSpec &s) { s.hasRingIndices = true; },
        "hasRingIndices: true is not allowed for the packed family, which has "
        "no ring; it must be false"},
       {[](DecodeSpec &s) { s.ringFormat = RingFormat::Prefix; },
        "ringFormat: prefix is not allowed for the packed family, which has no "
        "ring; it must be raw"},
       {[](DecodeSpec &s) { s.ringFormat = RingFormat::Predecayed; },
        "ringFormat: predecayed is not allowed for the packed family, which "
        "has no ring; it must be raw"}});
  checkAllowed(packed(), {[](DecodeSpec &s) { s.hasDstIndices = true; },
                          [](DecodeSpec &s) { s.hasTrackIndices = true; },
                          [](DecodeSpec &s) { s.hasSeparateQkv = true; },
                          [](DecodeSpec &s) { s.hasForceFlush = false; },
                          [](DecodeSpec &s) { s.isKda = true; }});
}

TEST_CASE("materialize has rings and destinations", "[error]") {
  checkRefused(
      materialize(),
      {{[](DecodeSpec &s) { s.hasDstIndices = true; },
        "hasDstIndices: true is not allowed for the materialize family, which "
        "always has destinations; it must be false"},
       {[](DecodeSpec &s) { s.hasTrackIndices = true; },
        "hasTrackIndices: true is not allowed for the materialize family; it "
        "must be false"},
       // What it reads is checked as everywhere.
       {[](DecodeSpec &s) { s.stateType = DataType::I32; },
        "stateType: int32 is not allowed; allowed are fp32, bf16, fp16"},
       {[](DecodeSpec &s) { s.ringFormat = RingFormat::Prefix; },
        "ringFormat: prefix is not allowed for GDN; it must be raw"}});
}

TEST_CASE("materialize does not care about tokens", "[error]") {
  for (RingFormat format : {RingFormat::Raw, RingFormat::Prefix}) {
    DecodeSpec spec = materialize();
    spec.isKda = format != RingFormat::Raw;
    spec.numValueHeads = spec.isKda ? 16 : 32;
    spec.ringFormat = format;
    checkAllowed(spec, {[](DecodeSpec &s) { s.actType = DataType::F16; },
                        [](DecodeSpec &s) { s.gateType = DataType::F16; },
                        [](DecodeSpec &s) { s.betaType = DataType::F16; },
                        [](DecodeSpec &s) { s.paramType = DataType::F16; },
                        [](DecodeSpec &s) { s.biasType = DataType::F16; },
                        [](DecodeSpec &s) { s.gate = Gate::LowerBound; },
                        [](DecodeSpec &s) { s.gate = Gate::Softplus; },
                        [](DecodeSpec &s) { s.qkL2Norm = false; },
                        [](DecodeSpec &s) { s.betaRound = true; },
                        [](DecodeSpec &s) { s.rule = Rule::Additive; },
                        [](DecodeSpec &s) { s.beta = Beta::Step; },
                        [](DecodeSpec &s) { s.gate = Gate::Fixed; },
                        [](DecodeSpec &s) { s.hasStepLimits = true; },
                        [](DecodeSpec &s) { s.hasSeparateQkv = true; },
                        [](DecodeSpec &s) { s.hasForceFlush = false; },
                        [](DecodeSpec &s) { s.hasRingIndices = true; },
                        [](DecodeSpec &s) { s.hasMask = false; }});
  }
  // Whatever a replay kernel may be, its slots can be materialized.
  for (DecodeSpec spec : {DecodeSpec(), prefix(), predecayed()}) {
    spec.family = Family::Materialize;
    CHECK(validated(spec).message == "");
    spec.isCircular = true;
    CHECK(validated(spec).message == "");
  }
}

TEST_CASE("where d and g come from", "[error]") {
  DecodeSpec mamba;
  mamba.rule = Rule::Additive;
  mamba.beta = Beta::Step;
  for (Family family : {Family::Replay, Family::Packed}) {
    mamba.family = family;
    mamba.ringDepth = family == Family::Packed ? 1 : 16;
    checkRefused(
        mamba,
        {{[](DecodeSpec &s) { s.rule = Rule::Delta; },
          "beta: step is not allowed with rule delta; it needs rule additive, "
          "since a step has no upper bound"},
         {[](DecodeSpec &s) { s.isKda = true; },
          "beta: step is not allowed for KDA; an a of each channel is no "
          "number "
          "for the whole token"},
         {[](DecodeSpec &s) { s.gate = Gate::LogDecay; },
          "beta: step is not allowed with gate logDecay; it needs gate "
          "softplus "
          "or rate, which have a step"},
         {[](DecodeSpec &s) { s.gate = Gate::Fixed; },
          "beta: step is not allowed with gate fixed; it needs gate softplus "
          "or "
          "rate, which have a step"},
         {[](DecodeSpec &s) { s.gate = Gate::LowerBound; },
          "beta: step is not allowed with gate lowerBound; it needs gate "
          "softplus or rate, which have a step"},
         {[](DecodeSpec &s) { s.hasStepLimits = true, s.beta = Beta::One; },
          "hasStepLimits: true is not allowed with beta one; it needs beta "
          "step"},
         {[](DecodeSpec &s) {
            s.gate = Gate::Fixed, s.beta = Beta::One, s.isKda = true;
          },
          "gate: fixed is not allowed for KDA; a number for each head is no "
          "gate over K"}});
    checkAllowed(mamba, {[](DecodeSpec &s) { s.hasStepLimits = true; },
                         [](DecodeSpec &s) { s.gate = Gate::Rate; },
                         [](DecodeSpec &s) { s.skip = Skip::Channel; },
                         [](DecodeSpec &s) { s.hasOutGate = true; },
                         [](DecodeSpec &s) { s.beta = Beta::Sigmoid; },
                         [](DecodeSpec &s) { s.readout = Readout::Rebuild; }});
  }
  // An additive rule has no sums in its ring, and no use for short keys.
  checkRefused(
      prefix(),
      {{[](DecodeSpec &s) { s.rule = Rule::Additive; },
        "ringFormat: prefix is not allowed with rule additive; it must "
        "be raw"}});
  checkRefused(predecayed(),
               {{[](DecodeSpec &s) {
                   s.rule = Rule::Additive;
                   s.qkL2Norm = false, s.hasUnitKeys = true;
                 },
                 "ringFormat: predecayed is not allowed with rule additive; it "
                 "must be raw"}});
}

TEST_CASE("ring formats of running sums", "[error]") {
  checkRefused(
      prefix(),
      {{[](DecodeSpec &s) { s.isKda = false, s.gate = Gate::Softplus; },
        "ringFormat: prefix is not allowed for GDN; it must be raw"},
       {[](DecodeSpec &s) { s.gate = Gate::Softplus; },
        "ringFormat: prefix is not allowed with the softplus gate; it needs "
        "gate lowerBound with a finite negative bound"},
       {[](DecodeSpec &s) { s.gate = Gate::LogDecay; },
        "ringFormat: prefix is not allowed with the logDecay gate; it needs "
        "gate lowerBound with a finite negative bound"}});
  checkRefused(
      predecayed(),
      {{[](DecodeSpec &s) { s.gate = Gate::Softplus; },
        "ringFormat: predecayed is not allowed with the softplus gate; it "
        "needs gate lowerBound with a finite negative bound"},
       {[](DecodeSpec &s) { s.qkL2Norm = false; },
        "ringFormat: predecayed is not allowed with qkL2Norm = false; "
        "inverse-prefix scaling is unsafe for long keys, so it needs the L2 "
        "norm of k or hasUnitKeys"},
       {[](DecodeSpec &s) { s.numKeyHeads = 6; },
        "ringFormat: predecayed is not allowed with numKeyHeads = 6 and "
        "numValueHeads = 12; it needs one K head for each value head, so they "
        "must be equal"},
       {[](DecodeSpec &s) { s.ringType = DataType::F16; },
        "ringType: fp16 is not allowed with ringFormat predecayed, which "
        "overflows it; allowed are fp32, bf16"}});
  checkAllowed(prefix(), {[](DecodeSpec &s) { s.ringType = DataType::F16; },
                          [](DecodeSpec &s) { s.isCircular = true; },
                          [](DecodeSpec &s) { s.qkL2Norm = false; },
                          [](DecodeSpec &s) { s.numValueHeads = 24; },
                          [](DecodeSpec &s) { s.ringDepth = 1; },
                          [](DecodeSpec &s) { s.readout = Readout::Rebuild; }});
  checkAllowed(predecayed(),
               {[](DecodeSpec &s) { s.isCircular = true; },
                [](DecodeSpec &s) { s.qkL2Norm = false, s.hasUnitKeys = true; },
                [](DecodeSpec &s) { s.ringDepth = 64; },
                [](DecodeSpec &s) { s.ringType = DataType::BF16; }});
}

TEST_CASE("a circular ring has a row to keep", "[error]") {
  for (DecodeSpec good : {DecodeSpec(), prefix(), predecayed()}) {
    good.isCircular = true;
    good.ringDepth = 2;
    checkRefused(good, {{[](DecodeSpec &s) { s.ringDepth = 1; },
                         "ringDepth: 1 is not allowed with isCircular; it must "
                         "be 2 to 64"}});
  }
}

TEST_CASE("verify has a ring that wraps and holds its tokens", "[error]") {
  DecodeSpec good;
  good.family = Family::Verify;
  good.isCircular = true;
  good.numTokens = 4;
  checkRefused(
      good,
      {{[](DecodeSpec &s) { s.isCircular = false; },
        "isCircular: false is not allowed for the verify family, whose rings "
        "wrap; it must be true"},
       {[](DecodeSpec &s) { s.ringDepth = 3; },
        "ringDepth: 3 is not allowed for the verify family with numTokens = 4, "
        "which a ring must hold; it must be 4 to 64"},
       {[](DecodeSpec &s) { s.ringDepth = s.numTokens = 1; },
        "ringDepth: 1 is not allowed with isCircular; it must be 2 to 64"},
       {[](DecodeSpec &s) { s.numTokens = 17; },
        "numTokens: 17 is not allowed; it must be 1 to 16"},
       {[](DecodeSpec &s) { s.hasTrackIndices = true; },
        "hasTrackIndices: true is not allowed for the verify family, which "
        "does not know the tokens that hold; it must be false"},
       {[](DecodeSpec &s) { s.abi = LaunchAbi::Triton; },
        "abi: triton is not allowed with family verify; its signature is that "
        "of the replay kernel"},
       {[](DecodeSpec &s) { s.hasDstIndices = true; },
        "hasDstIndices: true is not allowed for a circular ring without ring "
        "indices: after a natural flush the last token would stay in the old "
        "slot's ring; it must be false"}});
  checkAllowed(good, {[](DecodeSpec &s) { s.ringDepth = 4; },
                      [](DecodeSpec &s) { s.numTokens = 16; },
                      [](DecodeSpec &s) { s.tokenRows = TokenRows::Ragged; },
                      [](DecodeSpec &s) { s.hasForceFlush = false; },
                      [](DecodeSpec &s) { s.hasRingIndices = true; },
                      [](DecodeSpec &s) { s.readout = Readout::Rebuild; }});
  // Others have one token a row, whatever the fact says.
  DecodeSpec replay;
  replay.numTokens = 99;
  CHECK(validated(replay).message == "");
}

TEST_CASE("KDA has both readouts", "[error]") {
  DecodeSpec spec;
  spec.isKda = true;
  checkAllowed(spec, {[](DecodeSpec &s) { s.readout = Readout::Rebuild; }});
  spec.readout = Readout::Rebuild;
  checkRefused(spec, {{[](DecodeSpec &s) { s.headDimK = 8; },
                       "headDimK: 8 is not allowed with the rebuild readout; "
                       "it must be 9 or more there"}});
}
