//===- main.cpp - The engine in miniature ---------------------------------===//

#include "tests/engine/Compiler.h"
#include "tests/engine/Expect.h"
#include "tests/engine/FillDevice.h"
#include "tests/engine/Workload.h"

#include <fmt/format.h>

#include <cstdlib>
#include <string_view>

using namespace replayjit::internal;
using namespace replayjit::internal::engine;

static const char usage[] =
    R"(Usage: engine [--device=cpu|gpu] [--requests N] [--seed S] [--cache DIR]
              [--heads=small|real]
       engine --fill-cache DIR [--target sm_90a]

Serves N requests on two engines, of one rank and of two, for each model, and
compares all outputs with the recurrence in fp64. The emulation has small heads,
a GPU real ones, unless --heads says otherwise. --cache has the kernels for the
GPU; --fill-cache makes them on a machine without one.
)";

void engine::stop(const std::string &why) {
  std::fflush(stdout);
  fmt::print(stderr, "engine: error: {}\n", why);
  std::exit(1);
}

namespace {

struct Options {
  std::string device = "cpu", cache, fill, target = "sm_90a", heads;
  int requests = 0;
  uint64_t seed = 1;
};

} // namespace

static uint64_t numberOf(const std::string &name, const std::string &text) {
  char *end = nullptr;
  const uint64_t number = std::strtoull(text.c_str(), &end, 10);
  expect(!text.empty() && *end == 0, name + " '" + text + "' is no number");
  return number;
}

static Options parse(int argc, char **argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    std::string name = argv[i], value;
    if (name == "--help") {
      fmt::print("{}", usage);
      std::exit(0);
    }
    if (const size_t equals = name.find('='); equals != name.npos) {
      value = name.substr(equals + 1);
      name.resize(equals);
    } else {
      expect(i + 1 < argc, name + " needs a value; see --help");
      value = argv[++i];
    }
    if (name == "--device")
      options.device = value;
    else if (name == "--cache")
      options.cache = value;
    else if (name == "--fill-cache")
      options.fill = value;
    else if (name == "--target")
      options.target = value;
    else if (name == "--heads")
      options.heads = value;
    else if (name == "--requests")
      options.requests = int(numberOf(name, value));
    else if (name == "--seed")
      options.seed = numberOf(name, value);
    else
      stop("there is no option '" + name + "'; see --help");
  }
  expect(options.device == "cpu" || options.device == "gpu",
         "--device '" + options.device + "' is unknown; cpu or gpu is allowed");
  if (options.heads.empty())
    options.heads = options.device == "cpu" ? "small" : "real";
  expect(options.heads == "small" || options.heads == "real",
         "--heads '" + options.heads +
             "' is unknown; small or real is allowed");
  return options;
}

static std::unique_ptr<Jit> makeJit(Device &device, const std::string &root) {
  JitOptions options;
  options.compile = compiler();
  if (!root.empty())
    options.cache.roots = {root};
  options.cache.diagnose = [](const std::string &sentence) {
    fmt::print(stderr, "engine: {}\n", sentence);
  };
  return orStop(Jit::create(device, std::move(options)));
}

static Sizes sizesFor(bool isSmall) {
  if (isSmall)
    return {48, 8, 8, {2, 4, 8}};
  return {200, 64, 64, {4, 16, 32, 64}};
}

/// Setting up the engines asks for all the kernels that they launch.
static void fillCache(const Options &options) {
  constexpr int h200 = 132; // SMs
  std::unique_ptr<Device> device =
      createFillDevice(orStop(Target::parse(options.target)), h200);
  std::unique_ptr<Jit> jit = makeJit(*device, options.fill);
  Features features;
  for (const Model &model : models(/*isSmall=*/false))
    Workload(*jit, model, sizesFor(false), {}, features);
  fmt::print("{} kernels compiled\n", jit->counters().compiles);
}

int main(int argc, char **argv) {
  const Options options = parse(argc, argv);
  if (!options.fill.empty()) {
    fillCache(options);
    return 0;
  }
  const bool isEmulation = options.device == "cpu";
  const bool isSmall = options.heads == "small";
  if (!isEmulation)
    makeContextCurrent();
  std::unique_ptr<Device> device = isEmulation ? createEmulationDevice(Target())
                                               : orStop(createCudaDevice(0));
  std::unique_ptr<Jit> jit = makeJit(*device, options.cache);
  WorkloadOptions workload;
  workload.seed = options.seed;
  workload.requests = isSmall ? 150 : 250;
  if (options.requests > 0)
    workload.requests = options.requests;
  if (!isSmall) {
    workload.statesToCheck = 2; // of megabytes each
    workload.burst = 24;
    workload.longest = 40;
    workload.outputs = 48;
  }
  Features features;
  for (const Model &model : models(isSmall)) {
    Workload engines(*jit, model, sizesFor(isSmall), workload, features);
    engines.run();
    for (const std::string &sentence : engines.worst())
      fmt::print("{}\n", sentence);
  }
  fmt::print("{}", features.table());
  if (const char *missing = features.missing(*device))
    stop(fmt::format("never happened: {}", missing));
  return 0;
}
