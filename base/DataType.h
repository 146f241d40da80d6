//===- DataType.h - Element types in memory ---------------------*- C++ -*-===//
#ifndef REPLAYJIT_BASE_DATATYPE_H
#define REPLAYJIT_BASE_DATATYPE_H

#include "base/Words.h"

#include <array>
#include <cstdint>
#include <string_view>

namespace replayjit::internal {

/// Element type of a tensor in memory.
enum class DataType : uint8_t { F32, BF16, F16, I32, I64 };
template <>
inline constexpr std::array<std::string_view, 5> wordsOf<DataType> = {
    "fp32", "bf16", "fp16", "int32", "int64"};

/// Bytes of one element.
constexpr int byteSize(DataType type) {
  switch (type) {
  case DataType::F32:
  case DataType::I32:
    return 4;
  case DataType::BF16:
  case DataType::F16:
    return 2;
  case DataType::I64:
    return 8;
  }
  return 0;
}

/// Rounds to nearest even into the 16-bit format and back to double; for F32
/// rounds to float. Infinities and NaN are kept.
double roundTo(DataType type, double value);

/// Reads element `index` of an array of `type` as a double.
double loadElement(DataType type, const void *base, int64_t index);

/// Writes `value`, rounded to nearest even, as element `index` of an array.
void storeElement(DataType type, void *base, int64_t index, double value);

} // namespace replayjit::internal

#endif
