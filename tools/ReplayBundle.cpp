//===- ReplayBundle.cpp - All kernels of a model, ready to ship -----------===//

#include "tools/CommandLine.h"
#include "tools/Progress.h"
#include "tools/SpecOptions.h"
#include "tools/Tools.h"

#include "base/Files.h"
#include "runtime/CompileOnMiss.h"
#include "runtime/aot/ModelKernels.h"

#include <fmt/format.h>

#include <atomic>
#include <filesystem>
#include <map>
#include <set>

using namespace replayjit::internal;

namespace {

struct Options {
  SpecOptions kernel;
  std::vector<std::string> targets = {"sm_90a"};
  std::vector<int> multiprocessors = {78, 114, 132, 148, 160};
  std::string folder;
  int maxRows = 1024, jobs = 0;
  bool alignedOnly = false;

  void addTo(CLI::App &app);
};

/// What a cache says that is wrong.
class Sentences {
public:
  void add(const std::string &sentence) {
    std::lock_guard lock(mutex);
    all.push_back(sentence);
  }
  std::string last() {
    std::lock_guard lock(mutex);
    return all.empty() ? std::string() : all.back();
  }
  /// But for the last one, if that is the error.
  void warnOfAll(bool butLast) {
    if (butLast && !all.empty())
      all.pop_back();
    for (const std::string &sentence : all)
      warn(sentence);
  }

private:
  std::mutex mutex;
  std::vector<std::string> all;
};

/// What the threads that compile share.
class Bundle {
public:
  Bundle(DiskCache cache, std::vector<CompileRequest> kernels,
         Sentences &faults)
      : kernels(std::move(kernels)), store(cache),
        source(std::move(cache), {}, compileOnMiss()), faults(faults) {}

  /// Compiles what is not there; the first error, if there is one. A kernel
  /// that is not kept is one.
  Status run(int jobs);
  /// A line for each target and family.
  std::string table() const;

private:
  struct Row {
    size_t kernels = 0, compiled = 0, bytes = 0;
  };
  void work(Progress &progress);
  Result<CompileOnce::Answer> make(const CompileRequest &request);

  const std::vector<CompileRequest> kernels;
  const DiskCache store;
  KernelSource source; ///< Over the store.
  Sentences &faults;   ///< Of the store.
  std::atomic<size_t> next = 0;
  std::mutex mutex; ///< Of all below.
  size_t done = 0;
  Status failure;
  std::map<std::pair<std::string, Family>, Row> rows;
  std::set<std::string> assemblers;
};

} // namespace

void Options::addTo(CLI::App &app) {
  const char *const group = "Bundle";
  app.add_option("-o,--output", folder,
                 "The folder; what it holds already is kept")
      ->required()
      ->group(group);
  app.add_option("--targets", targets, "GPU architectures, divided by commas")
      ->delimiter(',')
      ->group(group)
      ->capture_default_str();
  app.add_option("--max-rows", maxRows, "The largest batch that is served")
      ->check(within(1, 1 << 20))
      ->group(group)
      ->capture_default_str();
  app.add_option("--multiprocessors", multiprocessors,
                 "Kernels are chosen for GPUs with so many SMs")
      ->delimiter(',')
      ->check(within(1, 1 << 16))
      ->group(group)
      ->capture_default_str();
  app.add_flag("--aligned-only", alignedOnly,
               "Leave out the kernels for pointers that are aligned to their "
               "elements alone")
      ->group(group);
  app.add_option("-j,--jobs", jobs, "Kernels at once; default: one per core")
      ->check(within(1, 1024))
      ->group(group);
  kernel.addFactsTo(app);
}

Result<CompileOnce::Answer> Bundle::make(const CompileRequest &request) {
  Result<CompileOnce::Answer> answer = source.find(request);
  // That it could not be kept is no error of the cache's, but it is one here.
  if (answer && answer->isCompiled &&
      !store.find(
          CacheKey::of(canonical(request.spec), request.tuning, request.target),
          DiskCache::Faults::NotTold))
    return Status::error(StatusCode::StorageFailed, faults.last());
  return answer;
}

