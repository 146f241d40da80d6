//===- WideStridesTest.cpp - Rows more than 2^31 elements apart -----------===//
//
// Two rows of a launch whose tensors lie in two places so far apart that no 32
// bits hold the stride from one to the other, against the fp64 reference.
//
//===----------------------------------------------------------------------===//

#include "tests/unit/TestDevice.h"

#include <catch2/catch.hpp>

#include <array>
#include <span>
#include <utility>

using namespace replayjit::internal;
using namespace replayjit::internal::test;

namespace {

constexpr int64_t placeBytes = 1 << 15;     // for one row of every tensor
constexpr int64_t least = int64_t(4) << 31; // 2^31 elements of four bytes

/// One place for each of two rows, the second `distance` bytes after the first.
class FarPlaces {
public:
  FarPlaces() {
    // A GPU has the memory in between. The emulation backs what it allocates,
    // but takes a small piece from the heap and maps a large one far from it.
    const bool isHost = testDevice().isEmulation();
    first = allocate(isHost ? placeBytes : least + placeBytes);
    second = isHost ? allocate(64 << 20) : first + least;
    if (second < first)
      std::swap(first, second);
    REQUIRE(distance() >= least);
  }
  ~FarPlaces() {
    for (uint64_t memory : allocations)
      (void)testDevice().free(memory); // nothing to be done about it
  }
  FarPlaces(const FarPlaces &) = delete;

  int64_t distance() const { return int64_t(second - first); }
  uint64_t first, second;

private:
  std::vector<uint64_t> allocations;

  uint64_t allocate(size_t bytes) {
    Result<uint64_t> memory = testDevice().allocate(bytes, "place");
    REQUIRE(memory.status().message == "");
    allocations.push_back(*memory);
    return *memory;
  }
};

/// A tensor with a row stride. Every spec has the first five.
struct Strided {
  const char *name;
  uint64_t DecodeArgs::*pointer;
  int64_t DecodeArgs::*stride;
  DataType DecodeSpec::*type;
};

constexpr std::array<Strided, 10> stridedTensors = {{
    {"q", &DecodeArgs::q, &DecodeArgs::qStride, &DecodeSpec::actType},
    {"a", &DecodeArgs::a, &DecodeArgs::aStride, &DecodeSpec::gateType},
    {"b", &DecodeArgs::b, &DecodeArgs::bStride, &DecodeSpec::betaType},
    {"out", &DecodeArgs::out, &DecodeArgs::outStride, &DecodeSpec::outType},
    {"stateIndices", &DecodeArgs::stateIndices, &DecodeArgs::stateIndexStride,
     &DecodeSpec::indexType},
    {"k", &DecodeArgs::k, &DecodeArgs::kStride, &DecodeSpec::actType},
    {"v", &DecodeArgs::v, &DecodeArgs::vStride, &DecodeSpec::actType},
    {"ringIndices", &DecodeArgs::ringIndices, &DecodeArgs::ringIndexStride,
     &DecodeSpec::indexType},
    {"dstIndices", &DecodeArgs::dstIndices, &DecodeArgs::dstIndexStride,
     &DecodeSpec::indexType},
    {"trackIndices", &DecodeArgs::trackIndices, &DecodeArgs::trackIndexStride,
     &DecodeSpec::indexType},
}};

/// A launch of two rows. Row 1 flushes to slot 0 and is tracked in slot 1.
struct TwoRows : Launch {
  explicit TwoRows(const DecodeSpec &spec) : Launch(spec, 2, 5) {
    freshInputs();
    const DecodeTensors t = tensors();
    if (spec.hasDstIndices)
      t.dstIndices.set(1, 0, 0);
    if (spec.hasTrackIndices)
      t.trackIndices.set(1, 0, 1);
    t.forceFlush.set(1, 0, 1);
  }
};

/// Runs `kernel` with the rows of `wide` in the two places.
void stepWide(TestKernel &kernel, Launch &launch, const FarPlaces &places,
              std::span<const Strided> wide) {
  DeviceCopy copy(launch);
  struct Moved {
    uint64_t host, device;
    int64_t bytes;
  };
  std::vector<Moved> rows;
  int64_t used = 0;
  for (const Strided &tensor : wide) {
    const int size = byteSize(launch.spec.*tensor.type);
    const int64_t bytes = launch.args.*tensor.stride * size;
    for (int row : {0, 1})
      rows.push_back({launch.args.*tensor.pointer + row * bytes,
                      (row ? places.second : places.first) + used, bytes});
    copy.args.*tensor.pointer = places.first + used;
    copy.args.*tensor.stride = places.distance() / size;
    used += (bytes + 255) / 256 * 256;
    REQUIRE(used <= placeBytes);
  }
  auto onHost = [](const Moved &row) {
    return reinterpret_cast<void *>(row.host);
  };
  for (const Moved &row : rows)
    REQUIRE(testDevice().copyToDevice(row.device, onHost(row), row.bytes));
  REQUIRE(kernel.launch(copy.args).message == "");
  copy.fetch();
  for (const Moved &row : rows)
    REQUIRE(testDevice().copyFromDevice(onHost(row), row.device, row.bytes));
}

void check(const DecodeSpec &spec, const FarPlaces &places) {
  TestKernel kernel(spec);
  TwoRows expected(spec);
  replayStep(spec, expected.args);
  auto step = [&](std::span<const Strided> wide) {
    TwoRows launch(spec);
    stepWide(kernel, launch, places, wide);
    const int H = spec.numKeyHeads, HV = spec.numValueHeads;
    const int K = spec.headDimK, V = spec.headDimV, L = spec.ringDepth;
    const DecodeTensors x = launch.tensors(), y = expected.tensors();
    checkNear(x.out, y.out, 2, HV * V, 2e-6);
    checkNear(x.state, y.state, 5, HV * V * K, 2e-6);
    checkNear(x.dRing, y.dRing, 5, HV * L * V, 2e-6);
    checkNear(x.kRing, y.kRing, 5, H * L * K, 2e-6);
    checkNear(x.gRing, y.gRing, 5, HV * L * gateWidth(spec), 2e-6);
    CHECK(launch.error.count == 0);
    CHECK(launch.guardsIntact());
  };
  const std::span<const Strided> all =
      std::span(stridedTensors).first(spec.hasSeparateQkv ? 10 : 5);
  for (const Strided &tensor : all) {
    INFO("wide is " << tensor.name);
    step({&tensor, 1});
  }
  INFO("all are wide");
  step(all);
}

} // namespace

TEST_CASE("strides of rows take 64 bits", "[kernel][device]") {
  const FarPlaces places;
  for (bool isKda : {false, true})
    for (bool hasAll : {false, true}) {
      DecodeSpec spec = makeSpec(1, 2, 32, 16, 3);
      spec.isKda = isKda;
      spec.actType = spec.gateType = spec.betaType = DataType::BF16;
      spec.hasSeparateQkv = spec.hasRingIndices = spec.hasDstIndices =
          spec.hasTrackIndices = hasAll;
      check(spec, places);
    }
}
