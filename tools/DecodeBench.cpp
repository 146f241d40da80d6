//===- DecodeBench.cpp - How fast decode is on this GPU -------------------===//

#include "tools/DecodeBench.h"

#include "kernels/Families.h"
#include "runtime/cache/FactsJson.h"
#include "tools/KernelTime.h"
#include "tools/MakeKernel.h"
#include "tools/StreamProgram.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>

using namespace replayjit::internal;

static Json toJson(const Times &times) {
  return {{"least", times.front()},
          {"median", medianOf(times)},
          {"most", times.back()}};
}

//===----------------------------------------------------------------------===//
// Plain streams
//===----------------------------------------------------------------------===//

namespace {
constexpr int64_t streamBytes = int64_t(2) << 30;

struct Buffers {
  explicit Buffers(Device &device) : device(device) {}
  Buffers(const Buffers &) = delete;
  ~Buffers() {
    for (uint64_t address : {args.src, args.dst})
      (void)device.free(address); // nothing to be done about it
  }

  Status allocate() {
    for (uint64_t *address : {&args.src, &args.dst}) {
      Result<uint64_t> memory = device.allocate(streamBytes, "stream");
      if (!memory)
        return memory.status();
      *address = *memory;
      if (Status status = device.fill32On(device.stream(), *memory, 0x3f800000,
                                          streamBytes / 4);
          !status)
        return status;
    }
    return device.synchronize();
  }

  Device &device;
  StreamArgs args;
};
} // namespace

/// Compiles and loads; `what` is what the maker compiles.
template <typename... What>
static Result<MadeKernel> make(KernelMaker &maker, Compiler &compiler,
                               const What &...what) {
  Result<CompiledKernel> kernel = maker.compile(compiler, what...);
  return kernel ? maker.load(std::move(*kernel)) : kernel.status();
}

/// Bytes per microsecond of the fastest of some shapes of `build`, which moves
/// `passes` times the buffer.
template <typename Build>
static Result<double> ceiling(Device &device, KernelMaker &maker,
                              Compiler &compiler, Build build, int passes,
                              int repeats) {
  Buffers buffers(device);
  if (Status status = buffers.allocate(); !status)
    return status;
  double best = 0;
  for (auto [rows, numWarps] :
       {std::pair(16, 2), std::pair(32, 2), std::pair(32, 4), std::pair(64, 4),
        std::pair(64, 8), std::pair(128, 8)}) {
    Result<MadeKernel> kernel =
        make(maker, compiler, [&](mlir::MLIRContext &context) {
          return build(context, rows, numWarps);
        });
    if (!kernel)
      return kernel.status();
    const auto blocks =
        uint32_t(streamBytes / (sizeof(float) * rows * streamColumns));
    Result<Times> times = device.time(
        [&] {
          return device.launch(*kernel->loaded, blocks, &buffers.args,
                               sizeof(buffers.args));
        },
        repeats);
    if (!times)
      return times.status();
    best =
        std::max(best, passes * double(streamBytes) / (1e3 * medianOf(*times)));
  }
  return best;
}

//===----------------------------------------------------------------------===//
// Decode kernels
//===----------------------------------------------------------------------===//

namespace {

class Bench {
public:
  Bench(Device &device, const DecodeBenchOptions &options, Progress &progress)
      : device(device), options(options), progress(progress), maker(device) {}

  Result<Json> run();

private:
  Status addCeilings(Json &document);
  Status addBatch(Json &batches, int batch);
  /// One kernel at one batch, plain and, where there are such launches,
  /// programmatic.
  Status addKernels(Json &entry, DecodeSpec spec, int batch);
  Status addPhases(Json &entry, LaunchTimer &timer, const MadeKernel &kernel);
  /// The median time of the fastest stream that moves what kernels of `spec`
  /// do.
  Result<double> streamTime(LaunchTimer &timer, const DecodeSpec &spec,
                            const DecodeTuning &tuning);
  void now(int batch, std::string_view what) {
    progress.update(done, fmt::format("B={}: {}", batch, what));
  }

  Device &device;
  const DecodeBenchOptions &options;
  Progress &progress;
  KernelMaker maker;
  Compiler compiler;
  std::set<std::string> checked; ///< Names of kernels that are right.
  double done = 0;
};

} // namespace

Result<Json> Bench::run() {
  Json document = {{"tool", "replay-bench decode"},
                   {"device", device.description()},
                   {"multiprocessors", device.multiprocessors()},
                   {"target", device.target().chip},
                   {"spec", factsToJson(options.spec, decodeFacts())},
                   {"repeats", options.repeats}};
  if (Status status = addCeilings(document); !status)
    return status;
  Json &batches = document["batches"] = Json::array();
  for (int batch : options.batches)
    if (Status status = addBatch(batches, batch); !status)
      return std::move(status).within(fmt::format("batch {}", batch));
  return document;
}

