//===- Float16.h - The 16-bit floating-point types --------------*- C++ -*-===//
//
// Conversions on bit patterns, rounding to nearest even; NaN stays NaN.
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_COMPILER_HOST_FLOAT16_H
#define REPLAYJIT_COMPILER_HOST_FLOAT16_H

#include <bit>
#include <cstdint>

namespace replayjit::internal::host {

inline float bf16ToFloat(uint16_t bits) {
  return std::bit_cast<float>(uint32_t(bits) << 16);
}

inline uint16_t floatToBf16(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffff) > 0x7f800000)
    return uint16_t(bits >> 16 | 0x40);
  return uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

inline float halfToFloat(uint16_t half) {
  uint32_t sign = uint32_t(half & 0x8000) << 16;
  uint32_t rest = half & 0x7fff;
  if (rest >= 0x7c00) // Infinity and NaN keep their payload.
    return std::bit_cast<float>(sign | 0x7f800000 | (rest & 0x3ff) << 13);
  if (rest >= 0x400)
    return std::bit_cast<float>(sign | ((rest << 13) + (112u << 23)));
  float subnormal = float(rest) * 0x1p-24f; // Exact.
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(subnormal));
}

inline uint16_t floatToHalf(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  uint16_t sign = uint16_t(bits >> 16 & 0x8000);
  bits &= 0x7fffffff;
  if (bits > 0x7f800000)
    return uint16_t(sign | 0x7e00 | (bits >> 13 & 0x3ff));
  if (bits >= 0x477ff000) // Rounds to 65536 or more.
    return uint16_t(sign | 0x7c00);
  if (bits < 0x38800000) { // Below 2^-14: adding 0.5 rounds at 2^-24.
    float shifted = std::bit_cast<float>(bits) + 0.5f;
    return uint16_t(sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000));
  }
  bits += 0xfff + (bits >> 13 & 1);
  return uint16_t(sign | (bits - (112u << 23)) >> 13);
}

} // namespace replayjit::internal::host

#endif
