//===- capi_cuda.cpp - The C API on CUDA, over a driver made up -----------===//
//
// An engine's way: a context of its own, launches under capture, and the choice
// of the assembler. libcuda.so.1 is tests/unit/FakeCuda.cpp here.
//
//===----------------------------------------------------------------------===//

#include "tests/capi/FakeDriver.h"

#include <replayjit/replayjit_state.h>

#include <sys/resource.h>
#include <unistd.h>

using namespace replayjit::internal::cuda;

static void fails(replayjit_error_t *error, int code, const char *text) {
  const char *message = replayjit_error_message(error);
  const bool isAsExpected =
      replayjit_error_code(error) == code && std::strstr(message, text);
  if (!isAsExpected)
    std::fprintf(stderr, "'%s' expected, got: %s\n", text, message);
  CHECK(isAsExpected);
  replayjit_error_destroy(error);
}

/// The options of a Jit without a cache.
static replayjit_jit_options_t uncached(bool usesEnvironment) {
  replayjit_jit_options_t options;
  replayjit_jit_options_init(&options, sizeof options);
  options.use_environment = usesEnvironment;
  options.cache_roots = "";
  return options;
}

/// Preparing with these options says that this path is no assembler.
static void checkMissing(replayjit_device_t *device,
                         const replayjit_jit_options_t &options,
                         const char *path) {
  const replayjit_decode_spec_t spec = smallSpec();
  replayjit_jit_t *jit = nullptr;
  replayjit_kernel_t *kernel = nullptr;
  ok(replayjit_jit_create(device, &options, &jit));
  fails(replayjit_jit_prepare(jit, &spec, 1, &kernel), REPLAYJIT_NOT_FOUND,
        path);
  CHECK(!kernel);
  replayjit_jit_release(jit);
}

/// Each option goes before its own variable and no other.
static void checkAssemblers(replayjit_device_t *device) {
  setenv("REPLAYJIT_PTXAS", "/env/ptxas", 1);
  setenv("REPLAYJIT_NVJITLINK", "/env/nvjitlink", 1);
  unsetenv("REPLAYJIT_ASSEMBLER");
  replayjit_jit_options_t options = uncached(true);
  options.ptxas_path = "/option/ptxas";
  checkMissing(device, options, "/env/nvjitlink");
  options.assembler = "ptxas";
  checkMissing(device, options, "/option/ptxas");

  options = uncached(true);
  options.nvjitlink_path = "/option/nvjitlink";
  checkMissing(device, options, "/option/nvjitlink");
  options.assembler = "ptxas";
  checkMissing(device, options, "/env/ptxas");

  setenv("REPLAYJIT_ASSEMBLER", "ptxas", 1);
  options.assembler = nullptr;
  checkMissing(device, options, "/env/ptxas");
  options.assembler = "nvjitlink";
  checkMissing(device, options, "/option/nvjitlink");
  setenv("REPLAYJIT_ASSEMBLER", "nonsense", 1); // Does not count.
  checkMissing(device, options, "/option/nvjitlink");
}

/// A variable counts where its option is not given, and only there.
static void checkVariables(replayjit_device_t *device) {
  struct Variable {
    const char *name, *wrong;
    void (*give)(replayjit_jit_options_t &);
  };
  for (const Variable &variable :
       {Variable{"REPLAYJIT_MUST_HIT", "garbage",
                 [](replayjit_jit_options_t &o) { o.must_hit = 0; }},
        {"REPLAYJIT_ALWAYS_COMPILE", "yes",
         [](replayjit_jit_options_t &o) { o.always_compile = 0; }},
        {"REPLAYJIT_CACHE_MAX_BYTES", "10MB",
         [](replayjit_jit_options_t &o) { o.cache_max_bytes = 0; }}}) {
    replayjit_jit_options_t options = uncached(true);
    replayjit_jit_t *jit = nullptr;
    setenv(variable.name, variable.wrong, 1);
    fails(replayjit_jit_create(device, &options, &jit),
          REPLAYJIT_INVALID_ARGUMENT, variable.name);
    variable.give(options);
    ok(replayjit_jit_create(device, &options, &jit));
    replayjit_jit_release(jit);
    unsetenv(variable.name);
  }
  // Both at once, unless an option settles it.
  setenv("REPLAYJIT_MUST_HIT", "1", 1);
  setenv("REPLAYJIT_ALWAYS_COMPILE", "1", 1);
  replayjit_jit_options_t options = uncached(true);
  replayjit_jit_t *jit = nullptr;
  fails(replayjit_jit_create(device, &options, &jit),
        REPLAYJIT_INVALID_ARGUMENT, "REPLAYJIT_ALWAYS_COMPILE");
  options.always_compile = 0;
  ok(replayjit_jit_create(device, &options, &jit));
  replayjit_jit_release(jit);
  unsetenv("REPLAYJIT_MUST_HIT");
  unsetenv("REPLAYJIT_ALWAYS_COMPILE");
}

