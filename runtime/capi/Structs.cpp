//===- Structs.cpp - C structs become C++ ones, and back ------------------===//

#include "runtime/capi/Structs.h"

#include "runtime/cache/Fields.h"

#include <fmt/format.h>

#include <cstddef>

namespace replayjit::internal::capi {

// The parameter buffers lie in the C structs as they are.
#define SAME_PLACE(C, c, Cpp, cpp)                                             \
  static_assert(offsetof(C, c) == 8 + offsetof(Cpp, cpp) &&                    \
                sizeof(C::c) == sizeof(Cpp::cpp))
#define DECODE(c, cpp) SAME_PLACE(replayjit_decode_args_t, c, DecodeArgs, cpp)
DECODE(state_indices, stateIndices);
DECODE(state_index_stride, stateIndexStride);
DECODE(batch, batch);
DECODE(slots, slots);
DECODE(write_pos, writePos);
DECODE(state, state);
DECODE(state_pitch, statePitch);
DECODE(q, q);
DECODE(q_stride, qStride);
DECODE(a, a);
DECODE(a_stride, aStride);
DECODE(b, b);
DECODE(b_stride, bStride);
DECODE(a_log, aLog);
DECODE(dt_bias, dtBias);
DECODE(out, out);
DECODE(out_stride, outStride);
DECODE(d_ring, dRing);
DECODE(d_pitch, dPitch);
DECODE(k_ring, kRing);
DECODE(k_pitch, kPitch);
DECODE(g_ring, gRing);
DECODE(g_pitch, gPitch);
DECODE(force_flush, forceFlush);
DECODE(scale, scale);
DECODE(lower_bound, lowerBound);
DECODE(k, k);
DECODE(k_stride, kStride);
DECODE(v, v);
DECODE(v_stride, vStride);
DECODE(ring_base, ringBase);
DECODE(ring_indices, ringIndices);
DECODE(ring_index_stride, ringIndexStride);
DECODE(dst_indices, dstIndices);
DECODE(dst_index_stride, dstIndexStride);
DECODE(track_indices, trackIndices);
DECODE(track_index_stride, trackIndexStride);
DECODE(error_word, errorWord);
DECODE(ring_slots, ringSlots);
DECODE(layer, layer);
#define MATERIALIZE(c, cpp)                                                    \
  SAME_PLACE(replayjit_materialize_args_t, c, MaterializeArgs, cpp)
MATERIALIZE(layers, layers);
MATERIALIZE(src_indices, srcIndices);
MATERIALIZE(dst_indices, dstIndices);
MATERIALIZE(ring_indices, ringIndices);
MATERIALIZE(write_pos, writePos);
MATERIALIZE(ring_base, ringBase);
MATERIALIZE(mask, mask);
MATERIALIZE(error_word, errorWord);
MATERIALIZE(src_index_stride, srcIndexStride);
MATERIALIZE(dst_index_stride, dstIndexStride);
MATERIALIZE(ring_index_stride, ringIndexStride);
MATERIALIZE(batch, batch);
MATERIALIZE(num_layers, numLayers);
MATERIALIZE(slots, slots);
MATERIALIZE(ring_slots, ringSlots);
#undef SAME_PLACE
static_assert(sizeof(replayjit_layer_t) == sizeof(ReplayLayer));
static_assert(offsetof(replayjit_layer_t, state_pitch) ==
              offsetof(ReplayLayer, statePitch));
static_assert(sizeof(replayjit_error_word_t) == sizeof(ErrorWord));
static_assert(offsetof(replayjit_error_word_t, value) ==
              offsetof(ErrorWord, value));

static_assert(REPLAYJIT_STORAGE_FAILED == int(StatusCode::StorageFailed));
static_assert(REPLAYJIT_FAMILY_MATERIALIZE == int(Family::Materialize));
static_assert(REPLAYJIT_I64 == int(DataType::I64));
static_assert(REPLAYJIT_GATE_LOWER_BOUND == int(Gate::LowerBound));
static_assert(REPLAYJIT_RING_PREDECAYED == int(RingFormat::Predecayed));
static_assert(REPLAYJIT_NULL_NON_POSITIVE == int(NullSlot::NonPositive));
static_assert(REPLAYJIT_READOUT_REBUILD == int(Readout::Rebuild));
static_assert(REPLAYJIT_ABI_TRITON == int(LaunchAbi::Triton));

Status checkSize(uint32_t size, size_t known, size_t unit, const char *what) {
  // The size and one field: less is a struct that nobody initialized.
  if (size < 2 * sizeof(uint32_t))
    return Status::invalid(fmt::format(
        "{}: a struct_size of {} is not allowed; its _init function sets it",
        what, size));
  if (size > known)
    return Status::invalid(fmt::format(
        "{}: a struct_size of {} is not allowed; this library knows {} bytes "
        "of it, so the caller needs a newer one",
        what, size, known));
  if (size % unit != 0)
    return Status::invalid(fmt::format(
        "{}: a struct_size of {} is not allowed; it ends within a field, and "
        "must be a multiple of {}",
        what, size, unit));
  return Status::ok();
}

namespace {

/// Field by field from C to C++, up to the first value that does not fit.
struct ToCpp {
  Status status;

