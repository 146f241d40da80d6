//===- SpecApi.cpp - Specs, tunings and arguments of the C API ------------===//

#include "kernels/Families.h"
#include "replayjit/replayjit_describe.h"
#include "replayjit/replayjit_state.h"
#include "runtime/cache/TuningTable.h"
#include "runtime/capi/Handles.h"
#include "runtime/capi/Structs.h"

#include <fmt/format.h>

using namespace replayjit::internal;
using namespace replayjit::internal::capi;

void replayjit_decode_spec_init(replayjit_decode_spec_t *spec,
                                size_t struct_size) {
  writeStruct(spec, struct_size, fromSpec(DecodeSpec()));
}

void replayjit_decode_tuning_init(replayjit_decode_tuning_t *tuning,
                                  size_t struct_size) {
  writeStruct(tuning, struct_size, fromTuning(DecodeTuning()));
}

namespace {
/// The C side of a table: the facts and the strings that they point to.
struct FactList {
  std::vector<std::string> strings; // as many as reserved, so they stay
  std::vector<std::vector<const char *>> words;
  std::vector<replayjit_fact_t> facts;

  template <typename Struct>
  explicit FactList(std::span<const Fact<Struct>> table) {
    size_t count = 0;
    for (const Fact<Struct> &fact : table)
      count += 1 + fact.allowed.words().size();
    strings.reserve(count);
    for (const Fact<Struct> &fact : table)
      add(fact.name, fact.doc, fact.allowed, fact.usual());
  }

  const replayjit_fact_t *at(size_t index) const {
    return index < facts.size() ? &facts[index] : nullptr;
  }

private:
  const char *keep(std::string_view name, char divider) {
    return strings.emplace_back(divided(name, divider)).c_str();
  }

  void add(const char *name, const char *doc, const Allowed &allowed,
           int usual) {
    std::vector<const char *> &own = words.emplace_back();
    for (std::string_view word : allowed.words())
      own.push_back(keep(word, '-'));
    const auto [lowest, highest] = allowed.ends();
    facts.push_back({.name = keep(name, '_'),
                     .doc = doc,
                     .words = own.empty() ? nullptr : own.data(),
                     .num_words = int32_t(own.size()),
                     .kind = int32_t(allowed.kind),
                     .usual = usual,
                     .lowest = lowest,
                     .highest = highest});
  }
};
} // namespace

const replayjit_fact_t *replayjit_decode_spec_fact(size_t index) try {
  static const FactList list(decodeFacts());
  return list.at(index);
} catch (...) { // No memory for the list, which is empty then.
  return nullptr;
}

const replayjit_fact_t *replayjit_decode_tuning_fact(size_t index) try {
  static const FactList list(tuningFacts());
  return list.at(index);
} catch (...) { // The same.
  return nullptr;
}

template <typename Args, typename Struct>
static void initArgs(Struct *args, size_t size) {
  const Args defaults;
  Struct whole = {};
  std::memcpy(reinterpret_cast<char *>(&whole) + argsOffset<Struct>, &defaults,
              sizeof defaults);
  writeStruct(args, size, whole);
}

void replayjit_decode_args_init(replayjit_decode_args_t *args,
                                size_t struct_size) {
  initArgs<DecodeArgs>(args, struct_size);
}

void replayjit_materialize_args_init(replayjit_materialize_args_t *args,
                                     size_t struct_size) {
  initArgs<MaterializeArgs>(args, struct_size);
}

void replayjit_layer_init(replayjit_layer_t *layer) {
  if (layer)
    *layer = {};
}

void replayjit_error_word_init(replayjit_error_word_t *word) {
  if (word)
    *word = {};
}

replayjit_error_t *
replayjit_decode_spec_from_model(replayjit_decode_spec_t *spec,
                                 const char *model,
                                 int32_t tensor_parallel) try {
  if (Status status = need(model, "model"); !status)
    return toError(status);
  Result<DecodeSpec> preset = modelPreset(model, tensor_parallel);
  if (!preset)
    return toError(preset.status());
  return toError(fillIn(spec, fromSpec(*preset), "spec"));
} catch (...) {
  return caught();
}

