//===- Tune.cpp - The fastest tunings on this GPU -------------------------===//

#include "tools/Tune.h"

#include "kernels/Families.h"
#include "tools/CompileAhead.h"
#include "tools/KernelTime.h"
#include "tools/MakeKernel.h"
#include "tools/TuneSearch.h"

#include <fmt/format.h>

#include <chrono>
#include <map>

using namespace replayjit::internal;

namespace {

using Clock = std::chrono::steady_clock;

class Tuner {
public:
  Tuner(Device &device, const TuneOptions &options, TuningTable &table,
        Progress &progress)
      : device(device), options(options), table(table), progress(progress),
        maker(device) {}

  Status run(const std::function<Status()> &save);

private:
  /// The fastest of a spec at one batch goes into `entry`.
  Status tuneBatch(const DecodeSpec &spec, int batch, TunedSpec &entry);
  /// Compiles what is new of a round and times all of it.
  Status measure(TuneSearch &search, const DecodeSpec &spec,
                 const std::vector<DecodeTuning> &round, LaunchTimer &timer,
                 int batch, Clock::time_point end);
  /// The same tuning's time, or nothing if no launch is to be had.
  std::optional<double> timeOf(MadeKernel &kernel, LaunchTimer &timer,
                               int repeats);
  /// Whether the kernel is right, and exact enough.
  bool isRight(const DecodeSpec &spec, const DecodeTuning &tuning);
  DecodeTuning usual(const DecodeSpec &spec, int batch) const {
    return chooseTuning(spec, batch, device.target(), device.multiprocessors());
  }

  Device &device;
  const TuneOptions &options;
  TuningTable &table;
  Progress &progress;
  KernelMaker maker;
  double done = 0;

  // Of the spec at hand, by kernel names.
  std::map<std::string, std::optional<CompiledKernel>> compiled;
  std::map<std::string, bool> right;
};

} // namespace

Status Tuner::run(const std::function<Status()> &save) {
  for (const DecodeSpec &spec : options.specs) {
    compiled.clear();
    right.clear();
    TunedSpec tuned = {spec, {}};
    if (const TunedSpec *found = table.find(spec))
      tuned.rows = found->rows;
    for (int batch : options.batches) {
      const bool isThere =
          std::any_of(tuned.rows.begin(), tuned.rows.end(),
                      [&](const TunedRows &of) { return of.rows == batch; });
      if (!isThere || options.again) {
        if (Status status = tuneBatch(spec, batch, tuned); !status)
          return std::move(status).within(fmt::format("batch {}", batch));
        if (!tuned.rows.empty())
          table.add(spec).rows = tuned.rows;
        if (Status status = save(); !status)
          return status;
      }
      progress.update(++done, "");
    }
  }
  return Status::ok();
}

