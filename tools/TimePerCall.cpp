//===- TimePerCall.cpp - Time per call, and how it spreads ----------------===//

#include "tools/TimePerCall.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>

using namespace replayjit::internal;

std::optional<bool> Overhead::isMet() const {
  if (mostNanoseconds)
    return time.median <= *mostNanoseconds;
  if (mostTimesBare && bareNanoseconds)
    return time.median <= *mostTimesBare * *bareNanoseconds;
  return std::nullopt;
}

static Result<double> nanosecondsPerCall(const TimedBody &body) {
  if (body.before)
    if (Status status = body.before(); !status)
      return status;
  const auto start = std::chrono::steady_clock::now();
  Status status = body.run(body.calls);
  const std::chrono::duration<double, std::nano> taken =
      std::chrono::steady_clock::now() - start;
  if (status && body.after)
    status = body.after();
  if (!status)
    return status;
  return taken.count() / body.calls;
}

Result<std::vector<Spread>>
replayjit::internal::timeInTurns(const std::vector<TimedBody> &bodies,
                                 int repeats) {
  std::vector<std::vector<double>> times(bodies.size());
  for (int turn = -1; turn < repeats; ++turn)
    for (size_t i = 0; i < bodies.size(); ++i) {
      Result<double> time = nanosecondsPerCall(bodies[i]);
      if (!time)
        return time.status();
      if (turn >= 0)
        times[i].push_back(*time);
    }
  std::vector<Spread> spreads;
  for (size_t i = 0; i < bodies.size(); ++i) {
    std::sort(times[i].begin(), times[i].end());
    auto at = [&](double share) {
      return times[i][size_t(share * (repeats - 1) + 0.5)];
    };
    spreads.push_back(
        {repeats, bodies[i].calls, at(0), at(0.25), at(0.5), at(0.75)});
  }
  return spreads;
}

namespace {

/// A folder of its own among the temporary ones, removed with the scope.
class ScratchFolder {
public:
  ScratchFolder() {
    std::error_code problem;
    path = std::filesystem::temp_directory_path(problem) / "replayjit-XXXXXX";
    if (!mkdtemp(path.data()))
      status = Status::error(StatusCode::StorageFailed,
                             fmt::format("cannot make a folder like {}: {}",
                                         path, std::strerror(errno)));
  }
  ScratchFolder(const ScratchFolder &) = delete;
  ~ScratchFolder() {
    std::error_code problem; // What stays is small.
    if (status)
      std::filesystem::remove_all(path, problem);
  }
  std::string path;
  Status status;
};

} // namespace

Result<Spread> replayjit::internal::timeDiskHit(Device &device,
                                                const CompileFn &compile,
                                                const DecodeSpec &spec,
                                                int repeats) {
  ScratchFolder root;
  if (!root.status)
    return root.status;
  JitOptions options;
  options.cache.roots = {root.path};
  options.compile = compile;
  std::unique_ptr<Jit> jit;
  Result<KernelHandle> kernel = Status();
  auto renew = [&]() -> Status {
    kernel = Status();
    Result<std::unique_ptr<Jit>> made = Jit::create(device, options);
    if (!made)
      return made.status();
    jit = std::move(*made);
    return Status::ok();
  };
  auto prepare = [&](int) -> Status {
    kernel = jit->prepare(spec, /*rows=*/1);
    return kernel.status();
  };
  if (Status status = renew(); !status)
    return status;
  if (Status status = prepare(1); !status) // which puts it on disk
    return status;
  auto isHit = [&]() -> Status {
    if (kernel->info().origin == KernelOrigin::Cached)
      return Status::ok();
    return Status::error(
        StatusCode::StorageFailed,
        fmt::format("{}: the kernel just put there was not found", root.path));
  };
  Result<std::vector<Spread>> spreads =
      timeInTurns({{1, prepare, renew, isHit}}, repeats);
  if (!spreads)
    return spreads.status();
  return spreads->front();
}
