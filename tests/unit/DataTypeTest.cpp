//===- DataTypeTest.cpp ---------------------------------------------------===//

#include "base/DataType.h"

#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

using namespace replayjit::internal;

TEST_CASE("every 16-bit pattern survives load and store", "[datatype]") {
  for (DataType type : {DataType::BF16, DataType::F16}) {
    for (uint32_t bits = 0; bits < 0x10000; ++bits) {
      uint16_t in = uint16_t(bits), out = 0;
      double value = loadElement(type, &in, 0);
      storeElement(type, &out, 0, value);
      if (std::isnan(value)) {
        if (!std::isnan(loadElement(type, &out, 0)))
          FAIL("NaN was lost: " << bits);
      } else if (in != out) {
        FAIL(wordOf(type) << " " << bits << " became " << out);
      }
    }
  }
}

TEST_CASE("16-bit rounding is to nearest, ties to even", "[datatype]") {
  // Halfway between two neighbours goes to the even one; a hair off does not.
  for (DataType type : {DataType::BF16, DataType::F16}) {
    uint16_t last = type == DataType::BF16 ? 0x7f7f : 0x7bff;
    for (uint32_t bits = 0; bits < last; ++bits) {
      uint16_t pair[2] = {uint16_t(bits), uint16_t(bits + 1)};
      double low = loadElement(type, pair, 0),
             high = loadElement(type, pair, 1);
      double middle = (low + high) / 2; // exact in double
      double even = bits % 2 == 0 ? low : high;
      if (roundTo(type, middle) != even || roundTo(type, -middle) != -even ||
          roundTo(type, std::nextafter(middle, 0.0)) != low ||
          roundTo(type, std::nextafter(middle, 1e300)) != high)
        FAIL(wordOf(type) << " near " << bits);
    }
  }
}

TEST_CASE("rounding goes straight from double", "[datatype]") {
  // Through float this would become 1 + 2^-8, a tie, and then 1.
  double value = 1 + std::ldexp(1.0, -8) + std::ldexp(1.0, -40);
  CHECK(roundTo(DataType::BF16, value) == 1 + std::ldexp(1.0, -7));
}

TEST_CASE("the ends of the 16-bit formats", "[datatype]") {
  double inf = std::numeric_limits<double>::infinity();
  CHECK(roundTo(DataType::F16, 65504) == 65504);
  CHECK(roundTo(DataType::F16, 65519.99) == 65504);
  CHECK(roundTo(DataType::F16, 65520) == inf);
  CHECK(roundTo(DataType::F16, -1e30) == -inf);
  CHECK(roundTo(DataType::BF16, 1e39) == inf);
  CHECK(roundTo(DataType::F16, std::ldexp(1.0, -24)) == std::ldexp(1.0, -24));
  CHECK(roundTo(DataType::F16, std::ldexp(1.0, -25)) == 0);
  CHECK(roundTo(DataType::F16, std::ldexp(1.1, -25)) == std::ldexp(1.0, -24));
  CHECK(roundTo(DataType::BF16, 1e-300) == 0);
  CHECK(std::signbit(roundTo(DataType::BF16, -0.0)));
  for (DataType type : {DataType::F32, DataType::BF16, DataType::F16}) {
    CHECK(roundTo(type, inf) == inf);
    CHECK(roundTo(type, -inf) == -inf);
    CHECK(std::isnan(roundTo(type, std::nan(""))));
  }
  CHECK(roundTo(DataType::F32, 0.1) == double(0.1f));
}

TEST_CASE("integers load and store whole", "[datatype]") {
  int32_t small[2] = {};
  int64_t large[2] = {};
  storeElement(DataType::I32, small, 1, -7);
  storeElement(DataType::I64, large, 1, double(int64_t(1) << 40));
  CHECK(small[1] == -7);
  CHECK(large[1] == int64_t(1) << 40);
  CHECK(loadElement(DataType::I32, small, 1) == -7);
  CHECK(loadElement(DataType::I64, large, 1) == double(int64_t(1) << 40));
  storeElement(DataType::I32, small, 0, 1e20);
  CHECK(small[0] == std::numeric_limits<int32_t>::max());
}

TEST_CASE("elements are found at any address", "[datatype]") {
  char bytes[16] = {};
  storeElement(DataType::F32, bytes + 1, 1, 2.5);
  CHECK(loadElement(DataType::F32, bytes + 1, 1) == 2.5);
  CHECK(byteSize(DataType::BF16) == 2);
  CHECK(byteSize(DataType::I64) == 8);
}
