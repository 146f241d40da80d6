//===- HostOverheadBesideDriver.cpp - The runtime beside the bare driver --===//

#include "tools/TimePerCall.h"

#include "kernels/Decode/DecodeArgs.h"
#include "runtime/cuda/CudaError.h"

#include <algorithm>
#include <iterator>

using namespace replayjit::internal;
using namespace replayjit::internal::cuda;

namespace {

/// A kernel as a caller of the bare driver has it. The device's context is
/// current only between `enter` and `leave`.
class BareKernel {
public:
  explicit BareKernel(const DriverApi &api) : api(api) {}
  BareKernel(const BareKernel &) = delete;
  ~BareKernel();

  Status load(int ordinal, const CompiledKernel &kernel);
  Status enter() { return REPLAYJIT_CU(api, cuCtxPushCurrent, context); }
  Status leave() {
    CUcontext popped = nullptr;
    return REPLAYJIT_CU(api, cuCtxPopCurrent, &popped);
  }
  /// Waits for all launches; the context is current.
  Status wait() { return REPLAYJIT_CU(api, cuStreamSynchronize, stream); }
  /// The same call again and again.
  Status launch(const DecodeArgs &args, int calls);
  void *where() const { return stream; }

private:
  const DriverApi &api;
  CUdevice device = 0;
  CUcontext context = nullptr;
  CUstream stream = nullptr;
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  LaunchConfig config;
  size_t argsBytes = 0;
};

/// One padding row: its blocks only write zeros to `out`, so the GPU is done
/// sooner than the host has launched the next.
class PaddingRow {
public:
  PaddingRow(Device &device, const DecodeSpec &spec)
      : device(device), spec(spec) {}
  PaddingRow(const PaddingRow &) = delete;
  ~PaddingRow() {
    for (uint64_t address : {args.stateIndices, args.state})
      (void)device.free(address); // nothing to be done about it
  }
  Status allocate();
  DecodeArgs args;

private:
  Device &device;
  const DecodeSpec &spec;
};

} // namespace

BareKernel::~BareKernel() {
  if (context && enter()) {
    if (module)
      (void)api.cuModuleUnload(module);
    if (stream)
      (void)api.cuStreamDestroy(stream);
    (void)leave();
  }
  if (context)
    (void)api.cuDevicePrimaryCtxRelease(device);
}

