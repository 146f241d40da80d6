//===- Structs.cpp - C structs become C++ ones, and back ------------------===//

#include "runtime/capi/Structs.h"

#include "kernels/Families.h"
#include "replayjit/replayjit_describe.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <bit>
#include <cstddef>

namespace replayjit::internal::capi {

// Fields of arguments: tests/unit/ArgumentsTest.cpp.
static_assert(sizeof(replayjit_layer_t) == sizeof(ReplayLayer));
static_assert(sizeof(replayjit_error_word_t) == sizeof(ErrorWord));
static_assert(offsetof(replayjit_error_word_t, value) ==
              offsetof(ErrorWord, value));

static_assert(REPLAYJIT_STORAGE_FAILED == int(StatusCode::StorageFailed));
static_assert(REPLAYJIT_OUT_OF_MEMORY == int(StatusCode::OutOfMemory));
static_assert(REPLAYJIT_INTERNAL == int(StatusCode::Internal));
static_assert(REPLAYJIT_FAMILY_VERIFY == int(Family::Verify));
static_assert(REPLAYJIT_TOKENS_RAGGED == int(TokenRows::Ragged));
static_assert(REPLAYJIT_I64 == int(DataType::I64));
static_assert(REPLAYJIT_GATE_RATE == int(Gate::Rate));
static_assert(REPLAYJIT_BETA_ONE == int(Beta::One));
static_assert(REPLAYJIT_RULE_ADDITIVE == int(Rule::Additive));
static_assert(REPLAYJIT_SKIP_CHANNEL == int(Skip::Channel));
static_assert(REPLAYJIT_RING_PREDECAYED == int(RingFormat::Predecayed));
static_assert(REPLAYJIT_NULL_NON_POSITIVE == int(NullSlot::NonPositive));
static_assert(REPLAYJIT_READOUT_REBUILD == int(Readout::Rebuild));
static_assert(REPLAYJIT_PROGRAMMATIC_EARLY == int(ProgrammaticLaunch::Early));
static_assert(REPLAYJIT_DEPENDENTS_ALL == int(Dependents::All));
static_assert(REPLAYJIT_ABI_TRITON == int(LaunchAbi::Triton));
static_assert(REPLAYJIT_FACT_TYPE == int(FactKind::Type));

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

/// A C struct of facts as numbers: struct_size, then one for each row.
template <typename Struct>
using Numbers = std::array<int32_t, 1 + memberCount<Struct>()>;

template <typename Struct, typename C>
static Result<Struct> fromC(const C &c, std::span<const Fact<Struct>> table) {
  const auto numbers = std::bit_cast<Numbers<Struct>>(c);
  Struct all;
  for (size_t i = 0; i < table.size(); ++i) {
    const Fact<Struct> &fact = table[i];
    const int value = numbers[1 + i];
    if (!fact.allowed.canHold(value))
      return Status::invalid(
          fmt::format("{}: {} is not allowed; it must be 0 to {}", fact.name,
                      value, fact.allowed.words().size() - 1));
    fact.set(all, value);
  }
  return all;
}

template <typename C, typename Struct>
static C toC(const Struct &all, std::span<const Fact<Struct>> table) {
  Numbers<Struct> numbers = {sizeof(C)};
  for (size_t i = 0; i < table.size(); ++i)
    numbers[1 + i] = table[i].get(all);
  return std::bit_cast<C>(numbers);
}

static std::vector<int> publicFamilies() {
  std::vector<int> values;
  for (size_t i = 0; i < allFamilies().size(); ++i)
    if (allFamilies()[i]->traits.isPublic)
      values.push_back(int(i));
  return values;
}

Result<DecodeSpec> toSpec(const replayjit_decode_spec_t *given) {
  static const replayjit_decode_spec_t defaults = fromSpec(DecodeSpec());
  Result<replayjit_decode_spec_t> c = readStruct(given, defaults, "spec");
  if (!c)
    return c.status();
  Result<DecodeSpec> spec = fromC(*c, decodeFacts());
  if (spec && !traitsOf(*spec).isPublic)
    return Status::invalid(
        fmt::format("family: {} is not allowed; it must be {}", c->family,
                    fmt::join(publicFamilies(), ", ")));
  return spec;
}

Result<DecodeTuning> toTuning(const replayjit_decode_tuning_t *given) {
  static const replayjit_decode_tuning_t defaults = fromTuning(DecodeTuning());
  Result<replayjit_decode_tuning_t> c = readStruct(given, defaults, "tuning");
  if (!c)
    return c.status();
  return fromC(*c, tuningFacts());
}

replayjit_decode_spec_t fromSpec(const DecodeSpec &spec) {
  return toC<replayjit_decode_spec_t>(spec, decodeFacts());
}

replayjit_decode_tuning_t fromTuning(const DecodeTuning &tuning) {
  return toC<replayjit_decode_tuning_t>(tuning, tuningFacts());
}

} // namespace replayjit::internal::capi
