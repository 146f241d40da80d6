//===- StreamProgramTest.cpp - Streams move what they say -----------------===//

#include "tools/StreamProgram.h"

#include "tests/unit/TestDevice.h"

#include <catch2/catch.hpp>

#include <cmath>

using namespace replayjit::internal;
using namespace replayjit::internal::test;

namespace {

/// fp32 memory of the test device.
class Floats {
public:
  explicit Floats(const std::vector<float> &values) : count(values.size()) {
    Result<uint64_t> memory = testDevice().allocate(bytes(), "floats");
    REQUIRE(memory.status().message == "");
    address = *memory;
    REQUIRE(testDevice().copyToDevice(address, values.data(), bytes()));
  }
  Floats(const Floats &) = delete;
  ~Floats() { (void)testDevice().free(address); }

  std::vector<float> fetch() const {
    std::vector<float> values(count);
    REQUIRE(testDevice().copyFromDevice(values.data(), address, bytes()));
    return values;
  }
  uint64_t address = 0;

private:
  size_t bytes() const { return count * sizeof(float); }
  size_t count;
};

std::vector<float> drawn(size_t count) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float &value : values)
    value = normal(random);
  return values;
}

/// The sum of `count` elements of a row.
double sumOf(const HostTensor &tensor, int64_t row, int64_t first,
             int64_t count) {
  double sum = 0;
  for (int64_t i = 0; i < count; ++i)
    sum += tensor.get(row, first + i);
  return sum;
}

/// Steps the stream of a spec, all rows at ring row `m`, and compares.
void checkOwnStream(const DecodeSpec &spec, const DecodeTuning &tuning, int m) {
  constexpr int batch = 3, slots = 5;
  CAPTURE(kernelName(spec, tuning), m);
  const int H = spec.numKeyHeads, HV = spec.numValueHeads, K = spec.headDimK,
            V = spec.headDimV, L = spec.ringDepth, G = gateWidth(spec);
  const bool hasRing = L > 1, isFull = m == L - 1;
  Launch launch(spec, batch, slots), before(spec, batch, slots);
  for (Launch *memory : {&launch, &before}) {
    const DecodeTensors t = memory->tensors();
    std::mt19937 random(11);
    std::uniform_real_distribution<double> uniform(-1, 1);
    for (int slot = 0; slot < slots; ++slot) {
      for (int i = 0; i < HV * L * V; ++i)
        t.dRing.set(slot, i, uniform(random));
      for (int i = 0; i < H * L * K; ++i)
        t.kRing.set(slot, i, uniform(random));
      for (int i = 0; i < HV * L * G; ++i)
        t.gRing.set(slot, i, uniform(random));
    }
    for (int row = 0; row < batch; ++row) {
      t.writePos.set(row, 0, m);
      t.ringIndices.set(row, 0, slots - 1 - row); // where the state is
    }
  }
  TestKernel([&](mlir::MLIRContext &context) {
    return buildOwnStream(context, spec, tuning);
  }).step(launch);

  const DecodeTensors is = launch.tensors(), was = before.tensors();
  for (int row = 0; row < batch; ++row) {
    const int slot = slots - 1 - row;
    for (int hv = 0; hv < HV; ++hv) {
      const int h = hv / (HV / H);
      double keys = 0, gates = 0;
      for (int j = 0; hasRing && j < m; ++j) {
        keys += sumOf(was.kRing, slot, (h * L + j) * K, K);
        gates += sumOf(was.gRing, slot, (hv * L + j) * G, G);
      }
      if (hasRing && spec.ringFormat == RingFormat::Predecayed)
        gates = sumOf(was.gRing, slot, (hv * L + (m + L - 1) % L) * G, G);
      for (int v = 0; v < V; ++v) {
        CAPTURE(row, hv, v);
        double sum = sumOf(was.state, slot, (hv * V + v) * K, K) + keys + gates;
        for (int j = 0; hasRing && j < m; ++j)
          sum += was.dRing.get(slot, (hv * L + j) * V + v);
        REQUIRE(is.out.get(row, hv * V + v) == Approx(sum).margin(1e-4));
        if (hasRing && !isFull)
          REQUIRE(is.dRing.get(slot, (hv * L + m) * V + v) ==
                  Approx(sum).margin(1e-4));
        for (int k = 0; k < K; ++k) {
          const int64_t i = (hv * V + v) * K + k;
          REQUIRE(is.state.get(slot, i) ==
                  (isFull ? -1 : 1) * was.state.get(slot, i));
        }
      }
    }
    // What is appended to k_ring are the sums of its columns; all else stays.
    for (int h = 0; hasRing && h < H; ++h)
      for (int j = 0; j < L; ++j)
        for (int k = 0; k < K; ++k) {
          double expected = was.kRing.get(slot, (h * L + j) * K + k);
          if (j == m && !isFull) {
            expected = 0;
            for (int i = 0; i < m; ++i)
              expected += was.kRing.get(slot, (h * L + i) * K + k);
          }
          REQUIRE(is.kRing.get(slot, (h * L + j) * K + k) ==
                  Approx(expected).margin(1e-4));
        }
  }
  for (int i = 0; i < HV * V * K; ++i) // no row has slot 0
    REQUIRE(is.state.get(0, i) == was.state.get(0, i));
  CHECK(launch.guardsIntact());
}

} // namespace

