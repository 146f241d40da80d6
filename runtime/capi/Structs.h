//===- Structs.h - C structs become C++ ones, and back ----------*- C++ -*-===//
//
// Private to runtime/capi. The rules of struct_size are kept here.
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_RUNTIME_CAPI_STRUCTS_H
#define REPLAYJIT_RUNTIME_CAPI_STRUCTS_H

#include "kernels/Decode/DecodeArgs.h"
#include "kernels/Materialize/MaterializeArgs.h"
#include "replayjit/replayjit.h"

#include <algorithm>
#include <cstring>
#include <string>

namespace replayjit::internal::capi {

/// What is wrong with the struct_size of a struct of which `known` bytes are
/// known; `what` names the struct. No field is larger than `unit`, the struct's
/// alignment, nor lies across a multiple of it: a size that is one cuts no
/// field.
Status checkSize(uint32_t size, size_t known, size_t unit, const char *what);

/// The caller's struct, with `defaults` in the fields that it is too short for.
template <typename Struct>
Result<Struct> readStruct(const Struct *given, const Struct &defaults,
                          const char *what) {
  if (!given)
    return Status::invalid(std::string(what) + ": NULL is not allowed");
  if (Status status =
          checkSize(given->struct_size, sizeof(Struct), alignof(Struct), what);
      !status)
    return status;
  Struct whole = defaults;
  std::memcpy(&whole, given, given->struct_size);
  return whole;
}

/// Writes `whole` to a caller's struct of `size` bytes, and that size. What a
/// newer caller has beyond it becomes 0. To null nothing is written.
template <typename Struct>
void writeStruct(Struct *to, size_t size, const Struct &whole) {
  if (!to)
    return;
  std::memset(to, 0, size);
  std::memcpy(to, &whole, std::min(size, sizeof whole));
  const uint32_t written = uint32_t(size);
  if (size >= sizeof written)
    std::memcpy(to, &written, sizeof written);
}

/// Fills in a caller's struct whose struct_size is set.
template <typename Struct>
Status fillIn(Struct *to, const Struct &whole, const char *what) {
  if (!to)
    return Status::invalid(std::string(what) + ": NULL is not allowed");
  if (Status status =
          checkSize(to->struct_size, sizeof whole, alignof(Struct), what);
      !status)
    return status;
  writeStruct(to, to->struct_size, whole);
  return Status::ok();
}

/// The spec; errors are of its size, a null pointer, and values that no field
/// can hold. `validate` says whether it is legal.
Result<DecodeSpec> toSpec(const replayjit_decode_spec_t *spec);
Result<DecodeTuning> toTuning(const replayjit_decode_tuning_t *tuning);
replayjit_decode_spec_t fromSpec(const DecodeSpec &spec);
replayjit_decode_tuning_t fromTuning(const DecodeTuning &tuning);

/// A struct of launch arguments is struct_size, a reserved word, and the
/// kernel's parameter buffer.
template <typename Struct> constexpr size_t argsOffset = 2 * sizeof(uint32_t);

/// `args` becomes what the caller gave, and defaults where that is short.
template <typename Args, typename Struct>
Status readArgs(const Struct *given, Args &args) {
  static_assert(sizeof(Struct) == argsOffset<Struct> + sizeof(Args));
  if (!given)
    return Status::invalid("args: NULL is not allowed");
  const size_t size = given->struct_size;
  if (size != sizeof(Struct))
    if (Status status =
            checkSize(size, sizeof(Struct), alignof(Struct), "args");
        !status)
      return status;
  std::memcpy(&args, reinterpret_cast<const char *>(given) + argsOffset<Struct>,
              size - argsOffset<Struct>);
  return Status::ok();
}

/// The other way: a caller's struct whose struct_size is set.
template <typename Args, typename Struct>
Status fillInArgs(Struct *to, const Args &args) {
  Struct whole = {};
  std::memcpy(reinterpret_cast<char *>(&whole) + argsOffset<Struct>, &args,
              sizeof args);
  return fillIn(to, whole, "args");
}

} // namespace replayjit::internal::capi

#endif
