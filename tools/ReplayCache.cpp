//===- ReplayCache.cpp - What is in the kernel cache ----------------------===//

#include "tools/CommandLine.h"
#include "tools/SpecOptions.h"
#include "tools/Tools.h"

#include "runtime/aot/KernelFiles.h"
#include "runtime/aot/TritonEntry.h"
#include "runtime/cache/DiskCache.h"
#include "runtime/cache/KernelRecord.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/SHA256.h"

#include <fmt/format.h>

#include <ctime>
#include <unistd.h>

using namespace replayjit::internal;

namespace {
struct Options {
  std::string folders;
  std::optional<uint64_t> maxBytes;
  bool damaged = false;
  SpecOptions kernel;              ///< Of explain.
  std::string exported;            ///< Of export-triton: PATH/NAME.
  TritonExport triton;             ///< Of export-triton.
  std::string entry, importFolder; ///< Of import-triton.
};
} // namespace

/// Accepts what REPLAYJIT_CACHE_MAX_BYTES accepts.
static CLI::Validator isByteCount() {
  return CLI::Validator(
      [](std::string &value) {
        uint64_t number = 0;
        if (CLI::detail::lexical_cast(value, number))
          return std::string();
        return fmt::format("'{}' is not allowed; it must be a number of bytes",
                           value);
      },
      "");
}

static bool isThere(const std::string &folder) {
  return access(folder.c_str(), F_OK) == 0;
}

static void sayIfMissing(const std::string &folder) {
  if (!isThere(folder))
    fmt::print("{}: there is no such folder\n", folder);
}

/// The cache of the flag, else of the environment.
static Result<DiskCache> openCache(const Options &options, bool isReadOnly) {
  if (!options.folders.empty())
    setenv("REPLAYJIT_CACHE_DIR", options.folders.c_str(), /*overwrite=*/1);
  Result<DiskCacheOptions> found = DiskCacheOptions::fromEnvironment();
  if (!found)
    return found.status();
  // What is not there is not made only to be tended.
  found->isReadOnly =
      isReadOnly || found->roots.empty() || !isThere(found->roots.front());
  found->diagnose = warn;
  return DiskCache::open(std::move(*found));
}

