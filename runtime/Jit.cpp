//===- Jit.cpp - From a spec to a kernel that launches --------------------===//

#include "runtime/Jit.h"

#include "base/Exceptions.h"
#include "runtime/DecodeLaunch.h"
#include "runtime/KernelTable.h"
#include "runtime/cache/TuningTable.h"

#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <list>
#include <mutex>
#include <thread>

namespace replayjit::internal {

Result<JitOptions> JitOptions::fromEnvironment() {
  Result<DiskCacheOptions> cache = DiskCacheOptions::fromEnvironment();
  if (!cache)
    return cache.status();
  Result<CompileOnceOptions> once = CompileOnceOptions::fromEnvironment();
  if (!once)
    return once.status();
  JitOptions options;
  options.cache = std::move(*cache);
  options.once = *once;
  options.tuningFile = tuningFileFromEnvironment();
  return options;
}

class Jit::State {
public:
  State(std::shared_ptr<Device> shared, DiskCache cache,
        std::shared_ptr<const TuningTable> tunings, JitOptions options)
      : device(std::move(shared)), target(device->target()),
        multiprocessors(device->multiprocessors()),
        isEmulation(device->isEmulation()), workers(options.workers),
        tunings(std::move(tunings)),
        source(std::move(cache), options.once,
               assembled(std::move(options.compile))) {}

  Result<KernelHandle> prepare(const KernelTableKey &key, void *stream);

  const std::shared_ptr<Device> device;
  const Target target;
  const int multiprocessors;
  const bool isEmulation;
  const int workers;
  const std::shared_ptr<const TuningTable> tunings; ///< May be null.
  KernelSource source;
  KernelTable kernels;

private:
  /// One kernel on its way; later callers wait for it.
  struct Flight {
    KernelTableKey key;
    bool isDone = false;
    Result<KernelHandle> outcome = Status();
  };
  Result<KernelHandle> make(const KernelTableKey &key);
  CompileFn assembled(CompileFn compile);

