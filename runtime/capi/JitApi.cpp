//===- JitApi.cpp - Jits and kernels of the C API -------------------------===//

#include "runtime/capi/Compiler.h"
#include "runtime/capi/Handles.h"
#include "runtime/capi/Structs.h"
#include "runtime/cache/TuningTable.h"

#include <fmt/format.h>

using namespace replayjit::internal;
using namespace replayjit::internal::capi;

//===----------------------------------------------------------------------===//
// Options
//===----------------------------------------------------------------------===//

static replayjit_jit_options_t defaultOptions() {
  replayjit_jit_options_t options = {};
  options.struct_size = sizeof options;
  options.use_environment = 1;
  options.cache_max_bytes = -1;
  options.must_hit = -1;
  options.always_compile = -1;
  options.compile = 1;
  options.patience_ms = 60'000;
  return options;
}

void replayjit_jit_options_init(replayjit_jit_options_t *options,
                                size_t struct_size) {
  writeStruct(options, struct_size, defaultOptions());
}

static std::vector<std::string> splitRoots(std::string_view roots) {
  std::vector<std::string> folders;
  while (!roots.empty()) {
    const size_t end = std::min(roots.find(':'), roots.size());
    if (end > 0)
      folders.emplace_back(roots.substr(0, end));
    roots.remove_prefix(std::min(end + 1, roots.size()));
  }
  return folders;
}

static Status checkOptions(const replayjit_jit_options_t &options) {
  const struct {
    const char *name;
    int64_t value, least, most;
  } checks[] = {
      {"use_environment", options.use_environment, 0, 1},
      {"cache_max_bytes", options.cache_max_bytes, -1, INT64_MAX},
      {"cache_read_only", options.cache_read_only, 0, 1},
      {"must_hit", options.must_hit, -1, 1},
      {"always_compile", options.always_compile, -1, 1},
      {"compile", options.compile, 0, 1},
      {"workers", options.workers, 0, INT32_MAX},
      {"patience_ms", options.patience_ms, 0, INT32_MAX},
  };
  for (const auto &[name, value, least, most] : checks)
    if (value < least || value > most)
      return Status::invalid(
          fmt::format("{}: {} is not allowed; it must be {} to {}", name, value,
                      least, most));
  return Status::ok();
}

/// Only of what no option is given: a variable that does not count need not be
/// right.
static Status readEnvironment(const replayjit_jit_options_t &given,
                              JitOptions &options) {
  if (!given.tuning_file)
    options.tuningFile = tuningFileFromEnvironment();
  if (!given.cache_roots)
    options.cache.roots = DiskCacheOptions::rootsFromEnvironment();
  auto read = [](bool isGiven, auto fromEnvironment, auto &value) {
    if (isGiven)
      return Status::ok();
    const auto found = fromEnvironment();
    if (found)
      value = *found;
    return found.status();
  };
  for (const Status &status :
       {read(given.cache_max_bytes >= 0,
             DiskCacheOptions::maxBytesFromEnvironment, options.cache.maxBytes),
        read(given.must_hit >= 0, CompileOnceOptions::mustHitFromEnvironment,
             options.once.mustHit),
        read(given.always_compile >= 0,
             CompileOnceOptions::alwaysCompileFromEnvironment,
             options.once.alwaysCompile)})
    if (!status)
      return status;
  return Status::ok();
}

static Result<JitOptions> toOptions(const replayjit_jit_options_t *given) {
  replayjit_jit_options_t c = defaultOptions();
  if (given) {
    Result<replayjit_jit_options_t> read = readStruct(given, c, "options");
    if (!read)
      return read.status();
    c = *read;
  }
  if (Status status = checkOptions(c); !status)
    return status;

  Result<JitOptions> options = JitOptions();
  if (c.use_environment)
    if (Status status = readEnvironment(c, *options); !status)
      return status;
  if (c.cache_roots)
    options->cache.roots = splitRoots(c.cache_roots);
  if (c.tuning_file)
    options->tuningFile = c.tuning_file;
  if (c.cache_max_bytes >= 0)
    options->cache.maxBytes = c.cache_max_bytes;
  options->cache.isReadOnly = c.cache_read_only;
  // Who asked for no cache need not hear that there is none.
  const bool isWanted =
      !options->cache.roots.empty() || (c.use_environment && !c.cache_roots);
  if (c.diagnose && isWanted)
    options->cache.diagnose = [hear = c.diagnose, data = c.diagnose_data](
                                  const std::string &sentence) {
      hear(data, sentence.c_str());
    };
  if (c.must_hit >= 0)
    options->once.mustHit = c.must_hit;
  if (c.always_compile >= 0)
    options->once.alwaysCompile = c.always_compile;
  options->once.patience = std::chrono::milliseconds(c.patience_ms);
  options->workers = c.workers;
  if (c.compile) {
    Result<CompileFn> compile = makeCompiler(c);
    if (!compile)
      return compile.status();
    options->compile = std::move(*compile);
  }
  return options;
}