void Bundle::work(Progress &progress) {
  for (size_t i; (i = next++) < kernels.size();) {
    const CompileRequest &request = kernels[i];
    Result<CompileOnce::Answer> answer = make(request);
    std::lock_guard lock(mutex);
    progress.update(++done, kernelName(request.spec, request.tuning));
    if (!answer) {
      if (failure)
        failure = answer.status();
      next = kernels.size();
      return;
    }
    Row &row = rows[{request.target.chip, request.spec.family}];
    row.kernels += 1;
    row.compiled += answer->isCompiled;
    row.bytes += answer->kernel.ptx.size() + answer->kernel.cubin.size();
    assemblers.insert(answer->kernel.assembler);
  }
}

Status Bundle::run(int jobs) {
  Progress progress(kernels.size());
  std::vector<std::thread> threads;
  for (int i = 1; i < std::min<int>(jobs, kernels.size()); ++i)
    threads.emplace_back([&] { work(progress); });
  work(progress);
  for (std::thread &thread : threads)
    thread.join();
  return failure;
}

std::string Bundle::table() const {
  std::string text = fmt::format("{:<10}{:<13}{:>8}{:>10}{:>12}\n", "target",
                                 "family", "kernels", "compiled", "bytes");
  Row all;
  auto line = [&](std::string_view chip, std::string_view family, Row row) {
    text += fmt::format("{:<10}{:<13}{:>8}{:>10}{:>12}\n", chip, family,
                        row.kernels, row.compiled, row.bytes);
  };
  for (const auto &[key, row] : rows) {
    line(key.first, divided(wordOf(key.second), '-'), row);
    all.kernels += row.kernels;
    all.compiled += row.compiled;
    all.bytes += row.bytes;
  }
  line("all", "", all);
  for (const std::string &assembler : assemblers)
    text += fmt::format("assembled by {}\n", assembler);
  return text;
}

static Status makeBundle(const Options &options) {
  Result<DecodeSpec> spec = options.kernel.spec();
  if (!spec)
    return spec.status();
  const auto measured = openTuningTable(tuningFileFromEnvironment(), {});
  if (!measured)
    return measured.status();
  std::vector<CompileRequest> kernels;
  for (const std::string &chip : options.targets) {
    Result<Target> target = Target::parse(chip);
    if (!target)
      return target.status();
    for (const CompileRequest &kernel : kernelsOfModel(
             *spec, options.maxRows, *target, options.multiprocessors,
             options.alignedOnly ? Pointers::Aligned : Pointers::Any,
             measured->get()))
      kernels.push_back(kernel);
  }

  DiskCacheOptions root;
  root.roots = {options.folder};
  root.maxBytes = 0;
  Sentences faults;
  root.diagnose = [&](const std::string &sentence) { faults.add(sentence); };
  Result<DiskCache> cache = DiskCache::open(root);
  if (!cache)
    return cache.status();
  if (std::string fault = faults.last(); !fault.empty()) // before all the work
    return Status::error(StatusCode::StorageFailed, fault);
  const std::string locks = cache->lockFolder();

  const auto start = std::chrono::steady_clock::now();
  Bundle bundle(std::move(*cache), std::move(kernels), faults);
  const int cores = std::max(1u, std::thread::hardware_concurrency());
  Status status = bundle.run(options.jobs ? options.jobs : cores);
  std::error_code ignored;
  std::filesystem::remove_all(locks, ignored); // which readers do not need
  faults.warnOfAll(/*butLast=*/status.code == StatusCode::StorageFailed);
  if (!status)
    return status;
  if (*measured) // so that a Jit on the folder asks for these kernels
    if (Status written =
            writeBytes(options.folder + "/tuning.json", (*measured)->json());
        !written)
      return written;
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
          .count();
  fmt::print("{}{:.1f} s, in {}\n", bundle.table(), seconds, options.folder);
  return Status::ok();
}

int replayjit::internal::replayBundle(int argc, char **argv) {
  CLI::App app(
      "Compiles every kernel that serves a model: decode with and without\n"
      "force_flush, packed decode, materialize and the plans of a step, in\n"
      "all variants that are chosen for 1 to --max-rows requests, for\n"
      "pointers aligned to 16 bytes and for any others. The folder is a root\n"
      "for $REPLAYJIT_CACHE_DIR, also if it is read-only, moved or copied\n"
      "elsewhere. The tunings of $REPLAYJIT_TUNING count, and go with it.",
      "replay-compile bundle");
  Options options;
  options.addTo(app);
  if (std::optional<int> status = parse(app, argc, argv))
    return *status;
  Status status = makeBundle(options);
  return status ? 0 : fail(status.message);
}
