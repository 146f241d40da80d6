//===- EmulatorTest.cpp - What right thread programs compute --------------===//

#include "compiler/Host/Float16.h"
#include "tests/unit/EmulatorTestSupport.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

using namespace replayjit::internal;
using namespace replayjit::internal::host;
using namespace replayjit::internal::host::test;

TEST_CASE("special registers name lane, warp and block", "[emulator]") {
  struct Params {
    int32_t *out;
  };
  std::vector<int32_t> out(3 * 40 * 4, -1);
  Params params{out.data()};
  TestGrid grid;
  grid.threads = 40;
  grid.blocks = 3;
  grid.memory.add("out", out.data(), out.size() * 4);
  for (LaneOrder order : everyOrder()) {
    grid.order = order;
    Status status = grid.run(
        [](const void *p) {
          int32_t *out = static_cast<const Params *>(p)->out;
          out += (block() * 40 + tid()) * 4;
          store(out, block(), Global);
          store(out + 1, warpId(), Global);
          store(out + 2, laneId(), Global);
          store(out + 3, replayjit_emu_sreg(NCtaIdX), Global);
        },
        &params);
    REQUIRE(status.message == "");
    for (int i = 0; i < 120; ++i) {
      CHECK(out[i * 4] == i / 40);
      CHECK(out[i * 4 + 1] == i % 40 / 32);
      CHECK(out[i * 4 + 2] == i % 40 % 32);
      CHECK(out[i * 4 + 3] == 3);
    }
  }
}

TEST_CASE("blocks of a grid are numbered with x running fastest",
          "[emulator]") {
  struct Params {
    int32_t *out;
  };
  std::vector<int32_t> out(2 * 3 * 4, -1);
  Params params{out.data()};
  TestGrid grid;
  grid.threads = 1;
  grid.blocks = {2, 3, 4};
  grid.memory.add("out", out.data(), out.size() * 4);
  for (LaneOrder order : everyOrder()) {
    grid.order = order;
    Status status = grid.run(
        [](const void *p) {
          const int32_t x = replayjit_emu_sreg(CtaIdX),
                        y = replayjit_emu_sreg(CtaIdY),
                        z = replayjit_emu_sreg(CtaIdZ);
          store(static_cast<const Params *>(p)->out + x + 2 * y + 6 * z,
                100 * x + 10 * y + z, Global);
        },
        &params);
    REQUIRE(status.message == "");
    for (int x = 0; x < 2; ++x)
      for (int y = 0; y < 3; ++y)
        for (int z = 0; z < 4; ++z)
          CHECK(out[x + 2 * y + 6 * z] == 100 * x + 10 * y + z);
  }
  grid.blocks = {1 << 16, 1 << 15, 1};
  CHECK(grid.run([](const void *) {}, &params).message ==
        "emulation: 65536 x 32768 x 1 blocks; allowed are 2147483647 in all");
}

TEST_CASE("shuffles and votes", "[emulator]") {
  std::vector<int32_t> out(64 * 6, -1);
  TestGrid grid;
  grid.threads = 64;
  grid.memory.add("out", out.data(), out.size() * 4);
  for (LaneOrder order : everyOrder()) {
    grid.order = order;
    Status status = grid.run(
        [](const void *p) {
          auto *out = static_cast<int32_t *>(const_cast<void *>(p)) + tid() * 6;
          int32_t value = 100 + tid();
          int32_t all = -1;
          store(out, replayjit_emu_shuffle(all, value, 5, Bfly, Sync), Global);
          store(out + 1, replayjit_emu_shuffle(all, value, 3, Idx, Sync),
                Global);
          store(out + 2, replayjit_emu_shuffle(all, value, 2, Up, Sync),
                Global);
          store(out + 3, replayjit_emu_shuffle(all, value, 4, Down, Sync),
                Global);
          store(out + 4, replayjit_emu_ballot(all, laneId() % 3 == 0, Sync),
                Global);
          // Two halves of a warp, each on its own.
          int32_t half = laneId() < 16 ? 0x0000ffff : int32_t(0xffff0000);
          store(out + 5, replayjit_emu_shuffle(half, value, 1, Bfly, Sync),
                Global);
        },
        out.data());
    REQUIRE(status.message == "");
    for (int i = 0; i < 64; ++i) {
      int lane = i % 32, first = 100 + i / 32 * 32;
      CHECK(out[i * 6] == first + (lane ^ 5));
      CHECK(out[i * 6 + 1] == first + 3);
      CHECK(out[i * 6 + 2] == first + (lane < 2 ? lane : lane - 2));
      CHECK(out[i * 6 + 3] == first + (lane > 27 ? lane : lane + 4));
      CHECK(uint32_t(out[i * 6 + 4]) == 0x49249249u);
      CHECK(out[i * 6 + 5] == first + (lane ^ 1));
    }
  }
}

