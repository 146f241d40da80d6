//===- ReplayCompile.cpp - A spec in, any stage out -----------------------===//

#include "tools/CommandLine.h"
#include "tools/CompileReports.h"
#include "tools/Json.h"
#include "tools/ProgramFile.h"
#include "tools/Progress.h"
#include "tools/PtxFile.h"
#include "tools/SpecOptions.h"
#include "tools/Tools.h"

#include "kernels/FamilyBuilder.h"
#include "kernels/Parameters.h"
#include "runtime/KernelSource.h"
#include "runtime/aot/EmbedC.h"
#include "runtime/aot/KernelFiles.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <unistd.h>

using namespace replayjit::internal;

namespace {

/// What --emit can ask for: how far to compile, and which file of the stage
/// observer it is (none: made from the result).
struct Artifact {
  const char *name;
  Stage last;
  const char *file;
};
constexpr Artifact artifacts[] = {
    {"replay", Stage::Tiles, "replay.mlir"},
    {"layouts", Stage::Tiles, "tiles.mlir"},
    {"thread", Stage::ThreadProgram, "thread.mlir"},
    {"nvvm", Stage::LLVMDialect, "nvvm.mlir"},
    {"llvm", Stage::LLVMIR, "optimized.ll"},
    {"ptx", Stage::PTX, nullptr},
    {"cubin", Stage::Cubin, nullptr},
    {"sass", Stage::Cubin, nullptr},
    {"json", Stage::Cubin, nullptr},
    {"c", Stage::Cubin, nullptr},
};

struct Options {
  SpecOptions kernel;
  PtxOptions ptx;
  std::string program; ///< A file; empty: the kernel of the flags.
  std::string emit, output, dumpDirectory, outDirectory, assembler = "any";
  int timing = 0; ///< Runs to time.
  bool summary = false, failOnSpill = false, usesCache = false;

  void addTo(CLI::App &app);

  /// Something other than the artifact is wanted.
  bool reports() const {
    return timing || summary || failOnSpill || !outDirectory.empty() ||
           !dumpDirectory.empty();
  }
  /// What to write; null if only reports are wanted.
  const Artifact *artifact() const;
  Stage lastStage() const;
  /// A cubin is wanted for reports only: without an assembler, do without.
  bool cubinIsOptional() const {
    return !artifact() && !failOnSpill && !usesCache && outDirectory.empty();
  }
  /// Says why --cache or --from-ptx make no sense with the other flags: they
  /// have the last stages only.
  Status checkCache() const;
  Status checkPtx() const;
  const char *needsStages() const;
  bool writesToStdout() const { return output.empty() || output == "-"; }
};

} // namespace

void Options::addTo(CLI::App &app) {
  std::vector<std::string> names;
  for (const Artifact &artifact : artifacts)
    names.push_back(artifact.name);
  const char *const group = "Output";
  app.add_option("--emit", emit,
                 "What to write; default: ptx, or nothing if one of the "
                 "reports below is asked for")
      ->check(oneOf(names))
      ->group(group);
  app.add_option("-o,--output", output,
                 "Where to; default: stdout. For c: PATH/NAME makes NAME.h and "
                 "NAME.c with functions NAME, NAME_load and NAME_unload")
      ->group(group);
  app.add_option("--out-dir", outDirectory,
                 "Write NAME.cubin, NAME.ptx and NAME.json there")
      ->group(group);
  app.add_option("--dump-stages", dumpDirectory, "Write every stage there")
      ->group(group);
  app.add_flag("--timing", timing,
               "Time each stage; --timing=N repeats N times in one process and "
               "adds the median")
      ->group(group);
  app.add_flag("--summary", summary, "Print what the kernel uses")
      ->group(group);
  app.add_flag("--fail-on-spill", failOnSpill,
               "Fail if the kernel spills registers or needs a stack")
      ->group(group);
  app.add_option("--assembler", assembler, "Which assembler makes the cubin")
      ->check(oneOf({"any", "nvjitlink", "ptxas"}))
      ->group(group);
  app.add_flag("--cache", usesCache,
               "Take the kernel from $REPLAYJIT_CACHE_DIR, or "
               "~/.cache/replayjit; what is not there is compiled and kept")
      ->group(group);
  kernel.addTo(app);
  app.add_option("--mlir", program,
                 "Compile the replay.kernel written in this file, for --target")
      ->group("Kernel");
  ptx.addTo(app);
}

