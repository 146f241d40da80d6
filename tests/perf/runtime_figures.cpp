//===- runtime_figures.cpp - What the host side of a step costs -----------===//
//
// Times prepare and launch on this CPU, over a device that does nothing and a
// compiler that makes kernels up: the runtime's own work, with neither a driver
// nor LLVM. Prints a table.
//
//===----------------------------------------------------------------------===//

#include "runtime/Jit.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <thread>
#include <unistd.h>

using namespace replayjit;

namespace {

class IdleKernel final : public LoadedKernel {
  ResourceUsage resources() const override { return {}; }
};

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
  Status launch(LoadedKernel &, uint32_t, const void *, size_t) override {
    return Status::ok();
  }
  Status synchronize() override { return Status::ok(); }

protected:
  Status beginCapture() override { return Status::ok(); }
  Result<double> endCaptureAndTime(int) override { return 0.0; }
};

} // namespace

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

/// Nanoseconds per call, the median of 21 runs of `count` calls.
static double timed(int count, const std::function<void(int)> &run) {
  std::vector<double> times;
  for (int i = 0; i < 21; ++i) {
    const auto start = std::chrono::steady_clock::now();
    run(count);
    const std::chrono::duration<double, std::nano> taken =
        std::chrono::steady_clock::now() - start;
    times.push_back(taken.count() / count);
  }
  std::nth_element(times.begin(), times.begin() + 10, times.end());
  return times[10];
}

static void require(bool condition, const std::string &why) {
  if (condition)
    return;
  std::fprintf(stderr, "error: %s\n", why.c_str());
  std::exit(1);
}

static std::unique_ptr<Jit> makeJit(Device &device, JitOptions options) {
  auto jit = Jit::create(device, std::move(options));
  require(bool(jit), jit.status().message);
  return std::move(*jit);
}

static DecodeArgs legalArgs(const DecodeSpec &spec) {
  DecodeArgs args;
  args.batch = 256;
  args.slots = 1024;
  args.stateIndices = args.writePos = args.state = args.q = args.a = args.b =
      args.aLog = args.dtBias = args.out = args.dRing = args.kRing =
          args.gRing = args.forceFlush = 4096;
  const int64_t HV = spec.numValueHeads, L = spec.ringDepth;
  args.qStride = (2 * spec.numKeyHeads + HV) * 128;
  args.outStride = HV * 128;
  args.statePitch = HV * 128 * 128;
  args.dPitch = HV * L * 128;
  args.kPitch = spec.numKeyHeads * L * 128;
  args.gPitch = HV * L;
  return args;
}

static void timePrepare(Device &device, int kernels) {
  JitOptions options;
  options.compile = makeUp;
  auto jit = makeJit(device, options);
  std::vector<DecodeSpec> specs;
  for (int i = 0; i < kernels; ++i) {
    specs.push_back(specOf(i));
    require(bool(jit->prepare(specs[i], 256)), "prepare failed");
  }
  auto hits = [&](int count) {
    for (int i = 0; i < count; ++i)
      require(bool(jit->prepare(specs[i % kernels], 256)), "prepare failed");
  };
  std::printf("prepare, memory hit, %4d kernels       %8.0f ns\n", kernels,
              timed(100'000, hits));
  auto byTwo = [&](int count) {
    std::thread other(hits, count);
    hits(count);
    other.join();
  };
  std::printf("the same, two threads at a time         %8.0f ns\n",
              timed(100'000, byTwo));
}

static void timeDisk(Device &device) {
  char name[] = "/tmp/replayjit-figures-XXXXXX";
  require(mkdtemp(name), "cannot make a folder in /tmp");
  JitOptions options;
  options.cache.roots = {name};
  options.compile = makeUp;
  require(bool(makeJit(device, options)->prepare(specOf(0), 0)),
          "prepare failed");
  auto hit = [&](int count) {
    for (int i = 0; i < count; ++i) {
      auto kernel = makeJit(device, options)->prepare(specOf(0), 0);
      require(kernel && kernel->info().origin == KernelOrigin::Cached,
              "no disk hit");
    }
  };
  std::printf("a new Jit and a disk hit, before load   %8.0f ns\n",
              timed(20, hit));
  std::filesystem::remove_all(name);
}

static void timeLaunch(Device &device) {
  JitOptions options;
  options.compile = makeUp;
  auto kernel = makeJit(device, options)->prepare(specOf(14), 256);
  require(bool(kernel), kernel.status().message);
  const DecodeArgs args = legalArgs(specOf(14));
  for (auto [check, what] :
       {std::pair{ArgsCheck::Full, "checked"}, {ArgsCheck::None, "unchecked"}})
    std::printf("launch up to the device, %-9s      %8.0f ns\n", what,
                timed(100'000, [&, check = check](int count) {
                  for (int i = 0; i < count; ++i) {
                    Status status = kernel->launch(args, check);
                    require(bool(status), status.message);
                  }
                }));
}

int main() {
  IdleDevice device;
  timePrepare(device, 1);
  timePrepare(device, 200);
  timeDisk(device);
  timeLaunch(device);
  return 0;
}