TEST_CASE("the read stream adds up each row", "[stream][device]") {
  constexpr int rows = 16, blocks = 3, all = rows * blocks;
  const std::vector<float> values = drawn(all * streamColumns);
  Floats src(values), dst(std::vector<float>(all, NAN));
  const StreamArgs args{src.address, dst.address};
  TestKernel kernel([&](mlir::MLIRContext &context) {
    return buildRead(context, rows, /*numWarps=*/2);
  });
  REQUIRE(kernel.launch(blocks, &args, sizeof(args)).message == "");
  const std::vector<float> sums = dst.fetch();
  for (int row = 0; row < all; ++row) {
    double sum = 0;
    for (int i = 0; i < streamColumns; ++i)
      sum += values[row * streamColumns + i];
    CHECK(sums[row] == Approx(sum).margin(1e-4));
  }
}

TEST_CASE("the copy stream copies", "[stream][device]") {
  constexpr int rows = 16, blocks = 3;
  const std::vector<float> values = drawn(rows * blocks * streamColumns);
  Floats src(values), dst(std::vector<float>(values.size(), NAN));
  const StreamArgs args{src.address, dst.address};
  TestKernel kernel([&](mlir::MLIRContext &context) {
    return buildCopy(context, rows, /*numWarps=*/2);
  });
  REQUIRE(kernel.launch(blocks, &args, sizeof(args)).message == "");
  CHECK(dst.fetch() == values);
}

TEST_CASE("a kernel's own stream reads and writes what the kernel does",
          "[stream][device]") {
  DecodeTuning tuning;
  tuning.blockV = 16;
  tuning.numWarps = 2;
  for (const bool isKda : {false, true}) {
    DecodeSpec spec = makeSpec(isKda ? 3 : 1, 3, /*K=*/96, /*V=*/40, /*L=*/4);
    spec.isKda = isKda;
    tuning.blockK = 128;
    for (int m = 0; m < 4; ++m)
      checkOwnStream(canonical(spec), tuning, m);
  }
  DecodeSpec predecayed = makeSpec(2, 4, /*K=*/32, /*V=*/32, /*L=*/3);
  predecayed.gate = Gate::LowerBound;
  predecayed.ringFormat = RingFormat::Predecayed;
  tuning.blockK = 32;
  for (int m = 0; m < 3; ++m)
    checkOwnStream(canonical(predecayed), tuning, m);
  DecodeSpec packed = makeSpec(1, 2, /*K=*/64, /*V=*/48, /*L=*/1);
  packed.family = Family::Packed;
  tuning.blockK = 64;
  checkOwnStream(canonical(packed), tuning, 0);
}
