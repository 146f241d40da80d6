//===- KernelTime.cpp - How long a launch takes ---------------------------===//

#include "tools/KernelTime.h"

#include "runtime/DecodeLaunch.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <vector>

using namespace replayjit::internal;

namespace {

/// The L2 of no GPU is larger than a quarter of this.
constexpr int64_t coldBytes = int64_t(512) << 20;
constexpr int maxLaunches = 2048;
constexpr int replays = 20;

/// Device memory for the launches of a graph, freed with the scope.
class Pool {
public:
  Pool(Device &device, const DecodeSpec &spec, int batch);
  ~Pool() {
    for (uint64_t address : allocations)
      (void)device.free(address); // nothing to be done about it
  }

  Status allocate();
  /// The arguments of launch n of a graph.
  DecodeArgs launch(int n) const;

  int launches = 0; ///< Per graph; whole cycles of the ring.
  bool coldL2 = false;

private:
  using Values = std::function<double()>;
  Status fill(uint64_t &address, const char *name, DataType type,
              int64_t elements, Values values);
  Status uploadIndices();
  Status upload(uint64_t &address, const char *name, const void *bytes,
                size_t size);

  Device &device;
  const DecodeSpec &spec;
  const int batch;
  const bool hasCursor, hasRing;
  int64_t slots = 0;
  int64_t width = 0; ///< Entries per launch in the index arrays.
  DecodeArgs args;
  std::vector<uint64_t> allocations;
  std::mt19937 random{1};
};

} // namespace

Pool::Pool(Device &device, const DecodeSpec &spec, int batch)
    : device(device), spec(spec), batch(batch),
      hasCursor(spec.family == Family::Replay), hasRing(spec.ringDepth > 1) {
  const int64_t HV = spec.numValueHeads, H = spec.numKeyHeads,
                V = spec.headDimV, K = spec.headDimK, L = spec.ringDepth;
  auto round = [](int64_t n, int64_t unit) {
    return (n + unit - 1) / unit * unit;
  };
  // Multiples of 8 elements keep what an alignment of 16 promises.
  args.kStride = round(H * K, 8);
  args.vStride = round(HV * V, 8);
  args.qStride =
      spec.hasSeparateQkv ? args.kStride : round(2 * H * K + HV * V, 8);
  args.aStride = round(HV * gateWidth(spec), 8);
  args.bStride = round(HV, 8);
  args.outStride = round(HV * V, 8);
  args.statePitch = round(HV * V * K, 8);
  args.dPitch = round(HV * L * V, 8);
  args.kPitch = round(H * L * K, 8);
  args.gPitch = round(HV * L * gateWidth(spec), 8);
  args.batch = batch;
  args.scale = 1 / std::sqrt(float(K));
  if (!validateLowerBound(spec, args.lowerBound))
    args.lowerBound = -1; // legal for every ring

  const int64_t slotBytes = args.statePitch * byteSize(spec.stateType);
  const int64_t wanted = coldBytes / (slotBytes * batch) + 1;
  launches = int(std::min<int64_t>(round(std::max<int64_t>(wanted, 2), L),
                                   round(maxLaunches, L)));
  // Launches beyond the pool's end meet its first slots again.
  slots = batch * std::clamp<int64_t>(wanted, 2, launches);
  coldL2 = slots * slotBytes >= coldBytes;
  args.slots = args.ringSlots = int32_t(slots) + 1; // slot 0 may be null
  width = round(batch, 16);
}

Status Pool::upload(uint64_t &address, const char *name, const void *bytes,
                    size_t size) {
  Result<uint64_t> memory = device.allocate(size, name);
  if (!memory)
    return memory.status();
  address = *memory;
  allocations.push_back(address);
  return bytes ? device.copyToDevice(address, bytes, size) : Status::ok();
}

/// Allocates and fills by repeating a piece: the values matter little, but
/// zeros would draw less power and no numbers could make it diverge.
Status Pool::fill(uint64_t &address, const char *name, DataType type,
                  int64_t elements, Values values) {
  const int64_t bytes = elements * byteSize(type);
  if (Status status = upload(address, name, nullptr, bytes); !status)
    return status;
  const int64_t pieceElements = std::min<int64_t>(elements, 1 << 21);
  std::vector<char> piece(pieceElements * byteSize(type));
  const int64_t distinct = std::min<int64_t>(pieceElements, 1 << 17);
  for (int64_t i = 0; i < distinct; ++i)
    storeElement(type, piece.data(), i, values());
  for (size_t at = distinct * byteSize(type); at < piece.size(); ++at)
    piece[at] = piece[at - distinct * byteSize(type)];
  for (int64_t at = 0; at < bytes; at += piece.size())
    if (Status status =
            device.copyToDevice(address + at, piece.data(),
                                std::min<int64_t>(piece.size(), bytes - at));
        !status)
      return status;
  return Status::ok();
}

