//===- KernelTime.cpp - How long a launch takes ---------------------------===//

#include "tools/KernelTime.h"

#include "runtime/DecodeLaunch.h"
#include "tools/StreamProgram.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <random>
#include <vector>

using namespace replayjit::internal;

namespace {

/// The L2 of no GPU is larger than a quarter of this.
constexpr int64_t coldBytes = int64_t(512) << 20;
constexpr int maxLaunches = 2048;

/// An index or cursor of each row, of which a graph has as many as launches.
bool isIndex(const Argument &argument) {
  return argument.isPer(perRow) && !argument.shape.dims[1].word;
}

} // namespace

class LaunchTimer::Pool {
public:
  Pool(Device &device, const DecodeSpec &spec, int batch);
  ~Pool() {
    for (uint64_t address : allocations)
      (void)device.free(address); // nothing to be done about it
  }

  Status allocate();
  /// Puts all rows at this write_pos, or at all ring phases.
  Status placeRows(std::optional<int> cursor);
  /// The arguments of launch n of a graph.
  DecodeArgs launch(int n) const;
  /// Memory that the producer reads, and that the consumer writes.
  Status allocateEnds();
  Status launchProducer(LoadedKernel &kernel, LaunchOrder order) {
    return launchCopy(kernel, {made, args.q}, "q", order);
  }
  Status launchConsumer(LoadedKernel &kernel, LaunchOrder order) {
    return launchCopy(kernel, {args.out, taken}, "out", order);
  }

  Device &device;
  const DecodeSpec spec;
  const int batch;
  int launches = 0; ///< Per graph; whole cycles of the ring.
  bool coldL2 = false;

private:
  using Values = std::function<double()>;
  Status fill(const Argument &tensor, int64_t elements, const Values &values);
  int64_t elementsOf(const Argument &tensor) const;
  Status uploadIndices();
  int32_t cursorAfter(int64_t steps);
  /// Allocates, and copies `bytes` unless that is null.
  Status upload(const Argument &argument, const void *bytes, size_t size);
  int64_t bytesOf(const char *name) const {
    const Argument &tensor = find(decodeArguments(), name);
    return elementsOf(tensor) * byteSize(tensor.type.of(spec));
  }
  /// Copies the whole rows of a tensor's bytes.
  Status launchCopy(LoadedKernel &kernel, const StreamArgs &streams,
                    const char *tensor, LaunchOrder order) {
    const int64_t rowBytes = streamColumns * sizeof(float);
    return device.launchOn(device.stream(), kernel,
                           uint32_t(bytesOf(tensor) / rowBytes), &streams,
                           sizeof streams, order);
  }

  uint64_t made = 0, taken = 0; ///< Of the ends of a chain.
  int64_t slots = 0;
  int64_t width = 0; ///< Entries per launch in the index arrays.
  DecodeArgs args;
  std::vector<uint64_t> allocations;
  std::mt19937 random{1};
};

LaunchTimer::Pool::Pool(Device &device, const DecodeSpec &spec, int batch)
    : device(device), spec(spec), batch(batch) {
  auto round = [](int64_t n, int64_t unit) {
    return (n + unit - 1) / unit * unit;
  };
  // Multiples of 8 elements keep what an alignment of 16 promises.
  const ArgumentTable table = decodeArguments();
  for (const Argument &argument : table)
    if (argument.kind == Argument::Kind::Stride && argument.isThere(spec))
      if (const Argument &tensor = table[argument.pointer]; !isIndex(tensor))
        memberOf(argument, &args) = round(innerElements(spec, tensor), 8);
  args.batch = batch;
  args.scale = 1 / std::sqrt(float(spec.headDimK));
  if (!validateLowerBound(spec, args.lowerBound))
    args.lowerBound = -1; // legal for every ring

  const int64_t slotBytes = args.statePitch * byteSize(spec.stateType);
  const int64_t wanted = coldBytes / (slotBytes * batch) + 1;
  launches =
      int(std::min<int64_t>(round(std::max<int64_t>(wanted, 2), spec.ringDepth),
                            round(maxLaunches, spec.ringDepth)));
  // Launches beyond the pool's end meet its first slots again.
  slots = batch * std::clamp<int64_t>(wanted, 2, launches);
  coldL2 = slots * slotBytes >= coldBytes;
  args.slots = args.ringSlots = int32_t(slots) + 1; // slot 0 may be null
  width = round(batch, 16);
}