Status Tuner::tuneBatch(const DecodeSpec &spec, int batch, TunedSpec &entry) {
  auto timer = LaunchTimer::create(device, spec, batch);
  if (!timer)
    return timer.status();
  std::vector<DecodeTuning> starts = {usual(spec, batch)};
  for (int other : options.batches)
    starts.push_back(usual(spec, other));
  for (const TunedRows &of : entry.rows)
    starts.push_back(of.tuning);
  auto isLegal = [&](const DecodeTuning &tuning) {
    return validate(spec, tuning, device.target()).isOk();
  };
  TuneSearch search(isLegal, starts);
  const auto end =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(
                         std::chrono::duration<double>(options.seconds));
  for (;;) {
    const std::vector<DecodeTuning> round = search.nextRound();
    if (round.empty() || Clock::now() > end)
      break;
    if (Status status = measure(search, spec, round, **timer, batch, end);
        !status)
      return status;
    while (search.best() && !isRight(spec, *search.best()))
      search.dropBest();
  }
  const std::string what =
      fmt::format("{}, L={}, {} ring, B={}", wordOf(spec.family),
                  spec.ringDepth, wordOf(spec.ringType), batch);
  const std::optional<DecodeTuning> best = search.best();
  if (!best) {
    progress.print(what + ": no kernel is exact enough\n");
    return Status::ok();
  }
  // Both again, one after the other and for longer.
  double us[2] = {};
  for (int i = 0; i < 2; ++i) {
    const DecodeTuning tuning = i == 0 ? *best : usual(spec, batch);
    std::optional<CompiledKernel> &kernel = compiled[kernelName(spec, tuning)];
    if (!kernel)
      continue;
    Result<MadeKernel> made = maker.load(*kernel);
    if (!made)
      return made.status();
    us[i] = timeOf(*made, **timer, 4 * options.repeats).value_or(0);
  }
  const bool isBetter = us[1] == 0 || us[0] < us[1];
  entry.add({batch, us[isBetter ? 0 : 1], us[1],
             isBetter ? *best : usual(spec, batch)});
  progress.print(fmt::format(
      "{}: {:.2f} us, usual {:.2f}{}\n", what, us[isBetter ? 0 : 1], us[1],
      isBetter
          ? ", " +
                kernelName(spec, *best)
                    .substr(kernelName(spec, DecodeTuning()).rfind("_bv") + 1)
          : ""));
  return Status::ok();
}

Status Tuner::measure(TuneSearch &search, const DecodeSpec &spec,
                      const std::vector<DecodeTuning> &round,
                      LaunchTimer &timer, int batch, Clock::time_point end) {
  std::vector<CompileAhead::Job> jobs;
  for (const DecodeTuning &tuning : round)
    if (!compiled.contains(kernelName(spec, tuning)))
      jobs.push_back([this, spec, tuning](Compiler &compiler) {
        return maker.compile(compiler, spec, tuning);
      });
  CompileAhead ahead(std::move(jobs), options.threads);
  int number = 0;
  for (const DecodeTuning &tuning : round) {
    if (Clock::now() > end && search.best())
      return Status::ok();
    progress.update(done,
                    fmt::format("{}, L={}, B={}: {} of {}, best {:.2f} us",
                                wordOf(spec.family), spec.ringDepth, batch,
                                ++number, round.size(), search.bestTime()));
    const std::string name = kernelName(spec, tuning);
    if (!compiled.contains(name)) {
      Result<CompiledKernel> kernel = ahead.take();
      compiled[name] =
          kernel ? std::optional(std::move(*kernel)) : std::nullopt;
    }
    if (!compiled[name])
      continue; // too much shared memory, for one
    Result<MadeKernel> kernel = maker.load(*compiled[name]);
    if (!kernel)
      continue;
    if (std::optional<double> us = timeOf(*kernel, timer, options.repeats))
      search.report(tuning, *us);
  }
  return Status::ok();
}

std::optional<double> Tuner::timeOf(MadeKernel &kernel, LaunchTimer &timer,
                                    int repeats) {
  LaunchManner manner;
  manner.repeats = repeats;
  Result<LaunchTime> time = timer.time(*kernel.loaded, kernel.launch, manner);
  if (!time)
    return std::nullopt;
  return medianOf(time->microseconds);
}

bool Tuner::isRight(const DecodeSpec &spec, const DecodeTuning &tuning) {
  const std::string name = kernelName(spec, tuning);
  const auto [found, isNew] = right.try_emplace(name, false);
  if (!isNew)
    return found->second;
  Result<MadeKernel> kernel = maker.load(*compiled[name]);
  if (!kernel)
    return false;
  Result<CheckReport> report = maker.check(*kernel, spec, tuning);
  if (!report)
    progress.print(report.status().message + "\n");
  return found->second = report && (options.maxError == 0 ||
                                    report->outError <= options.maxError);
}

Status replayjit::internal::tune(Device &device, const TuneOptions &options,
                                 TuningTable &table,
                                 const std::function<Status()> &save,
                                 Progress &progress) {
  return Tuner(device, options, table, progress).run(save);
}