Status Pool::allocate() {
  std::normal_distribution<double> normal;
  auto gaussian = [&](double deviation) -> Values {
    return [this, &normal, deviation] { return deviation * normal(random); };
  };
  auto gate = [this] {
    return std::uniform_real_distribution<double>(-0.12, -0.02)(random);
  };
  struct Tensor {
    uint64_t &address;
    const char *name;
    DataType type;
    int64_t elements;
    Values values;
    bool isThere = true;
  };
  const double keys = 1 / std::sqrt(double(spec.headDimK));
  const double inputs = spec.qkL2Norm ? 1 : keys;
  for (const Tensor &tensor : {
           Tensor{args.q, "q", spec.actType, batch * args.qStride,
                  gaussian(inputs)},
           Tensor{args.k, "k", spec.actType, batch * args.kStride,
                  gaussian(inputs), spec.hasSeparateQkv},
           Tensor{args.v, "v", spec.actType, batch * args.vStride, gaussian(1),
                  spec.hasSeparateQkv},
           Tensor{args.a, "a", spec.gateType, batch * args.aStride,
                  gaussian(0.5)},
           Tensor{args.b, "b", spec.betaType, batch * args.bStride,
                  gaussian(1)},
           Tensor{args.aLog, "A_log", spec.paramType, spec.numValueHeads,
                  gaussian(0.3)},
           Tensor{args.dtBias, "dt_bias", spec.biasType,
                  int64_t(spec.numValueHeads) * gateWidth(spec), gaussian(0.1)},
           Tensor{args.out, "out", spec.outType, batch * args.outStride,
                  gaussian(1)},
           Tensor{args.state, "state", spec.stateType,
                  args.slots * args.statePitch, gaussian(0.3)},
           Tensor{args.dRing, "d_ring", spec.ringType, args.slots * args.dPitch,
                  gaussian(0.3), hasRing},
           Tensor{args.kRing, "k_ring", spec.ringType, args.slots * args.kPitch,
                  gaussian(keys), hasRing},
           Tensor{args.gRing, "g_ring", DataType::F32, args.slots * args.gPitch,
                  gate, hasRing},
       })
    if (tensor.isThere)
      if (Status status = fill(tensor.address, tensor.name, tensor.type,
                               tensor.elements, tensor.values);
          !status)
        return status;
  return uploadIndices();
}

/// Slots, cursors and bases of all launches. Rings and destinations are those
/// of the states; no row is tracked.
Status Pool::uploadIndices() {
  const int64_t count = launches * width, L = spec.ringDepth;
  std::vector<int64_t> wide(count);
  std::vector<int32_t> narrow(count), cursors(count), bases(count),
      forced(count);
  for (int64_t n = 0; n < launches; ++n)
    for (int64_t row = 0; row < width; ++row) {
      int64_t at = n * width + row;
      wide[at] = 1 + (n * batch + row) % slots;
      narrow[at] = int32_t(wide[at]);
      cursors[at] = int32_t((n + row) % L);
      bases[at] = int32_t((3 * n + 5 * row) % L);
    }
  const std::vector<int32_t> none(2 * count, -1); // of either type
  const void *indices = spec.indexType == DataType::I64
                            ? static_cast<const void *>(wide.data())
                            : narrow.data();
  const size_t indexBytes = count * byteSize(spec.indexType);
  struct Array {
    uint64_t &address;
    const char *name;
    const void *values;
    size_t bytes;
    bool isThere = true;
  };
  for (const Array &array :
       {Array{args.stateIndices, "state_indices", indices, indexBytes},
        {args.ringIndices, "ring_indices", indices, indexBytes,
         spec.hasRingIndices},
        {args.dstIndices, "dst_indices", indices, indexBytes,
         spec.hasDstIndices},
        {args.trackIndices, "track_indices", none.data(), indexBytes,
         spec.hasTrackIndices},
        {args.writePos, "write_pos", cursors.data(), size_t(4 * count),
         hasCursor},
        {args.ringBase, "ring_base", bases.data(), size_t(4 * count),
         spec.isCircular},
        {args.forceFlush, "force_flush", forced.data(), size_t(4 * count),
         hasCursor && spec.hasForceFlush}})
    if (array.isThere)
      if (Status status =
              upload(array.address, array.name, array.values, array.bytes);
          !status)
        return status;
  return Status::ok();
}

DecodeArgs Pool::launch(int n) const {
  DecodeArgs result = args;
  auto moveTo = [&](uint64_t &address, DataType type) {
    if (address)
      address += n * width * byteSize(type);
  };
  for (uint64_t *indices : {&result.stateIndices, &result.ringIndices,
                            &result.dstIndices, &result.trackIndices})
    moveTo(*indices, spec.indexType);
  for (uint64_t *numbers :
       {&result.writePos, &result.ringBase, &result.forceFlush})
    moveTo(*numbers, DataType::I32);
  return result;
}

Result<LaunchTime> replayjit::internal::timeLaunch(Device &device,
                                                   LoadedKernel &kernel,
                                                   const LaunchConfig &launch,
                                                   const DecodeSpec &spec,
                                                   int batch) {
  if (!hasTokens(spec))
    return Status::error(StatusCode::Unsupported,
                         "only kernels that decode a token are timed");
  Pool pool(device, spec, batch);
  if (Status status = pool.allocate(); !status)
    return status;
  if (Status status = validateArgs(spec, pool.launch(0)); !status)
    return status;
  auto body = [&]() -> Status {
    for (int n = 0; n < pool.launches; ++n) {
      DecodeArgs args = pool.launch(n);
      if (Status status = withParams(spec, args,
                                     [&](const void *params, size_t bytes) {
                                       return device.launch(
                                           kernel, gridOf(spec, launch, batch),
                                           params, bytes);
                                     });
          !status)
        return status;
    }
    return Status::ok();
  };
  Result<double> milliseconds = device.time(body, replays);
  if (!milliseconds)
    return milliseconds.status();
  return LaunchTime{*milliseconds * 1e3 / pool.launches, pool.coldL2};
}
