//===- InfiniteGateTest.cpp - Gates of minus infinity ---------------------===//
//
// A gate of -inf forgets all that came before: W and A are 0 there, and must
// not turn into NaN by inf - inf or 0 * inf on the way.
//
//===----------------------------------------------------------------------===//

#include "kernels/Decode/DecodeBuilder.h"
#include "kernels/Decode/DecodeReference.h"
#include "runtime/Device.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <map>
#include <random>

using namespace replayjit;

namespace {

/// Tensors by their place in DecodeArgs.
struct Tensors {
  std::vector<std::pair<uint64_t DecodeArgs::*, std::vector<float>>> list;
  std::vector<float> &operator[](uint64_t DecodeArgs::*member) {
    for (auto &[key, values] : list)
      if (key == member)
        return values;
    return list.emplace_back(member, std::vector<float>()).second;
  }
  auto begin() { return list.begin(); }
  auto end() { return list.end(); }
};

/// One request, one head: host copies of its tensors, uploaded on demand.
struct OneRow {
  DecodeSpec spec;
  Tensors tensors;
  std::vector<int32_t> slot = {0}, cursor = {0}, force = {0};

  /// The arguments with every tensor's address from `addressOf`.
  template <typename AddressOf> DecodeArgs args(AddressOf addressOf) {
    DecodeArgs args;
    for (auto &[member, values] : tensors)
      args.*member = addressOf(values.data(), values.size() * 4);
    args.stateIndices = addressOf(slot.data(), 4);
    args.writePos = addressOf(cursor.data(), 4);
    args.forceFlush = addressOf(force.data(), 4);
    int64_t k = spec.headDimK, v = spec.headDimV, l = spec.ringDepth;
    args.qStride = 2 * k + v;
    args.aStride = gateWidth(spec);
    args.bStride = 1;
    args.outStride = v;
    args.statePitch = k * v;
    args.dPitch = l * v;
    args.kPitch = l * k;
    args.gPitch = l * gateWidth(spec);
    args.batch = args.slots = 1;
    args.scale = 0.25f;
    return args;
  }
};

void checkRow(Readout readout, bool isKda, int cursor, int infiniteRow) {
  OneRow row;
  DecodeSpec &spec = row.spec;
  spec.isKda = isKda;
  spec.numKeyHeads = spec.numValueHeads = 1;
  spec.headDimK = spec.headDimV = 16;
  spec.ringDepth = 8;
  spec.readout = readout;
  spec.actType = spec.gateType = spec.betaType = spec.outType = DataType::F32;
  row.cursor = {cursor};

  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  auto fill = [&](uint64_t DecodeArgs::*member, int size) {
    std::vector<float> &values = row.tensors[member];
    values.resize(size);
    for (float &value : values)
      value = 0.3f * normal(random);
  };
  int width = gateWidth(spec);
  fill(&DecodeArgs::q, 48);
  fill(&DecodeArgs::a, width);
  fill(&DecodeArgs::b, 1);
  fill(&DecodeArgs::aLog, 1);
  fill(&DecodeArgs::dtBias, width);
  fill(&DecodeArgs::out, 16);
  fill(&DecodeArgs::state, 256);
  fill(&DecodeArgs::dRing, 128);
  fill(&DecodeArgs::kRing, 128);
  fill(&DecodeArgs::gRing, 8 * width);
  for (int i = 0; i < 8 * width; ++i) {
    float &gate = row.tensors[&DecodeArgs::gRing][i];
    gate = i / width == infiniteRow ? -INFINITY : -std::abs(gate);
  }
  if (infiniteRow < 0) // The token's own gate: softplus(inf) = inf.
    for (float &a : row.tensors[&DecodeArgs::a])
      a = INFINITY;

  Target target = *Target::parse("sm_90a");
  DecodeTuning tuning{16, 16, 2, 2};
  Compiler compiler;
  auto kernel = compileDecode(compiler, spec, tuning, target, CompileOptions(),
                              /*forHost=*/true);
  INFO(kernel.status().message);
  REQUIRE(kernel);
  auto device = createEmulationDevice(target);
  auto loaded = device->load(*kernel);
  REQUIRE(loaded);
  std::map<const void *, uint64_t> uploaded;
  DecodeArgs args = row.args([&](const void *host, size_t bytes) {
    auto memory = device->allocate(bytes, "tensor");
    REQUIRE(memory);
    REQUIRE(device->copyToDevice(*memory, host, bytes).isOk());
    uploaded[host] = *memory;
    return *memory;
  });
  Status status =
      device->launch(**loaded, kernel->launch.blocksPerRow, &args, sizeof args);
  INFO(status.message);
  REQUIRE(status.isOk());

  Tensors results = row.tensors;
  for (auto &[member, values] : results)
    REQUIRE(device
                ->copyFromDevice(values.data(),
                                 uploaded[row.tensors[member].data()],
                                 values.size() * 4)
                .isOk());
  replayStep(spec, row.args([](const void *host, size_t) {
    return reinterpret_cast<uint64_t>(host);
  }));
  double bound = readout == Readout::Rebuild ? 2e-3 : 2e-6;
  for (auto member : {&DecodeArgs::out, &DecodeArgs::state, &DecodeArgs::dRing,
                      &DecodeArgs::gRing})
    for (size_t i = 0; i < results[member].size(); ++i) {
      float have = results[member][i], want = row.tensors[member][i];
      CAPTURE(i, have, want);
      CHECK((have == want || std::abs(have - want) <= bound));
    }
}

} // namespace

TEST_CASE("a gate of minus infinity forgets what came before") {
  for (bool isKda : {false, true})
    for (Readout readout : {Readout::OutputOnly, Readout::Rebuild}) {
      // Reading and flushing; the newest, a middle, the oldest row and the
      // token.
      for (int cursor : {5, 7})
        for (int infinite : {cursor - 1, 2, 0, -1}) {
          CAPTURE(isKda, cursor, infinite);
          checkRow(readout, isKda, cursor, infinite);
        }
    }
}
