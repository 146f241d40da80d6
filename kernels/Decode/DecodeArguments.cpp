//===- DecodeArguments.cpp - The arguments of a decode step ---------------===//
//
// Of kernels that have tokens, in both ABIs; and of a layer's pool, which they
// have in common with materialize.
//
//===----------------------------------------------------------------------===//

#include "kernels/Decode/DecodeArguments.h"

#include "kernels/Decode/TritonArgs.h"
#include "kernels/Families.h"

#include <cstddef>

namespace replayjit::internal {

using namespace arguments;

static constexpr Presence ifCursor{has<&FamilyTraits::rings>, "REPLAY only"};
static constexpr Presence ifForceFlush{
    [](Spec spec) { return traitsOf(spec).forcedFlush && spec.hasForceFlush; },
    "if has_force_flush"};
static constexpr Presence ifGateInput{hasGateInput, "unless GATE_FIXED"};
static constexpr Presence ifBetaInput{hasBetaInput,
                                      "unless BETA_STEP or BETA_ONE"};
static constexpr Presence ifLogRate{hasLogRate, "unless GATE_LOG_DECAY"};
static constexpr Presence ifBias{hasBias,
                                 "unless GATE_LOG_DECAY or GATE_FIXED"};
static constexpr Presence ifSkip{
    [](Spec spec) { return spec.skip != Skip::None; }, "unless SKIP_NONE"};
static constexpr Presence ifOutGate{[](Spec spec) { return spec.hasOutGate; },
                                    "if has_out_gate"};
static constexpr Presence ifStepLimits{
    [](Spec spec) { return spec.hasStepLimits; }, "if has_step_limits"};
/// Of D.
static constexpr Extent skipChannels{
    "V if SKIP_CHANNEL", [](Spec spec) -> int64_t {
      return spec.skip == Skip::Channel ? spec.headDimV : 0;
    }};
static constexpr Presence ifDstIndices{
    [](Spec spec) { return spec.hasDstIndices; }, "if has_dst_indices"};
static constexpr Presence ifTrackIndices{
    [](Spec spec) { return spec.hasTrackIndices; }, "if has_track_indices"};

// The cursor may stand in for an absent force_flush, so neither is an Input,
// nor are the indices.
#define MEMBER(name) #name, offsetof(DecodeArgs, name)
static constexpr auto decodeTable = linked(std::to_array<Argument>({
    pointer(MEMBER(stateIndices), index, {perRow}),
    stride(MEMBER(stateIndexStride), "stateIndices"),
    count(MEMBER(batch)).says("B; 0 is a valid no-op"),
    count(MEMBER(slots))
        .says("states, and rings unless ring_slots counts them"),
    pointer(MEMBER(writePos), i32, {perRow}, Read)
        .only(ifCursor)
        .says("ring rows in use, 0..L-1"),
    pointer(MEMBER(state), arguments::state, {perSlot, HV, V, K}, Updated,
            Wide),
    stride(MEMBER(statePitch), "state"),
    pointer(MEMBER(q), act, {perToken, qkv}, Input, Wide)
        .ofToken()
        .says(
            "q then k then v; or q alone, [tokens, H, K], if has_separate_qkv"),
    stride(MEMBER(qStride), "q"),

    pointer(MEMBER(a), gate, {perToken, HV, channels}, Input, WideIfKda)
        .only(ifGateInput)
        .ofToken(),
    stride(MEMBER(aStride), "a"),
    pointer(MEMBER(b), beta, {perToken, HV}, Input).only(ifBetaInput).ofToken(),
    stride(MEMBER(bStride), "b"),
    pointer(MEMBER(aLog), param, {HV}, Input)
        .only(ifLogRate)
        .says("of GATE_FIXED g itself, of GATE_RATE A = -exp(A_log)"),
    pointer(MEMBER(dtBias), bias, {HV, channels}, Input, WideIfKda)
        .only(ifBias),
    pointer(MEMBER(out), output, {perToken, HV, V}, Written, Wide),
    stride(MEMBER(outStride), "out"),

    pointer(MEMBER(dRing), ring, {perRing, HV, L, V}, Updated, Wide)
        .only(ifRing),
    stride(MEMBER(dPitch), "dRing"),
    pointer(MEMBER(kRing), ring, {perRing, H, L, K}, Updated, Wide)
        .only(ifRing),
    stride(MEMBER(kPitch), "kRing"),
    pointer(MEMBER(gRing), f32, {perRing, HV, L, channels}, Updated, WideIfKda)
        .only(ifRing),
    stride(MEMBER(gPitch), "gRing"),
    pointer(MEMBER(forceFlush), i32, {perRow}, Read)
        .only(ifForceFlush)
        .says("not 0: the row flushes"),
    number(MEMBER(scale), f32).says("of q, after its norm"),
    number(MEMBER(lowerBound), f32)
        .says("of GATE_LOWER_BOUND: finite, negative"),

    pointer(MEMBER(k), act, {perToken, H, K}, Input, Wide)
        .only(ifSeparate)
        .ofToken(),
    stride(MEMBER(kStride), "k"),
    pointer(MEMBER(v), act, {perToken, HV, V}, Input, Wide)
        .only(ifSeparate)
        .ofToken(),
    stride(MEMBER(vStride), "v"),
    pointer(MEMBER(ringBase), i32, {perRow}, Read)
        .only(ifCircular)
        .says("the place of the oldest ring row"),
    pointer(MEMBER(ringIndices), index, {perRow})
        .only(ifRingIndices)
        .says("else those of states"),
    stride(MEMBER(ringIndexStride), "ringIndices"),
    pointer(MEMBER(dstIndices), index, {perRow})
        .only(ifDstIndices)
        .says("where a flush writes; else the states' own"),
    stride(MEMBER(dstIndexStride), "dstIndices"),
    pointer(MEMBER(trackIndices), index, {perRow})
        .only(ifTrackIndices)
        .says("where the new state goes too; null slots: nowhere"),
    stride(MEMBER(trackIndexStride), "trackIndices"),
    pointer(MEMBER(errorWord), i32, {}, Updated, Eight)
        .orNull()
        .says("a replayjit_error_word_t"),
    count(MEMBER(ringSlots)).only(ifRingIndices),
    number(MEMBER(layer), i32).says("what an error word calls this launch"),
    pointer(MEMBER(tokenCounts), i32, {perRow}, Read)
        .only(ifCounted)
        .says("tokens of each row, 0..T"),
    pointer(MEMBER(tokenOffsets), i32, {perRowAndEnd}, Read)
        .only(ifRagged)
        .says("the first token of each row, and where the last row ends"),

    pointer(MEMBER(skip), bias, {HV, skipChannels}, Input)
        .only(ifSkip)
        .says("D"),
    pointer(MEMBER(outGate), act, {perToken, HV, V}, Input, Wide)
        .only(ifOutGate)
        .ofToken()
        .says("z"),
    stride(MEMBER(outGateStride), "outGate"),
    number(MEMBER(stepMin), f32).only(ifStepLimits).says("0 or more"),
    number(MEMBER(stepMax), f32)
        .only(ifStepLimits)
        .says("step_min or more, and may be infinite"),
    count(MEMBER(tokens)).only(ifRagged).says("those of all rows"),
}));
#undef MEMBER
static_assert(covers(decodeTable, sizeof(DecodeArgs)));

ArgumentTable decodeArguments() { return decodeTable; }

/// The row of DecodeArgs for a member of another struct.
static constexpr Argument like(std::string_view name, size_t offset) {
  for (const Argument &argument : decodeTable)
    if (name == argument.name)
      return argument.at(offset);
  assert(false && "DecodeArgs has no such member");
  return decodeTable[0];
}

#define MEMBER(name) like(#name, offsetof(ReplayLayer, name))
static constexpr auto layerTable = linked(std::to_array<Argument>(
    {MEMBER(state), MEMBER(dRing), MEMBER(kRing), MEMBER(gRing),
     MEMBER(statePitch), MEMBER(dPitch), MEMBER(kPitch), MEMBER(gPitch)}));
#undef MEMBER
static_assert(covers(layerTable, sizeof(ReplayLayer)));

ArgumentTable layerArguments() { return layerTable; }

#define MEMBER(name) like(#name, offsetof(TritonArgs, name))
#define OTHER(name) #name, offsetof(TritonArgs, name)
static constexpr auto tritonTable = std::to_array<Argument>({
    MEMBER(q),
    MEMBER(a),
    MEMBER(b),
    MEMBER(aLog),
    MEMBER(dtBias),
    MEMBER(out),
    MEMBER(state),
    pointer(OTHER(finalState), arguments::state, {perSlot, HV, V, K}, Updated,
            Wide)
        .says("where flushes go; usually state"),
    MEMBER(dRing),
    MEMBER(kRing),
    MEMBER(gRing),
    MEMBER(stateIndices),
    MEMBER(writePos),
    MEMBER(forceFlush),
    MEMBER(scale),
    pointer(OTHER(globalScratch), i32, {}).orNull().says("not used"),
    pointer(OTHER(profileScratch), i32, {}).orNull().says("not used"),
});
#undef MEMBER
#undef OTHER
static_assert(covers(tritonTable, sizeof(TritonArgs)));

ArgumentTable tritonArguments() { return tritonTable; }

} // namespace replayjit::internal