//===----------------------------------------------------------------------===//
// Jits
//===----------------------------------------------------------------------===//

replayjit_error_t *replayjit_jit_create(replayjit_device_t *device,
                                        const replayjit_jit_options_t *options,
                                        replayjit_jit_t **jit) try {
  if (Status status = need(device, "device"); !status)
    return toError(status);
  if (Status status = need(jit, "jit"); !status)
    return toError(status);
  Result<JitOptions> read = toOptions(options);
  if (!read)
    return toError(read.status());
  Result<std::unique_ptr<Jit>> created =
      Jit::create(device->device, std::move(*read));
  if (!created)
    return toError(created.status());
  auto *handle = new replayjit_jit_t;
  handle->jit = std::move(*created);
  *jit = handle;
  return nullptr;
} catch (...) {
  return caught();
}

void replayjit_jit_retain(replayjit_jit_t *jit) { retain(jit); }
void replayjit_jit_release(replayjit_jit_t *jit) { release(jit); }

/// `prepare` is called with the spec, once all pointers are known to be there.
template <typename Prepare>
static replayjit_error_t *
prepareWith(replayjit_jit_t *jit, const replayjit_decode_spec_t *spec,
            replayjit_kernel_t **kernel, Prepare prepare) {
  if (Status status = need(jit, "jit"); !status)
    return toError(status);
  if (Status status = need(kernel, "kernel"); !status)
    return toError(status);
  Result<DecodeSpec> asked = toSpec(spec);
  if (!asked)
    return toError(asked.status());
  Result<KernelHandle> prepared = prepare(*asked);
  if (!prepared)
    return toError(prepared.status());
  *kernel = new replayjit_kernel_t(std::move(*prepared));
  return nullptr;
}

replayjit_error_t *replayjit_jit_prepare(replayjit_jit_t *jit,
                                         const replayjit_decode_spec_t *spec,
                                         int32_t rows,
                                         replayjit_kernel_t **kernel) try {
  return replayjit_jit_prepare_on(jit, nullptr, spec, rows, kernel);
} catch (...) {
  return caught();
}

replayjit_error_t *replayjit_jit_prepare_on(replayjit_jit_t *jit, void *stream,
                                            const replayjit_decode_spec_t *spec,
                                            int32_t rows,
                                            replayjit_kernel_t **kernel) try {
  return prepareWith(jit, spec, kernel, [&](const DecodeSpec &asked) {
    return jit->jit->prepare(asked, rows, stream);
  });
} catch (...) {
  return caught();
}

replayjit_error_t *replayjit_jit_prepare_tuned(
    replayjit_jit_t *jit, const replayjit_decode_spec_t *spec,
    const replayjit_decode_tuning_t *tuning, replayjit_kernel_t **kernel) try {
  return replayjit_jit_prepare_tuned_on(jit, nullptr, spec, tuning, kernel);
} catch (...) {
  return caught();
}

replayjit_error_t *replayjit_jit_prepare_tuned_on(
    replayjit_jit_t *jit, void *stream, const replayjit_decode_spec_t *spec,
    const replayjit_decode_tuning_t *tuning, replayjit_kernel_t **kernel) try {
  return prepareWith(jit, spec, kernel,
                     [&](const DecodeSpec &asked) -> Result<KernelHandle> {
                       Result<DecodeTuning> choice = toTuning(tuning);
                       if (!choice)
                         return choice.status();
                       return jit->jit->prepare(asked, *choice, stream);
                     });
} catch (...) {
  return caught();
}

