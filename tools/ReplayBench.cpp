//===- ReplayBench.cpp - What the runtime costs ---------------------------===//

#include "tools/CommandLine.h"
#include "tools/RuntimeFigures.h"
#include "tools/Tools.h"

#include "runtime/CompileOnMiss.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <fstream>

using namespace replayjit::internal;

namespace {
struct Options {
  std::string device, json;
  FigureOptions figures;
};
} // namespace

static std::string timeText(double nanoseconds) {
  if (nanoseconds < 10'000)
    return fmt::format("{:.0f} ns", nanoseconds);
  if (nanoseconds < 1e6)
    return fmt::format("{:.1f} us", nanoseconds / 1e3);
  return fmt::format("{:.2f} ms", nanoseconds / 1e6);
}

static std::string goalText(const Figure &figure) {
  if (figure.mostNanoseconds)
    return fmt::format("<= {}", timeText(*figure.mostNanoseconds));
  if (figure.mostTimesBare)
    return fmt::format("{:.2f}x <= {:.2f}x bare",
                       figure.time.median / *figure.bareNanoseconds,
                       *figure.mostTimesBare);
  return "-";
}

static std::string verdict(const Figure &figure) {
  const std::optional<bool> met = figure.isMet();
  return !met ? "-" : *met ? "met" : "not met";
}

static void print(const std::vector<Figure> &figures) {
  constexpr const char *row =
      "{:<44} {:<5} {:>9} {:>9} {:>9} {:>9} {:>11}  {:<20} {}\n";
  fmt::print(row, "per call", "where", "median", "quartile", "quartile",
             "least", "repeats", "goal", "verdict");
  for (const Figure &figure : figures) {
    const Spread &time = figure.time;
    fmt::print(row, figure.name, figure.isOnGpu ? "gpu" : "host",
               timeText(time.median), timeText(time.lowerQuartile),
               timeText(time.upperQuartile), timeText(time.least),
               fmt::format("{} x {}", time.repeats, time.calls),
               goalText(figure), verdict(figure));
  }
}

static nlohmann::ordered_json toJson(const Figure &figure) {
  const Spread &time = figure.time;
  nlohmann::ordered_json json = {{"name", figure.name},
                                 {"where", figure.isOnGpu ? "gpu" : "host"},
                                 {"unit", "ns"},
                                 {"repeats", time.repeats},
                                 {"calls", time.calls},
                                 {"least", time.least},
                                 {"lowerQuartile", time.lowerQuartile},
                                 {"median", time.median},
                                 {"upperQuartile", time.upperQuartile}};
  if (figure.mostNanoseconds)
    json["goal"] = *figure.mostNanoseconds;
  if (figure.mostTimesBare) {
    json["bareMedian"] = *figure.bareNanoseconds;
    json["goalTimesBare"] = *figure.mostTimesBare;
  }
  if (std::optional<bool> met = figure.isMet())
    json["met"] = *met;
  return json;
}

static int write(const std::string &path, const std::string &device,
                 const std::vector<Figure> &figures) {
  nlohmann::ordered_json json;
  json["device"] = device;
  for (const Figure &figure : figures)
    json["figures"].push_back(toJson(figure));
  std::ofstream file(path);
  file << json.dump(2) << "\n";
  file.close();
  return file ? 0 : fail(fmt::format("cannot write '{}'", path));
}

static int runtime(Options &options) {
  Result<std::unique_ptr<Device>> gpu =
      Status::error(StatusCode::NotFound, "as asked");
  if (options.device != "none")
    gpu = createCudaDevice(options.figures.ordinal);
  if (!gpu && options.device == "gpu")
    return fail(gpu.status().message);
  const std::string device = gpu ? (*gpu)->description() : "none";
  if (gpu)
    fmt::print("device: GPU {}, {}\n", options.figures.ordinal, device);
  else
    fmt::print("device: none ({}): figures of the host alone; a load and a "
               "launch by a driver are not seen\n",
               gpu.status().message);

  Result<std::vector<Figure>> figures = hostFigures(options.figures);
  if (figures && gpu) {
    options.figures.compile = compileOnMiss();
    Result<std::vector<Figure>> more = gpuFigures(**gpu, options.figures);
    if (more)
      figures->insert(figures->end(), more->begin(), more->end());
    else
      figures = more.status();
  }
  if (!figures)
    return fail(figures.status().message);
  print(*figures);
  return options.json.empty() ? 0 : write(options.json, device, *figures);
}

int replayjit::internal::replayBench(int argc, char **argv) {
  CLI::App app("Measures what the runtime costs on the host", "replay-bench");
  app.require_subcommand(1);
  Options options;
  CLI::App *figures = app.add_subcommand(
      "runtime", "prepare from memory and from disk, and a launch beside the "
                 "bare driver call, each with its goal. The exit status does "
                 "not depend on a time");
  figures
      ->add_option("--device", options.device,
                   "gpu, or none for the figures of the host alone; default: "
                   "gpu if there is one")
      ->check(oneOf({"gpu", "none"}));
  figures->add_option("--gpu", options.figures.ordinal, "Which GPU");
  figures
      ->add_option("--repeats", options.figures.repeats,
                   "Runs of which the median is taken")
      ->capture_default_str()
      ->check(within(1, 100'000));
  figures->add_option("--json", options.json, "Also write them to this file");
  if (std::optional<int> status = parse(app, argc, argv))
    return *status;
  return runtime(options);
}
