//===- BenchCommands.cpp - Subcommands of replay-bench --------------------===//

#include "tools/BenchCommands.h"

#include "base/Files.h"
#include "kernels/Families.h"
#include "runtime/cache/DiskCache.h"
#include "tools/Tools.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <thread>

using namespace replayjit::internal;
using Json = nlohmann::ordered_json;

void BenchOutput::addTo(CLI::App &app) {
  app.add_option("--html", html, "Also write a page with plots to this file");
  app.add_option("--against", against,
                 "An earlier measurement, as --json wrote it: what is slower "
                 "is marked");
}

static Result<Json> readDocument(const std::string &path) {
  Result<std::string> text = readBytes(path);
  if (!text)
    return text.status();
  Json document = Json::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (document.is_discarded())
    return Status::invalid(fmt::format("'{}' is not JSON", path));
  if (Status status = checkDocument(document, path); !status)
    return status;
  return document;
}

/// What --against names; null if it was not given.
static Result<Json> readEarlier(const std::string &path) {
  if (path.empty())
    return Json();
  Result<Json> document = readDocument(path);
  return document ? std::move(document)
                  : Result<Json>(Status(document.status()).within("against"));
}

/// Prints the table and what became slower, and writes the page.
static int show(const Json &document, const Json &earlier,
                const std::string &html) {
  fmt::print("{}", benchTable(document));
  if (earlier.is_object())
    for (const std::string &line : regressions(document, earlier))
      fmt::print("slower: {}\n", line);
  if (html.empty())
    return 0;
  Status status = writeBytes(html, benchPage(document, earlier));
  return status ? 0 : fail(status.message);
}

//===----------------------------------------------------------------------===//
// replay-bench decode
//===----------------------------------------------------------------------===//

DecodeCommand::DecodeCommand(CLI::App &parent)
    : app(parent.add_subcommand(
          "decode",
          "the time of a launch of the replay and packed kernels on a GPU, "
          "beside streams that move the same bytes. The exit status does not "
          "depend on a time")) {
  kernel.addFactsTo(*app, [](const DecodeSpec &spec) {
    return spec.family == Family::Replay;
  });
  app->add_option("--batches", bench.batches, "Requests at once")
      ->capture_default_str()
      ->check(within(1, 4096));
  app->add_option("--repeats", bench.repeats, "Replays of each graph")
      ->capture_default_str()
      ->check(within(1, 1000));
  app->add_flag("--no-phases", noPhases,
                "Not the launches in which all rows stand at one ring row");
  app->add_option("--gpu", ordinal, "Which GPU");
  app->add_option("--json", output.json, "Also write all to this file");
  output.addTo(*app);
}

int DecodeCommand::run() {
  const Result<Json> earlier = readEarlier(output.against);
  if (!earlier)
    return fail(earlier.status().message);
  Result<DecodeSpec> spec = kernel.spec();
  if (!spec)
    return fail(spec.status().message);
  bench.spec = *spec;
  bench.phases = !noPhases;
  const auto measured = openTuningTable(
      tuningFileFromEnvironment(), DiskCacheOptions::rootsFromEnvironment());
  if (!measured)
    return fail(measured.status().message);
  bench.measured = measured->get();
  Result<std::unique_ptr<Device>> gpu = createCudaDevice(ordinal);
  if (!gpu)
    return fail(gpu.status().message);
  Result<Json> document = Status::ok();
  {
    Progress progress(double(bench.batches.size()));
    document = benchDecode(**gpu, bench, progress);
  }
  if (!document)
    return fail(document.status().message);
  if (!output.json.empty())
    if (Status status = writeBytes(output.json, document->dump(2) + "\n");
        !status)
      return fail(status.message);
  return show(*document, *earlier, output.html);
}

//===----------------------------------------------------------------------===//
// replay-bench page
//===----------------------------------------------------------------------===//

PageCommand::PageCommand(CLI::App &parent)
    : app(parent.add_subcommand(
          "page", "the table and the page of an earlier measurement; needs no "
                  "GPU")) {
  app->add_option("file", file, "What decode --json wrote")->required();
  output.addTo(*app);
}

int PageCommand::run() {
  Result<Json> document = readDocument(file);
  if (!document)
    return fail(document.status().message);
  const Result<Json> earlier = readEarlier(output.against);
  if (!earlier)
    return fail(earlier.status().message);
  return show(*document, *earlier, output.html);
}

//===----------------------------------------------------------------------===//
// replay-bench tune
//===----------------------------------------------------------------------===//

