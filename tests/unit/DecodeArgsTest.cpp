//===- DecodeArgsTest.cpp - Parameter buffers and cursors -----------------===//
//
// The sentences for illegal arguments are tests/error/ArgsErrorsTest.cpp.
//
//===----------------------------------------------------------------------===//

#include "kernels/Decode/DecodeArgs.h"
#include "kernels/Materialize/MaterializeArgs.h"

#include <catch2/catch.hpp>
#include <cstddef>
#include <type_traits>
#include <vector>

using namespace replayjit::internal;

TEST_CASE("parameter buffers have no holes", "[args]") {
  CHECK(std::is_standard_layout_v<DecodeArgs>);
  CHECK(sizeof(DecodeArgs) == 22 * 8 + 17 * 8 + 5 * 4 + 4 * 4 + 4);
  CHECK(offsetof(DecodeArgs, qStride) == 56);
  CHECK(offsetof(DecodeArgs, batch) == 16);
  CHECK(sizeof(MaterializeArgs) == 8 * 8 + 3 * 8 + 4 * 4);
  CHECK(sizeof(ReplayLayer) == 8 * 8);
  CHECK(sizeof(ErrorWord) == 24);
  CHECK(offsetof(ErrorWord, value) == 16);
}

static RingCursor at(int32_t writePos, int32_t base = 0) {
  return {writePos, base};
}

TEST_CASE("a ring fills and is flushed", "[args]") {
  DecodeSpec spec;
  spec.ringDepth = 4;
  RingCursor cursor;
  for (int32_t expected : {1, 2, 3, 0, 1, 2, 3, 0}) {
    CHECK(flushes(spec, cursor, false) == (expected == 0));
    cursor = nextCursor(spec, cursor, false);
    CHECK(cursor == at(expected));
  }
  for (int32_t writePos : {0, 1, 2, 3}) {
    CHECK(flushes(spec, at(writePos), true));
    CHECK(nextCursor(spec, at(writePos), true) == at(0));
  }
}

TEST_CASE("without a ring every step flushes", "[args]") {
  DecodeSpec spec;
  spec.ringDepth = 1;
  for (Family family : {Family::Replay, Family::Packed})
    for (bool forced : {false, true}) {
      spec.family = family;
      CHECK(flushes(spec, at(0), forced));
      CHECK(nextCursor(spec, at(0), forced) == at(0));
    }
}

TEST_CASE("a circular ring keeps the newest token", "[args]") {
  DecodeSpec spec = *modelPreset("kimi-k3", 8);
  spec.ringFormat = RingFormat::Prefix;
  spec.isCircular = true;
  spec.ringDepth = 4;
  // After each natural flush the ring starts where the last token was put.
  RingCursor cursor;
  for (RingCursor expected : {at(1), at(2), at(3), at(1, 3), at(2, 3), at(3, 3),
                              at(1, 2), at(2, 2), at(3, 2), at(1, 1)}) {
    CHECK(flushes(spec, cursor, false) == (cursor.writePos == 3));
    const int place = (cursor.base + cursor.writePos) % 4;
    cursor = nextCursor(spec, cursor, false);
    CHECK(cursor == expected);
    // The token just stored is the newest of the ring.
    CHECK((cursor.base + cursor.writePos - 1) % 4 == place);
  }
  for (int32_t writePos : {0, 1, 2, 3})
    CHECK(nextCursor(spec, at(writePos, 2), true) == at(0));

  spec.ringDepth = 2; // every step from the second on flushes
  cursor = {};
  for (RingCursor expected : {at(1), at(1, 1), at(1), at(1, 1)})
    CHECK((cursor = nextCursor(spec, cursor, false)) == expected);
}

TEST_CASE("a batch moves the cursors of its rows", "[args]") {
  DecodeSpec spec = *modelPreset("kimi-k3", 8);
  spec.ringFormat = RingFormat::Predecayed;
  spec.isCircular = true;
  spec.ringDepth = 4;
  std::vector<RingCursor> slots = {at(0), at(2, 1), at(3, 2), at(0)};
  const int rows[] = {1, 2};
  const bool force[] = {true, false};
  for (int row : {0, 1})
    slots[rows[row]] = nextCursor(spec, slots[rows[row]], force[row]);
  CHECK(slots == std::vector<RingCursor>{at(0), at(0), at(1, 1), at(0)});
}
