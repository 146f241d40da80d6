//===- RebuildModelTest.cpp - The rebuild readout rounds as it says -------===//
//
// Kernels with the tiles of the reference (64 rows, two K tiles) against
// RebuildModel. Every launch starts from the memory that the kernel left, so
// that one rounding gone the other way does not spread over the steps. The rows
// of a launch stand at all phases of the ring, two of them flush by force now
// and then.
//
//===----------------------------------------------------------------------===//

#include "tests/unit/RebuildModel.h"
#include "kernels/FamilyBuilder.h"
#include "runtime/Device.h"

#include <catch2/catch.hpp>

#include <cstdio>
#include <functional>
#include <optional>
#include <random>

using namespace replayjit::internal;

namespace {

/// The tensors of a launch on the host. A copy has memory of its own.
class Memory {
public:
  explicit Memory(const DecodeSpec &spec)
      : spec(spec), rows(spec.ringDepth + 2) {
    const int H = spec.numKeyHeads, HV = spec.numValueHeads;
    const int K = spec.headDimK, V = spec.headDimV, L = spec.ringDepth;
    const int G = gateWidth(spec), slots = rows + 1;
    scalars.batch = rows;
    scalars.slots = slots;
    scalars.scale = 1 / std::sqrt(float(K));
    scalars.lowerBound = -2.5f;
    scalars.qStride = 2 * H * K + HV * V;
    scalars.aStride = HV * G;
    scalars.bStride = HV;
    scalars.outStride = HV * V;
    scalars.statePitch = HV * V * K;
    scalars.dPitch = HV * L * V;
    scalars.kPitch = H * L * K;
    scalars.gPitch = HV * L * G;
    add(&DecodeArgs::q, spec.actType, rows * scalars.qStride);
    add(&DecodeArgs::a, spec.gateType, rows * scalars.aStride);
    add(&DecodeArgs::b, spec.betaType, rows * HV);
    add(&DecodeArgs::aLog, spec.paramType, HV);
    add(&DecodeArgs::dtBias, spec.biasType, HV * G);
    add(&DecodeArgs::out, spec.outType, rows * scalars.outStride);
    add(&DecodeArgs::state, spec.stateType, slots * scalars.statePitch);
    add(&DecodeArgs::dRing, spec.ringType, slots * scalars.dPitch);
    add(&DecodeArgs::kRing, spec.ringType, slots * scalars.kPitch);
    add(&DecodeArgs::gRing, DataType::F32, slots * scalars.gPitch);
    add(&DecodeArgs::stateIndices, DataType::I32, rows);
    add(&DecodeArgs::writePos, DataType::I32, rows);
    add(&DecodeArgs::forceFlush, DataType::I32, rows);

    fill(&DecodeArgs::aLog, 0.3);
    fill(&DecodeArgs::dtBias, 0.1);
    fill(&DecodeArgs::state, 0.3);
    fill(&DecodeArgs::dRing, 0.5);
    fill(&DecodeArgs::kRing, 1 / std::sqrt(double(K)));
    DecodeTensors t = tensors();
    for (int64_t i = 0; i < slots * scalars.gPitch; ++i)
      t.gRing.set(0, i, std::uniform_real_distribution(-0.5, 0.0)(random));
    for (int row = 0; row < rows; ++row) {
      t.stateIndices.set(row, 0, slots - 1 - row);
      t.writePos.set(row, 0, row % L);
    }
  }

  void nextToken(int step) {
    fill(&DecodeArgs::q, 1);
    fill(&DecodeArgs::a, 0.5);
    fill(&DecodeArgs::b, 1);
    for (int row = spec.ringDepth; row < rows; ++row)
      tensors().forceFlush.set(row, 0, (row + step) % 3 == 0);
  }
  void moveCursors() {
    DecodeTensors t = tensors();
    for (int row = 0; row < rows; ++row) {
      RingCursor cursor{int32_t(t.writePos.get(row, 0))};
      bool forced = t.forceFlush.get(row, 0) != 0;
      t.writePos.set(row, 0, nextCursor(spec, cursor, forced).writePos);
    }
  }

  /// The arguments, a tensor's address being that of its bytes, or what
  /// `addresses` has in its place.
  DecodeArgs args(const std::vector<uint64_t> *addresses = nullptr) const {
    DecodeArgs args = scalars;
    for (size_t i = 0; i < buffers.size(); ++i)
      args.*buffers[i].member =
          addresses ? (*addresses)[i]
                    : reinterpret_cast<uint64_t>(buffers[i].bytes.data());
    return args;
  }
  DecodeTensors tensors() const { return DecodeTensors(spec, args()); }

  struct Buffer {
    uint64_t DecodeArgs::*member;
    DataType type;
    std::vector<char> bytes;
  };
  std::vector<Buffer> buffers;

private:
  DecodeSpec spec;
  int rows;
  DecodeArgs scalars;
  std::mt19937 random{11};

