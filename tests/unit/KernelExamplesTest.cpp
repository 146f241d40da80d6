//===- KernelExamplesTest.cpp - Launches to follow by hand ----------------===//
//
// Numbers of the operator contract, computed by kernels in the emulation.
//
//===----------------------------------------------------------------------===//

#include "DecodeLaunch.h"

#include "kernels/Decode/DecodeBuilder.h"
#include "runtime/Device.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <map>

using namespace replayjit;

namespace {

constexpr uint64_t DecodeArgs::*pointers[] = {&DecodeArgs::stateIndices,
                                              &DecodeArgs::writePos,
                                              &DecodeArgs::state,
                                              &DecodeArgs::q,
                                              &DecodeArgs::k,
                                              &DecodeArgs::v,
                                              &DecodeArgs::a,
                                              &DecodeArgs::b,
                                              &DecodeArgs::aLog,
                                              &DecodeArgs::dtBias,
                                              &DecodeArgs::out,
                                              &DecodeArgs::dRing,
                                              &DecodeArgs::kRing,
                                              &DecodeArgs::gRing,
                                              &DecodeArgs::forceFlush,
                                              &DecodeArgs::ringBase,
                                              &DecodeArgs::ringIndices,
                                              &DecodeArgs::dstIndices,
                                              &DecodeArgs::trackIndices};

/// Runs the kernel of `spec` on the launch's memory.
void runKernel(const DecodeSpec &spec, Launch &launch) {
  const Target target;
  Compiler compiler;
  auto kernel = compileDecode(compiler, spec, chooseTuning(spec, 1, target),
                              target, CompileOptions(), /*forHost=*/true);
  INFO(kernel.status().message);
  REQUIRE(kernel);
  auto device = createEmulationDevice(target);
  auto loaded = device->load(*kernel);
  REQUIRE(loaded);

  std::map<uint64_t, uint64_t> copies; // host address -> device address
  auto upload = [&](const void *host, size_t bytes) {
    auto memory = device->allocate(bytes, "tensor");
    REQUIRE(memory);
    REQUIRE(device->copyToDevice(*memory, host, bytes).isOk());
    copies[reinterpret_cast<uint64_t>(host)] = *memory;
    return *memory;
  };
  launch.forEachTensor(
      [&](std::vector<char> &bytes) { upload(bytes.data(), bytes.size()); });
  DecodeArgs args = launch.args;
  for (auto member : pointers)
    if (auto copy = copies.find(args.*member); copy != copies.end())
      args.*member = copy->second;
  args.errorWord = upload(&launch.error, sizeof(launch.error));
  Status status =
      device->launch(**loaded, launch.args.batch * kernel->launch.blocksPerRow,
                     &args, sizeof(args));
  INFO(status.message);
  REQUIRE(status.isOk());
  auto download = [&](void *host, size_t bytes) {
    uint64_t memory = copies[reinterpret_cast<uint64_t>(host)];
    REQUIRE(device->copyFromDevice(host, memory, bytes).isOk());
  };
  launch.forEachTensor(
      [&](std::vector<char> &bytes) { download(bytes.data(), bytes.size()); });
  download(&launch.error, sizeof(launch.error));
}

DecodeSpec unaligned(DecodeSpec spec) {
  spec.alignment = 0; // a Launch pads its rows by three elements
  return spec;
}

/// Fails where `x` and `y` differ by more than `bound` of y's largest element.
void checkNear(const HostTensor &x, const HostTensor &y, int rows, int64_t size,
               double bound) {
  for (int row = 0; row < rows; ++row) {
    std::vector<double> expected(size);
    double largest = 0;
    for (int64_t i = 0; i < size; ++i) {
      expected[i] = y.get(row, i);
      if (std::isfinite(expected[i]))
        largest = std::max(largest, std::abs(expected[i]));
    }
    for (int64_t i = 0; i < size; ++i) {
      INFO("row " << row << ", element " << i);
      if (std::isnan(expected[i]))
        CHECK(std::isnan(x.get(row, i)));
      else
        CHECK(std::abs(x.get(row, i) - expected[i]) <= bound * largest);
    }
  }
}

} // namespace

TEST_CASE("a kernel's beta, rounded and not", "[kernel]") {
  // beta = sigmoid(0.5), S = 0, k = v = e0: S' has beta at (0, 0).
  struct Rounding {
    bool isAsked;
    DataType betaType, gateType = DataType::BF16;
    bool isRounded = false; ///< Through b's type, whatever that of a.
  };
  for (Family family : {Family::Replay, Family::Packed})
    for (auto [isAsked, betaType, gateType, isRounded] :
         {Rounding{false, DataType::BF16},
          {true, DataType::BF16, DataType::BF16, true},
          {true, DataType::BF16, DataType::F32, true},
          {true, DataType::F32}}) {
      DecodeSpec spec = unaligned(makeSpec(1, 1, 4, 3, 1));
      spec.family = family;
      spec.actType = DataType::BF16;
      spec.gateType = gateType;
      spec.betaType = betaType;
      spec.betaRound = isAsked;
      Launch launch(spec, 1, 1);
      const DecodeTensors t = launch.tensors();
      for (int i = 0; i < 12; ++i)
        t.state.set(0, i, 0);
      for (int i = 0; i < 4; ++i) {
        t.q.set(0, i, 0);
        t.k.set(0, i, i == 0);
      }
      for (int i = 0; i < 3; ++i)
        t.v.set(0, i, i == 0);
      t.a.set(0, 0, 0);
      t.b.set(0, 0, 0.5);
      runKernel(spec, launch);
      // k is normalized: 1 / sqrt(1 + 1e-6)
      const double beta = isRounded ? 0.62109375 : 0.62245935;
      CHECK(std::abs(t.state.get(0, 0) - beta) < 1e-6);
      for (int i = 1; i < 12; ++i)
        CHECK(t.state.get(0, i) == 0);
      CHECK(t.out.get(0, 0) == 0);
    }
}