Status Bench::addCeilings(Json &document) {
  progress.update(done, "streams");
  Result<double> read =
      ceiling(device, maker, compiler, buildRead, 1, options.repeats);
  if (!read)
    return read.status();
  Result<double> copy =
      ceiling(device, maker, compiler, buildCopy, 2, options.repeats);
  if (!copy)
    return copy.status();
  document["ceilings"] = {{"read", *read}, {"copy", *copy}};
  return Status::ok();
}

Status Bench::addBatch(Json &batches, int batch) {
  Json entry = {{"batch", batch}, {"kernels", Json::array()}};
  DecodeSpec packed = options.spec;
  packed.family = Family::Packed;
  packed.ringDepth = 1;
  for (const DecodeSpec &spec : {options.spec, canonical(packed)})
    if (Status status = addKernels(entry, spec, batch); !status)
      return status;
  batches.push_back(std::move(entry));
  done += 1;
  return Status::ok();
}

Status Bench::addKernels(Json &entry, DecodeSpec spec, int batch) {
  auto timer = LaunchTimer::create(device, spec, batch);
  if (!timer)
    return timer.status();
  const std::string family(wordOf(spec.family));
  double streamUs = 0;
  for (const bool isProgrammatic : {false, true}) {
    spec.hasProgrammaticLaunch = isProgrammatic;
    const DecodeTuning tuning =
        chooseTuning(spec, batch, device.target(), device.multiprocessors(),
                     options.measured);
    if (isProgrammatic && !validate(spec, tuning, device.target()))
      break; // this GPU has no such launches
    const char *launches = isProgrammatic ? "programmatic" : "plain";
    now(batch, fmt::format("{}, {}", family, launches));
    Result<MadeKernel> kernel = make(maker, compiler, spec, tuning);
    if (!kernel)
      return kernel.status();
    if (checked.insert(kernelName(spec, tuning)).second)
      if (Result<CheckReport> right = maker.check(*kernel, spec, tuning);
          !right)
        return right.status();
    LaunchManner manner;
    manner.repeats = options.repeats;
    if (isProgrammatic)
      manner.order = LaunchOrder::Programmatic;
    Result<LaunchTime> time =
        (*timer)->time(*kernel->loaded, kernel->launch, manner);
    if (!time)
      return time.status();
    if (!isProgrammatic) {
      now(batch, fmt::format("{}, its stream", family));
      Result<double> stream = streamTime(**timer, spec, tuning);
      if (!stream)
        return stream.status();
      streamUs = *stream;
    }
    entry["kernels"].push_back(
        {{"family", family},
         {"launches", launches},
         {"tuning", factsToJson(tuning, tuningFacts())},
         {"registers", kernel->resources.registers},
         {"spillBytes", kernel->resources.spillStoreBytes},
         {"assembler", kernel->assembler},
         {"bytes", bytesMoved(spec, batch)},
         {"us", toJson(time->microseconds)},
         {"coldL2", time->coldL2},
         {"streamUs", streamUs}});
    if (options.phases && !isProgrammatic && traitsOf(spec).rings)
      if (Status status = addPhases(entry, **timer, *kernel); !status)
        return status;
  }
  return Status::ok();
}

Status Bench::addPhases(Json &entry, LaunchTimer &timer,
                        const MadeKernel &kernel) {
  Json &phases = entry["phases"] = Json::array();
  for (int m = 0; m < options.spec.ringDepth; ++m) {
    Result<LaunchTime> time =
        timer.time(*kernel.loaded, kernel.launch,
                   {.cursor = m, .repeats = options.repeats});
    if (!time)
      return time.status();
    phases.push_back(medianOf(time->microseconds));
  }
  return Status::ok();
}

Result<double> Bench::streamTime(LaunchTimer &timer, const DecodeSpec &spec,
                                 const DecodeTuning &tuning) {
  std::vector<DecodeTuning> shapes = {tuning};
  for (auto [blockV, numWarps] :
       {std::pair(8, 1), std::pair(16, 2), std::pair(32, 4), std::pair(64, 4),
        std::pair(128, 4)}) {
    DecodeTuning shape;
    shape.blockV = blockV;
    shape.numWarps = numWarps;
    shape.blockK = nextPowerOfTwo(spec.headDimK);
    if (validate(spec, shape, device.target()))
      shapes.push_back(shape);
  }
  double best = std::numeric_limits<double>::infinity();
  for (const DecodeTuning &shape : shapes) {
    Result<MadeKernel> kernel =
        make(maker, compiler, [&](mlir::MLIRContext &context) {
          return buildOwnStream(context, spec, shape);
        });
    if (!kernel)
      return kernel.status();
    Result<LaunchTime> time = timer.time(*kernel->loaded, kernel->launch,
                                         {.repeats = options.repeats});
    if (!time)
      return time.status();
    best = std::min(best, medianOf(time->microseconds));
  }
  return best;
}

Result<Json> replayjit::internal::benchDecode(Device &device,
                                              const DecodeBenchOptions &options,
                                              Progress &progress) {
  return Bench(device, options, progress).run();
}
