//===- KernelTimeTest.cpp - What launches are timed with ------------------===//

#include "tools/KernelTime.h"
#include "tests/unit/DecodeLaunch.h"
#include "tools/StreamProgram.h"

#include <catch2/catch.hpp>
#include <set>
#include <vector>

using namespace replayjit::internal;

namespace {

struct NoKernel final : LoadedKernel {
  ResourceUsage resources() const override { return {}; }
};

/// Keeps the arguments of a graph's launches; its memory is the emulation's,
/// where a copy must lie inside one allocation.
class Recorder final : public Device {
public:
  std::string description() const override { return "recorder"; }
  int multiprocessors() const override { return 132; }
  Target target() const override { return memory->target(); }
  bool isEmulation() const override { return false; }
  Result<uint64_t> allocate(size_t bytes, std::string name) override {
    return memory->allocate(bytes, std::move(name));
  }
  Status free(uint64_t address) override { return memory->free(address); }
  Status copyToDevice(uint64_t dst, const void *src, size_t bytes) override {
    return memory->copyToDevice(dst, src, bytes);
  }
  Status copyFromDevice(void *dst, uint64_t src, size_t bytes) override {
    return memory->copyFromDevice(dst, src, bytes);
  }
  Result<std::unique_ptr<LoadedKernel>> load(const CompiledKernel &) override {
    return std::unique_ptr<LoadedKernel>(new NoKernel());
  }
  Status launch(LoadedKernel &, Grid, const void *, size_t) override {
    return Status::invalid("launched on no stream");
  }
  Status launchOn(void *, LoadedKernel &, Grid grid, const void *params,
                  size_t paramBytes, LaunchOrder order) override {
    orders.insert(order);
    CHECK(grid == Grid(5 * 7));
    REQUIRE(paramBytes == sizeof(DecodeArgs));
    check(*static_cast<const DecodeArgs *>(params));
    ++launches;
    return Status::ok();
  }
  Status synchronize() override { return Status::ok(); }

  DecodeSpec spec;
  int launches = 0;
  std::set<int64_t> slots; ///< Of all launches.
  std::set<int32_t> cursors, bases;
  std::set<LaunchOrder> orders;

protected:
  Status beginCapture() override { return Status::ok(); }
  Result<Times> endCaptureAndTime(int) override {
    return Times{2.0 * launches};
  }

private:
  template <typename T> std::vector<T> read(uint64_t address, int64_t count) {
    std::vector<T> values(count);
    REQUIRE(memory->copyFromDevice(values.data(), address, count * sizeof(T))
                .isOk());
    return values;
  }
  std::vector<int64_t> readIndices(uint64_t address, int batch) {
    if (spec.indexType == DataType::I64)
      return read<int64_t>(address, batch);
    std::vector<int32_t> values = read<int32_t>(address, batch);
    return {values.begin(), values.end()};
  }
  /// Its first and its last element can be read.
  void checkTensor(uint64_t address, DataType type, int64_t elements) {
    read<char>(address, byteSize(type));
    read<char>(address + (elements - 1) * byteSize(type), byteSize(type));
  }
  void check(const DecodeArgs &args);

  std::unique_ptr<Device> memory = createEmulationDevice(Target{});
};

} // namespace

void Recorder::check(const DecodeArgs &args) {
  REQUIRE(validateArgs(spec, args).message == "");
  const int64_t rows = args.batch, count = args.slots;
  checkTensor(args.state, spec.stateType, count * args.statePitch);
  checkTensor(args.q, spec.actType, rows * args.qStride);
  if (spec.hasSeparateQkv) {
    checkTensor(args.k, spec.actType, rows * args.kStride);
    checkTensor(args.v, spec.actType, rows * args.vStride);
  }
  std::vector<int64_t> here = readIndices(args.stateIndices, args.batch);
  for (int64_t slot : here) {
    REQUIRE((slot > 0 && slot < args.slots));
    slots.insert(slot);
  }
  CHECK(std::set<int64_t>(here.begin(), here.end()).size() == here.size());
  if (spec.hasRingIndices)
    CHECK(readIndices(args.ringIndices, args.batch) == here);
  if (spec.hasDstIndices)
    CHECK(readIndices(args.dstIndices, args.batch) == here);
  if (spec.hasTrackIndices)
    CHECK(readIndices(args.trackIndices, args.batch) ==
          std::vector<int64_t>(args.batch, -1));
  if (spec.family == Family::Packed) {
    CHECK((args.writePos | args.forceFlush | args.dRing) == 0);
    return;
  }
  checkTensor(args.dRing, spec.ringType, count * args.dPitch);
  checkTensor(args.kRing, spec.ringType, count * args.kPitch);
  checkTensor(args.gRing, DataType::F32, count * args.gPitch);
  for (int32_t cursor : read<int32_t>(args.writePos, args.batch))
    cursors.insert(cursor);
  if (spec.isCircular)
    for (int32_t base : read<int32_t>(args.ringBase, args.batch))
      bases.insert(base);
}