  void add(uint64_t DecodeArgs::*member, DataType type, int64_t elements) {
    buffers.push_back(
        {member, type, std::vector<char>(elements * byteSize(type))});
  }
  void fill(uint64_t DecodeArgs::*member, double scale) {
    std::normal_distribution<double> normal(0, scale);
    for (Buffer &buffer : buffers)
      if (buffer.member == member)
        for (size_t i = 0; i < buffer.bytes.size() / byteSize(buffer.type); ++i)
          storeElement(buffer.type, buffer.bytes.data(), i, normal(random));
  }
};

/// What a launch is judged by.
struct Comparison {
  Agreement out, state, d;

  explicit Comparison(const DecodeSpec &spec)
      : out{spec.outType, readoutType(spec)}, state{spec.stateType,
                                                    readoutType(spec)},
        d{spec.ringType, readoutType(spec)}, spec(spec) {}

  /// Adds what a launch has written. Cursors are still those it started from.
  void add(const Memory &have, const Memory &want) {
    const DecodeArgs args = want.args();
    DecodeTensors h = have.tensors(), w = want.tensors();
    const int K = spec.headDimK, V = spec.headDimV, L = spec.ringDepth;
    for (int row = 0; row < args.batch; ++row)
      for (int hv = 0; hv < spec.numValueHeads; ++hv) {
        auto slot = int64_t(w.stateIndices.get(row, 0));
        auto m = int64_t(w.writePos.get(row, 0));
        out.addRow(h.out, w.out, row, hv * V, V);
        if (!flushes(spec, args, row)) {
          d.addRow(h.dRing, w.dRing, slot, (hv * L + m) * V, V);
          continue;
        }
        for (int v = 0; v < V; ++v)
          state.addRow(h.state, w.state, slot, int64_t(hv * V + v) * K, K);
      }
  }
  bool holds() const { return out.holds() && state.holds() && d.holds(); }
  double norm() const { return std::max({out.norm(), state.norm(), d.norm()}); }
  std::string text() const {
    std::string text;
    for (auto [name, part] :
         {std::pair{"out", out}, {"state", state}, {"d", d}}) {
      char line[160];
      std::snprintf(line, sizeof line,
                    "%s: %.4f %% equal, worst %.3f units, norm %.2e\n", name,
                    100 * part.equalShare(), part.worst, part.norm());
      text += line;
    }
    return text;
  }

private:
  DecodeSpec spec;
};

struct Case {
  DataType out, state, ring;
  int H, HV, K, V, L, blockK, warps;
  Gate kdaGate = Gate::Softplus;

  DecodeSpec spec(bool isKda) const {
    DecodeSpec spec;
    spec.isKda = isKda;
    spec.gate = isKda ? kdaGate : Gate::Softplus;
    spec.numKeyHeads = H;
    spec.numValueHeads = HV;
    spec.headDimK = K;
    spec.headDimV = V;
    spec.ringDepth = L;
    spec.actType = spec.gateType = spec.betaType = spec.outType = out;
    spec.stateType = state;
    spec.ringType = ring;
    spec.readout = Readout::Rebuild;
    return spec;
  }
  std::string text() const {
    std::string text;
    for (DataType type : {out, state, ring})
      text += std::string(wordOf(type)) + " ";
    for (int size : {H, HV, K, V, L, blockK, warps})
      text += std::to_string(size) + " ";
    text += kdaGate == Gate::LowerBound ? "bounded" : "";
    return text;
  }
};

constexpr auto F32 = DataType::F32, BF16 = DataType::BF16, F16 = DataType::F16;
constexpr Case cases[] = {
    {BF16, F32, F32, 1, 2, 128, 64, 5, 64, 1},
    {BF16, F32, BF16, 1, 2, 64, 64, 8, 32, 4},
    {BF16, BF16, BF16, 1, 2, 128, 64, 4, 64, 2},
    {F16, F32, F32, 1, 2, 64, 64, 8, 32, 1},
    {F16, F16, BF16, 1, 2, 128, 64, 5, 64, 4},
    {F16, F16, F16, 2, 2, 96, 80, 6, 64, 2}, // masked edges
    {F32, F32, F32, 1, 2, 128, 64, 5, 64, 4},
    {F32, BF16, BF16, 1, 2, 64, 64, 8, 32, 1},
    {BF16, F32, F32, 2, 6, 64, 64, 5, 32, 2, Gate::LowerBound},
    {F32, F32, F32, 1, 4, 64, 64, 4, 32, 1, Gate::LowerBound},
};
constexpr int numSteps = 4;

/// Runs `have` on one copy of the memory and `want` on another, launch by
/// launch; the next one starts from what `have` left.
template <typename Have, typename Want>
Comparison compare(const DecodeSpec &spec, Have have, Want want) {
  Comparison result(spec);
  Memory memory(spec);
  for (int step = 0; step < numSteps; ++step) {
    memory.nextToken(step);
    Memory wanted = memory;
    have(memory);
    want(wanted);
    result.add(memory, wanted);
    memory.moveCursors();
  }
  return result;
}

auto running(const RebuildModel &model) {
  return [model](Memory &memory) { model.step(memory.args()); };
}

/// A kernel in the host emulation.
class Kernel {
public:
  Kernel(const DecodeSpec &spec, const Case &test) {
    DecodeTuning tuning;
    tuning.blockV = 64;
    tuning.blockK = test.blockK;
    tuning.numWarps = test.warps;
    Target target = *Target::parse("sm_90a");
    auto compiled = compileKernel(compiler, spec, tuning, target,
                                  CompileOptions(), /*forHost=*/true);
    INFO(compiled.status().message);
    REQUIRE(compiled);
    blocksPerRow = compiled->launch.blocksPerRow;
    device = createEmulationDevice(target);
    auto result = device->load(*compiled);
    REQUIRE(result);
    loaded = std::move(*result);
  }

