//===- HostOverheadAlone.cpp - The runtime's own work ---------------------===//

#include "tools/TimePerCall.h"

#include "kernels/Decode/DecodeArgs.h"

#include <fmt/format.h>
#include <pthread.h>

#include <iterator>

using namespace replayjit::internal;

namespace {

class IdleKernel final : public LoadedKernel {
  ResourceUsage resources() const override { return {}; }
};

/// A GPU whose driver takes no time.
class IdleDevice final : public Device {
public:
  std::string description() const override { return "idle"; }
  int multiprocessors() const override { return 132; }
  Target target() const override { return Target(); }
  bool isEmulation() const override { return false; }
  Result<uint64_t> allocate(size_t, std::string) override { return 0; }
  Status free(uint64_t) override { return Status::ok(); }
  Status copyToDevice(uint64_t, const void *, size_t) override {
    return Status::ok();
  }
  Status copyFromDevice(void *, uint64_t, size_t) override {
    return Status::ok();
  }
  Result<std::unique_ptr<LoadedKernel>> load(const CompiledKernel &) override {
    return std::unique_ptr<LoadedKernel>(new IdleKernel);
  }
  Status launch(LoadedKernel &, Grid, const void *, size_t) override {
    return Status::ok();
  }
  Status synchronize() override { return Status::ok(); }

protected:
  Status beginCapture() override { return Status::ok(); }
  Result<Times> endCaptureAndTime(int) override { return Times{0}; }
};

constexpr int rows = 256;
constexpr int manyCalls = 100'000;

} // namespace

/// The n-th of many specs.
static DecodeSpec specOf(int n) {
  DecodeSpec spec;
  spec.ringDepth = 2 + n % 32;
  spec.numKeyHeads = spec.numValueHeads = 1 + n / 32;
  return spec;
}

/// A kernel of the usual size.
static Result<CompiledKernel> makeUp(const CompileRequest &request) {
  CompiledKernel kernel;
  kernel.name = kernelName(request.spec, request.tuning);
  kernel.target = request.target;
  kernel.signature = {{{"state", KernelParam::Kind::Pointer, 0}},
                      sizeof(DecodeArgs)};
  kernel.ptx.assign(60'000, ' ');
  kernel.cubin.assign(40'000, 'x');
  kernel.assembler = "none";
  return kernel;
}

static DecodeArgs legalArgs(const DecodeSpec &spec) {
  DecodeArgs args;
  args.batch = rows;
  args.slots = 1024;
  args.stateIndices = args.writePos = args.state = args.q = args.a = args.b =
      args.aLog = args.dtBias = args.out = args.dRing = args.kRing =
          args.gRing = args.forceFlush = 4096;
  const int64_t H = spec.numKeyHeads, HV = spec.numValueHeads,
                K = spec.headDimK, V = spec.headDimV, L = spec.ringDepth;
  args.qStride = 2 * H * K + HV * V;
  args.outStride = HV * V;
  args.statePitch = HV * V * K;
  args.dPitch = HV * L * V;
  args.kPitch = H * L * K;
  args.gPitch = HV * L;
  return args;
}

/// Runs `hits` on this thread and another one at once.
static Status byTwo(const std::function<Status(int)> &hits, int calls) {
  struct Other {
    const std::function<Status(int)> &hits;
    int calls;
    Status status;
  } other{hits, calls, Status::ok()};
  auto body = [](void *at) -> void * {
    auto &other = *static_cast<Other *>(at);
    other.status = other.hits(other.calls);
    return nullptr;
  };
  pthread_t thread;
  if (pthread_create(&thread, nullptr, body, &other) != 0)
    return Status::error(StatusCode::Unsupported,
                         "a second thread cannot be started");
  Status mine = hits(calls);
  pthread_join(thread, nullptr);
  return mine ? other.status : mine;
}

/// Adds the memory hits of a Jit that holds `kernels` kernels.
static Status timeMemoryHits(Device &device, int kernels, int repeats,
                             std::vector<Overhead> &overheads) {
  JitOptions options;
  options.compile = makeUp;
  Result<std::unique_ptr<Jit>> jit = Jit::create(device, options);
  if (!jit)
    return jit.status();
  std::vector<DecodeSpec> specs;
  for (int i = 0; i < kernels; ++i) {
    specs.push_back(specOf(i));
    if (auto kernel = (*jit)->prepare(specs[i], rows); !kernel)
      return kernel.status();
  }
  auto hits = [&](int calls) -> Status {
    for (int i = 0; i < calls; ++i)
      if (auto kernel = (*jit)->prepare(specs[i % kernels], rows); !kernel)
        return kernel.status();
    return Status::ok();
  };
  Result<std::vector<Spread>> spreads =
      timeInTurns({{manyCalls, hits},
                   {manyCalls, [&](int calls) { return byTwo(hits, calls); }}},
                  repeats);
  if (!spreads)
    return spreads.status();
  const char *threads[] = {"", ", 2 threads"};
  for (size_t i = 0; i < std::size(threads); ++i) {
    Overhead overhead;
    overhead.name = fmt::format("prepare, memory hit, {} kernel{}{}", kernels,
                                kernels == 1 ? "" : "s", threads[i]);
    overhead.time = (*spreads)[i];
    overhead.mostNanoseconds = 200;
    overheads.push_back(std::move(overhead));
  }
  return Status::ok();
}

static Status timeLaunches(Device &device, int repeats,
                           std::vector<Overhead> &overheads) {
  JitOptions options;
  options.compile = makeUp;
  Result<std::unique_ptr<Jit>> jit = Jit::create(device, options);
  if (!jit)
    return jit.status();
  const DecodeSpec spec = specOf(14);
  Result<KernelHandle> kernel = (*jit)->prepare(spec, rows);
  if (!kernel)
    return kernel.status();
  const DecodeArgs args = legalArgs(spec);
  auto launches = [&](ArgsCheck check) {
    return [&, check](int calls) -> Status {
      for (int i = 0; i < calls; ++i)
        if (Status status = kernel->launch(args, check); !status)
          return status;
      return Status::ok();
    };
  };
  Result<std::vector<Spread>> spreads =
      timeInTurns({{manyCalls, launches(ArgsCheck::Full)},
                   {manyCalls, launches(ArgsCheck::None)}},
                  repeats);
  if (!spreads)
    return spreads.status();
  for (size_t i = 0; i < 2; ++i) {
    Overhead overhead;
    overhead.name = fmt::format("launch, {}, up to the driver",
                                i == 0 ? "checked" : "unchecked");
    overhead.time = (*spreads)[i];
    overheads.push_back(std::move(overhead));
  }
  return Status::ok();
}

Result<std::vector<Overhead>>
replayjit::internal::overheadAlone(const OverheadOptions &options) {
  IdleDevice device;
  std::vector<Overhead> overheads;
  for (int kernels : {1, 200})
    if (Status status =
            timeMemoryHits(device, kernels, options.repeats, overheads);
        !status)
      return status;
  Result<Spread> disk = timeDiskHit(device, makeUp, specOf(0), options.repeats);
  if (!disk)
    return disk.status();
  Overhead overhead;
  overhead.name = "prepare, disk hit, up to the driver";
  overhead.time = *disk;
  overheads.push_back(std::move(overhead));
  if (Status status = timeLaunches(device, options.repeats, overheads); !status)
    return status;
  return overheads;
}
