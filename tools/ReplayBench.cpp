//===- ReplayBench.cpp - What kernels and the runtime take ----------------===//

#include "tools/BenchCommands.h"
#include "tools/HostOverhead.h"
#include "tools/Tools.h"

#include "runtime/CompileOnMiss.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <fstream>

using namespace replayjit::internal;

namespace {
struct Options {
  std::string device, json;
  OverheadOptions overheads;
};
} // namespace

static std::string timeText(double nanoseconds) {
  if (nanoseconds < 10'000)
    return fmt::format("{:.0f} ns", nanoseconds);
  if (nanoseconds < 1e6)
    return fmt::format("{:.1f} us", nanoseconds / 1e3);
  return fmt::format("{:.2f} ms", nanoseconds / 1e6);
}

static std::string goalText(const Overhead &overhead) {
  if (overhead.mostNanoseconds)
    return fmt::format("<= {}", timeText(*overhead.mostNanoseconds));
  if (overhead.mostTimesBare)
    return fmt::format("{:.2f}x <= {:.2f}x bare",
                       overhead.time.median / *overhead.bareNanoseconds,
                       *overhead.mostTimesBare);
  return "-";
}

static std::string verdict(const Overhead &overhead) {
  const std::optional<bool> met = overhead.isMet();
  return !met ? "-" : *met ? "met" : "not met";
}

static void print(const std::vector<Overhead> &overheads) {
  constexpr const char *row =
      "{:<44} {:<5} {:>9} {:>9} {:>9} {:>9} {:>11}  {:<20} {}\n";
  fmt::print(row, "per call", "where", "median", "quartile", "quartile",
             "least", "repeats", "goal", "verdict");
  for (const Overhead &overhead : overheads) {
    const Spread &time = overhead.time;
    fmt::print(row, overhead.name, overhead.isOnGpu ? "gpu" : "host",
               timeText(time.median), timeText(time.lowerQuartile),
               timeText(time.upperQuartile), timeText(time.least),
               fmt::format("{} x {}", time.repeats, time.calls),
               goalText(overhead), verdict(overhead));
  }
}

static nlohmann::ordered_json toJson(const Overhead &overhead) {
  const Spread &time = overhead.time;
  nlohmann::ordered_json json = {{"name", overhead.name},
                                 {"where", overhead.isOnGpu ? "gpu" : "host"},
                                 {"unit", "ns"},
                                 {"repeats", time.repeats},
                                 {"calls", time.calls},
                                 {"least", time.least},
                                 {"lowerQuartile", time.lowerQuartile},
                                 {"median", time.median},
                                 {"upperQuartile", time.upperQuartile}};
  if (overhead.mostNanoseconds)
    json["goal"] = *overhead.mostNanoseconds;
  if (overhead.mostTimesBare) {
    json["bareMedian"] = *overhead.bareNanoseconds;
    json["goalTimesBare"] = *overhead.mostTimesBare;
  }
  if (std::optional<bool> met = overhead.isMet())
    json["met"] = *met;
  return json;
}

static int write(const std::string &path, const std::string &device,
                 const std::vector<Overhead> &overheads) {
  nlohmann::ordered_json json;
  json["device"] = device;
  for (const Overhead &overhead : overheads)
    json["figures"].push_back(toJson(overhead));
  std::ofstream file(path);
  file << json.dump(2) << "\n";
  file.close();
  return file ? 0 : fail(fmt::format("cannot write '{}'", path));
}

static int runtime(Options &options) {
  Result<std::unique_ptr<Device>> gpu =
      Status::error(StatusCode::NotFound, "as asked");
  if (options.device != "none")
    gpu = createCudaDevice(options.overheads.ordinal);
  if (!gpu && options.device == "gpu")
    return fail(gpu.status().message);
  const std::string device = gpu ? (*gpu)->description() : "none";
  if (gpu)
    fmt::print("device: GPU {}, {}\n", options.overheads.ordinal, device);
  else
    fmt::print("device: none ({}): figures of the host alone; a load and a "
               "launch by a driver are not seen\n",
               gpu.status().message);

  Result<std::vector<Overhead>> overheads = overheadAlone(options.overheads);
  if (overheads && gpu) {
    options.overheads.compile = compileOnMiss();
    Result<std::vector<Overhead>> more =
        overheadBesideDriver(**gpu, options.overheads);
    if (more)
      overheads->insert(overheads->end(), more->begin(), more->end());
    else
      overheads = more.status();
  }
  if (!overheads)
    return fail(overheads.status().message);
  print(*overheads);
  return options.json.empty() ? 0 : write(options.json, device, *overheads);
}

int replayjit::internal::replayBench(int argc, char **argv) {
  CLI::App app(
      "Measures what kernels take on a GPU, and what the runtime costs "
      "on the host",
      "replay-bench");
  app.require_subcommand(1);
  Options options;
  CLI::App *overheads = app.add_subcommand(
      "runtime", "prepare from memory and from disk, and a launch beside the "
                 "bare driver call, each with its goal. The exit status does "
                 "not depend on a time");
  overheads
      ->add_option("--device", options.device,
                   "gpu, or none for the overheads of the host alone; default: "
                   "gpu if there is one")
      ->check(oneOf({"gpu", "none"}));
  overheads->add_option("--gpu", options.overheads.ordinal, "Which GPU");
  overheads
      ->add_option("--repeats", options.overheads.repeats,
                   "Runs of which the median is taken")
      ->capture_default_str()
      ->check(within(1, 100'000));
  overheads->add_option("--json", options.json, "Also write them to this file");
  DecodeCommand decode(app);
  PageCommand page(app);
  TuneCommand tuning(app);
  if (std::optional<int> status = parse(app, argc, argv))
    return *status;
  if (decode.app->parsed())
    return decode.run();
  if (page.app->parsed())
    return page.run();
  if (tuning.app->parsed())
    return tuning.run();
  return runtime(options);
}
