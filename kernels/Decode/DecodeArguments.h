//===- DecodeArguments.h - What the tables of pools share -------*- C++ -*-===//
//
// Words of the tables of arguments in the folders of families: types,
// dimensions, and what a spec may lack.
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_KERNELS_DECODE_DECODEARGUMENTS_H
#define REPLAYJIT_KERNELS_DECODE_DECODEARGUMENTS_H

#include "kernels/Decode/DecodeArgs.h"

namespace replayjit::internal::arguments {

using Spec = const DecodeSpec &;
using enum Argument::Access;
using enum Argument::Alignment;

//===--- Types ------------------------------------------------------------===//

inline constexpr DataType i32 = DataType::I32, i64 = DataType::I64,
                          f32 = DataType::F32;
inline constexpr ElementType act{&DecodeSpec::actType, "act_type"},
    gate{&DecodeSpec::gateType, "gate_type"},
    beta{&DecodeSpec::betaType, "beta_type"},
    param{&DecodeSpec::paramType, "param_type"},
    bias{&DecodeSpec::biasType, "bias_type"},
    output{&DecodeSpec::outType, "out_type"},
    state{&DecodeSpec::stateType, "state_type"},
    ring{&DecodeSpec::ringType, "ring_type"},
    index{&DecodeSpec::indexType, "index_type"};

//===--- Dimensions -------------------------------------------------------===//

inline constexpr Extent H{
    "H", [](Spec spec) -> int64_t { return spec.numKeyHeads; }};
inline constexpr Extent HV{
    "HV", [](Spec spec) -> int64_t { return spec.numValueHeads; }};
inline constexpr Extent K{"K",
                          [](Spec spec) -> int64_t { return spec.headDimK; }};
inline constexpr Extent V{"V",
                          [](Spec spec) -> int64_t { return spec.headDimV; }};
inline constexpr Extent L{"L",
                          [](Spec spec) -> int64_t { return spec.ringDepth; }};
/// The gate of a head: GDN has a number.
inline constexpr Extent channels{"K if is_kda", [](Spec spec) -> int64_t {
                                   return spec.isKda ? spec.headDimK : 0;
                                 }};
/// All of q, k and v; or q alone.
inline constexpr Extent qkv{
    "2*H*K + HV*V", [](Spec spec) -> int64_t {
      const int64_t keys = int64_t(spec.numKeyHeads) * spec.headDimK;
      return spec.hasSeparateQkv
                 ? keys
                 : 2 * keys + int64_t(spec.numValueHeads) * spec.headDimV;
    }};

//===--- What a spec may lack ---------------------------------------------===//

inline constexpr Presence ifRing{[](Spec spec) { return spec.ringDepth > 1; },
                                 "if there is a ring"};
inline constexpr Presence ifSeparate{
    [](Spec spec) { return spec.hasSeparateQkv; }, "if has_separate_qkv"};
inline constexpr Presence ifCircular{[](Spec spec) { return spec.isCircular; },
                                     "if is_circular"};
inline constexpr Presence ifCounted{
    [](Spec spec) { return tokenRowsOf(spec) == TokenRows::Counted; },
    "if token_rows is counted"};
inline constexpr Presence ifRagged{
    [](Spec spec) { return tokenRowsOf(spec) == TokenRows::Ragged; },
    "if token_rows is ragged"};
inline constexpr Presence ifRingIndices{
    [](Spec spec) { return spec.hasRingIndices; }, "if has_ring_indices"};

} // namespace replayjit::internal::arguments

#endif
