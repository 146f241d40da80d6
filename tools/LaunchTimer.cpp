//===- LaunchTimer.cpp - How long a launch takes --------------------------===//

#include "tools/LaunchTimer.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <vector>

using namespace replayjit;

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
  Status upload(uint64_t &address, const char *name, const void *bytes,
                size_t size);

  Device &device;
  const DecodeSpec &spec;
  const int batch;
  int64_t slots = 0;
  int64_t width = 0; ///< Entries per launch in the index arrays.
  DecodeArgs args;
  std::vector<uint64_t> allocations;
  std::mt19937 random{1};
};

} // namespace

Pool::Pool(Device &device, const DecodeSpec &spec, int batch)
    : device(device), spec(spec), batch(batch) {
  const int64_t HV = spec.numValueHeads, H = spec.numKeyHeads,
                V = spec.headDimV, K = spec.headDimK, L = spec.ringDepth;
  auto round = [](int64_t n, int64_t unit) {
    return (n + unit - 1) / unit * unit;
  };
  // Multiples of 8 elements keep what an alignment of 16 promises.
  args.qStride = round(2 * H * K + HV * V, 8);
  args.aStride = round(HV * gateWidth(spec), 8);
  args.bStride = round(HV, 8);
  args.outStride = round(HV * V, 8);
  args.statePitch = round(HV * V * K, 8);
  args.dPitch = round(HV * L * V, 8);
  args.kPitch = round(H * L * K, 8);
  args.gPitch = round(HV * L * gateWidth(spec), 8);
  args.batch = batch;
  args.scale = 1 / std::sqrt(float(K));

  const int64_t slotBytes = args.statePitch * byteSize(spec.stateType);
  const int64_t wanted = coldBytes / (slotBytes * batch) + 1;
  launches = int(std::min<int64_t>(round(std::max<int64_t>(wanted, 2), L),
                                   round(maxLaunches, L)));
  // Launches beyond the pool's end meet its first slots again.
  slots = batch * std::clamp<int64_t>(wanted, 2, launches);
  coldL2 = slots * slotBytes >= coldBytes;
  args.slots = int32_t(slots) + 1; // slot 0 may be null
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
  const int64_t L = spec.ringDepth;
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
  };
  const double keys = 1 / std::sqrt(double(spec.headDimK));
  for (const Tensor &tensor : {
           Tensor{args.q, "mixed_qkv", spec.actType,
                  batch * args.qStride, gaussian(spec.qkL2Norm ? 1 : keys)},
           Tensor{args.a, "a", spec.gateType, batch * args.aStride,
                  gaussian(0.5)},
           Tensor{args.b, "b", spec.gateType, batch * args.bStride,
                  gaussian(1)},
           Tensor{args.aLog, "A_log", spec.paramType, spec.numValueHeads,
                  gaussian(0.3)},
           Tensor{args.dtBias, "dt_bias", spec.paramType,
                  int64_t(spec.numValueHeads) * gateWidth(spec), gaussian(0.1)},
           Tensor{args.out, "out", spec.outType, batch * args.outStride,
                  gaussian(1)},
           Tensor{args.state, "state", spec.stateType,
                  args.slots * args.statePitch, gaussian(0.3)},
           Tensor{args.dRing, "d_ring", spec.ringType, args.slots * args.dPitch,
                  gaussian(0.3)},
           Tensor{args.kRing, "k_ring", spec.ringType, args.slots * args.kPitch,
                  gaussian(keys)},
           Tensor{args.gRing, "g_ring", DataType::F32, args.slots * args.gPitch,
                  gate},
       })
    if (Status status = fill(tensor.address, tensor.name, tensor.type,
                             tensor.elements, tensor.values);
        !status)
      return status;

  const int64_t count = launches * width;
  std::vector<int64_t> wide(count);
  std::vector<int32_t> indices(count), cursors(count), forced(count);
  for (int64_t n = 0; n < launches; ++n)
    for (int64_t row = 0; row < width; ++row) {
      int64_t at = n * width + row;
      wide[at] = 1 + (n * batch + row) % slots;
      indices[at] = int32_t(wide[at]);
      cursors[at] = int32_t((n + row) % L);
    }
  const bool isWide = spec.indexType == DataType::I64;
  Status status = upload(args.stateIndices, "state_indices",
                         isWide ? (const void *)wide.data() : indices.data(),
                         count * byteSize(spec.indexType));
  if (status)
    status = upload(args.writePos, "write_pos", cursors.data(), count * 4);
  if (status && spec.hasForceFlush)
    status = upload(args.forceFlush, "force_flush", forced.data(), count * 4);
  return status;
}

DecodeArgs Pool::launch(int n) const {
  DecodeArgs result = args;
  result.stateIndices += n * width * byteSize(spec.indexType);
  result.writePos += n * width * 4;
  if (spec.hasForceFlush)
    result.forceFlush += n * width * 4;
  return result;
}

Result<LaunchTime> replayjit::timeLaunch(Device &device, LoadedKernel &kernel,
                                         const LaunchConfig &launch,
                                         const DecodeSpec &spec, int batch) {
  Pool pool(device, spec, batch);
  if (Status status = pool.allocate(); !status)
    return status;
  auto body = [&]() -> Status {
    for (int n = 0; n < pool.launches; ++n) {
      DecodeArgs args = pool.launch(n);
      if (Status status =
              device.launch(kernel, uint32_t(batch) * launch.blocksPerRow,
                            &args, sizeof(args));
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