const Artifact *Options::artifact() const {
  if (emit.empty() && output.empty() && reports())
    return nullptr;
  const std::string name = emit.empty() ? "ptx" : emit;
  return std::find_if(std::begin(artifacts), std::end(artifacts),
                      [&](const Artifact &a) { return a.name == name; });
}

Stage Options::lastStage() const {
  if (failOnSpill || usesCache || !outDirectory.empty())
    return Stage::Cubin;
  if (const Artifact *wanted = artifact())
    return wanted->last;
  return timing || summary ? Stage::Cubin : Stage::PTX;
}

Status Options::checkCache() const {
  const char *other = nullptr;
  if (!program.empty())
    other = "--mlir, whose kernels have no key";
  else
    other = needsStages();
  if (other)
    return Status::invalid(fmt::format("--cache: not allowed with {}", other));
  if (const Artifact *wanted = artifact(); wanted && wanted->file)
    return Status::invalid(fmt::format(
        "--cache: not allowed with --emit={}; an entry has ptx, cubin, sass, "
        "json and c",
        wanted->name));
  return Status::ok();
}

/// What needs all stages and is asked for; null if nothing does.
const char *Options::needsStages() const {
  if (timing)
    return "--timing, which compiles";
  if (!dumpDirectory.empty())
    return "--dump-stages, which shows a compilation";
  return nullptr;
}

Status Options::checkPtx() const {
  auto refused = [](std::string_view other) {
    return Status::invalid(
        fmt::format("--from-ptx: not allowed with {}", other));
  };
  if (!program.empty())
    return refused("--mlir");
  if (usesCache)
    return refused("--cache, whose kernels are made from a spec");
  for (const CLI::Option *fact : kernel.facts())
    if (fact->count())
      return Status::invalid(fact->get_name() +
                             ": not allowed with --from-ptx, whose file says "
                             "what is computed");
  if (const char *other = needsStages())
    return refused(other);
  if (const Artifact *wanted = artifact(); wanted && wanted->file)
    return refused(fmt::format("--emit={}; allowed are ptx, cubin, sass, json "
                               "and c",
                               wanted->name));
  return Status::ok();
}

/// What $REPLAYJIT_CACHE_DIR and its like say.
static Status readCacheOptions(DiskCacheOptions &roots,
                               CompileOnceOptions &once) {
  Result<DiskCacheOptions> givenRoots = DiskCacheOptions::fromEnvironment();
  if (!givenRoots)
    return givenRoots.status();
  Result<CompileOnceOptions> givenOnce = CompileOnceOptions::fromEnvironment();
  if (!givenOnce)
    return givenOnce.status();
  roots = std::move(*givenRoots);
  roots.diagnose = warn;
  once = *givenOnce;
  return Status::ok();
}

namespace {

class Run {
public:
  explicit Run(const Options &options) : options(options) {}
  Status operator()();

private:
  Status setUp();
  Status readProgram();
  Result<CompiledKernel> compile(StageObserver observer);
  Result<CompiledKernel> compileStages(const CompileOptions &all);
  Status timeStages();
  Status writeArtifact(const Artifact &artifact);
  Status writeC();
  std::string json() const {
    return program || options.ptx.isGiven() ? toJson(kernel)
                                            : toJson(kernel, spec, tuning);
  }
  /// Reports share stdout only with reports.
  FILE *reportStream() const {
    return options.artifact() && options.writesToStdout() ? stderr : stdout;
  }

  const Options &options;
  DecodeSpec spec;
  DecodeTuning tuning;
  std::optional<Target> givenTarget;
  Target target; ///< The one given, or the default.
  CompileOptions compileOptions;
  StageClock startUp;
  Compiler compiler;
  mlir::OwningOpRef<mlir::ModuleOp> program; ///< Of --mlir.
  std::string name;                          ///< Of the kernel.
  CompiledKernel kernel;
  std::string stageText; ///< Of the stage to be written.
};

} // namespace

