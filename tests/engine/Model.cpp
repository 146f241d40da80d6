//===- Model.cpp - The layers that an engine serves -----------------------===//

#include "tests/engine/Model.h"

#include <cmath>
#include <thread>

namespace replayjit::internal::engine {

int Model::numLayers() const {
  int sum = 0;
  for (const Group &group : groups)
    sum += group.layers;
  return sum;
}

int Model::groupOf(int layer) const {
  int group = 0;
  while (layer >= groups[group].layers)
    layer -= groups[group++].layers;
  return group;
}

int Model::within(int layer) const {
  for (int group = 0; layer >= groups[group].layers; ++group)
    layer -= groups[group].layers;
  return layer;
}

DecodeSpec Model::rankSpec(int group, int ranks) const {
  DecodeSpec spec = groups[group].spec;
  spec.numKeyHeads /= ranks;
  spec.numValueHeads /= ranks;
  return spec;
}

//===----------------------------------------------------------------------===//
// Which models
//===----------------------------------------------------------------------===//

static Model::Group group(bool isKda, int H, int HV, int K, int V, int L) {
  DecodeSpec spec;
  spec.isKda = isKda;
  spec.numKeyHeads = H;
  spec.numValueHeads = HV;
  spec.headDimK = K;
  spec.headDimV = V;
  spec.ringDepth = L;
  spec.hasRingIndices = spec.hasDstIndices = spec.hasTrackIndices = true;
  spec.actType = spec.gateType = spec.betaType = spec.outType = DataType::F32;
  if (isKda)
    spec.gate = Gate::LowerBound;
  return {spec, 2, 1e-6, 2e-6};
}

/// Inputs, outputs and states in bf16.
static void useBf16(Model::Group &group) {
  DecodeSpec &spec = group.spec;
  spec.actType = spec.gateType = spec.betaType = spec.outType = DataType::BF16;
  spec.stateType = DataType::BF16;
  group.stateBound = 1e-2;
  group.outBound = 2e-2;
}

std::vector<Model> models(bool isSmall) {
  // Two layers of GDN with fp32 states, two of KDA with bf16 states; a bf16
  // dt_bias beside an fp32 A_log, and an fp32 b beside a bf16 a, as they ship.
  Model hybrid;
  hybrid.name = "GDN and KDA";
  const int L = isSmall ? 6 : 16;
  hybrid.groups = {
      isSmall ? group(false, 2, 6, 16, 32, L) : group(false, 2, 4, 128, 128, L),
      isSmall ? group(true, 2, 2, 32, 16, L) : group(true, 4, 4, 128, 128, L)};
  useBf16(hybrid.groups[1]);
  hybrid.groups[0].spec.biasType = DataType::BF16;
  hybrid.groups[1].spec.betaType = DataType::F32;
  hybrid.groups[1].spec.ringFormat = RingFormat::Prefix;

  // Circular rings, as only KDA has; block 0 is nobody's; int64 indices.
  Model circular;
  circular.name = "KDA, circular rings";
  const int C = isSmall ? 4 : 8;
  circular.groups = {
      isSmall ? group(true, 2, 2, 16, 32, C) : group(true, 4, 4, 128, 128, C),
      isSmall ? group(true, 4, 4, 16, 16, C) : group(true, 2, 2, 128, 64, C)};
  circular.groups[0].spec.ringFormat = RingFormat::Prefix;
  circular.groups[1].spec.ringFormat = RingFormat::Predecayed;
  for (Model::Group &group : circular.groups) {
    group.spec.isCircular = true;
    group.spec.indexType = DataType::I64;
    group.spec.nullSlot = NullSlot::NonPositive;
    group.stateBound = 1e-5; // of fp32 sums of gates
    group.outBound = 1e-5;
  }
  return {hybrid, circular};
}

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

static uint64_t scramble(uint64_t x) { // the finalizer of splitmix64
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// Near enough to a normal distribution: the sum of four uniform numbers.
static double normal(uint64_t seed) {
  const uint64_t bits = scramble(seed);
  double sum = 0;
  for (int i = 0; i < 4; ++i)
    sum += double((bits >> (16 * i)) & 0xffff) / 65536 - 0.5;
  return sum * std::sqrt(3.0);
}

static std::string numbers(DataType type, int count, uint64_t seed,
                           double spread) {
  std::string bytes(size_t(count) * byteSize(type), '\0');
  for (int i = 0; i < count; ++i)
    storeElement(type, bytes.data(), i,
                 spread * normal(seed + uint64_t(i) * 0x9e3779b97f4a7c15u));
  return bytes;
}

TokenBytes tokenBytes(const Model &model, int layer, int token, int position) {
  const DecodeSpec &spec = model.specOf(layer);
  const int H = spec.numKeyHeads, HV = spec.numValueHeads;
  uint64_t seed = scramble((uint64_t(layer) << 48) + (uint64_t(token) << 32) +
                           uint64_t(position));
  return {numbers(spec.actType, H * spec.headDimK, scramble(seed + 1), 1),
          numbers(spec.actType, H * spec.headDimK, scramble(seed + 2), 1),
          numbers(spec.actType, HV * spec.headDimV, scramble(seed + 3), 1),
          numbers(spec.gateType, HV * gateWidth(spec), scramble(seed + 4), 0.5),
          numbers(spec.betaType, HV, scramble(seed + 5), 1)};
}

ParamBytes paramBytes(const Model &model, int layer) {
  const DecodeSpec &spec = model.specOf(layer);
  const int HV = spec.numValueHeads;
  const uint64_t seed = scramble(0x1000 + layer);
  // A KDA gate of lower_bound sigmoid(x) forgets half of a state in a token
  // unless x is well below 0.
  ParamBytes params;
  params.aLog = numbers(spec.paramType, HV, scramble(seed + 1), 0.3);
  params.dtBias =
      numbers(spec.biasType, HV * gateWidth(spec), scramble(seed + 2), 0.1);
  for (int i = 0; i < HV * gateWidth(spec); ++i)
    storeElement(spec.biasType, params.dtBias.data(), i,
                 loadElement(spec.biasType, params.dtBias.data(), i) - 3);
  return params;
}

//===----------------------------------------------------------------------===//
// The recurrence
//===----------------------------------------------------------------------===//

std::vector<double> stepLayer(const Model &model, int layer, int token,
                              int position, std::vector<double> &state) {
  DecodeSpec spec = model.specOf(layer);
  spec.hasSeparateQkv = true;
  const TokenBytes bytes = tokenBytes(model, layer, token, position);
  const ParamBytes params = paramBytes(model, layer);
  auto address = [](const std::string &tensor) {
    return reinterpret_cast<uint64_t>(tensor.data());
  };
  DecodeArgs args;
  args.q = address(bytes.q);
  args.k = address(bytes.k);
  args.v = address(bytes.v);
  args.a = address(bytes.a);
  args.b = address(bytes.b);
  args.aLog = address(params.aLog);
  args.dtBias = address(params.dtBias);
  args.scale = model.scale;
  args.lowerBound = model.lowerBound;
  DecodeRecurrence recurrence(spec, 1);
  recurrence.state(0).swap(state);
  std::vector<double> out = recurrence.step(0, readToken(spec, args, 0)).out;
  recurrence.state(0).swap(state);
  return out;
}

Oracle::Oracle(const Model &model) : model(&model) {
  for (int layer = 0; layer < model.numLayers(); ++layer) {
    const DecodeSpec &spec = model.specOf(layer);
    states.emplace_back(size_t(spec.numValueHeads) * spec.headDimV *
                        spec.headDimK);
  }
}

Oracle::Oracle(const Model &model, const Tokens &tokens) : Oracle(model) {
  for (int token : tokens)
    feed(token);
}

std::vector<std::vector<double>> Oracle::feed(int token) {
  std::vector<std::vector<double>> out(model->numLayers());
  auto step = [&](int layer) {
    out[layer] = stepLayer(*model, layer, token, position, states[layer]);
  };
  // Layers do not depend on each other: real ones take a thread each.
  std::vector<std::thread> threads;
  for (int layer = 0; layer < model->numLayers(); ++layer)
    if (states[layer].size() > 1 << 16)
      threads.emplace_back(step, layer);
    else
      step(layer);
  for (std::thread &thread : threads)
    thread.join();
  ++position;
  return out;
}

} // namespace replayjit::internal::engine