TuneCommand::TuneCommand(CLI::App &parent)
    : app(parent.add_subcommand(
          "tune",
          "looks for the fastest tunings of a model's replay and packed "
          "kernels on a GPU, for the library to use from then on. What the "
          "table has already is not measured again")) {
  kernel.addFactsTo(*app, [](const DecodeSpec &spec) {
    return spec.family == Family::Replay;
  });
  app->add_option("--batches", options.batches, "Requests at once")
      ->capture_default_str()
      ->check(within(1, 4096));
  app->add_option("--depths", depths,
                  "Ring depths to tune; without it that of the model alone")
      ->check(within(2, maxRingDepth));
  app->add_option("--ring-types", ringTypes,
                  "Types of rings to tune; without it that of the model alone")
      ->check(CLI::IsMember({"fp32", "bf16", "fp16"}));
  app->add_option("--max-error", options.maxError,
                  "Leave out what differs more from fp64, relative to the "
                  "norm; 0: what is right for the types")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 1.0));
  app->add_option("--seconds", options.seconds,
                  "How long to look, for each kernel and batch")
      ->capture_default_str()
      ->check(CLI::Range(0.1, 3600.0));
  app->add_option("--repeats", options.repeats, "Replays of each graph")
      ->capture_default_str()
      ->check(within(1, 1000));
  app->add_flag("--again", options.again, "Also what the table has");
  app->add_option("--gpu", ordinal, "Which GPU");
  app->add_option("-o,--table", file,
                  "The table; without it $REPLAYJIT_TUNING, else tuning.json "
                  "in the kernel cache");
}

std::vector<DecodeSpec> TuneCommand::specsOf(const DecodeSpec &spec) const {
  std::vector<DecodeSpec> specs;
  DecodeSpec packed = spec;
  packed.family = Family::Packed;
  packed.ringDepth = 1;
  specs.push_back(canonical(packed));
  std::vector<DataType> types;
  for (const std::string &word : ringTypes)
    for (DataType type : {DataType::F32, DataType::BF16, DataType::F16})
      if (wordOf(type) == word)
        types.push_back(type);
  if (types.empty())
    types = {spec.ringType};
  for (int depth : depths.empty() ? std::vector<int>{spec.ringDepth} : depths)
    for (DataType type : types) {
      specs.push_back(spec);
      specs.back().ringDepth = depth;
      specs.back().ringType = type;
    }
  return specs;
}

/// Where a table goes that nobody named.
static Result<std::string> usualTable() {
  if (std::string named = tuningFileFromEnvironment(); !named.empty())
    return named;
  const std::vector<std::string> roots =
      DiskCacheOptions::rootsFromEnvironment();
  if (roots.empty())
    return Status::invalid("--table: it is needed, since there is no folder "
                           "for the kernel cache; set REPLAYJIT_CACHE_DIR, "
                           "XDG_CACHE_HOME or HOME");
  if (Status status = makeFolders(roots.front()); !status)
    return status;
  return roots.front() + "/tuning.json";
}

int TuneCommand::run() {
  const Result<DecodeSpec> spec = kernel.spec();
  if (!spec)
    return fail(spec.status().message);
  options.specs = specsOf(*spec);
  for (const DecodeSpec &one : options.specs)
    if (Status status = validate(one, chooseTuning(one, 0, Target()), Target());
        !status)
      return fail(status.message);
  if (file.empty()) {
    Result<std::string> usual = usualTable();
    if (!usual)
      return fail(usual.status().message);
    file = *usual;
  }
  TuningTable table;
  std::error_code code;
  if (std::filesystem::exists(file, code)) {
    Result<TuningTable> read = TuningTable::read(file);
    if (!read)
      return fail(read.status().message);
    table = std::move(*read);
  }
  Result<std::unique_ptr<Device>> gpu = createCudaDevice(ordinal);
  if (!gpu)
    return fail(gpu.status().message);
  Device &device = **gpu;
  if (!table.specs.empty() &&
      !table.isFor(device.target(), device.multiprocessors()))
    return fail(fmt::format(
        "--table: '{}' is of {} with {} multiprocessors, and this GPU is {} "
        "with {}; name another file",
        file, table.chip, table.multiprocessors, device.target().chip,
        device.multiprocessors()));
  table.chip = device.target().chip;
  table.multiprocessors = device.multiprocessors();
  table.device = device.description();
  auto save = [&] { return writeBytes(file, table.json()); };
  if (Status status = save(); !status) // before hours of work, not after
    return fail(status.message);
  options.threads = int(std::max(1u, std::thread::hardware_concurrency()) - 1);
  Status status;
  {
    Progress progress(double(options.specs.size() * options.batches.size()));
    status = tune(device, options, table, save, progress);
  }
  if (!status)
    return fail(status.message);
  fmt::print("{}\n", file);
  return 0;
}
