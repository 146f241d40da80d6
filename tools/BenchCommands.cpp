//===- BenchCommands.cpp - Subcommands of replay-bench --------------------===//

#include "tools/BenchCommands.h"

#include "base/Files.h"
#include "kernels/Families.h"
#include "tools/Tools.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

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