namespace {
/// 16 x K times K x 8, loaded into fragments as the PTX ISA numbers them.
struct MmaParams {
  int32_t kind;
  const float *a, *b, *c;
  float *d;
};
} // namespace

static uint32_t word(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  return bits;
}

static void mmaThread(const void *p) {
  const auto &params = *static_cast<const MmaParams *>(p);
  int g = laneId() >> 2, t = laneId() & 3;
  uint32_t a[4], b[2];
  float c[4], d[4];
  if (params.kind == MmaTf32) {
    auto at = [&](int row, int k) { return word(params.a[row * 8 + k]); };
    a[0] = at(g, t), a[1] = at(g + 8, t);
    a[2] = at(g, t + 4), a[3] = at(g + 8, t + 4);
    b[0] = word(params.b[t * 8 + g]);
    b[1] = word(params.b[(t + 4) * 8 + g]);
  } else {
    auto narrow = params.kind == MmaBf16 ? floatToBf16 : floatToHalf;
    auto pair = [&](float low, float high) {
      return uint32_t(narrow(low)) | uint32_t(narrow(high)) << 16;
    };
    auto at = [&](int row, int k) {
      return pair(params.a[row * 16 + k], params.a[row * 16 + k + 1]);
    };
    a[0] = at(g, 2 * t), a[1] = at(g + 8, 2 * t);
    a[2] = at(g, 2 * t + 8), a[3] = at(g + 8, 2 * t + 8);
    for (int i = 0; i < 2; ++i) {
      int k = 2 * t + 8 * i;
      b[i] = pair(params.b[k * 8 + g], params.b[(k + 1) * 8 + g]);
    }
  }
  for (int i = 0; i < 4; ++i)
    c[i] = params.c[(g + 8 * (i / 2)) * 8 + 2 * t + i % 2];
  replayjit_emu_mma(params.kind, a, b, c, d, Sync);
  for (int i = 0; i < 4; ++i)
    params.d[(g + 8 * (i / 2)) * 8 + 2 * t + i % 2] = d[i];
}

TEST_CASE("MMA of each kind is a matrix product", "[emulator]") {
  std::mt19937 random(1);
  std::uniform_int_distribution<int> small(-64, 64);
  for (int32_t kind : {MmaTf32, MmaBf16, MmaF16})
    for (LaneOrder order : everyOrder()) {
      int depth = kind == MmaTf32 ? 8 : 16;
      std::vector<float> a(16 * depth), b(depth * 8), c(128), d(128);
      for (auto *values : {&a, &b, &c})
        for (float &value : *values)
          value = small(random) / 16.0f; // Exact in every operand type.
      MmaParams params{kind, a.data(), b.data(), c.data(), d.data()};
      TestGrid grid;
      grid.order = order;
      Status status = grid.run(mmaThread, &params);
      REQUIRE(status.message == "");
      for (int row = 0; row < 16; ++row)
        for (int column = 0; column < 8; ++column) {
          float sum = c[row * 8 + column];
          for (int k = 0; k < depth; ++k)
            sum += a[row * depth + k] * b[k * 8 + column];
          CHECK(d[row * 8 + column] == sum);
        }
    }
}

TEST_CASE("tf32 operands lose their low 13 bits", "[emulator]") {
  std::vector<float> a(128), b(64), c(128), d(128);
  a[0] = 1.0f + 0x1p-10f + 0x1p-11f;
  b[0] = 1.0f;
  MmaParams params{MmaTf32, a.data(), b.data(), c.data(), d.data()};
  REQUIRE(TestGrid().run(mmaThread, &params).message == "");
  CHECK(d[0] == 1.0f + 0x1p-10f);
}