TEST_CASE("a kernel's circular batch", "[kernel]") {
  for (RingFormat format : {RingFormat::Prefix, RingFormat::Predecayed}) {
    DecodeSpec spec = unaligned(makeSpec(2, 2, 8, 6, 4));
    spec.isKda = true;
    spec.gate = Gate::LowerBound;
    spec.ringFormat = format;
    spec.isCircular = true;
    std::vector<RingCursor> cursors = {{0, 0}, {2, 1}, {3, 2}, {0, 0}};
    const int slots[] = {1, 2, -1}, forced[] = {1, 0, 0};
    auto prepare = [&](Launch &launch) {
      launch.freshInputs();
      const DecodeTensors t = launch.tensors();
      for (int slot = 0; slot < 4; ++slot)
        for (int j = 0; j < cursors[slot].writePos; ++j) {
          const int place = ringRow(spec, cursors[slot], j);
          for (int h = 0; h < 2; ++h) {
            for (int i = 0; i < 6; ++i)
              t.dRing.set(slot, (h * 4 + place) * 6 + i,
                          launch.normal(launch.random));
            for (int i = 0; i < 8; ++i) {
              t.kRing.set(slot, (h * 4 + place) * 8 + i,
                          0.3 * launch.normal(launch.random));
              t.gRing.set(slot, (h * 4 + place) * 8 + i, -0.5 * (j + 1));
            }
          }
        }
      for (int row = 0; row < 3; ++row) {
        const RingCursor at =
            slots[row] < 0 ? RingCursor() : cursors[slots[row]];
        t.stateIndices.set(row, 0, slots[row]);
        t.writePos.set(row, 0, at.writePos);
        t.ringBase.set(row, 0, at.base);
        t.forceFlush.set(row, 0, forced[row]);
      }
    };
    Launch launch(spec, 3, 4), expected(spec, 3, 4);
    prepare(launch);
    prepare(expected);
    runKernel(spec, launch);
    replayStep(spec, expected.args);

    const DecodeTensors x = launch.tensors(), y = expected.tensors();
    checkNear(x.out, y.out, 3, 12, 1e-5);
    checkNear(x.state, y.state, 4, 96, 1e-5);
    checkNear(x.dRing, y.dRing, 4, 48, 1e-5);
    checkNear(x.kRing, y.kRing, 4, 64, 1e-5);
    checkNear(x.gRing, y.gRing, 4, 64, 1e-5);
    CHECK(launch.guardsIntact());
    CHECK(launch.error.count == 0);
    for (int i = 0; i < 12; ++i)
      CHECK(x.out.get(2, i) == 0);
    // The kernel moved no cursor; the caller does.
    for (int row = 0; row < 3; ++row) {
      CHECK(x.writePos.get(row, 0) == y.writePos.get(row, 0));
      CHECK(x.ringBase.get(row, 0) == y.ringBase.get(row, 0));
      if (slots[row] >= 0)
        cursors[slots[row]] =
            nextCursor(spec, cursors[slots[row]], forced[row] != 0);
    }
    CHECK(cursors == std::vector<RingCursor>{{0, 0}, {0, 0}, {1, 1}, {0, 0}});
  }
}

TEST_CASE("a kernel's fp32 outputs outlast fp16's range", "[kernel]") {
  for (bool isKda : {false, true})
    for (Readout readout : {Readout::OutputOnly, Readout::Rebuild})
      for (int depth : {1, 4}) {
        DecodeSpec spec = unaligned(makeSpec(1, 2, 16, 16, depth));
        spec.isKda = isKda;
        spec.readout = readout;
        spec.actType = spec.gateType = spec.betaType = DataType::F16;
        auto prepare = [](Launch &launch) {
          launch.freshInputs();
          for (int i = 0; i < 2 * 16 * 16; ++i)
            launch.tensors().state.set(0, i,
                                       1e5 * launch.normal(launch.random));
        };
        Launch launch(spec, 1, 1), expected(spec, 1, 1);
        prepare(launch);
        prepare(expected);
        runKernel(spec, launch);
        replayStep(spec, expected.args);
        checkNear(launch.tensors().out, expected.tensors().out, 1, 32, 1e-5);
        CHECK(std::abs(launch.tensors().out.get(0, 0)) > 0);
      }
}