  void operator()(Memory &memory) {
    std::vector<uint64_t> addresses;
    for (const Memory::Buffer &buffer : memory.buffers) {
      auto address = device->allocate(buffer.bytes.size(), "tensor");
      REQUIRE(address);
      REQUIRE(device->copyToDevice(*address, buffer.bytes.data(),
                                   buffer.bytes.size()));
      addresses.push_back(*address);
    }
    DecodeArgs args = memory.args(&addresses);
    Status status =
        device->launch(*loaded, args.batch * blocksPerRow, &args, sizeof args);
    INFO(status.message);
    REQUIRE(status.isOk());
    for (size_t i = 0; i < addresses.size(); ++i) {
      std::vector<char> &bytes = memory.buffers[i].bytes;
      REQUIRE(device->copyFromDevice(bytes.data(), addresses[i], bytes.size()));
      REQUIRE(device->free(addresses[i]));
    }
  }

private:
  Compiler compiler;
  std::unique_ptr<Device> device;
  std::unique_ptr<LoadedKernel> loaded;
  uint32_t blocksPerRow = 0;
};

void checkKernels(bool isKda) {
  for (const Case &test : cases) {
    const DecodeSpec spec = test.spec(isKda);
    Kernel kernel(spec, test);
    Comparison result =
        compare(spec, std::ref(kernel), running(RebuildModel(spec)));
    INFO(test.text() << "\n" << result.text());
    CHECK(result.holds());
  }
}

} // namespace

TEST_CASE("the rebuild model is near the fp64 reference") {
  for (bool isKda : {false, true})
    for (const Case &test : cases) {
      const DecodeSpec spec = test.spec(isKda);
      Comparison result =
          compare(spec, running(RebuildModel(spec)),
                  [&](Memory &memory) { replayStep(spec, memory.args()); });
      INFO((isKda ? "KDA " : "GDN ") << test.text() << "\n" << result.text());
      // Roundings to bf16 of operands and results; cuts to tf32; fp16.
      bool hasBf16 = test.out == BF16 || test.state == BF16;
      CHECK(result.norm() <= (hasBf16                    ? 4e-3
                              : readoutType(spec) == F32 ? 1e-3
                                                         : 5e-4));
      CHECK(result.norm() > 0);
    }
}

TEST_CASE("the rebuild readout of GDN rounds as the model does") {
  checkKernels(false);
}

TEST_CASE("the rebuild readout of KDA rounds as the model does") {
  checkKernels(true);
}

// The criterion can fail: a model that leaves out one rounding, or rounds to
// nearest where it should cut off, is told from the kernel.
TEST_CASE("a rebuild model with another rounding disagrees") {
  for (bool isKda : {false, true})
    for (const Case &test : {cases[0], cases[3], cases[6]}) { // fp32 rings
      const DecodeSpec spec = test.spec(isKda);
      Kernel kernel(spec, test);
      std::function<void(Memory &)> rounded = std::ref(kernel);
      auto judge = [&](const char *what, OperandRounding d, OperandRounding k) {
        RebuildModel model(spec);
        model.dRounding = d;
        model.kRounding = k;
        Comparison result = compare(spec, rounded, running(model));
        INFO((isKda ? "KDA " : "GDN ") << test.text() << what << "\n"
                                       << result.text());
        CHECK(!result.out.holds());
        CHECK(!result.state.holds());
      };
      using enum OperandRounding;
      judge("k not rounded", Reference, None);
      judge("d not rounded", None, Reference);
      if (test.out == F32)
        judge("to nearest", Nearest, Nearest);
    }
}