replayjit_error_t *replayjit_jit_prepare_all(
    replayjit_jit_t *jit, const replayjit_decode_spec_t *const *specs,
    const int32_t *rows, size_t count, replayjit_progress_fn progress,
    void *progress_data, replayjit_kernel_t **kernels,
    replayjit_error_t **errors) try {
  return replayjit_jit_prepare_all_on(jit, nullptr, specs, rows, count,
                                      progress, progress_data, kernels, errors);
} catch (...) {
  return caught();
}

replayjit_error_t *replayjit_jit_prepare_all_on(
    replayjit_jit_t *jit, void *stream,
    const replayjit_decode_spec_t *const *specs, const int32_t *rows,
    size_t count, replayjit_progress_fn progress, void *progress_data,
    replayjit_kernel_t **kernels, replayjit_error_t **errors) try {
  // Whatever is refused below, the caller may release and destroy all of them.
  if (kernels)
    std::fill_n(kernels, count, nullptr);
  if (errors)
    std::fill_n(errors, count, nullptr);
  if (Status status = need(jit, "jit"); !status)
    return toError(status);
  if (count == 0)
    return nullptr;
  for (auto [pointer, name] :
       {std::pair<const void *, const char *>(specs, "specs"),
        {rows, "rows"},
        {kernels, "kernels"}})
    if (Status status = need(pointer, name); !status)
      return toError(status);

  std::vector<KernelRequest> requests;
  for (size_t i = 0; i < count; ++i) {
    Result<DecodeSpec> spec = toSpec(specs[i]);
    if (!spec) // The caller's bug, found before anything is compiled.
      return toError(Status(spec.status()).within(fmt::format("specs[{}]", i)));
    requests.push_back({*spec, rows[i]});
  }
  Jit::Progress hear;
  if (progress)
    hear = [&](size_t done, size_t total, const Result<KernelHandle> &outcome) {
      const replayjit_error_t error{outcome.status()};
      progress(progress_data, done, total,
               outcome ? outcome->info().name.c_str() : nullptr,
               outcome ? nullptr : &error);
    };
  std::vector<Result<KernelHandle>> outcomes =
      jit->jit->prepareAll(requests, hear, stream);
  replayjit_error_t *first = nullptr;
  for (size_t i = 0; i < count; ++i) {
    Result<KernelHandle> &outcome = outcomes[i];
    kernels[i] = outcome ? new replayjit_kernel_t(*outcome) : nullptr;
    if (errors)
      errors[i] = outcome ? nullptr : toError(outcome.status());
    if (!outcome && !first)
      first = toError(outcome.status());
  }
  return first;
} catch (...) {
  return caught();
}

void replayjit_cache_counters_init(replayjit_cache_counters_t *counters,
                                   size_t struct_size) {
  writeStruct(counters, struct_size, replayjit_cache_counters_t{});
}

