//===- ReplayRun.cpp - Kernels on a device, against fp64 ------------------===//

#include "tools/KernelTime.h"
#include "tools/Progress.h"
#include "tools/RunOptions.h"
#include "tools/Tools.h"

#include "kernels/Families.h"
#include "kernels/FamilyBuilder.h"

#include <fmt/format.h>

#include <algorithm>

using namespace replayjit::internal;

namespace {

/// One line of the table, and what is to be said below it.
struct Row {
  bool passed() const { return failed.empty(); }

  std::string failed; ///< Which check, or the code of a Status.
  std::string line, note;
  bool deviceLost = false; ///< Nothing more can run on this device.
};

} // namespace

static Result<host::LaneOrder> parseLaneOrder(const std::string &text) {
  if (text.empty() || text == "forward")
    return host::LaneOrder::forward();
  if (text == "reverse")
    return host::LaneOrder::reverse();
  uint32_t seed = 1;
  if (text == "shuffled" || (text.starts_with("shuffled:") &&
                             CLI::detail::lexical_cast(text.substr(9), seed)))
    return host::LaneOrder::shuffled(seed);
  return Status::invalid(
      fmt::format("lane-order: '{}' is not allowed; allowed are forward, "
                  "reverse, shuffled and shuffled:SEED",
                  text));
}

/// The device asked for. If none was, the choice is printed with its reason.
static Result<std::unique_ptr<Device>> makeDevice(const RunOptions &options,
                                                  const Target &target) {
  Result<host::LaneOrder> order = parseLaneOrder(options.laneOrder);
  if (!order)
    return order.status();
  std::string reason = "as asked";
  if (options.device != "cpu") {
    auto gpu = createCudaDevice(options.ordinal);
    if (gpu)
      fmt::print("device: GPU {}, {}, {} SMs, {} ({})\n", options.ordinal,
                 (*gpu)->description(), (*gpu)->multiprocessors(),
                 (*gpu)->target().chip,
                 options.device.empty() ? "there is one" : "as asked");
    if (gpu || options.device == "gpu")
      return gpu;
    reason = gpu.status().message;
  }
  fmt::print("device: CPU, emulating {} ({})\n", target.chip, reason);
  return createEmulationDevice(target, *order);
}

//===----------------------------------------------------------------------===//
// A case
//===----------------------------------------------------------------------===//

static std::string flagsOf(const CheckReport &report) {
  std::string broken;
  auto add = [&](bool holds, const char *name) {
    if (!holds)
      broken += (broken.empty() ? "" : ",") + std::string(name);
  };
  add(report.unusedSlotsIntact, "unused-slots");
  add(report.outputsAllWritten, "unwritten-out");
  add(report.paddingRowsZero, "padding-rows");
  add(report.unreadRowsUntouched, "other-rows");
  add(report.checkpointsIntact, "checkpoints");
  add(report.inputsIntact, "inputs");
  add(report.errorWordRight, "error-word");
  add(report.errorsSteady, "growing");
  return broken.empty() ? "ok" : broken;
}

static std::string header(int nameWidth) {
  return fmt::format("{:<{}} {:<6} {:>5} {:>8} {:>8} {:>8} {:<7} {:>9} {}\n",
                     "name", nameWidth, "device", "steps", "output", "state",
                     "ring", "flags", "us/launch", "verdict");
}

namespace {

class Runner {
public:
  Runner(const RunOptions &options, Target target)
      : options(options), target(std::move(target)) {
    compileOptions.assemble = AssembleOptions::fromEnvironment();
    compileOptions.last = options.assemble ? Stage::Cubin : Stage::PTX;
  }

  Row run(Device &device, const DecodeCase &entry, int nameWidth = 0,
          const ProgressFn &progress = {});

  double slack = 1; ///< See judge.

private:
  const RunOptions &options;
  Target target;
  CompileOptions compileOptions;
  Compiler compiler;
};

} // namespace

Row Runner::run(Device &device, const DecodeCase &entry, int nameWidth,
                const ProgressFn &progress) {
  const DecodeSpec &spec = entry.problem.spec;
  const DecodeTuning &tuning = entry.problem.tuning;
  Row row;
  auto finish = [&](const std::string &cells) {
    row.line = fmt::format("{:<{}} {:<6} {} {}\n", entry.name, nameWidth,
                           device.isEmulation() ? "cpu" : "gpu", cells,
                           row.passed() ? "PASS" : "FAIL");
    return row;
  };
  auto failed = [&](const Status &status) {
    row.failed = fmt::format("status {}", int(status.code));
    row.note = status.message;
    row.deviceLost = status.code == StatusCode::DriverError;
    return finish(fmt::format("{:>5} {:>8} {:>8} {:>8} {:<7} {:>9}",
                              entry.problem.steps, "-", "-", "-", "-", "-"));
  };

  Result<CompiledKernel> kernel =
      compileKernel(compiler, spec, tuning, target, compileOptions,
                    /*forHost=*/device.isEmulation());
  if (!kernel)
    return failed(kernel.status());
  Result<std::unique_ptr<LoadedKernel>> loaded = device.load(*kernel);
  if (!loaded)
    return failed(loaded.status());
  Result<CheckReport> report =
      checkCase(device, **loaded, kernel->launch, entry, progress);
  if (!report)
    return failed(report.status());
  const Verdict verdict = judge(*report, spec, tuning, slack);
  row.failed = verdict.failed;
  row.note = verdict.why;

  std::string time = "-";
  // A kernel that computes wrongly is not timed.
  if (row.passed() && !device.isEmulation() && !options.noTiming &&
      entry.problem.batch > 0 && traitsOf(spec).tokens) {
    auto timer = LaunchTimer::create(device, spec, entry.problem.batch);
    LaunchManner manner;
    manner.order = orderOf(spec);
    Result<LaunchTime> timed =
        timer ? (*timer)->time(**loaded, kernel->launch, manner)
              : Result<LaunchTime>(timer.status());
    if (timed)
      time = fmt::format("{:.2f}{}", medianOf(timed->microseconds),
                         timed->coldL2 ? "" : "*");
    else
      row.note = "not timed: " + timed.status().message;
  }
  return finish(fmt::format("{:>5} {:>8.1e} {:>8.1e} {:>8.1e} {:<7} {:>9}",
                            entry.problem.steps, report->outError,
                            report->stateError, report->ringError,
                            flagsOf(*report), time));
}