Status LaunchTimer::Pool::upload(const Argument &argument, const void *bytes,
                                 size_t size) {
  Result<uint64_t> memory = device.allocate(size, divided(argument.name, '_'));
  if (!memory)
    return memory.status();
  memberOf(argument, &args) = *memory;
  allocations.push_back(*memory);
  return bytes ? device.copyToDevice(*memory, bytes, size) : Status::ok();
}

/// Allocates and fills by repeating a piece: the values matter little, but
/// zeros would draw less power and no numbers could make it diverge.
Status LaunchTimer::Pool::fill(const Argument &tensor, int64_t elements,
                               const Values &values) {
  const DataType type = tensor.type.of(spec);
  const int64_t bytes = elements * byteSize(type);
  if (Status status = upload(tensor, nullptr, bytes); !status)
    return status;
  const uint64_t address = memberOf(tensor, &args);
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

/// Of all its rows or slots.
int64_t LaunchTimer::Pool::elementsOf(const Argument &tensor) const {
  for (const Argument &stride : decodeArguments())
    if (stride.kind == Argument::Kind::Stride &&
        stride.of == std::string_view(tensor.name))
      return int64_t(memberOf(stride, &args)) *
             (stride.isOfRows ? batch * tokensPerRow(spec) : args.slots);
  return innerElements(spec, tensor);
}

Status LaunchTimer::Pool::allocate() {
  std::normal_distribution<double> normal;
  auto gaussian = [&](double deviation) -> Values {
    return [this, &normal, deviation] { return deviation * normal(random); };
  };
  auto gate = [this] {
    return std::uniform_real_distribution<double>(-0.12, -0.02)(random);
  };
  const double keys = 1 / std::sqrt(double(spec.headDimK));
  const double inputs = spec.qkL2Norm ? 1 : keys;
  const std::map<std::string_view, Values> values = {
      {"q", gaussian(inputs)},   {"k", gaussian(inputs)},
      {"v", gaussian(1)},        {"a", gaussian(0.5)},
      {"b", gaussian(1)},        {"aLog", gaussian(0.3)},
      {"dtBias", gaussian(0.1)}, {"out", gaussian(1)},
      {"state", gaussian(0.3)},  {"dRing", gaussian(0.3)},
      {"kRing", gaussian(keys)}, {"gRing", gate}};
  for (const auto &[name, numbers] : values) {
    const Argument &tensor = find(decodeArguments(), name);
    if (!tensor.isThere(spec))
      continue;
    if (Status status = fill(tensor, elementsOf(tensor), numbers); !status)
      return status;
  }
  return uploadIndices();
}

/// Slots and bases of all launches. Rings and destinations are those of the
/// states; no row is tracked or forced to flush. All rows have all tokens.
Status LaunchTimer::Pool::uploadIndices() {
  const int64_t count = launches * width;
  const int T = tokensPerRow(spec);
  std::vector<int64_t> wide(count);
  std::vector<int32_t> narrow(count), bases(count), zeros(count);
  for (int64_t n = 0; n < launches; ++n)
    for (int64_t row = 0; row < width; ++row) {
      int64_t at = n * width + row;
      wide[at] = 1 + (n * batch + row) % slots;
      narrow[at] = int32_t(wide[at]);
      bases[at] = int32_t((3 * n + 5 * row) % spec.ringDepth);
    }
  const std::vector<int32_t> none(2 * count, -1); // of either type
  const std::vector<int32_t> tokens(count, T);
  const void *indices = spec.indexType == DataType::I64
                            ? static_cast<const void *>(wide.data())
                            : narrow.data();
  const std::map<std::string_view, const void *> values = {
      {"stateIndices", indices},    {"ringIndices", indices},
      {"dstIndices", indices},      {"trackIndices", none.data()},
      {"writePos", zeros.data()},   {"ringBase", bases.data()},
      {"forceFlush", zeros.data()}, {"tokenCounts", tokens.data()}};
  for (const auto &[name, numbers] : values) {
    const Argument &array = find(decodeArguments(), name);
    if (!array.isThere(spec))
      continue;
    if (Status status =
            upload(array, numbers, count * byteSize(array.type.of(spec)));
        !status)
      return status;
  }
  const Argument &ends = find(decodeArguments(), "tokenOffsets");
  args.tokens = batch * T;
  if (!ends.isThere(spec))
    return Status::ok();
  std::vector<int32_t> offsets(batch + 1);
  for (int row = 0; row <= batch; ++row)
    offsets[row] = row * T;
  return upload(ends, offsets.data(), offsets.size() * sizeof(int32_t));
}

/// Where a row stands after `steps` launches. Of drafts 1 to T hold each time;
/// a ring that has not two launches' room is folded by others in between.
int32_t LaunchTimer::Pool::cursorAfter(int64_t steps) {
  if (!traitsOf(spec).drafts)
    return int32_t(steps % spec.ringDepth);
  RingCursor cursor;
  if (spec.ringDepth >= 2 * spec.numTokens)
    for (int64_t i = steps % (2 * spec.ringDepth); i > 0; --i)
      cursor = acceptedCursor(spec, cursor, /*forced=*/false,
                              1 + int(random() % spec.numTokens));
  return cursor.writePos;
}

Status LaunchTimer::Pool::placeRows(std::optional<int> cursor) {
  if (args.writePos == 0)
    return Status::ok();
  std::vector<int32_t> cursors(launches * width);
  for (int64_t n = 0; n < launches; ++n)
    for (int64_t row = 0; row < width; ++row)
      cursors[n * width + row] = cursor ? *cursor : cursorAfter(n + row);
  return device.copyToDevice(args.writePos, cursors.data(),
                             cursors.size() * sizeof(int32_t));
}

DecodeArgs LaunchTimer::Pool::launch(int n) const {
  DecodeArgs result = args;
  for (const Argument &argument : decodeArguments())
    if (isIndex(argument) && argument.isThere(spec))
      memberOf(argument, &result) +=
          n * width * byteSize(argument.type.of(spec));
  return result;
}

Status LaunchTimer::Pool::allocateEnds() {
  if (made != 0)
    return Status::ok();
  for (auto [address, name] :
       {std::pair(&made, "q"), std::pair(&taken, "out")}) {
    Result<uint64_t> memory = device.allocate(bytesOf(name), name);
    if (!memory)
      return memory.status();
    *address = *memory;
    allocations.push_back(*memory);
  }
  if (Status status =
          device.copyOn(device.stream(), made, args.q, bytesOf("q"));
      !status)
    return status;
  return device.synchronize();
}

LaunchTimer::LaunchTimer(std::unique_ptr<Pool> pool) : pool(std::move(pool)) {}
LaunchTimer::~LaunchTimer() = default;

Result<std::unique_ptr<LaunchTimer>>
LaunchTimer::create(Device &device, const DecodeSpec &spec, int batch) {
  if (!traitsOf(spec).tokens)
    return Status::error(StatusCode::Unsupported,
                         "only kernels that decode a token are timed");
  auto pool = std::make_unique<Pool>(device, spec, batch);
  if (Status status = pool->allocate(); !status)
    return status;
  if (Status status = validateArgs(spec, pool->launch(0)); !status)
    return status;
  return std::unique_ptr<LaunchTimer>(new LaunchTimer(std::move(pool)));
}

Result<LaunchTime> LaunchTimer::time(LoadedKernel &kernel,
                                     const LaunchConfig &launch,
                                     const LaunchManner &manner) {
  return time(&kernel, launch, manner);
}

Result<LaunchTime> LaunchTimer::timeEnds(const LaunchManner &manner) {
  return time(nullptr, {}, manner);
}

Result<LaunchTime> LaunchTimer::time(LoadedKernel *kernel,
                                     const LaunchConfig &launch,
                                     const LaunchManner &manner) {
  Device &device = pool->device;
  const DecodeSpec &spec = pool->spec;
  if (Status status = pool->placeRows(manner.cursor); !status)
    return status;
  if (manner.ends)
    if (Status status = pool->allocateEnds(); !status)
      return status;
  auto launchOne = [&](int n) {
    DecodeArgs args = pool->launch(n);
    return withParams(spec, args, [&](const void *params, size_t bytes) {
      return device.launchOn(device.stream(), *kernel,
                             gridOf(spec, launch, pool->batch), params, bytes,
                             manner.order);
    });
  };
  auto launchAll = [&] {
    Status status = Status::ok();
    for (int n = 0; n < pool->launches && status; ++n) {
      if (manner.ends)
        status = pool->launchProducer(manner.ends->producer, manner.order);
      if (status && kernel)
        status = launchOne(n);
      if (status && manner.ends)
        status = pool->launchConsumer(manner.ends->consumer, manner.order);
    }
    return status;
  };
  Result<Times> times = device.time(launchAll, manner.repeats);
  if (!times)
    return times.status();
  for (double &time : *times)
    time *= 1e3 / pool->launches;
  return LaunchTime{*times, pool->coldL2};
}