  void operator()(const char *name, int32_t value, int &field) {
    field = value;
  }
  void operator()(const char *name, int32_t value, bool &field) {
    take(name, value, 1);
    field = value != 0;
  }
  template <typename Enum>
  requires std::is_enum_v<Enum>
  void operator()(const char *name, int32_t value, Enum &field) {
    int32_t last = 0;
    while (wordOf(Enum(last + 1)))
      ++last;
    take(name, value, last);
    field = Enum(value);
  }
  void ownType(const char *name, int32_t value, DataType &field,
               DataType other) {
    const int32_t type = value - REPLAYJIT_OWN_TYPE(0);
    if (status && value != 0 && (type < 0 || !wordOf(DataType(type))))
      status = Status::invalid(fmt::format(
          "{}: {} is not allowed; it must be 0 or REPLAYJIT_OWN_TYPE of a type",
          name, value));
    field = value == 0 ? other : DataType(type);
  }

private:
  void take(const char *name, int32_t value, int32_t last) {
    if (status && (value < 0 || value > last))
      status = Status::invalid(fmt::format(
          "{}: {} is not allowed; it must be 0 to {}", name, value, last));
  }
};

/// Field by field from C++ to C.
struct ToC {
  template <typename Field>
  void operator()(const char *, int32_t &value, const Field &field) {
    value = int32_t(field);
  }
  void ownType(const char *, int32_t &value, DataType field, DataType other) {
    value = field == other ? 0 : REPLAYJIT_OWN_TYPE(int32_t(field));
  }
};

} // namespace

// The bindings name every field, so that one more does not compile until it has
// a place in the C struct: at its end.
template <typename CSpec, typename Spec, typename Visit>
static void visitSpec(CSpec &c, Spec &spec, Visit &visit) {
  auto &[family, isKda, numKeyHeads, numValueHeads, headDimK, headDimV,
         ringDepth, actType, gateType, betaType, paramType, biasType, outType,
         stateType, ringType, indexType, qkL2Norm, gate, betaRound,
         hasForceFlush, ringFormat, isCircular, hasSeparateQkv, hasRingIndices,
         hasDstIndices, hasTrackIndices, hasMask, trapOnError,
         hasProgrammaticLaunch, nullSlot, readout, alignment, abi] = spec;
  visit("family", c.family, family);
  visit("isKda", c.is_kda, isKda);
  visit("numKeyHeads", c.num_key_heads, numKeyHeads);
  visit("numValueHeads", c.num_value_heads, numValueHeads);
  visit("headDimK", c.head_dim_k, headDimK);
  visit("headDimV", c.head_dim_v, headDimV);
  visit("ringDepth", c.ring_depth, ringDepth);
  visit("actType", c.act_type, actType);
  visit("gateType", c.gate_type, gateType);
  visit("paramType", c.param_type, paramType);
  visit("outType", c.out_type, outType);
  visit("stateType", c.state_type, stateType);
  visit("ringType", c.ring_type, ringType);
  visit("indexType", c.index_type, indexType);
  visit("qkL2Norm", c.qk_l2_norm, qkL2Norm);
  visit("gate", c.gate, gate);
  visit("betaRound", c.beta_round, betaRound);
  visit("hasForceFlush", c.has_force_flush, hasForceFlush);
  visit("ringFormat", c.ring_format, ringFormat);
  visit("isCircular", c.is_circular, isCircular);
  visit("hasSeparateQkv", c.has_separate_qkv, hasSeparateQkv);
  visit("hasRingIndices", c.has_ring_indices, hasRingIndices);
  visit("hasDstIndices", c.has_dst_indices, hasDstIndices);
  visit("hasTrackIndices", c.has_track_indices, hasTrackIndices);
  visit("hasMask", c.has_mask, hasMask);
  visit("nullSlot", c.null_slot, nullSlot);
  visit("readout", c.readout, readout);
  visit("alignment", c.alignment, alignment);
  visit("hasProgrammaticLaunch", c.has_programmatic_launch,
        hasProgrammaticLaunch);
  visit("trapOnError", c.trap_on_error, trapOnError);
  visit("abi", c.abi, abi);
  visit.ownType("betaType", c.own_beta_type, betaType, gateType);
  visit.ownType("biasType", c.own_bias_type, biasType, paramType);
}

template <typename CTuning, typename Tuning, typename Visit>
static void visitTuning(CTuning &c, Tuning &tuning, Visit &visit) {
  auto &[blockV, blockK, numWarps, flushRows, maxRegisters] = tuning;
  visit("blockV", c.block_v, blockV);
  visit("blockK", c.block_k, blockK);
  visit("numWarps", c.num_warps, numWarps);
  visit("flushRows", c.flush_rows, flushRows);
  visit("maxRegisters", c.max_registers, maxRegisters);
}

Result<DecodeSpec> toSpec(const replayjit_decode_spec_t *given) {
  static const replayjit_decode_spec_t defaults = fromSpec(DecodeSpec());
  Result<replayjit_decode_spec_t> c = readStruct(given, defaults, "spec");
  if (!c)
    return c.status();
  DecodeSpec spec;
  ToCpp visit;
  visitSpec(*c, spec, visit);
  if (!visit.status)
    return visit.status;
  if (isPlan(spec)) // StepPlan's own
    return Status::invalid(
        fmt::format("family: {} is not allowed; it must be 0 to {}", c->family,
                    int(REPLAYJIT_FAMILY_MATERIALIZE)));
  return spec;
}

Result<DecodeTuning> toTuning(const replayjit_decode_tuning_t *given) {
  static const replayjit_decode_tuning_t defaults = fromTuning(DecodeTuning());
  Result<replayjit_decode_tuning_t> c = readStruct(given, defaults, "tuning");
  if (!c)
    return c.status();
  DecodeTuning tuning;
  ToCpp visit;
  visitTuning(*c, tuning, visit);
  if (!visit.status)
    return visit.status;
  return tuning;
}

replayjit_decode_spec_t fromSpec(const DecodeSpec &spec) {
  replayjit_decode_spec_t c = {};
  c.struct_size = sizeof c;
  ToC visit;
  visitSpec(c, spec, visit);
  return c;
}

replayjit_decode_tuning_t fromTuning(const DecodeTuning &tuning) {
  replayjit_decode_tuning_t c = {};
  c.struct_size = sizeof c;
  ToC visit;
  visitTuning(c, tuning, visit);
  return c;
}

} // namespace replayjit::internal::capi