/// Times launches of 5 rows of 7 blocks on a recorder.
static void recordWith(Recorder &device, const DecodeSpec &spec,
                       const LaunchManner &manner = {}) {
  device.spec = spec;
  NoKernel kernel;
  LaunchConfig launch;
  launch.blocksPerRow = 7;
  auto timer = LaunchTimer::create(device, spec, 5);
  INFO(timer.status().message);
  REQUIRE(timer);
  Result<LaunchTime> time = (*timer)->time(kernel, launch, manner);
  INFO(time.status().message);
  REQUIRE(time);
  CHECK(time->microseconds == Times{2000});
  CHECK(time->coldL2);
  // 512 MB of states of 8 MB, used in turn.
  CHECK(device.slots.size() == 5 * (64 / 5 + 1));
  CHECK(5 * device.launches >= int(device.slots.size()));
}

/// A state of 8 MB.
static DecodeSpec large() {
  DecodeSpec spec;
  spec.headDimK = spec.headDimV = 256;
  spec.ringDepth = 4;
  return spec;
}

TEST_CASE("launches at all ring phases, each on its own slots", "[timer]") {
  Recorder device;
  recordWith(device, large());
  CHECK(device.launches % 4 == 0);
  CHECK(device.cursors == std::set<int32_t>{0, 1, 2, 3});
}

TEST_CASE("rows may all stand at one ring phase", "[timer]") {
  Recorder device;
  recordWith(device, large(),
             {.cursor = 3, .order = LaunchOrder::Programmatic});
  CHECK(device.cursors == std::set<int32_t>{3});
  CHECK(device.orders == std::set<LaunchOrder>{LaunchOrder::Programmatic});
}

TEST_CASE("packed decode is timed without rings", "[timer]") {
  DecodeSpec spec = large();
  spec.family = Family::Packed;
  spec.ringDepth = 1;
  spec.hasDstIndices = spec.hasTrackIndices = spec.hasSeparateQkv = true;
  Recorder device;
  recordWith(device, spec);
}

TEST_CASE("every argument has a value when timed", "[timer]") {
  DecodeSpec spec = large();
  spec.isKda = spec.isCircular = spec.hasSeparateQkv = true;
  spec.gate = Gate::LowerBound;
  spec.ringFormat = RingFormat::Predecayed;
  spec.numKeyHeads = 32;
  spec.indexType = DataType::I64;
  spec.hasRingIndices = spec.hasDstIndices = spec.hasTrackIndices = true;
  Recorder device;
  recordWith(device, spec);
  CHECK(device.bases == std::set<int32_t>{0, 1, 2, 3});
}

TEST_CASE("materialize is not timed", "[timer]") {
  Recorder device;
  DecodeSpec spec = large();
  spec.family = Family::Materialize;
  Status status = LaunchTimer::create(device, spec, 5).status();
  CHECK(status.code == StatusCode::Unsupported);
  CHECK(status.message == "only kernels that decode a token are timed");
}

TEST_CASE("bytes moved are those of states, rings and outputs", "[timer]") {
  DecodeSpec spec = makeSpec(1, 2, /*K=*/8, /*V=*/4, /*L=*/3);
  spec.stateType = spec.ringType = DataType::BF16;
  // A state has 2 x 4 x 8 numbers, a ring row 2 x 4 of d, 8 of k and 2 gates,
  // an output 2 x 4 numbers.
  constexpr double state = 2 * 64, row = 2 * (8 + 8) + 4 * 2, out = 4 * 8;
  CHECK(bytesMoved(spec, 5, 0) == 5 * (state + out + row));
  CHECK(bytesMoved(spec, 5, 1) == 5 * (state + out + 2 * row));
  CHECK(bytesMoved(spec, 5, 2) == 5 * (2 * state + out + 2 * row));
  CHECK(bytesMoved(spec, 5) == Approx(5 * (4 * state + 3 * out + 5 * row) / 3));
  spec.family = Family::Packed;
  spec.ringDepth = 1;
  CHECK(bytesMoved(spec, 5) == 5 * (2 * state + out));
}
