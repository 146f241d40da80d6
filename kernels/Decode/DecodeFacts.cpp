//===- DecodeFacts.cpp - The facts of a decode kernel, one row each -------===//
//
// What is said here of a member of DecodeSpec or DecodeTuning is said nowhere
// else; Facts.h tells what follows. Rules between facts are functions of
// DecodeSpec.cpp and of a family's folder. The C struct in replayjit.h has the
// same members in the same order.
//
//===----------------------------------------------------------------------===//

#include "kernels/Decode/DecodeSpec.h"
#include "kernels/Families.h"

namespace replayjit::internal {

using enum DataType;

static constexpr auto ofStates = has<&FamilyTraits::states>;
static constexpr auto ofTokens = has<&FamilyTraits::tokens>;
static constexpr auto ofDrafts = has<&FamilyTraits::drafts>;
static bool hasA(const DecodeSpec &spec) {
  return traitsOf(spec).tokens && hasGateInput(spec);
}
static bool hasB(const DecodeSpec &spec) {
  return traitsOf(spec).tokens && hasBetaInput(spec);
}
static bool hasALog(const DecodeSpec &spec) {
  return traitsOf(spec).tokens && hasLogRate(spec);
}
static bool hasBiasOrSkip(const DecodeSpec &spec) {
  return traitsOf(spec).tokens && (hasBias(spec) || spec.skip != Skip::None);
}
static bool computesBeta(const DecodeSpec &spec) {
  return hasB(spec) && spec.beta != Beta::Given;
}
static bool hasPredecayedTokens(const DecodeSpec &spec) {
  return traitsOf(spec).tokens && spec.ringFormat == RingFormat::Predecayed;
}
static bool isProgrammaticToken(const DecodeSpec &spec) {
  return traitsOf(spec).tokens &&
         spec.programmaticLaunch != ProgrammaticLaunch::None;
}
/// A rebuild readout rounds its operands to the output's type.
static bool hasOutType(const DecodeSpec &spec) {
  return traitsOf(spec).tokens ||
         (traitsOf(spec).states && spec.readout == Readout::Rebuild);
}

// What a name need not say.
static bool hasTypeOfGate(const DecodeSpec &spec) {
  return hasA(spec) && spec.betaType == spec.gateType;
}
static bool hasTypeOfParam(const DecodeSpec &spec) {
  return hasALog(spec) && spec.biasType == spec.paramType;
}
/// All but raw rings have the bounded gate.
static bool hasBoundedFormat(const DecodeSpec &spec) {
  return spec.ringFormat != RingFormat::Raw;
}
static bool hasNoCap(const DecodeTuning &tuning) {
  return tuning.maxRegisters == 0;
}
static bool hasNoStages(const DecodeTuning &tuning) {
  return tuning.stageBytes == 0;
}
static bool splitsNothing(const DecodeTuning &tuning) {
  return !tuning.splitVectors;
}

static constexpr Few floats = {F32, BF16, F16};
/// Most kernels have an fp32 state.
static constexpr Few drawnFloats = {F32, F32, BF16, F16};
static constexpr Few drawnSizes = {1, 8, 16, 32, 60, 64, 80, 96, 100, 128, 130};
static constexpr Few rarely = {false, false, false, false, false, true};

static constexpr Fact<DecodeSpec> decodeTable[] = {
    fact<&DecodeSpec::family>({
        .name = "family",
        .doc = "Which kernel: of a token with a ring, of one without, of rings "
               "to fold, of the cursors of a step, or of several tokens with a "
               "ring",
        .flag = "--family",
    }),
    fact<&DecodeSpec::isKda>({
        .name = "isKda",
        .in = ofStates,
        .doc = "Kimi Delta Attention: the gate is a vector over K",
        .flag = "--kda",
        .parts = {"gdn", "kda"},
    }),
    fact<&DecodeSpec::numKeyHeads>({
        .name = "numKeyHeads",
        .in = ofStates,
        .allowed = {1, maxHeads},
        .doc = "Key heads, H",
        .flag = "--heads",
        .parts = {"h"},
        .draws = {1, 1, 1, 2, 3},
    }),
    fact<&DecodeSpec::numValueHeads>({
        .name = "numValueHeads",
        .in = ofStates,
        .allowed = {1, maxHeads},
        .doc = "Value heads, a multiple of H",
        .flag = "--value-heads",
        .parts = {"hv"},
        .draws = {1, 1, 2, 3},
    }),
    fact<&DecodeSpec::headDimK>({
        .name = "headDimK",
        .in = ofStates,
        .allowed = {1, maxHeadDim},
        .doc = "Size of a key head, K",
        .flag = "--k",
        .parts = {"k"},
        .draws = drawnSizes,
    }),
    fact<&DecodeSpec::headDimV>({
        .name = "headDimV",
        .in = ofStates,
        .allowed = {1, maxHeadDim},
        .doc = "Size of a value head, V",
        .flag = "--v",
        .parts = {"v"},
        .draws = drawnSizes,
    }),
    fact<&DecodeSpec::ringDepth>({
        .name = "ringDepth",
        .allowed = {1, maxRingDepth},
        .doc = "Tokens between two flushes, L; packed has no ring, so 1",
        .flag = "-L,--ring-depth",
        .parts = {"l"},
        .draws = {1, 2, 3, 4, 5, 8, 8, 11, 16, 16, 19},
    }),
    fact<&DecodeSpec::actType>({
        .name = "actType",
        .in = ofTokens,
        .allowed = {.values = floats},
        .doc = "Type of q, k and v",
        .flag = "--act",
        .parts = {"act"},
        .draws = drawnFloats,
    }),
    fact<&DecodeSpec::gateType>({
        .name = "gateType",
        .in = hasA,
        .allowed = {.values = floats},
        .doc = "Type of a, of which the gate is made, and the step",
        .flag = "--gate-type",
        .parts = {"gate"},
        .isMinor = true,
        .draws = drawnFloats,
    }),
    fact<&DecodeSpec::betaType>({
        .name = "betaType",
        .in = hasB,
        .allowed = {.values = floats},
        .doc = "Type of b, of which beta is made",
        .flag = "--beta-type",
        .parts = {"beta"},
        .isImplied = hasTypeOfGate,
        .isMinor = true,
        .draws = drawnFloats,
    }),
    fact<&DecodeSpec::paramType>({
        .name = "paramType",
        .in = hasALog,
        .allowed = {.values = floats},
        .doc = "Type of A_log",
        .flag = "--param-type",
        .parts = {"param"},
        .isMinor = true,
        .draws = drawnFloats,
    }),
    fact<&DecodeSpec::biasType>({
        .name = "biasType",
        .in = hasBiasOrSkip,
        .allowed = {.values = floats},
        .doc = "Type of dt_bias, and of D",
        .flag = "--bias-type",
        .parts = {"bias"},
        .isImplied = hasTypeOfParam,
        .isMinor = true,
        .draws = drawnFloats,
    }),
    fact<&DecodeSpec::outType>({
        .name = "outType",
        .in = hasOutType,
        .allowed = {.values = floats},
        .doc = "Type of the output",
        .flag = "--out-type",
        .parts = {"out"},
        .draws = drawnFloats,
    }),
    fact<&DecodeSpec::stateType>({
        .name = "stateType",
        .in = ofStates,
        .allowed = {.values = floats},
        .doc = "Type of the state",
        .flag = "--state",
        .parts = {"state"},
        .draws = drawnFloats,
    }),
    fact<&DecodeSpec::ringType>({
        .name = "ringType",
        .in = has<&FamilyTraits::rings>,
        .allowed = {.values = floats},
        .doc = "Type of the ring's d and k; its gates are fp32",
        .flag = "--ring",
        .parts = {"ring"},
        .draws = drawnFloats,
    }),
    fact<&DecodeSpec::indexType>({
        .name = "indexType",
        .allowed = {.values = {I32, I64}},
        .doc = "Type of all indices",
        .flag = "--index-type",
        .parts = {"", "", "", "idx32", "idx64"},
        .isMinor = true,
        .draws = {I32, I32, I32, I64},
    }),
    fact<&DecodeSpec::qkL2Norm>({
        .name = "qkL2Norm",
        .in = ofTokens,
        .doc = "q and k are L2-normalized over K (eps 1e-6)",
        .flag = "--no-l2norm",
        .parts = {"nonorm", "l2norm"},
        .isMinor = true,
        .draws = {true, true, true, true, true, false},
    }),
    fact<&DecodeSpec::gate>({
        .name = "gate",
        .in = ofTokens,
        .doc =
            "How a decay follows from a; with logDecay, a is its logarithm, "
            "and there is no A_log and no dt_bias; with fixed, A_log is, and "
            "there is no a; with rate, A_log holds -exp of itself",
        .flag = "--gate",
        .parts = {"", "lowerbound", "logdecay", "fixedgate", "rate"},
        .isImplied = hasBoundedFormat,
        .isMinor = true,
        .draws = {Gate::Softplus, Gate::Softplus, Gate::Softplus,
                  Gate::LowerBound, Gate::LowerBound, Gate::LogDecay,
                  Gate::Fixed, Gate::Rate},
    }),
    fact<&DecodeSpec::betaRound>({
        .name = "betaRound",
        .in = computesBeta,
        .doc = "beta is rounded through the type of b",
        .flag = "--beta-round",
        .parts = {"", "betaround"},
        .isMinor = true,
        .draws = rarely,
    }),
    fact<&DecodeSpec::hasForceFlush>({
        .name = "hasForceFlush",
        .in = has<&FamilyTraits::forcedFlush>,
        .doc = "The force_flush argument is present",
        .flag = "--no-force-flush",
        .parts = {"noforce", "force"},
        .isMinor = true,
        .draws = {true, true, true, false},
    }),
    fact<&DecodeSpec::ringFormat>({
        .name = "ringFormat",
        .in = ofStates,
        .doc = "What a ring row of KDA holds; all but raw need the bounded "
               "gate, and predecayed the L2 norm (or unit keys) and as many "
               "value heads as key heads",
        .flag = "--ring-format",
        .parts = {"", "prefix", "predecayed"},
        .draws = {RingFormat::Raw, RingFormat::Raw, RingFormat::Raw,
                  RingFormat::Raw, RingFormat::Raw, RingFormat::Raw,
                  RingFormat::Prefix, RingFormat::Predecayed},
    }),
    fact<&DecodeSpec::isCircular>({
        .name = "isCircular",
        .doc = "A full ring wraps around and keeps its newest tokens",
        .flag = "--circular",
        .parts = {"", "circ"},
    }),
    fact<&DecodeSpec::hasSeparateQkv>({
        .name = "hasSeparateQkv",
        .in = ofTokens,
        .doc = "q, k and v are three tensors instead of one",
        .flag = "--separate-qkv",
        .parts = {"", "qkv"},
        .isMinor = true,
        .draws = rarely,
    }),
    fact<&DecodeSpec::hasRingIndices>({
        .name = "hasRingIndices",
        .in = ofStates,
        .doc = "Rings have indices of their own",
        .flag = "--ring-indices",
        .parts = {"", "ringidx"},
        .isMinor = true,
        .draws = rarely,
    }),
    fact<&DecodeSpec::hasDstIndices>({
        .name = "hasDstIndices",
        .in = ofStates,
        .doc = "A flush writes the state to the slot of another index",
        .flag = "--dst-indices",
        .parts = {"", "dst"},
        .draws = rarely,
    }),
    fact<&DecodeSpec::hasTrackIndices>({
        .name = "hasTrackIndices",
        .in = ofStates,
        .doc = "A further index says where the state is stored too",
        .flag = "--track-indices",
        .parts = {"", "track"},
        .draws = rarely,
    }),
    fact<&DecodeSpec::hasMask>({
        .name = "hasMask",
        .in = has<&FamilyTraits::mask>,
        .doc = "Materialize: the mask argument is present",
        .flag = "--no-mask",
        .parts = {"nomask", "mask"},
        .isMinor = true,
        .draws = {true, true, false},
    }),
    fact<&DecodeSpec::trapOnError>({
        .name = "trapOnError",
        .doc = "What the error word reports ends the launch too, as a fault of "
               "the whole context: for debugging",
        .flag = "--trap-on-error",
        .parts = {"", "trap"},
        .isMinor = true,
        .draws = rarely,
    }),
    fact<&DecodeSpec::programmaticLaunch>({
        .name = "programmaticLaunch",
        .in = ofStates,
        .doc = "May start before the kernel before it ends, and where it lets "
               "the next one start: after its wait, or at its own start; needs "
               "sm_90",
        .flag = "--programmatic-launch",
        .parts = {"", "pdl", "early"},
        .draws = {ProgrammaticLaunch::None, ProgrammaticLaunch::None,
                  ProgrammaticLaunch::None, ProgrammaticLaunch::None,
                  ProgrammaticLaunch::Late, ProgrammaticLaunch::Early},
    }),
    fact<&DecodeSpec::nullSlot>({
        .name = "nullSlot",
        .doc = "Slots that mean no request: below 0, or 0 too",
        .flag = "--null-slot",
        .parts = {"nullneg", "nullnonpos"},
        .isMinor = true,
        .draws = {NullSlot::Negative, NullSlot::Negative, NullSlot::Negative,
                  NullSlot::NonPositive},
    }),
    fact<&DecodeSpec::readout>({
        .name = "readout",
        .in = ofStates,
        .doc = "How the state is read: its parts by fp32 products, or tiles of "
               "it that tensor cores make",
        .flag = "--readout",
        .parts = {"outonly", "rebuild"},
        .draws = {Readout::OutputOnly, Readout::OutputOnly, Readout::OutputOnly,
                  Readout::Rebuild},
    }),
    fact<&DecodeSpec::alignment>({
        .name = "alignment",
        .in = ofStates,
        .allowed = {.values = {0, 16}},
        .doc = "Bytes that divide every pointer, row stride and slot pitch; 0: "
               "those of an element",
        .flag = "--alignment",
        .parts = {"al"},
        .draws = {0, 16, 16},
    }),
    fact<&DecodeSpec::abi>({
        .name = "abi",
        .in = ofStates,
        .doc = "How a launch hands over its arguments: one struct, or what "
               "Triton's launcher passes to the replay kernel, all dense",
        .flag = "--abi",
        .parts = {"", "triton"},
        .draws = {LaunchAbi::Native, LaunchAbi::Native, LaunchAbi::Native,
                  LaunchAbi::Native, LaunchAbi::Native, LaunchAbi::Native,
                  LaunchAbi::Triton},
    }),
    fact<&DecodeSpec::beta>({
        .name = "beta",
        .in = ofTokens,
        .doc =
            "How beta follows from b; with step, it is softplus(a + dt_bias), "
            "and with one, 1, and there is no b",
        .flag = "--beta",
        .parts = {"", "twobeta", "givenbeta", "step", "onebeta"},
        .isMinor = true,
        .draws = {Beta::Sigmoid, Beta::Sigmoid, Beta::Sigmoid,
                  Beta::TwiceSigmoid, Beta::Given, Beta::Step, Beta::One},
    }),
    fact<&DecodeSpec::hasUnitKeys>({
        .name = "hasUnitKeys",
        .in = hasPredecayedTokens,
        .doc = "Predecayed rings without the L2 norm: the caller's keys have a "
               "norm of 1 or less",
        .flag = "--unit-keys",
        .parts = {"", "unitkeys"},
        .isMinor = true,
    }),
    fact<&DecodeSpec::numTokens>({
        .name = "numTokens",
        .in = ofDrafts,
        .allowed = {1, maxTokens},
        .doc = "Tokens that a row of verify has at most, T",
        .flag = "-T,--tokens",
        .parts = {"t"},
        .draws = {1, 2, 3, 4, 4, 5, 8, 16},
    }),
    fact<&DecodeSpec::tokenRows>({
        .name = "tokenRows",
        .in = ofDrafts,
        .doc =
            "How many tokens a row of verify has: T, those counted, or those "
            "from one offset to the next",
        .flag = "--token-rows",
        .parts = {"", "counted", "ragged"},
    }),
    fact<&DecodeSpec::dependents>({
        .name = "dependents",
        .in = isProgrammaticToken,
        .doc = "What a programmatic launch reads only once the kernel before "
               "has ended: the token's q, k, v, a and b, or all arguments",
        .flag = "--dependents",
        .parts = {"", "all"},
    }),
    fact<&DecodeSpec::rule>({
        .name = "rule",
        .in = ofTokens,
        .doc = "What a token adds along its key: what the state lacks of v, or "
               "v; each times beta",
        .flag = "--rule",
        .parts = {"", "add"},
        .draws = {Rule::Delta, Rule::Delta, Rule::Additive},
    }),
    fact<&DecodeSpec::skip>({
        .name = "skip",
        .in = ofTokens,
        .doc = "What else goes into the output: D v, where D has a number for "
               "each value head, or for each channel of it",
        .flag = "--skip",
        .parts = {"", "d", "dv"},
        .isMinor = true,
        .draws = {Skip::None, Skip::None, Skip::Head, Skip::Channel},
    }),
    fact<&DecodeSpec::hasOutGate>({
        .name = "hasOutGate",
        .in = ofTokens,
        .doc = "The output is multiplied by silu(z), of a z as v",
        .flag = "--out-gate",
        .parts = {"", "z"},
        .isMinor = true,
        .draws = {false, false, true},
    }),
    fact<&DecodeSpec::hasStepLimits>({
        .name = "hasStepLimits",
        .in = ofTokens,
        .doc = "The step is cut to step_min and step_max",
        .flag = "--step-limits",
        .parts = {"", "limits"},
        .isMinor = true,
        .draws = rarely,
    }),
};
static_assert(isComplete<DecodeSpec>(decodeTable));

static constexpr Fact<DecodeTuning> tuningTable[] = {
    fact<&DecodeTuning::blockV>({
        .name = "blockV",
        .allowed = {.values = {8, 16, 32, 64, 128, 256}},
        .doc = "Rows of the state per block",
        .flag = "--block-v",
        .parts = {"bv"},
        .draws = {8, 16, 32, 64, 128},
    }),
    fact<&DecodeTuning::blockK>({
        .name = "blockK",
        .allowed = {.values = {1, 2, 4, 8, 16, 32, 64, 128, 256}},
        .doc = "Columns per K tile",
        .flag = "--block-k",
        .parts = {"bk"},
        .draws = {4, 16, 32, 64, 128},
    }),
    fact<&DecodeTuning::numWarps>({
        .name = "numWarps",
        .allowed = {.values = {1, 2, 4, 8}},
        .doc = "Warps per block",
        .flag = "--warps",
        .parts = {"w"},
    }),
    fact<&DecodeTuning::flushRows>({
        .name = "flushRows",
        .allowed = {.values = {0, 1, 2, 4, 8}},
        .doc = "Ring rows folded per step of a flush; 0: all of a 16-bit ring "
               "at once, by exact products on tensor cores",
        .flag = "--flush-rows",
        .parts = {"fr"},
    }),
    fact<&DecodeTuning::maxRegisters>({
        .name = "maxRegisters",
        .allowed = {32, 255, {0}},
        .doc = "Cap of a thread's registers; 0: none",
        .flag = "--max-registers",
        .parts = {"mr"},
        .isImplied = hasNoCap,
        .draws = {0, 0, 0, 96, 168, 255},
    }),
    fact<&DecodeTuning::stageBytes>({
        .name = "stageBytes",
        .allowed = {16, 1 << 20, {0}},
        .doc = "The least bytes that a block copies to shared memory before it "
               "loads them; 0: none",
        .flag = "--stage-bytes",
        .parts = {"st"},
        .isImplied = hasNoStages,
        .draws = {0, 0, 16, 2048},
    }),
    fact<&DecodeTuning::splitVectors>({
        .name = "splitVectors",
        .doc = "A 16-bit state is read by exact products on tensor cores, with "
               "q and k split into numbers of fewer digits",
        .flag = "--split-vectors",
        .parts = {"", "split"},
        .isImplied = splitsNothing,
    }),
};
static_assert(isComplete<DecodeTuning>(tuningTable));

std::span<const Fact<DecodeSpec>> decodeFacts() { return decodeTable; }
std::span<const Fact<DecodeTuning>> tuningFacts() { return tuningTable; }

} // namespace replayjit::internal