const char *replayjit_target_name(size_t index) try {
  const std::vector<std::string> &names = Target::names();
  return index < names.size() ? names[index].c_str() : nullptr;
} catch (...) { // No memory for the names, of which there are none then.
  return nullptr;
}

static Result<Target> toTarget(const char *chip) {
  if (Status status = need(chip, "chip"); !status)
    return status;
  return Target::parse(chip);
}

replayjit_error_t *
replayjit_target_supports(const char *chip, const replayjit_decode_spec_t *spec,
                          const replayjit_decode_tuning_t *tuning) try {
  Result<Target> target = toTarget(chip);
  if (!target)
    return toError(target.status());
  Result<DecodeSpec> asked = toSpec(spec);
  if (!asked)
    return toError(asked.status());
  Result<DecodeTuning> choice =
      tuning ? toTuning(tuning) : chooseTuning(*asked, 0, *target);
  if (!choice)
    return toError(choice.status());
  return toError(validate(*asked, *choice, *target));
} catch (...) {
  return caught();
}

replayjit_error_t *
replayjit_target_choose_tuning(const char *chip, int32_t multiprocessors,
                               const replayjit_decode_spec_t *spec,
                               int32_t rows,
                               replayjit_decode_tuning_t *tuning) try {
  Result<Target> target = toTarget(chip);
  if (!target)
    return toError(target.status());
  Result<DecodeSpec> asked = toSpec(spec);
  if (!asked)
    return toError(asked.status());
  if (rows < 0 || multiprocessors < 1)
    return toError(Status::invalid(fmt::format(
        "rows: {} on {} multiprocessors are not allowed; they must be 0 or "
        "more, and 1 or more",
        rows, multiprocessors)));
  const auto measured = openTuningTable(
      tuningFileFromEnvironment(), DiskCacheOptions::rootsFromEnvironment());
  if (!measured)
    return toError(measured.status());
  return toError(
      fillIn(tuning,
             fromTuning(chooseTuning(*asked, rows, *target, multiprocessors,
                                     measured->get())),
             "tuning"));
} catch (...) {
  return caught();
}

replayjit_error_t *
replayjit_layer_validate(const replayjit_decode_spec_t *spec,
                         const replayjit_layer_t *layer) try {
  Result<DecodeSpec> asked = toSpec(spec);
  if (!asked)
    return toError(asked.status());
  if (Status status = need(layer, "layer"); !status)
    return toError(status);
  ReplayLayer ours;
  std::memcpy(static_cast<void *>(&ours), layer, sizeof ours);
  return toError(validateLayer(*asked, ours));
} catch (...) {
  return caught();
}

replayjit_error_t *
replayjit_ring_cursor_advance(const replayjit_decode_spec_t *spec,
                              int32_t *write_pos, int32_t *base,
                              int32_t forced) try {
  return replayjit_ring_cursor_accept(spec, write_pos, base, forced, 1);
} catch (...) {
  return caught();
}

replayjit_error_t *
replayjit_ring_cursor_accept(const replayjit_decode_spec_t *spec,
                             int32_t *write_pos, int32_t *base, int32_t forced,
                             int32_t accepted) try {
  Result<DecodeSpec> asked = toSpec(spec);
  if (!asked)
    return toError(asked.status());
  auto check = [](const char *name, int32_t value, int32_t least,
                  int32_t most) {
    Allowed allowed = {least, most};
    return allowed.check(name, value);
  };
  const bool hasDrafts = traitsOf(*asked).drafts;
  for (auto [cursor, name, end] :
       {std::tuple(write_pos, "write_pos", cursorEnd(*asked)),
        {base, "base", asked->ringDepth}}) {
    Status status = need(cursor, name);
    if (status)
      status = check(name, *cursor, 0, end - 1);
    if (!status)
      return toError(status);
  }
  if (Status status =
          check("accepted", accepted, hasDrafts ? 0 : 1, tokensPerRow(*asked));
      !status)
    return toError(status);
  const RingCursor cursor = {*write_pos, *base};
  const RingCursor next =
      hasDrafts ? acceptedCursor(*asked, cursor, forced != 0, accepted)
                : nextCursor(*asked, cursor, forced != 0);
  *write_pos = next.writePos;
  *base = next.base;
  return nullptr;
} catch (...) {
  return caught();
}