Status Run::setUp() {
  startUp.mark("start-up");
  Result<DecodeSpec> given = options.kernel.spec();
  if (!given)
    return given.status();
  spec = *given;
  Result<std::optional<Target>> chip = options.kernel.target();
  if (!chip)
    return chip.status();
  givenTarget = *chip;
  target = chip->value_or(Target());
  const Result<DecodeTuning> choice =
      options.kernel.tuning(spec, /*rows=*/1, target);
  if (!choice)
    return choice.status();
  tuning = *choice;
  name = kernelName(spec, tuning);
  compileOptions.last = options.lastStage();
  compileOptions.assemble = AssembleOptions::fromEnvironment();
  using Preference = AssembleOptions::Preference;
  if (options.assembler == "ptxas")
    compileOptions.assemble.preference = Preference::Ptxas;
  if (options.assembler == "nvjitlink")
    compileOptions.assemble.preference = Preference::NvJitLink;
  return options.program.empty() ? Status::ok() : readProgram();
}

Status Run::readProgram() {
  auto parsed = parseProgramFile(compiler.context(), options.program);
  if (!parsed)
    return parsed.status();
  program = std::move(parsed->module);
  name = parsed->kernelName;
  return Status::ok();
}

/// The kernel of the program, or of the spec by the way that all kernels take.
Result<CompiledKernel> Run::compileStages(const CompileOptions &all) {
  if (program) {
    auto copy = [this](mlir::MLIRContext &) {
      return mlir::OwningOpRef<mlir::ModuleOp>(program->clone());
    };
    return compiler.compile(copy, target, all);
  }
  DiskCacheOptions roots; // None: nothing is kept.
  CompileOnceOptions once;
  if (options.usesCache)
    if (Status status = readCacheOptions(roots, once); !status)
      return status;
  Result<DiskCache> cache = DiskCache::open(std::move(roots));
  if (!cache)
    return cache.status();
  KernelSource source(std::move(*cache), once, [&](const CompileRequest &of) {
    return compileKernel(compiler, of.spec, of.tuning, of.target, all);
  });
  Result<CompileOnce::Answer> answer = source.find({spec, tuning, target});
  if (!answer)
    return answer.status();
  if (options.usesCache) {
    std::fflush(stdout);
    std::fprintf(stderr, "cache: %s %s\n", name.c_str(),
                 answer->isCompiled ? "was not there and is compiled"
                                    : "is taken from it");
  }
  return std::move(answer->kernel);
}

Result<CompiledKernel> Run::compile(StageObserver observer) {
  CompileOptions all = compileOptions;
  all.observer = std::move(observer);
  auto result = compileStages(all);
  if (result || result.status().code != StatusCode::NotFound ||
      !options.cubinIsOptional() || all.last != Stage::Cubin)
    return result;
  std::fflush(stdout);
  std::fprintf(stderr, "no cubin is made: %s\n",
               result.status().message.c_str());
  all.last = compileOptions.last = Stage::PTX;
  return compileStages(all);
}

Status Run::timeStages() {
  std::vector<std::vector<StageTime>> runs;
  Progress progress(options.timing);
  for (int run = 0; run < options.timing; ++run) {
    // Unobserved: printing the stages would count.
    Result<CompiledKernel> result = compile({});
    if (!result)
      return result.status();
    runs.push_back(result->stages);
    progress.update(run + 1, "compiling");
  }
  std::string table = timingTable(runs, startUp.times[0].milliseconds);
  std::fputs(table.c_str(), reportStream());
  return Status::ok();
}

Status Run::writeArtifact(const Artifact &artifact) {
  const std::string kind = artifact.name;
  if (kind == "c")
    return writeC();
  std::string text;
  std::string_view bytes;
  if (artifact.file) {
    bytes = stageText;
  } else if (kind == "ptx") {
    bytes = kernel.ptx;
  } else if (kind == "cubin") {
    if (options.writesToStdout() && isatty(STDOUT_FILENO))
      return Status::invalid(
          "emit: a cubin is no text for a terminal; name a file with -o");
    bytes = bytesOf(kernel.cubin);
  } else if (kind == "sass") {
    Result<std::string> sass =
        disassemble(kernel.cubin, compileOptions.assemble);
    if (!sass)
      return sass.status();
    bytes = text = std::move(*sass);
  } else {
    bytes = text = json();
  }
  if (!options.writesToStdout())
    return writeBytes(options.output, bytes);
  bool written =
      std::fwrite(bytes.data(), 1, bytes.size(), stdout) == bytes.size();
  if (std::fflush(stdout) != 0 || !written)
    return Status::error(
        StatusCode::StorageFailed,
        fmt::format("output: cannot write to stdout: {}", strerror(errno)));
  return Status::ok();
}

