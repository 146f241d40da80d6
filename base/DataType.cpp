//===- DataType.cpp - Rounding to the element types -----------------------===//

#include "base/DataType.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace replayjit::internal {

namespace {

/// A 16-bit binary floating-point format.
struct Format16 {
  int mantissaBits; ///< Explicit ones.
  int bias;
  int maxExponent; ///< The exponent field of infinities and NaN.
};
constexpr Format16 bf16 = {7, 127, 255};
constexpr Format16 fp16 = {10, 15, 31};

/// Rounds once, straight from double: going through float would round twice.
uint16_t encode(Format16 format, double value) {
  uint64_t bits = std::bit_cast<uint64_t>(value);
  uint16_t sign = static_cast<uint16_t>(bits >> 48) & 0x8000;
  uint16_t infinity =
      static_cast<uint16_t>(format.maxExponent << format.mantissaBits);
  uint16_t quiet = static_cast<uint16_t>(1 << (format.mantissaBits - 1));
  if (std::isnan(value))
    return sign | infinity | quiet;
  if (std::isinf(value))
    return sign | infinity;

  int exponent = static_cast<int>(bits >> 52 & 0x7ff) - 1023 + format.bias;
  uint64_t significand = (bits & ((1ull << 52) - 1)) | 1ull << 52;
  int shift = 52 - format.mantissaBits;
  if (exponent <= 0) { // subnormal: the unit in the last place stays put
    shift += 1 - exponent;
    exponent = 1;
    if (shift > 54 || value == 0)
      return sign;
  }
  uint64_t kept = significand >> shift;
  uint64_t rest = significand & ((1ull << shift) - 1);
  uint64_t half = 1ull << (shift - 1);
  if (rest > half || (rest == half && (kept & 1)))
    ++kept;
  // `kept` holds the implicit bit, which counts as one step of the exponent.
  uint64_t magnitude =
      (static_cast<uint64_t>(exponent - 1) << format.mantissaBits) + kept;
  return sign |
         (magnitude < infinity ? static_cast<uint16_t>(magnitude) : infinity);
}

double decode(Format16 format, uint16_t bits) {
  int exponent = (bits & 0x7fff) >> format.mantissaBits;
  int mantissa = bits & ((1 << format.mantissaBits) - 1);
  double magnitude;
  if (exponent == format.maxExponent)
    magnitude = mantissa ? std::numeric_limits<double>::quiet_NaN()
                         : std::numeric_limits<double>::infinity();
  else if (exponent == 0)
    magnitude = std::ldexp(mantissa, 1 - format.bias - format.mantissaBits);
  else
    magnitude = std::ldexp(mantissa + (1 << format.mantissaBits),
                           exponent - format.bias - format.mantissaBits);
  return bits & 0x8000 ? -magnitude : magnitude;
}

template <typename T> T loadAs(const void *base, int64_t index) {
  T value;
  std::memcpy(&value, static_cast<const char *>(base) + index * sizeof(T),
              sizeof(T));
  return value;
}

template <typename T> void storeAs(void *base, int64_t index, T value) {
  std::memcpy(static_cast<char *>(base) + index * sizeof(T), &value, sizeof(T));
}

/// To nearest even, saturating; NaN becomes 0.
template <typename T> T toInteger(double value) {
  if (std::isnan(value))
    return 0;
  double rounded = std::nearbyint(value);
  // 2^(bits-1) is exact in double; the largest T may not be.
  double bound = std::ldexp(1.0, std::numeric_limits<T>::digits);
  if (rounded >= bound)
    return std::numeric_limits<T>::max();
  if (rounded < -bound)
    return std::numeric_limits<T>::min();
  return static_cast<T>(rounded);
}

} // namespace

double roundTo(DataType type, double value) {
  switch (type) {
  case DataType::F32:
    return static_cast<float>(value);
  case DataType::BF16:
    return decode(bf16, encode(bf16, value));
  case DataType::F16:
    return decode(fp16, encode(fp16, value));
  case DataType::I32:
    return toInteger<int32_t>(value);
  case DataType::I64:
    return static_cast<double>(toInteger<int64_t>(value));
  }
  return value;
}

double loadElement(DataType type, const void *base, int64_t index) {
  switch (type) {
  case DataType::F32:
    return loadAs<float>(base, index);
  case DataType::BF16: {
    // The upper half of a float.
    uint32_t bits = static_cast<uint32_t>(loadAs<uint16_t>(base, index)) << 16;
    return std::bit_cast<float>(bits);
  }
  case DataType::F16:
    return decode(fp16, loadAs<uint16_t>(base, index));
  case DataType::I32:
    return loadAs<int32_t>(base, index);
  case DataType::I64:
    return static_cast<double>(loadAs<int64_t>(base, index));
  }
  return 0;
}

void storeElement(DataType type, void *base, int64_t index, double value) {
  switch (type) {
  case DataType::F32:
    return storeAs(base, index, static_cast<float>(value));
  case DataType::BF16:
    return storeAs(base, index, encode(bf16, value));
  case DataType::F16:
    return storeAs(base, index, encode(fp16, value));
  case DataType::I32:
    return storeAs(base, index, toInteger<int32_t>(value));
  case DataType::I64:
    return storeAs(base, index, toInteger<int64_t>(value));
  }
}

} // namespace replayjit::internal
