//===- BatchInvariantTest.cpp - Bits that no other row has a part in ------===//
//
// Rows of a large batch, and each of them alone, in the emulation.
//
//===----------------------------------------------------------------------===//

#include "tests/unit/StateModel.h"

using namespace replayjit::internal;
using namespace replayjit::internal::test;

namespace {

constexpr int H = 1, HV = 2, K = 16, V = 64, L = 4, rows = 256;

/// One layer, whose row r has slot r and r % L tokens in its ring.
struct Batch {
  Device &device = sharedJit().device();
  std::unique_ptr<StatePool> pool;
  std::vector<uint64_t> memory;
  DecodeArgs args;

  explicit Batch(bool batchInvariant) {
    PoolGroup group;
    group.spec = makeSpec(H, HV, K, V, L);
    group.layers.resize(1);
    group.slots = rows;
    PoolOptions options;
    options.batchInvariant = batchInvariant;
    auto made = StatePool::allocate(sharedJit(), {group}, rows, options);
    REQUIRE(made.status().message == "");
    pool = std::move(*made);
    args = pool->layerArgs(0, 0);
    args.batch = rows;
    args.scale = 0.5f;
    args.qStride = 2 * H * K + HV * V;
    args.aStride = args.bStride = HV;
    args.outStride = HV * V;
    for (auto [array, stride] : {std::pair(&DecodeArgs::q, args.qStride),
                                 {&DecodeArgs::a, args.aStride},
                                 {&DecodeArgs::b, args.bStride},
                                 {&DecodeArgs::out, args.outStride},
                                 {&DecodeArgs::stateIndices, 1},
                                 {&DecodeArgs::writePos, 1},
                                 {&DecodeArgs::forceFlush, 1},
                                 {&DecodeArgs::aLog, HV},
                                 {&DecodeArgs::dtBias, HV}}) {
      const int64_t count = rows * stride;
      args.*array = *device.allocate(count * 4, "test");
      memory.push_back(args.*array);
      std::fill_n(numbers(args.*array), count, 0.0f);
    }
    for (int row = 0; row < rows; ++row) {
      reinterpret_cast<int32_t *>(args.stateIndices)[row] = row;
      reinterpret_cast<int32_t *>(args.writePos)[row] = row % L;
    }
  }
  ~Batch() {
    for (uint64_t address : memory)
      CHECK(device.free(address).isOk());
  }

  static float *numbers(uint64_t address) {
    return reinterpret_cast<float *>(address);
  }
  /// The same numbers each time.
  void fill() const {
    std::mt19937 random(5);
    std::normal_distribution<float> normal(0.0f, 0.3f);
    for (auto [array, count] : {std::pair(args.q, rows * args.qStride),
                                {args.a, rows * args.aStride},
                                {args.b, rows * args.bStride},
                                {args.state, rows * args.statePitch},
                                {args.dRing, rows * args.dPitch},
                                {args.kRing, rows * args.kPitch}})
      for (int64_t i = 0; i < count; ++i)
        numbers(array)[i] = normal(random);
    std::fill_n(numbers(args.gRing), rows * args.gPitch, -0.25f);
    std::fill_n(numbers(args.out), rows * args.outStride, 0.0f);
  }
  /// Output, state and ring of d of a row, to the bit.
  std::vector<uint32_t> bits(int row) const {
    std::vector<uint32_t> all;
    for (auto [array, stride] : {std::pair(args.out, args.outStride),
                                 {args.state, args.statePitch},
                                 {args.dRing, args.dPitch}}) {
      const auto *first = reinterpret_cast<const uint32_t *>(array);
      all.insert(all.end(), first + row * stride, first + (row + 1) * stride);
    }
    return all;
  }
  /// The arguments of one row of the batch.
  DecodeArgs alone(int row) const {
    DecodeArgs one = args;
    one.batch = 1;
    for (auto [array, stride] : {std::pair(&DecodeArgs::q, args.qStride),
                                 {&DecodeArgs::a, args.aStride},
                                 {&DecodeArgs::b, args.bStride},
                                 {&DecodeArgs::out, args.outStride},
                                 {&DecodeArgs::stateIndices, 1},
                                 {&DecodeArgs::writePos, 1},
                                 {&DecodeArgs::forceFlush, 1}})
      one.*array += row * stride * 4;
    return one;
  }
};

} // namespace

TEST_CASE("a batch-invariant pool has one kernel, and a row one outcome",
          "[state]") {
  const Batch batch(/*batchInvariant=*/true);
  auto small = batch.pool->prepareDecode(0, 1);
  auto large = batch.pool->prepareDecode(0, rows);
  REQUIRE(small.status().message == "");
  REQUIRE(large.status().message == "");
  CHECK(*small == *large);
  CHECK(batch.pool->prepareDecode(0, -1).status().message ==
        "rows: -1 is not allowed; it must be 0 or more");

  batch.fill();
  const std::vector<uint32_t> before = batch.bits(3);
  REQUIRE(large->launchOn(nullptr, batch.args).message == "");
  std::vector<std::vector<uint32_t>> together;
  for (int row = 0; row < rows; ++row)
    together.push_back(batch.bits(row));
  CHECK(together[3] != before);
  batch.fill();
  for (int row : {0, 1, 2, 3, 130, 255}) { // all phases, flushes too
    REQUIRE(small->launchOn(nullptr, batch.alone(row)).message == "");
    CHECK(batch.bits(row) == together[row]);
  }
}

TEST_CASE("another pool has a kernel for each size", "[state]") {
  const Batch batch(/*batchInvariant=*/false);
  auto small = batch.pool->prepareDecode(0, 1);
  auto large = batch.pool->prepareDecode(0, rows);
  REQUIRE(small.status().message == "");
  REQUIRE(large.status().message == "");
  CHECK_FALSE(*small == *large);
}