  std::mutex mutex; ///< Of the flights, and of adding to `kernels`.
  std::condition_variable landed;
  std::list<std::shared_ptr<Flight>> flights;
  std::mutex loading;
};

Result<KernelHandle> Jit::State::prepare(const KernelTableKey &key,
                                         void *stream) {
  if (const KernelHandle *kernel = kernels.find(key))
    return *kernel;
  if (Status status = device->checkNoCapture(
          stream,
          fmt::format("prepare '{}'", kernelName(key.spec, key.tuning)));
      !status)
    return status;
  auto flight = std::make_shared<Flight>();
  flight->key = key;
  {
    std::unique_lock lock(mutex);
    if (const KernelHandle *kernel = kernels.find(key))
      return *kernel;
    auto found = std::find_if(flights.begin(), flights.end(),
                              [&](const auto &f) { return f->key == key; });
    if (found != flights.end()) {
      flight = *found;
      landed.wait(lock, [&] { return flight->isDone; });
      return flight->outcome;
    }
    flights.push_back(flight);
  }
  Result<KernelHandle> outcome =
      withoutThrowing([&] { return make(key); }); // Others wait for it.
  {
    std::lock_guard lock(mutex);
    if (outcome)
      outcome = withoutThrowing([&]() -> Result<KernelHandle> {
        kernels.add(key, *outcome);
        return std::move(outcome);
      });
    flight->outcome = std::move(outcome);
    flight->isDone = true;
    flights.remove(flight);
  }
  landed.notify_all();
  return flight->outcome;
}

Result<KernelHandle> Jit::State::make(const KernelTableKey &key) {
  Result<CompileOnce::Answer> answer =
      source.find({key.spec, key.tuning, target, isEmulation});
  if (!answer)
    return answer.status();
  const CompiledKernel &compiled = answer->kernel;
  const size_t argsBytes = paramBytesOf(key.spec);
  if (compiled.signature.bytes != argsBytes)
    return Status::invalid(fmt::format(
        "kernel '{}' takes {} bytes of parameters; this version launches with "
        "{}",
        compiled.name, compiled.signature.bytes, argsBytes));

  auto prepared = std::make_shared<KernelHandle::Prepared>();
  prepared->device = device;
  {
    std::lock_guard lock(loading);
    Result<std::unique_ptr<LoadedKernel>> loaded = device->load(compiled);
    if (!loaded) {
      Status status = loaded.status();
      if (status.stage.empty())
        status.stage = "load";
      return status;
    }
    prepared->loaded = std::move(*loaded);
  }
  ResourceUsage resources = compiled.resources;
  const ResourceUsage seen = prepared->loaded->resources();
  for (auto field : {&ResourceUsage::registers, &ResourceUsage::spillStoreBytes,
                     &ResourceUsage::spillLoadBytes, &ResourceUsage::stackBytes,
                     &ResourceUsage::staticSharedBytes})
    if (seen.*field >= 0)
      resources.*field = seen.*field;
  prepared->info = {compiled.name,
                    key.spec,
                    key.tuning,
                    target,
                    compiled.launch,
                    resources,
                    compiled.assembler,
                    answer->isCompiled ? KernelOrigin::Compiled
                                       : KernelOrigin::Cached};
  return KernelHandle(std::move(prepared));
}

/// `compile`, and where it stops at PTX the driver of the device.
CompileFn Jit::State::assembled(CompileFn compile) {
  if (!compile)
    return nullptr;
  return [this, compile = std::move(compile)](
             const CompileRequest &request) -> Result<CompiledKernel> {
    Result<CompiledKernel> kernel = compile(request);
    if (kernel && kernel->cubin.empty() && !kernel->ptx.empty()) {
      std::lock_guard lock(loading);
      if (Status status = device->assemble(*kernel); !status)
        return status;
    }
    return kernel;
  };
}

Jit::Jit(std::unique_ptr<State> state) : state(std::move(state)) {}
Jit::~Jit() = default;

Result<std::unique_ptr<Jit>> Jit::create(Device &device, JitOptions options) {
  // Shares nothing: the caller keeps it.
  return create(std::shared_ptr<Device>(std::shared_ptr<Device>(), &device),
                std::move(options));
}

Result<std::unique_ptr<Jit>> Jit::create(std::shared_ptr<Device> device,
                                         JitOptions options) {
  if (options.once.mustHit && options.once.alwaysCompile)
    return Status::invalid(
        "mustHit: 1 is not allowed together with alwaysCompile = 1; options or "
        "variables (REPLAYJIT_MUST_HIT, REPLAYJIT_ALWAYS_COMPILE) set both");
  if (options.workers < 0)
    return Status::invalid(fmt::format(
        "workers: {} is not allowed; it must be 0 or more", options.workers));
  if (device->isEmulation()) {
    if (options.once.mustHit)
      return Status::invalid(
          "mustHit: not allowed under emulation, whose kernels are compiled in "
          "memory and never cached; unset REPLAYJIT_MUST_HIT");
    options.cache = {}; // No folder, and no word about that.
  }
  Result<DiskCache> cache = DiskCache::open(options.cache);
  if (!cache)
    return cache.status();
  auto tunings = openTuningTable(options.tuningFile, options.cache.roots,
                                 options.cache.diagnose);
  if (!tunings)
    return tunings.status();
  return std::unique_ptr<Jit>(new Jit(std::make_unique<State>(
      std::move(device), std::move(*cache), std::move(*tunings),
      std::move(options))));
}

DecodeTuning Jit::choose(const DecodeSpec &spec, int rows) const {
  return chooseTuning(spec, rows, state->target, state->multiprocessors,
                      state->tunings.get());
}

Result<KernelHandle> Jit::prepare(const DecodeSpec &spec, int rows,
                                  void *stream) {
  if (rows < 0)
    return Status::invalid(
        fmt::format("rows: {} is not allowed; it must be 0 or more", rows));
  return state->prepare({spec, choose(spec, rows)}, stream);
}

Result<KernelHandle> Jit::prepare(const DecodeSpec &spec,
                                  const DecodeTuning &tuning, void *stream) {
  return state->prepare({spec, tuning}, stream);
}

namespace {

/// What the threads of one prepareAll share.
struct Batch {
  Jit &jit;
  const std::vector<KernelRequest> &requests;
  const Jit::Progress &progress;
  void *const stream;
  std::vector<Result<KernelHandle>> outcomes;
  std::atomic<size_t> next = 0;
  std::mutex reporting{};
  size_t done = 0;

  void work() noexcept {
    for (size_t i; (i = next++) < requests.size();) {
      outcomes[i] = withoutThrowing([&] {
        return jit.prepare(requests[i].spec, requests[i].rows, stream);
      });
      Status heard = withoutThrowing([&] { return report(i); });
      if (!heard)
        outcomes[i] = std::move(heard);
    }
  }
  Status report(size_t i) {
    std::lock_guard lock(reporting);
    ++done;
    if (progress)
      progress(done, requests.size(), outcomes[i]);
    return Status::ok();
  }
};

} // namespace

std::vector<Result<KernelHandle>>
Jit::prepareAll(const std::vector<KernelRequest> &requests,
                const Progress &progress, void *stream) {
  Batch batch{*this, requests, progress, stream,
              std::vector<Result<KernelHandle>>(
                  requests.size(), Result<KernelHandle>(Status()))};
  size_t workers = state->workers;
  if (workers == 0)
    workers = std::clamp(std::thread::hardware_concurrency(), 1u, 16u);
  // Not std::thread: where no thread can be started it throws, and here fewer
  // do the work. The calling thread is one of them.
  std::vector<pthread_t> threads;
  threads.reserve(std::min(workers, requests.size()));
  for (size_t i = 1; i < std::min(workers, requests.size()); ++i) {
    pthread_t thread;
    auto body = [](void *shared) -> void * {
      static_cast<Batch *>(shared)->work();
      return nullptr;
    };
    if (pthread_create(&thread, nullptr, body, &batch) != 0)
      break;
    threads.push_back(thread);
  }
  batch.work();
  for (pthread_t thread : threads)
    pthread_join(thread, nullptr);
  return std::move(batch.outcomes);
}

Device &Jit::device() const { return *state->device; }

CacheCounters Jit::counters() const { return state->source.counters(); }

} // namespace replayjit::internal