/// Where the address space has no room for a compilation, none begins.
static void checkRoom(replayjit_jit_t *jit,
                      const replayjit_decode_spec_t &spec) {
#ifndef __SANITIZE_ADDRESS__ // Which takes most of the address space.
  long pages = 0;
  FILE *file = std::fopen("/proc/self/statm", "r");
  CHECK(file && std::fscanf(file, "%ld", &pages) == 1);
  std::fclose(file);
  rlimit before;
  CHECK(getrlimit(RLIMIT_AS, &before) == 0);
  rlimit small = before;
  small.rlim_cur = rlim_t(pages) * sysconf(_SC_PAGESIZE) + (16 << 20);
  CHECK(setrlimit(RLIMIT_AS, &small) == 0);
  replayjit_kernel_t *kernel = nullptr;
  replayjit_error_t *error = replayjit_jit_prepare(jit, &spec, 1, &kernel);
  CHECK(setrlimit(RLIMIT_AS, &before) == 0);
  fails(error, REPLAYJIT_OUT_OF_MEMORY,
        "compile: there are no 64 MiB of memory for 1 at once");
  CHECK(!kernel);
  ok(replayjit_jit_prepare(jit, &spec, 1, &kernel));
  replayjit_kernel_release(kernel);
#endif
}

int main() {
  FakeCuda &fake = *ofDriver<FakeCudaAccess>("fakeCuda")();
  const replayjit_decode_args_t args = makeArgs();
  const std::string params = paramsOf(args);
  fake.params = {{0, params.size()}};

  // The engine's context: no other is made or retained.
  replayjit_device_t *device = nullptr;
  fails(replayjit_device_create_cuda_current(&device),
        REPLAYJIT_INVALID_ARGUMENT, "context");
  auto push = ofDriver<CUresult (*)(CUcontext)>("cuCtxPushCurrent_v2");
  CHECK(push(fake.addContext(0)) == 0);
  ok(replayjit_device_create_cuda_current(&device));
  CHECK(!fake.primary(0));
  checkAssemblers(device);
  checkVariables(device);

  replayjit_jit_options_t options = uncached(false);
  options.assembler = "driver";
  const replayjit_decode_spec_t spec = smallSpec();
  replayjit_jit_t *jit = nullptr;
  replayjit_kernel_t *kernel = nullptr, *again = nullptr;
  ok(replayjit_jit_create(device, &options, &jit));
  ok(replayjit_jit_prepare(jit, &spec, 1, &kernel));
  CHECK(fake.linkedPtx.find(".target sm_90") != std::string::npos);
  replayjit_kernel_info_t info = {};
  info.struct_size = sizeof info;
  ok(replayjit_kernel_info(kernel, &info));
  CHECK(std::strstr(info.assembler, "driver"));

  // Under capture: what is there is launched, what is not is refused, and the
  // capture survives both.
  int place = 0;
  const CUstream stream = reinterpret_cast<CUstream>(&place);
  int32_t isCapturing = 7;
  ok(replayjit_device_is_capturing(device, stream, &isCapturing));
  CHECK(isCapturing == 0);
  fake.capturing = {stream};
  for (CUstream asked : {stream, CUstream(nullptr)}) {
    ok(replayjit_device_is_capturing(device, asked, &isCapturing));
    CHECK(isCapturing == 1);
  }
  ok(replayjit_jit_prepare_on(jit, stream, &spec, 1, &again));
  ok(replayjit_kernel_launch(again, stream, &args, 0));
  CHECK(fake.lastLaunch.hStream == stream && fake.lastParams == params);
  CHECK(fake.lastLaunch.gridDimX == 3 * info.blocks_per_row);
  replayjit_decode_spec_t other = spec;
  other.has_dst_indices = 1;
  replayjit_kernel_t *none = nullptr;
  fails(replayjit_jit_prepare_on(jit, stream, &other, 1, &none),
        REPLAYJIT_INVALID_ARGUMENT, "captur");
  CHECK(!none && !fake.isCaptureSpoiled);
  replayjit_decode_tuning_t tuning;
  replayjit_decode_tuning_init(&tuning, sizeof tuning);
  fails(replayjit_jit_prepare_tuned_on(jit, stream, &other, &tuning, &none),
        REPLAYJIT_INVALID_ARGUMENT, "captur");
  const replayjit_decode_spec_t *others[] = {&other};
  const int32_t rows = 1;
  fails(replayjit_jit_prepare_all_on(jit, stream, others, &rows, 1, nullptr,
                                     nullptr, &none, nullptr),
        REPLAYJIT_INVALID_ARGUMENT, "captur");
  CHECK(!none && !fake.isCaptureSpoiled);
  replayjit_pool_group_t group;
  replayjit_pool_group_init(&group, sizeof group);
  group.spec = &spec;
  group.num_layers = 1;
  group.slots = 4;
  replayjit_pool_options_t pooled;
  replayjit_pool_options_init(&pooled, sizeof pooled);
  pooled.stream = stream;
  const replayjit_pool_group_t *groups[] = {&group};
  replayjit_pool_t *pool = nullptr;
  fails(replayjit_pool_allocate(jit, groups, 1, 4, &pooled, &pool),
        REPLAYJIT_INVALID_ARGUMENT, "captur");
  CHECK(!pool && !fake.isCaptureSpoiled);
  fake.capturing.clear();
  checkRoom(jit, other);

  replayjit_kernel_release(again);
  replayjit_kernel_release(kernel);
  replayjit_jit_release(jit);
  replayjit_device_release(device);
  CHECK(fake.liveObjects == 0);
}