TEST_CASE("a barrier exchanges through shared memory", "[emulator]") {
  std::vector<int16_t> out(256);
  TestGrid grid;
  grid.threads = 128;
  grid.memory.add("out", out.data(), out.size() * 2);
  for (LaneOrder order : everyOrder()) {
    grid.order = order;
    std::fill(out.begin(), out.end(), 0);
    Status status = grid.run(
        [](const void *p) {
          auto *out = static_cast<int16_t *>(const_cast<void *>(p));
          // Neighbouring halves of one word, written by different lanes.
          for (int round = 0; round < 3; ++round) {
            store(shared<int16_t>() + tid(), int16_t(tid() * (round + 1)));
            barrier();
            int16_t value = load(shared<int16_t>() + 127 - tid());
            store(out + tid(), value, Global);
            barrier();
          }
          // All read what one wrote, and one writes what all read.
          if (tid() == 0)
            store(shared<int32_t>(512), 7);
          barrier();
          int32_t seven = load(shared<int32_t>(512));
          barrier();
          if (tid() == 127)
            store(shared<int32_t>(512), seven + 1);
          barrier();
          store(out + 128 + tid(), int16_t(load(shared<int32_t>(512))), Global);
        },
        out.data());
    REQUIRE(status.message == "");
    for (int i = 0; i < 128; ++i) {
      CHECK(out[i] == 3 * (127 - i));
      CHECK(out[128 + i] == 8);
    }
  }
}

TEST_CASE("a warp exchanges without a block barrier", "[emulator]") {
  TestGrid grid;
  grid.threads = 64;
  for (LaneOrder order : everyOrder()) {
    grid.order = order;
    Status status = grid.run([](const void *) {
      int32_t *mine = shared<int32_t>(warpId() * 128);
      for (int round = 0; round < 4; ++round) {
        store(mine + laneId(), laneId() + round);
        replayjit_emu_warp_barrier(-1, Sync);
        int32_t value = load(mine + 31 - laneId());
        if (value != 31 - laneId() + round)
          replayjit_emu_barrier(99, -1, Other); // Any fault.
        replayjit_emu_warp_barrier(-1, Sync);
      }
    });
    CHECK(status.message == "");
  }
}

TEST_CASE("named barriers join part of a block", "[emulator]") {
  TestGrid grid;
  grid.threads = 96;
  for (LaneOrder order : everyOrder()) {
    grid.order = order;
    Status status = grid.run([](const void *) {
      if (warpId() == 2)
        return;
      store(shared<int32_t>() + tid(), tid());
      replayjit_emu_barrier(1, 64, Sync);
      load(shared<int32_t>() + 63 - tid());
      replayjit_emu_barrier(1, 64, Sync);
      store(shared<int32_t>() + tid(), 0);
    });
    CHECK(status.message == "");
  }
}

TEST_CASE("cp.async delivers at its wait", "[emulator]") {
  struct Params {
    const float *in;
    float *out;
  };
  std::vector<float> in(256), out(64);
  for (int i = 0; i < 256; ++i)
    in[i] = float(i);
  Params params{in.data(), out.data()};
  TestGrid grid;
  grid.threads = 64;
  grid.memory.add("in", in.data(), 1024);
  grid.memory.add("out", out.data(), 256);
  for (LaneOrder order : everyOrder()) {
    grid.order = order;
    Status status = grid.run(
        [](const void *p) {
          const auto &params = *static_cast<const Params *>(p);
          for (int half = 0; half < 2; ++half) {
            int at = tid() * 4 + half * 2;
            replayjit_emu_async_copy(shared<float>() + at, params.in + at, 8,
                                     LoadX);
            replayjit_emu_async_commit(None);
          }
          replayjit_emu_async_wait(1, None); // The first group only.
          float own = load(shared<float>() + tid() * 4 + 1);
          replayjit_emu_async_wait(0, None);
          barrier();
          float other = load(shared<float>() + (63 - tid()) * 4 + 2);
          store(params.out + tid(), own + other, Global);
        },
        &params);
    REQUIRE(status.message == "");
    for (int i = 0; i < 64; ++i)
      CHECK(out[i] == (4 * i + 1) + ((63 - i) * 4 + 2));
  }
}

namespace {
struct PipelineParams {
  const float *in;
  float *out;
};
constexpr int tiles = 7, stages = 2, tileFloats = 64;
} // namespace