replayjit_error_t *
replayjit_jit_counters(const replayjit_jit_t *jit,
                       replayjit_cache_counters_t *counters) try {
  if (Status status = need(jit, "jit"); !status)
    return toError(status);
  const CacheCounters seen = jit->jit->counters();
  replayjit_cache_counters_t whole = {};
  whole.hits = seen.hits;
  whole.misses = seen.misses;
  whole.compiles = seen.compiles;
  whole.waits = seen.waits;
  return toError(fillIn(counters, whole, "counters"));
} catch (...) {
  return caught();
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

void replayjit_kernel_retain(replayjit_kernel_t *kernel) { retain(kernel); }
void replayjit_kernel_release(replayjit_kernel_t *kernel) { release(kernel); }

void replayjit_kernel_info_init(replayjit_kernel_info_t *info,
                                size_t struct_size) {
  writeStruct(info, struct_size, replayjit_kernel_info_t{});
}

replayjit_error_t *replayjit_kernel_info(const replayjit_kernel_t *kernel,
                                         replayjit_kernel_info_t *info) try {
  if (Status status = need(kernel, "kernel"); !status)
    return toError(status);
  const KernelInfo &known = kernel->kernel.info();
  replayjit_kernel_info_t whole = {};
  whole.origin = int32_t(known.origin);
  whole.name = known.name.c_str();
  whole.chip = known.target.chip.c_str();
  whole.assembler = known.assembler.c_str();
  whole.blocks_per_row = known.launch.blocksPerRow;
  whole.threads = known.launch.threads;
  whole.shared_bytes = known.launch.sharedBytes;
  whole.registers = known.resources.registers;
  whole.spill_store_bytes = known.resources.spillStoreBytes;
  whole.spill_load_bytes = known.resources.spillLoadBytes;
  whole.stack_bytes = known.resources.stackBytes;
  whole.static_shared_bytes = known.resources.staticSharedBytes;
  return toError(fillIn(info, whole, "info"));
} catch (...) {
  return caught();
}

replayjit_error_t *replayjit_kernel_spec(const replayjit_kernel_t *kernel,
                                         replayjit_decode_spec_t *spec) try {
  if (Status status = need(kernel, "kernel"); !status)
    return toError(status);
  return toError(fillIn(spec, fromSpec(kernel->kernel.info().spec), "spec"));
} catch (...) {
  return caught();
}

replayjit_error_t *
replayjit_kernel_tuning(const replayjit_kernel_t *kernel,
                        replayjit_decode_tuning_t *tuning) try {
  if (Status status = need(kernel, "kernel"); !status)
    return toError(status);
  return toError(
      fillIn(tuning, fromTuning(kernel->kernel.info().tuning), "tuning"));
} catch (...) {
  return caught();
}

template <typename Args, typename Struct>
static replayjit_error_t *launchWith(const replayjit_kernel_t *kernel,
                                     void *stream, const Struct *given,
                                     uint32_t flags) {
  constexpr uint32_t known =
      REPLAYJIT_LAUNCH_UNCHECKED | REPLAYJIT_LAUNCH_PROGRAMMATIC |
      REPLAYJIT_LAUNCH_CHECK_MEMORY | REPLAYJIT_LAUNCH_CHECK_ROWS;
  if (Status status = need(kernel, "kernel"); !status)
    return toError(status);
  if (flags & ~known)
    return toError(Status::invalid(
        fmt::format("flags: {:#x} is not allowed; this library knows {:#x}",
                    flags, known)));
  for (auto [check, name] :
       {std::pair(REPLAYJIT_LAUNCH_CHECK_MEMORY, "CHECK_MEMORY"),
        {REPLAYJIT_LAUNCH_CHECK_ROWS, "CHECK_ROWS"}})
    if ((flags & check) && (flags & REPLAYJIT_LAUNCH_UNCHECKED))
      return toError(Status::invalid(
          fmt::format("flags: {:#x} is not allowed; UNCHECKED and {} exclude "
                      "each other",
                      flags, name)));
  Args args;
  if (Status status = readArgs(given, args); !status)
    return toError(status);
  auto also = [&](uint32_t flag, ArgsCheck part) {
    return flags & flag ? part : ArgsCheck::None;
  };
  const ArgsCheck check =
      flags & REPLAYJIT_LAUNCH_UNCHECKED
          ? ArgsCheck::None
          : ArgsCheck::Full |
                also(REPLAYJIT_LAUNCH_CHECK_MEMORY, ArgsCheck::Memory) |
                also(REPLAYJIT_LAUNCH_CHECK_ROWS, ArgsCheck::Rows);
  const LaunchOrder order = flags & REPLAYJIT_LAUNCH_PROGRAMMATIC
                                ? LaunchOrder::Programmatic
                                : LaunchOrder::Serial;
  return toError(kernel->kernel.launchOn(stream, args, check, order));
}

replayjit_error_t *replayjit_kernel_launch(const replayjit_kernel_t *kernel,
                                           void *stream,
                                           const replayjit_decode_args_t *args,
                                           uint32_t flags) try {
  return launchWith<DecodeArgs>(kernel, stream, args, flags);
} catch (...) {
  return caught();
}

replayjit_error_t *replayjit_kernel_launch_materialize(
    const replayjit_kernel_t *kernel, void *stream,
    const replayjit_materialize_args_t *args, uint32_t flags) try {
  return launchWith<MaterializeArgs>(kernel, stream, args, flags);
} catch (...) {
  return caught();
}