/// NAME.h and NAME.c of -o PATH/NAME.
Status Run::writeC() {
  if (options.writesToStdout())
    return Status::invalid("emit: c makes two files; name them with -o "
                           "PATH/NAME");
  const std::filesystem::path base = options.output;
  ParamDocs docs;
  if (!program && !options.ptx.isGiven()) // else not a kernel of the spec
    for (const Parameter &parameter : parametersOf(spec))
      docs[parameter.name] =
          describe(parameter.table, *parameter.argument, &spec);
  Result<CSource> source = embedAsC(kernel, base.filename().string(), docs);
  if (!source)
    return source.status();
  Status status = writeBytes(base.string() + ".h", source->header);
  return status ? writeBytes(base.string() + ".c", source->source) : status;
}

Status Run::operator()() {
  if (Status status = setUp(); !status)
    return status;
  if (options.timing)
    if (Status status = timeStages(); !status)
      return status;

  const Artifact *artifact = options.artifact();
  std::string dumpError;
  StageObserver dump;
  if (!options.dumpDirectory.empty())
    dump = dumpStagesTo(options.dumpDirectory, name, &dumpError);
  const std::string wanted = artifact && artifact->file ? artifact->file : "";
  StageObserver observer;
  if (dump || !wanted.empty())
    observer = [&](const std::string &file, const std::string &text) {
      if (dump)
        dump(file, text);
      if (file == wanted)
        stageText = text;
    };
  Result<CompiledKernel> result =
      options.ptx.isGiven()
          ? options.ptx.kernel(givenTarget, compileOptions.assemble,
                               compileOptions.last == Stage::Cubin)
          : compile(observer);
  if (!result)
    return result.status();
  kernel = std::move(*result);
  if (!dumpError.empty())
    return Status::error(StatusCode::NotFound, dumpError);

  if (options.summary)
    std::fputs(summaryTable(kernel).c_str(), reportStream());
  if (artifact)
    if (Status status = writeArtifact(*artifact); !status)
      return status;
  if (!options.outDirectory.empty())
    if (Status status = writeKernelFiles(options.outDirectory, kernel, json());
        !status)
      return status;
  return options.failOnSpill ? checkSpills(kernel) : Status::ok();
}

int replayjit::internal::replayCompile(int argc, char **argv) {
  if (argc > 1 && std::string_view(argv[1]) == "bundle")
    return replayBundle(argc - 1, argv + 1);
  CLI::App app("Compiles a decode kernel of Gated DeltaNet or Kimi Delta "
               "Attention and writes\nthe stage asked for. `replay-compile "
               "bundle` makes all kernels of a model; see its --help.",
               "replay-compile");
  Options options;
  options.addTo(app);
  if (std::optional<int> status = parse(app, argc, argv))
    return *status;
  if (!options.program.empty()) {
    // Its attributes say how, too: of the tuning only the target is left.
    std::vector<CLI::Option *> said = app.get_options([](CLI::Option *option) {
      return option->get_name() == "--readout" ||
             (option->get_group() == "Tuning" &&
              option->get_name() != "--target");
    });
    said.insert(said.end(), options.kernel.facts().begin(),
                options.kernel.facts().end());
    for (const CLI::Option *option : said)
      if (option->count())
        return fail(option->get_name() + ": not allowed with --mlir, whose "
                                         "file says what is computed",
                    exitUsage);
  }
  if (options.timing < 0)
    return fail("timing: a negative count is not allowed", exitUsage);
  if (options.usesCache)
    if (Status status = options.checkCache(); !status)
      return fail(status.message, exitUsage);
  if (const CLI::Option *stray = options.ptx.stray())
    return fail(stray->get_name() + ": needs --from-ptx", exitUsage);
  if (options.ptx.isGiven())
    if (Status status = options.checkPtx(); !status)
      return fail(status.message, exitUsage);
  Status status = Run(options)();
  return status ? 0 : fail(status.text());
}