static std::string timeText(int64_t nanoseconds) {
  const time_t seconds = nanoseconds / 1'000'000'000;
  char text[32] = "-";
  tm parts;
  if (nanoseconds && gmtime_r(&seconds, &parts))
    std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

/// One line an entry, by root; what is wrong with an entry below it. Returns
/// how many are wrong.
static size_t print(const DiskCache &cache,
                    const std::vector<CacheEntry> &entries) {
  for (const std::string &folder : cache.options().roots)
    sayIfMissing(folder);
  size_t wrong = 0;
  uint64_t bytes = 0;
  std::string root;
  for (const CacheEntry &entry : entries) {
    if (entry.root != root)
      fmt::print("{}:\n", root = entry.root);
    fmt::print("  {}  {:>9}  {}  {}\n", entry.digest, entry.bytes,
               timeText(entry.lastUsed), entry.name.empty() ? "?" : entry.name);
    if (!entry.status) {
      fmt::print("    not used: {}\n", entry.status.message);
      ++wrong;
    }
    bytes += entry.bytes;
  }
  fmt::print("{} {}, {} bytes, {} not usable\n", entries.size(),
             entries.size() == 1 ? "entry" : "entries", bytes, wrong);
  return wrong;
}

static int prune(const DiskCache &cache, const Options &options) {
  if (const std::vector<std::string> &roots = cache.options().roots;
      !roots.empty() && !isThere(roots.front())) {
    sayIfMissing(roots.front());
    return 0;
  }
  if (options.damaged) {
    Result<DiskCache::PruneReport> report = cache.pruneDamaged();
    if (!report)
      return fail(report.status().message);
    fmt::print("removed {} damaged, {} bytes\n", report->removed,
               report->removedBytes);
  }
  if (options.damaged && !options.maxBytes)
    return 0;
  uint64_t bound = options.maxBytes.value_or(cache.options().maxBytes);
  if (!options.maxBytes && bound == 0)
    bound = UINT64_MAX;
  Result<DiskCache::PruneReport> report = cache.prune(bound);
  if (!report)
    return fail(report.status().message);
  fmt::print("removed {}, {} bytes; {} left, {} bytes\n", report->removed,
             report->removedBytes, report->kept, report->keptBytes);
  return 0;
}

static int explain(const DiskCache &cache, const SpecOptions &flags) {
  Result<DecodeSpec> spec = flags.spec();
  if (!spec)
    return fail(spec.status().message);
  Result<std::optional<Target>> chip = flags.target();
  if (!chip)
    return fail(chip.status().message);
  const Target target = chip->value_or(Target());
  const Result<DecodeTuning> tuning = flags.tuning(*spec, /*rows=*/0, target);
  if (!tuning)
    return fail(tuning.status().message);
  if (Status status = validate(*spec, *tuning, target); !status)
    return fail(status.message);
  fmt::print("{} for {}\n", kernelName(*spec, *tuning), target.chip);
  for (const std::string &line :
       cache.explain(CacheKey::of(*spec, *tuning, target)))
    fmt::print("{}\n", line);
  return 0;
}

static int exportTriton(const Options &options) {
  Result<CompiledKernel> kernel = readKernelFiles(options.exported);
  if (!kernel)
    return fail(kernel.status().message);
  TritonExport triton = options.triton;
  if (triton.hash.empty())
    triton.hash = llvm::toHex(
        llvm::SHA256::hash(llvm::arrayRefFromStringRef(kernel->ptx)),
        /*LowerCase=*/true);
  Result<std::string> folder = exportToTriton(*kernel, triton);
  if (!folder)
    return fail(folder.status().message);
  fmt::print("{}\n", *folder);
  return 0;
}

static int importTriton(const Options &options) {
  Result<CompiledKernel> kernel = importFromTriton(options.entry);
  if (!kernel)
    return fail(kernel.status().message);
  if (Status status =
          writeKernelFiles(options.importFolder, *kernel, toJson(*kernel));
      !status)
    return fail(status.message);
  fmt::print("{}/{}.json\n", options.importFolder, kernel->name);
  return 0;
}

int replayjit::internal::replayCache(int argc, char **argv) {
  CLI::App app("Shows and tends the folders in which compiled kernels are "
               "kept",
               "replay-cache");
  app.require_subcommand(1);
  app.fallthrough();
  Options options;
  app.add_option("--dir", options.folders,
                 "The folders, divided by ':'; default: "
                 "$REPLAYJIT_CACHE_DIR, or ~/.cache/replayjit");
  CLI::App *listing =
      app.add_subcommand("list", "Each entry: key, bytes, last use, kernel");
  CLI::App *verifying = app.add_subcommand(
      "verify", "The same after reading all files and comparing all "
                "checksums; status 1 if an entry is not usable");
  CLI::App *pruning = app.add_subcommand(
      "prune", "Remove least recently used entries of the first folder");
  pruning
      ->add_option("--max-bytes", options.maxBytes,
                   "Until it holds no more than this; default: "
                   "$REPLAYJIT_CACHE_MAX_BYTES, or 1 GiB")
      ->check(isByteCount());
  pruning->add_flag("--damaged", options.damaged,
                    "Remove the entries that verify finds fault with");
  CLI::App *explaining = app.add_subcommand(
      "explain", "Why a kernel is found or not, and what the nearest entry "
                 "has instead");
  options.kernel.addTo(*explaining);
  CLI::App *exporting = app.add_subcommand(
      "export-triton", "Write a kernel of --abi triton as an entry of Triton's "
                       "cache");
  exporting
      ->add_option("kernel", options.exported,
                   "PATH/NAME of NAME.json, NAME.cubin and NAME.ptx: of "
                   "replay-compile --out-dir, or ROOT/KEY/kernel of our cache")
      ->required();
  exporting
      ->add_option("--to", options.triton.cacheFolder,
                   "What $TRITON_CACHE_DIR will be; entries cannot be moved")
      ->required();
  exporting->add_option("--hash", options.triton.hash,
                        "The hash for which Triton is to find it; default: a "
                        "SHA-256 of the PTX");
  exporting->add_option("--file", options.triton.file,
                        "Name of the files, for Triton that of the Python "
                        "function; default: the kernel's name");
  CLI::App *importing = app.add_subcommand(
      "import-triton", "Write a kernel of Triton's cache as NAME.cubin, "
                       "NAME.ptx and NAME.json, our record");
  importing->add_option("entry", options.entry, "Folder in Triton's cache")
      ->required();
  importing->add_option("--to", options.importFolder, "Where to")->required();
  if (std::optional<int> status = parse(app, argc, argv))
    return *status;
  if (*importing)
    return importTriton(options);
  if (*exporting)
    return exportTriton(options);

  Result<DiskCache> cache = openCache(options, /*isReadOnly=*/!*pruning);
  if (!cache)
    return fail(cache.status().message);
  if (*listing) {
    print(*cache, cache->list());
    return 0;
  }
  if (*verifying)
    return print(*cache, cache->verify()) ? exitFailure : 0;
  if (*pruning)
    return prune(*cache, options);
  return explain(*cache, options.kernel);
}
