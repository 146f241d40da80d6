//===- Rank.cpp - One tensor-parallel rank of an engine -------------------===//

#include "tests/engine/Rank.h"

#include "runtime/state/Sizing.h"
#include "tests/engine/Expect.h"

namespace replayjit::internal::engine {

/// Elements in a row of `count`, rounded up to 16 bytes.
static int64_t strideOf(DataType type, int64_t count) {
  const int64_t unit = 16 / byteSize(type);
  return (count + unit - 1) / unit * unit;
}

/// One-token extends: the same heads, no ring.
static DecodeSpec packedSpec(DecodeSpec spec) {
  spec.family = Family::Packed;
  spec.ringDepth = 1;
  spec.ringFormat = RingFormat::Raw;
  spec.isCircular = spec.hasForceFlush = false;
  spec.hasRingIndices = spec.hasDstIndices = spec.hasTrackIndices = false;
  return spec;
}

static Memory upload(Device &device, const std::string &bytes,
                     const char *name) {
  Memory memory(device, bytes.size(), name);
  orStop(device.copyToDevice(memory.address, bytes.data(), bytes.size()));
  return memory;
}

Rank::Rank(Jit &jit, const Model &model, int rank, int ranks,
           const Sizes &engine)
    : model(model), rank(rank), ranks(ranks), device(jit.device()) {
  std::vector<PoolGroup> groups(model.numGroups());
  for (int g = 0; g < model.numGroups(); ++g) {
    PoolGroup &group = groups[g];
    group.spec = model.rankSpec(g, ranks);
    if (overlaps())
      group.spec.programmaticLaunch =
          g % 2 ? ProgrammaticLaunch::Late : ProgrammaticLaunch::Early;
    group.layers.resize(model.groups[g].layers);
    group.slots = engine.states;
    group.ringSlots = engine.rings;
    group.keyHeadTotal = model.groups[g].spec.numKeyHeads;
    group.keyHeadBegin = rank * group.spec.numKeyHeads;
  }
  if (ranks == 1) {
    statePool = orStop(StatePool::allocate(jit, groups, engine.keys));
  } else {
    pages = std::make_unique<Pages>(device, groups, engine.keys);
    statePool = orStop(StatePool::adopt(jit, groups, pages->cursors()));
  }
  for (int layer = 0; layer < model.numLayers(); ++layer) {
    const ParamBytes params = paramBytes(model, layer);
    layers.push_back(
        {upload(device, shardOf(params.aLog, rank, ranks), "A_log"),
         upload(device, shardOf(params.dtBias, rank, ranks), "dt_bias")});
  }
  for (int rows : engine.batches) {
    Batch &batch = sizes[rows];
    batch.plan = orStop(
        pages ? StepPlan::adopt(*statePool, rows,
                                pages->planBuffers(orStop(
                                    StepPlan::bytesFor(*statePool, rows))))
              : StepPlan::create(*statePool, rows));
    for (int layer = 0; layer < model.numLayers(); ++layer)
      batch.layers.push_back(makeBuffers(layer, rows));
    for (int g = 0; g < model.numGroups(); ++g) {
      batch.decode.push_back(orStop(statePool->prepareDecode(g, rows)));
      batch.packed.push_back(
          orStop(jit.prepare(packedSpec(groups[g].spec), rows)));
    }
  }
}

Rank::Buffers Rank::makeBuffers(int layer, int rows) const {
  const DecodeSpec &spec = specOf(layer);
  const int HV = spec.numValueHeads, V = spec.headDimV;
  DecodeArgs args;
  args.qStride =
      strideOf(spec.actType, 2 * spec.numKeyHeads * spec.headDimK + HV * V);
  args.aStride = strideOf(spec.gateType, HV * gateWidth(spec));
  args.bStride = strideOf(spec.betaType, HV);
  args.outStride = strideOf(spec.outType, HV * V);
  auto make = [&](DataType type, int64_t stride, const char *name) {
    return Memory(device, rows * stride * byteSize(type), name);
  };
  Buffers buffers = {make(spec.actType, args.qStride, "qkv"),
                     make(spec.gateType, args.aStride, "a"),
                     make(spec.betaType, args.bStride, "b"),
                     make(spec.outType, args.outStride, "out"), args};
  buffers.args.q = buffers.qkv.address;
  buffers.args.a = buffers.a.address;
  buffers.args.b = buffers.b.address;
  buffers.args.out = buffers.out.address;
  buffers.args.aLog = layers[layer].aLog.address;
  buffers.args.dtBias = layers[layer].dtBias.address;
  return buffers;
}

//===----------------------------------------------------------------------===//
// Inputs and outputs
//===----------------------------------------------------------------------===//

void Rank::setInputs(int rows, const std::vector<RowInputs> &inputs) {
  for (int layer = 0; layer < model.numLayers(); ++layer) {
    const Buffers &buffers = sizes.at(rows).layers[layer];
    const DecodeSpec &spec = specOf(layer);
    auto fill = [&](const Memory &memory, DataType type, int64_t stride,
                    auto rowOf) {
      const size_t rowBytes = stride * byteSize(type);
      std::string bytes(rows * rowBytes, '\0');
      for (size_t row = 0; row < inputs.size(); ++row) {
        const std::string part = rowOf(inputs[row][layer]);
        bytes.replace(row * rowBytes, part.size(), part);
      }
      orStop(device.copyToDevice(memory.address, bytes.data(), bytes.size()));
    };
    auto shard = [&](const std::string &bytes) {
      return shardOf(bytes, rank, ranks);
    };
    const DecodeArgs &args = buffers.args;
    fill(buffers.qkv, spec.actType, args.qStride, [&](const TokenBytes &token) {
      return shard(token.q) + shard(token.k) + shard(token.v);
    });
    fill(buffers.a, spec.gateType, args.aStride,
         [&](const TokenBytes &token) { return shard(token.a); });
    fill(buffers.b, spec.betaType, args.bStride,
         [&](const TokenBytes &token) { return shard(token.b); });
    const size_t words =
        rows * args.outStride * byteSize(spec.outType) / sizeof(uint32_t);
    constexpr uint32_t notANumber = 0x7fff7fff; // in fp32 and bf16
    orStop(device.fill32On(device.stream(), args.out, notANumber, words));
  }
}

void Rank::addInputs(const Buffers &buffers, int layer, int first,
                     DecodeArgs &args) const {
  const DecodeSpec &spec = specOf(layer);
  const DecodeArgs &own = buffers.args;
  args.q = own.q + first * own.qStride * byteSize(spec.actType);
  args.a = own.a + first * own.aStride * byteSize(spec.gateType);
  args.b = own.b + first * own.bStride * byteSize(spec.betaType);
  args.out = own.out + first * own.outStride * byteSize(spec.outType);
  args.qStride = own.qStride;
  args.aStride = own.aStride;
  args.bStride = own.bStride;
  args.outStride = own.outStride;
  args.aLog = own.aLog;
  args.dtBias = own.dtBias;
  args.scale = model.scale;
  args.lowerBound = model.lowerBound;
}

std::vector<double> Rank::output(int rows, int layer, int row) const {
  const DecodeSpec &spec = specOf(layer);
  const DecodeArgs &args = sizes.at(rows).layers[layer].args;
  const int count = spec.numValueHeads * spec.headDimV;
  const int size = byteSize(spec.outType);
  std::vector<char> bytes(count * size);
  orStop(device.copyFromDevice(
      bytes.data(), args.out + row * args.outStride * size, bytes.size()));
  std::vector<double> values(count);
  for (int i = 0; i < count; ++i)
    values[i] = loadElement(spec.outType, bytes.data(), i);
  return values;
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

/// The first layer stands behind a plan, a fold or a copy, which write what it
/// reads before it waits, and stands between these and the others.
LaunchOrder Rank::orderOf(int layer) const {
  return layer > 0 && overlaps() ? LaunchOrder::Programmatic
                                 : LaunchOrder::Serial;
}

void Rank::launch(int rows, int first, int count) {
  Batch &batch = sizes.at(rows);
  for (int layer = 0; layer < model.numLayers(); ++layer) {
    const int group = model.groupOf(layer);
    DecodeArgs args =
        batch.plan->argsFor(group, model.within(layer), first, count);
    addInputs(batch.layers[layer], layer, first, args);
    orStop(batch.decode[group].launchOn(device.stream(), args, ArgsCheck::Full,
                                        orderOf(layer)));
  }
}

Graph &Rank::graph(int rows, const RowArrays &arrays) {
  Batch &batch = sizes.at(rows);
  if (!batch.graph)
    batch.graph = std::make_unique<Graph>(device, [this, rows, &arrays,
                                                   &batch] {
      orStop(batch.plan->beginCaptured(device.stream(), arrays.step()));
      launch(rows, 0, rows);
      orStop(batch.plan->commitCaptured(device.stream(), arrays.advanceBy()));
    });
  return *batch.graph;
}

void Rank::extend(int rows, const RowArrays &arrays, int count) {
  Batch &batch = sizes.at(rows);
  for (int layer = 0; layer < model.numLayers(); ++layer) {
    const int group = model.groupOf(layer);
    DecodeArgs args = statePool->layerArgs(group, model.within(layer));
    args.batch = count;
    args.stateIndices = arrays.states(group);
    args.stateIndexStride = 4;
    addInputs(batch.layers[layer], layer, 0, args);
    orStop(batch.packed[group].launchOn(device.stream(), args, ArgsCheck::Full,
                                        orderOf(layer)));
  }
}

//===----------------------------------------------------------------------===//
// States
//===----------------------------------------------------------------------===//

static ReplayLayer layerOf(const StatePool &pool, const Model &model,
                           int layer) {
  return pool.groups()[model.groupOf(layer)].layers[model.within(layer)];
}

std::vector<double> Rank::readState(int layer, int slot) const {
  return foldedState(layer, slot, 0, RingCursor());
}

void Rank::writeState(int layer, int slot, const double *values) {
  const DecodeSpec &spec = specOf(layer);
  const ReplayLayer at = layerOf(*statePool, model, layer);
  const int64_t count =
      int64_t(spec.numValueHeads) * spec.headDimV * spec.headDimK;
  std::vector<char> bytes(count * byteSize(spec.stateType));
  for (int64_t i = 0; i < count; ++i)
    storeElement(spec.stateType, bytes.data(), i, values[i]);
  orStop(device.copyToDevice(at.state + slot * at.statePitch *
                                            byteSize(spec.stateType),
                             bytes.data(), bytes.size()));
}

std::vector<double> Rank::foldedState(int layer, int slot, int ring,
                                      RingCursor cursor) const {
  const DecodeSpec &spec = specOf(layer);
  const ReplayLayer at = layerOf(*statePool, model, layer);
  // Copies of the one slot and ring, which are then slot 0 of themselves.
  std::vector<char> copies[4];
  auto copy = [&](int i, uint64_t base, int64_t pitch, int64_t elements,
                  DataType type, int number) {
    copies[i].resize(elements * byteSize(type));
    orStop(device.copyFromDevice(copies[i].data(),
                                 base + number * pitch * byteSize(type),
                                 copies[i].size()));
    return reinterpret_cast<uint64_t>(copies[i].data());
  };
  const SlotPitches sizes = slotPitches(spec);
  ReplayLayer local = at;
  local.state =
      copy(0, at.state, at.statePitch, sizes.state, spec.stateType, slot);
  if (cursor.writePos > 0) {
    local.dRing =
        copy(1, at.dRing, at.dPitch, sizes.dRing, spec.ringType, ring);
    local.kRing =
        copy(2, at.kRing, at.kPitch, sizes.kRing, spec.ringType, ring);
    local.gRing =
        copy(3, at.gRing, at.gPitch, sizes.gRing, DataType::F32, ring);
  }
  std::vector<double> all;
  for (int head = 0; head < spec.numValueHeads; ++head) {
    const std::vector<double> S =
        materialize(spec, ReplayTensors(spec, local), 0, 0, head, cursor);
    all.insert(all.end(), S.begin(), S.end());
  }
  return all;
}

} // namespace replayjit::internal::engine