Status BareKernel::load(int ordinal, const CompiledKernel &kernel) {
  REPLAYJIT_CU_RETURN(api, cuDeviceGet, &device, ordinal);
  REPLAYJIT_CU_RETURN(api, cuDevicePrimaryCtxRetain, &context, device);
  if (Status status = enter(); !status)
    return status;
  auto loadHere = [&]() -> Status {
    REPLAYJIT_CU_RETURN(api, cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
    REPLAYJIT_CU_RETURN(api, cuModuleLoadDataEx, &module, kernel.cubin.data(),
                        0, nullptr, nullptr);
    return REPLAYJIT_CU(api, cuModuleGetFunction, &function, module,
                        kernel.name.c_str());
  };
  Status loaded = loadHere();
  Status left = leave();
  config = kernel.launch;
  // The driver wants what ends with the last parameter.
  const KernelParam &last = kernel.signature.params.back();
  const bool isWide = last.kind == KernelParam::Kind::Pointer ||
                      last.kind == KernelParam::Kind::I64;
  argsBytes = last.offset + (isWide ? 8 : 4);
  return loaded ? left : loaded;
}

Status BareKernel::launch(const DecodeArgs &args, int calls) {
  CUlaunchConfig launch = {};
  launch.gridDimX = args.batch * config.blocksPerRow;
  launch.gridDimY = launch.gridDimZ = 1;
  launch.blockDimX = config.threads;
  launch.blockDimY = launch.blockDimZ = 1;
  launch.sharedMemBytes = config.sharedBytes;
  launch.hStream = stream;
  void *extra[] = {launchParamBufferPointer, const_cast<DecodeArgs *>(&args),
                   launchParamBufferSize, &argsBytes, launchParamEnd};
  CUresult result = CUDA_SUCCESS;
  for (int i = 0; i < calls && result == CUDA_SUCCESS; ++i)
    result = api.cuLaunchKernelEx(&launch, function, nullptr, extra);
  return toStatus(api, result, "cuLaunchKernelEx");
}

Status PaddingRow::allocate() {
  const int64_t H = spec.numKeyHeads, HV = spec.numValueHeads,
                K = spec.headDimK, V = spec.headDimV, L = spec.ringDepth;
  Result<uint64_t> index = device.allocate(16, "state_indices");
  if (!index)
    return index.status();
  args.stateIndices = *index;
  const int64_t none = -1; // of either index type
  if (Status status = device.copyToDevice(*index, &none, sizeof(none)); !status)
    return status;
  // All else is one block of memory, larger than each of the tensors.
  const int64_t bytes = 4 * HV * V * K + 4 * (HV + H) * L * std::max(K, V) +
                        8 * (2 * H * K + HV * V);
  Result<uint64_t> memory = device.allocate(bytes, "tensors");
  if (!memory)
    return memory.status();
  args.state = args.q = args.a = args.b = args.aLog = args.dtBias = args.out =
      args.dRing = args.kRing = args.gRing = args.writePos = args.forceFlush =
          *memory;
  args.batch = args.slots = 1;
  args.qStride = 2 * H * K + HV * V;
  args.outStride = HV * V;
  args.statePitch = HV * V * K;
  args.dPitch = HV * L * V;
  args.kPitch = H * L * K;
  args.gPitch = HV * L;
  return Status::ok();
}

static Result<std::vector<Overhead>> launchOverheads(BareKernel &bare,
                                                     const KernelHandle &kernel,
                                                     const DecodeArgs &args,
                                                     int repeats) {
  // More would fill the driver's queue; then the GPU would be timed.
  constexpr int calls = 100;
  auto enter = [&] { return bare.enter(); };
  auto waitInside = [&]() -> Status {
    Status waited = bare.wait();
    Status left = bare.leave();
    return waited ? left : waited;
  };
  auto wait = [&]() -> Status {
    Status entered = bare.enter();
    return entered ? waitInside() : entered;
  };
  auto ours = [&](ArgsCheck check) {
    return [&, check](int count) -> Status {
      for (int i = 0; i < count; ++i)
        if (Status status = kernel.launchOn(bare.where(), args, check); !status)
          return status;
      return Status::ok();
    };
  };
  Result<std::vector<Spread>> spreads =
      timeInTurns({{calls, [&](int count) { return bare.launch(args, count); },
                    enter, waitInside},
                   {calls, ours(ArgsCheck::Full), enter, waitInside},
                   {calls, ours(ArgsCheck::None), enter, waitInside},
                   {calls, ours(ArgsCheck::Full), nullptr, wait},
                   {calls, ours(ArgsCheck::None), nullptr, wait}},
                  repeats);
  if (!spreads)
    return spreads.status();
  const char *names[] = {"bare cuLaunchKernelEx", "launch, checked",
                         "launch, unchecked", "launch, checked, no context",
                         "launch, unchecked, no context"};
  std::vector<Overhead> overheads;
  for (size_t i = 0; i < std::size(names); ++i) {
    Overhead overhead;
    overhead.name = names[i];
    overhead.time = (*spreads)[i];
    overhead.isOnGpu = true;
    if (i > 0) {
      overhead.bareNanoseconds = spreads->front().median;
      overhead.mostTimesBare = 1.15;
    }
    overheads.push_back(std::move(overhead));
  }
  return overheads;
}

Result<std::vector<Overhead>>
replayjit::internal::overheadBesideDriver(Device &device,
                                          const OverheadOptions &options) {
  const Result<DriverApi> &api = DriverApi::get();
  if (!api)
    return api.status();
  const DecodeSpec spec; // Qwen3-Next's
  const Target target = device.target();

  Result<Spread> disk =
      timeDiskHit(device, options.compile, spec, options.repeats);
  if (!disk)
    return disk.status();
  Overhead overhead;
  overhead.name = "prepare, disk hit to a loaded function";
  overhead.time = *disk;
  overhead.isOnGpu = true;
  overhead.mostNanoseconds = 3e6;

  CompileRequest request{
      spec, chooseTuning(spec, /*rows=*/1, target, device.multiprocessors()),
      target};
  Result<CompiledKernel> compiled = options.compile(request);
  if (!compiled)
    return compiled.status();
  BareKernel bare(*api);
  if (Status status = bare.load(options.ordinal, *compiled); !status)
    return status;
  JitOptions jitOptions;
  jitOptions.compile = [&](const CompileRequest &) { return compiled; };
  Result<std::unique_ptr<Jit>> jit = Jit::create(device, jitOptions);
  if (!jit)
    return jit.status();
  Result<KernelHandle> kernel = (*jit)->prepare(spec, request.tuning);
  if (!kernel)
    return kernel.status();
  PaddingRow row(device, spec);
  if (Status status = row.allocate(); !status)
    return status;
  Result<std::vector<Overhead>> overheads =
      launchOverheads(bare, *kernel, row.args, options.repeats);
  if (overheads)
    overheads->insert(overheads->begin(), std::move(overhead));
  return overheads;
}
