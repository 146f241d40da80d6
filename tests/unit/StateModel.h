//===- StateModel.h - A small model on a state pool -------------*- C++ -*-===//
//
// Three layers of two shapes in the emulation, whose inputs follow from the
// number of a token, and the plain recurrence over a list of such tokens.
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_TESTS_UNIT_STATEMODEL_H
#define REPLAYJIT_TESTS_UNIT_STATEMODEL_H

#include "kernels/Decode/DecodeReference.h"
#include "runtime/CompileOnMiss.h"
#include "runtime/state/StepPlan.h"
#include "tests/unit/DecodeLaunch.h"

#include <catch2/catch.hpp>

#include <cstring>

namespace replayjit::internal::test {

using ints = std::vector<int32_t>;
using Tokens = std::vector<int>;

/// The device, and a Jit that compiles each kernel once for all tests.
inline Jit &sharedJit() {
  static std::unique_ptr<Device> device = createEmulationDevice(Target());
  static std::unique_ptr<Jit> jit = [] {
    JitOptions options;
    options.compile = compileOnMiss(AssembleOptions());
    return std::move(*Jit::create(*device, options));
  }();
  return *jit;
}

/// One row of a step: which request, where its state and ring are, which token
/// it feeds.
struct ModelRow {
  int key = 0, slot = 0, ring = 0, token = 0;
  int track = -1;
  bool flush = false, fresh = false;
};

class StateModel {
public:
  static constexpr int slots = 8, ringSlots = 4, numKeys = 4, maxRows = 4;

  explicit StateModel(int ringDepth = 16, bool isCircular = false,
                      bool hasDst = false)
      : device(sharedJit().device()) {
    DecodeSpec gdn = makeSpec(1, 2, 16, 16, ringDepth);
    gdn.hasRingIndices = ringDepth > 1;
    gdn.hasTrackIndices = true;
    gdn.hasDstIndices = hasDst;
    DecodeSpec kda = gdn;
    kda.isKda = true;
    kda.headDimV = 32;
    std::vector<PoolGroup> groups(2);
    groups[0].spec = gdn;
    groups[0].layers.resize(2);
    groups[1].spec = kda;
    groups[1].layers.resize(1);
    if (isCircular) { // only KDA has such rings
      kda.numKeyHeads = 2;
      kda.gate = Gate::LowerBound;
      kda.ringFormat = RingFormat::Prefix;
      kda.isCircular = true;
      groups.erase(groups.begin());
      groups[0].spec = kda;
    }
    for (PoolGroup &group : groups) {
      group.slots = slots;
      group.ringSlots = ringDepth > 1 ? ringSlots : 0;
    }
    auto made = StatePool::allocate(sharedJit(), groups, numKeys);
    REQUIRE(made.status().message == "");
    pool = std::move(*made);
    auto planned = StepPlan::create(*pool, maxRows);
    REQUIRE(planned.status().message == "");
    plan = std::move(*planned);
    for (int g = 0; g < int(groups.size()); ++g)
      for (int l = 0; l < int(groups[g].layers.size()); ++l)
        addLayer(g, l);
  }
  ~StateModel() {
    plan.reset();
    pool.reset();
    for (uint64_t address : memory)
      CHECK(device.free(address).isOk());
  }

  /// int32 in device memory until the model is gone.
  uint64_t upload(const ints &values) {
    const uint64_t array = make(values.size() * 4);
    std::memcpy(reinterpret_cast<void *>(array), values.data(),
                values.size() * 4);
    return array;
  }

  /// The indices and flags of `rows` for an operation on slots; of a step, the
  /// flush mask and track slots as well.
  StepInputs slotInputs(const std::vector<ModelRow> &rows, const ints &dst = {},
                        bool isStep = false) {
    auto column = [&](auto field) {
      ints values;
      for (const ModelRow &row : rows)
        values.push_back(int32_t(row.*field));
      return upload(values);
    };
    GroupIndices indices;
    indices.state = column(&ModelRow::slot);
    if (pool->spec().hasRingIndices)
      indices.ring = column(&ModelRow::ring);
    if (isStep)
      indices.track = column(&ModelRow::track);
    indices.dst = dst.empty() ? 0 : upload(dst);
    groupIndices.assign(pool->groups().size(), indices);
    StepInputs result;
    result.live = int32_t(rows.size());
    result.keys = column(&ModelRow::key);
    result.groups = groupIndices;
    if (isStep)
      result.flushMask = column(&ModelRow::flush);
    result.fresh = column(&ModelRow::fresh);
    return result;
  }
  StepInputs inputs(const std::vector<ModelRow> &rows, const ints &dst = {}) {
    return slotInputs(rows, dst, /*isStep=*/true);
  }

  void begin(const std::vector<ModelRow> &rows, const ints &dst = {}) {
    ++step;
    REQUIRE(plan->begin(nullptr, step, inputs(rows, dst)).message == "");
  }
  /// Launches all layers for rows first..end-1 of those that began.
  void launch(const std::vector<ModelRow> &rows, int first, int end) {
    for (Layer &layer : layers) {
      for (int row = first; row < end; ++row)
        feed(layer, row, rows[row].token);
      auto kernel = pool->prepareDecode(layer.group, maxRows);
      REQUIRE(kernel.status().message == "");
      const DecodeArgs args = argsOf(layer, first, end - first);
      REQUIRE(kernel->launchOn(nullptr, args).message == "");
    }
  }
  /// Launches the first layer alone for the first `count` of them.
  Status launchFirst(const std::vector<ModelRow> &rows, ArgsCheck check) {
    for (size_t row = 0; row < rows.size(); ++row)
      feed(layers[0], int(row), rows[row].token);
    auto kernel = pool->prepareDecode(layers[0].group, maxRows);
    REQUIRE(kernel.status().message == "");
    return kernel->launchOn(nullptr, argsOf(layers[0], 0, int(rows.size())),
                            check);
  }
  void commit() { REQUIRE(plan->commit(nullptr, step).message == ""); }
  void decode(const std::vector<ModelRow> &rows) {
    begin(rows);
    launch(rows, 0, int(rows.size()));
    commit();
  }