// Warp 0 fills stages by bulk copies; warps 1 and 2 use them.
static void pipelineThread(const void *p) {
  const auto &params = *static_cast<const PipelineParams *>(p);
  auto *full = shared<uint64_t>(0), *empty = shared<uint64_t>(64);
  if (tid() == 0)
    for (int stage = 0; stage < stages; ++stage) {
      replayjit_emu_mbarrier_init(full + stage, 1, StoreY);
      replayjit_emu_mbarrier_init(empty + stage, 64, StoreY);
    }
  barrier();
  for (int tile = 0; tile < tiles; ++tile) {
    int stage = tile % stages, round = tile / stages;
    float *buffer = shared<float>(128 + stage * tileFloats * 4);
    if (warpId() == 0) {
      if (laneId() != 0)
        continue;
      replayjit_emu_mbarrier_wait(empty + stage, (round + 1) & 1, Sync);
      replayjit_emu_mbarrier_expect(full + stage, tileFloats * 4, Sync);
      for (int half = 0; half < 2; ++half)
        replayjit_emu_bulk_copy(buffer + half * 32,
                                params.in + tile * tileFloats + half * 32, 128,
                                full + stage, Global, LoadX);
      continue;
    }
    replayjit_emu_mbarrier_wait(full + stage, round & 1, Sync);
    float sum = 0;
    for (int i = 0; i < tileFloats; ++i)
      sum += load(buffer + i);
    store(params.out + tile * 64 + tid() - 32, sum, Global);
    replayjit_emu_mbarrier_arrive(empty + stage, Sync);
  }
}

TEST_CASE("a producer and consumers meet at mbarriers", "[emulator]") {
  std::vector<float> in(tiles * tileFloats), out(tiles * 64);
  for (size_t i = 0; i < in.size(); ++i)
    in[i] = float(i % 50);
  PipelineParams params{in.data(), out.data()};
  TestGrid grid;
  grid.threads = 96;
  grid.blocks = 3;
  grid.memory.add("in", in.data(), in.size() * 4);
  grid.memory.add("out", out.data(), out.size() * 4);
  for (LaneOrder order : everyOrder()) {
    grid.order = order;
    std::fill(out.begin(), out.end(), 0.0f);
    Status status = grid.run(pipelineThread, &params);
    REQUIRE(status.message == "");
    for (int tile = 0; tile < tiles; ++tile) {
      float sum = 0;
      for (int i = 0; i < tileFloats; ++i)
        sum += in[tile * tileFloats + i];
      for (int i = 0; i < 64; ++i)
        CHECK(out[tile * 64 + i] == sum);
    }
  }
}

TEST_CASE("launches outside the limits are refused", "[emulator]") {
  auto nothing = [](const void *) {};
  TestGrid grid;
  grid.threads = 1025;
  CHECK(grid.run(nothing).code == StatusCode::InvalidArgument);
  grid.threads = 1024;
  CHECK(grid.run(nothing).isOk());
  grid.sharedBytes = 256 * 1024 + 1;
  CHECK(grid.run(nothing).code == StatusCode::InvalidArgument);
  CHECK(TestGrid().run(nullptr).code == StatusCode::InvalidArgument);
  grid = {};
  grid.blocks = 0;
  CHECK(grid.run(nothing).isOk());
}

TEST_CASE("16-bit conversions round to nearest even", "[emulator]") {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    auto half = uint16_t(bits);
    float wide = halfToFloat(half);
    if (std::isnan(wide)) {
      CHECK(std::isnan(halfToFloat(floatToHalf(wide))));
      continue;
    }
    REQUIRE(wide == float(std::bit_cast<_Float16>(half)));
    REQUIRE(floatToHalf(wide) == half);
    REQUIRE(floatToBf16(bf16ToFloat(half)) == half);
  }
  std::mt19937 random(2);
  for (int i = 0; i < 200000; ++i) {
    float value = std::bit_cast<float>(uint32_t(random()));
    if (!std::isnan(value))
      REQUIRE(floatToHalf(value) == std::bit_cast<uint16_t>(_Float16(value)));
  }
  CHECK(floatToBf16(1.0f + 0x1p-8f) == 0x3f80);
  CHECK(floatToBf16(1.0f + 0x1p-8f + 0x1p-20f) == 0x3f81);
  CHECK(std::isnan(bf16ToFloat(floatToBf16(NAN))));
}