//===----------------------------------------------------------------------===//
// The tool
//===----------------------------------------------------------------------===//

static int runAll(Runner &runner, Device &device,
                  const std::vector<DecodeCase> &cases) {
  size_t nameWidth = 4;
  double total = 0, done = 0;
  for (const DecodeCase &entry : cases) {
    nameWidth = std::max(nameWidth, entry.name.size());
    total += entry.problem.steps;
  }
  std::string notes;
  int passed = 0, failed = 0;
  {
    Progress progress(total);
    progress.print(header(nameWidth));
    for (const DecodeCase &entry : cases) {
      progress.update(done, entry.name);
      Row row = runner.run(device, entry, nameWidth, [&](int steps, int all) {
        progress.update(done + steps, fmt::format("{}, step {} of {}",
                                                  entry.name, steps, all));
      });
      done += entry.problem.steps;
      progress.print(row.line);
      if (!row.note.empty())
        notes += fmt::format("{}: {}\n", entry.name, row.note);
      ++(row.passed() ? passed : failed);
      if (row.deviceLost)
        break;
    }
  }
  int notRun = int(cases.size()) - passed - failed;
  if (!notes.empty())
    fmt::print("\n{}", notes);
  fmt::print("\n{} passed, {} failed", passed, failed);
  if (notRun)
    fmt::print(", {} not run since the device failed", notRun);
  fmt::print("\n");
  return failed ? exitFailure : 0;
}

/// A case drawn from each of `options.random` seeds; prints only failures.
static int runRandom(Runner &runner, Device &device, const RunOptions &options,
                     const Target &target) {
  runner.slack = 2; // The problems are small, and other ones in each run.
  const uint64_t first = options.firstSeed();
  int failed = 0;
  {
    Progress progress(options.random);
    for (int i = 0; i < options.random; ++i) {
      const uint64_t seed = first + i;
      DecodeCase entry = randomCase(seed, target);
      progress.update(i, entry.name);
      std::unique_ptr<Device> emulation;
      if (device.isEmulation() && options.laneOrder.empty())
        emulation = createEmulationDevice(target, randomLaneOrder(seed));
      Device &used = emulation ? *emulation : device;
      const Row row = runner.run(used, entry);
      if (row.passed())
        continue;
      ++failed;
      progress.print(fmt::format("{} fails: {}\n  {}\n", entry.name, row.note,
                                 describe(entry)));
      if (row.deviceLost)
        break;
      entry = shrinkCase(entry, target, [&](const DecodeCase &smaller) {
        return runner.run(used, smaller).failed == row.failed;
      });
      progress.print(fmt::format("  and smaller: {}\n  {}\n",
                                 runner.run(used, entry).note,
                                 describe(entry)));
    }
  }
  fmt::print("{} random problems from seed {} on: {} failed\n", options.random,
             first, failed);
  return failed ? exitFailure : 0;
}

int replayjit::internal::replayRun(int argc, char **argv) {
  CLI::App app("Steps decode kernels of Gated DeltaNet or Kimi Delta Attention "
               "on random inputs\non a GPU or in the host emulation and "
               "compares outputs, states and rings with an\nfp64 recurrence. "
               "Errors are relative; times are of launches whose states are "
               "not\nin the L2 (* marks those that may be).",
               "replay-run");
  RunOptions options;
  options.addTo(app);
  if (std::optional<int> status = parse(app, argc, argv))
    return *status;
  if (options.list) {
    auto listed = options.cases(Target(), 132);
    if (!listed)
      return fail(listed.status().message);
    for (const DecodeCase &entry : *listed)
      fmt::print("{}\n", entry.name);
    return 0;
  }
  Result<std::optional<Target>> chip = options.kernel.target();
  if (!chip)
    return fail(chip.status().message);
  auto device = makeDevice(options, chip->value_or(Target()));
  if (!device)
    return fail(device.status().message);
  const Target target = chip->value_or((*device)->target());
  Runner runner(options, target);
  if (options.random > 0) {
    options.noTiming = true;
    return runRandom(runner, **device, options, target);
  }
  auto cases = options.cases(target, (*device)->multiprocessors());
  if (!cases)
    return fail(cases.status().message);
  if (options.suite.empty())
    for (const DecodeCase &entry : *cases) {
      const DecodeProblem &problem = entry.problem;
      Status status = validate(problem.spec, problem.tuning, target);
      if (status && entry.materialize)
        status = validateProblem(*entry.materialize);
      else if (status)
        status = validateProblem(problem);
      if (!status)
        return fail(status.message);
    }
  return runAll(runner, **device, *cases);
}