  int cursor(int key) const {
    return reinterpret_cast<const int32_t *>(pool->cursors().writePos)[key];
  }

  /// What prefill does: the states after `tokens`.
  void prefill(int slot, const Tokens &tokens) {
    for (Layer &layer : layers) {
      const std::vector<double> state = truth(layer, tokens).state;
      for (size_t i = 0; i < state.size(); ++i)
        stateOf(layer).set(slot, int64_t(i), state[i]);
    }
  }

  /// The largest error of a slot's states, as checkpoints, relative to the
  /// norm of the recurrence's after `tokens`.
  double stateError(int slot, const Tokens &tokens) {
    double worst = 0;
    for (Layer &layer : layers)
      worst = std::max(
          worst, relative(stateOf(layer), slot, truth(layer, tokens).state));
    return worst;
  }
  /// The same for the outputs of a row that fed the last of `tokens`.
  double outError(int row, const Tokens &tokens) {
    double worst = 0;
    for (Layer &layer : layers)
      worst = std::max(
          worst, relative({DataType::F32, layer.args.out, layer.args.outStride},
                          row, truth(layer, tokens).out));
    return worst;
  }

  Device &device;
  std::unique_ptr<StatePool> pool;
  std::unique_ptr<StepPlan> plan;
  int64_t step = 0;

private:
  struct Layer {
    int group, layer;
    DecodeSpec spec;
    DecodeArgs args; ///< What the engine adds; row maxRows is the recurrence's.
  };
  struct Truth {
    std::vector<double> state, out;
  };
  std::vector<Layer> layers;
  std::vector<uint64_t> memory;
  std::vector<GroupIndices> groupIndices;

  uint64_t make(size_t bytes) {
    auto address = device.allocate(bytes, "test");
    REQUIRE(address);
    memory.push_back(*address);
    return *address;
  }

  void addLayer(int group, int index) {
    const DecodeSpec &spec = pool->groups()[group].spec;
    Layer layer{group, index, spec, {}};
    DecodeArgs &args = layer.args;
    const int HV = spec.numValueHeads, G = gateWidth(spec);
    args.scale = 0.5f;
    args.qStride = 2 * spec.numKeyHeads * spec.headDimK + HV * spec.headDimV;
    args.aStride = HV * G;
    args.bStride = HV;
    args.outStride = HV * spec.headDimV;
    auto rows = [&](int64_t stride) {
      return make((maxRows + 1) * stride * 4);
    };
    args.q = rows(args.qStride);
    args.a = rows(args.aStride);
    args.b = rows(args.bStride);
    args.out = rows(args.outStride);
    args.aLog = make(HV * 4);
    args.dtBias = make(HV * G * 4);
    fill(args.aLog, HV, -1 - index, 0.3);
    fill(args.dtBias, HV * G, -9 - index, 0.3);
    layers.push_back(layer);
  }

  static void fill(uint64_t address, int64_t count, int seed, double spread) {
    std::mt19937 random(unsigned(seed) * 2654435761u);
    std::normal_distribution<double> normal;
    for (int64_t i = 0; i < count; ++i)
      reinterpret_cast<float *>(address)[i] = float(spread * normal(random));
  }

  /// Puts a token's inputs into a row.
  static void feed(const Layer &layer, int row, int token) {
    const DecodeArgs &args = layer.args;
    const int seed = 100 * token + 10 * layer.group + layer.layer;
    fill(args.q + row * args.qStride * 4, args.qStride, 3 * seed, 1);
    fill(args.a + row * args.aStride * 4, args.aStride, 3 * seed + 1, 0.5);
    fill(args.b + row * args.bStride * 4, args.bStride, 3 * seed + 2, 1);
  }

  DecodeArgs argsOf(const Layer &layer, int first, int count) const {
    DecodeArgs args = plan->argsFor(layer.group, layer.layer, first, count);
    const DecodeArgs &own = layer.args;
    args.q = own.q + first * own.qStride * 4;
    args.a = own.a + first * own.aStride * 4;
    args.b = own.b + first * own.bStride * 4;
    args.out = own.out + first * own.outStride * 4;
    args.qStride = own.qStride;
    args.aStride = own.aStride;
    args.bStride = own.bStride;
    args.outStride = own.outStride;
    args.aLog = own.aLog;
    args.dtBias = own.dtBias;
    args.scale = own.scale;
    return args;
  }

  HostTensor stateOf(const Layer &layer) const {
    const DecodeArgs args = pool->layerArgs(layer.group, layer.layer);
    return {DataType::F32, args.state, args.statePitch};
  }

  Truth truth(const Layer &layer, const Tokens &tokens) {
    DecodeRecurrence recurrence(layer.spec, 1);
    Truth result;
    for (int token : tokens) {
      feed(layer, maxRows, token);
      result.out =
          recurrence.step(0, readToken(layer.spec, layer.args, maxRows)).out;
    }
    result.state = recurrence.state(0);
    return result;
  }

  static double relative(const HostTensor &seen, int row,
                         const std::vector<double> &expected) {
    double error = 0, norm = 0;
    for (size_t i = 0; i < expected.size(); ++i) {
      const double difference = seen.get(row, int64_t(i)) - expected[i];
      error += difference * difference;
      norm += expected[i] * expected[i];
    }
    return norm == 0 ? std::sqrt(error) : std::sqrt(error / norm);
  }
};

} // namespace replayjit::internal::test

#endif
