//===- capi_memory.cpp - When memory is out -------------------------------===//
//
// Every function that can fail, but for compiling and emulated launches, while
// the library's allocations fail: each once, or each with all after it for
// which what was in use by then, and has been freed since, is not enough. A
// call then returns OUT_OF_MEMORY, or does without; the same call right after
// it works; and in the end nothing is left, neither memory of the library nor
// an object of the driver. This program's malloc stands before the C library's
// and looks at who calls. Kernels come from a cache filled with made-up ones.
//
// Usage: capi-memory CACHE-FOLDER
//
//===----------------------------------------------------------------------===//

#include "tests/capi/FakeDriver.h"

#include "runtime/DecodeLaunch.h"
#include "runtime/aot/ModelKernels.h"
#include "runtime/cache/DiskCache.h"

#include <replayjit/replayjit_state.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <limits>
#include <link.h>
#include <map>
#include <mutex>

using namespace replayjit::internal;
using namespace replayjit::internal::cuda;

//===----------------------------------------------------------------------===//
// Allocations
//===----------------------------------------------------------------------===//

extern "C" void *__libc_malloc(size_t);
extern "C" void __libc_free(void *);

namespace {

enum class Failing { Once, BeyondWhatIsInUse };

/// Of the library's allocations.
struct Allocations {
  std::recursive_mutex mutex;
  bool isInside = false; ///< What is called in here does not count.
  bool isArmed = false;  ///< Allocations fail as the next two say.
  long before = 0;       ///< So many more succeed.
  Failing failing = Failing::Once;
  long failed = 0;                 ///< So many did not.
  size_t bytes = 0, mostBytes = 0; ///< In use now, and when the first failed.
  std::map<void *, size_t> live;

  bool fails(size_t size) {
    if (!isArmed || --before >= 0)
      return false;
    if (before == -1)
      mostBytes = bytes;
    return before == -1 ||
           (failing == Failing::BeyondWhatIsInUse && bytes + size > mostBytes);
  }
};
Allocations &allocations() {
  static Allocations &all = *new Allocations;
  return all;
}

} // namespace

/// Where the library's code is.
static uintptr_t codeBegin = 0, codeEnd = 0;

static void findCode() {
  Dl_info info = {};
  CHECK(dladdr(reinterpret_cast<void *>(replayjit_version), &info));
  codeBegin = reinterpret_cast<uintptr_t>(info.dli_fbase);
  dl_iterate_phdr(
      [](dl_phdr_info *object, size_t, void *) {
        if (object->dlpi_addr == codeBegin)
          for (int i = 0; i < object->dlpi_phnum; ++i)
            codeEnd =
                std::max(codeEnd, codeBegin + object->dlpi_phdr[i].p_vaddr +
                                      object->dlpi_phdr[i].p_memsz);
        return 0;
      },
      nullptr);
  CHECK(codeEnd > codeBegin);
}

static bool isOurs(void *caller) {
  const auto address = reinterpret_cast<uintptr_t>(caller);
  return address >= codeBegin && address < codeEnd;
}

static std::atomic<bool> isCounting = false;

extern "C" void *malloc(size_t bytes) {
  void *const caller = __builtin_return_address(0);
  if (!isCounting)
    return __libc_malloc(bytes);
  Allocations &all = allocations();
  std::lock_guard lock(all.mutex);
  if (all.isInside)
    return __libc_malloc(bytes);
  all.isInside = true;
  void *memory = nullptr;
  if (!isOurs(caller)) {
    memory = __libc_malloc(bytes);
  } else if (all.fails(bytes)) {
    ++all.failed;
  } else {
    memory = __libc_malloc(bytes);
    all.live[memory] = bytes;
    all.bytes += bytes;
  }
  all.isInside = false;
  return memory;
}

extern "C" void free(void *memory) {
  if (isCounting) {
    Allocations &all = allocations();
    std::lock_guard lock(all.mutex);
    if (!all.isInside) {
      all.isInside = true;
      if (auto found = all.live.find(memory); found != all.live.end()) {
        all.bytes -= found->second;
        all.live.erase(found);
      }
      all.isInside = false;
    }
  }
  __libc_free(memory);
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

/// Makes a call while allocations fail and, if it says that they did, once more
/// with memory. `code` is what it answers then.
template <typename Call> static void call(Call make, int code = REPLAYJIT_OK) {
  Allocations &all = allocations();
  all.isArmed = true;
  replayjit_error_t *error = make();
  all.isArmed = false;
  if (replayjit_error_code(error) == REPLAYJIT_OUT_OF_MEMORY) {
    CHECK(all.failed > 0);
    CHECK(std::strcmp(replayjit_error_message(error), "out of memory") == 0);
    CHECK(*replayjit_error_stage(error) == 0 &&
          *replayjit_error_log(error) == 0);
    replayjit_error_destroy(error);
    error = make();
  }
  if (replayjit_error_code(error) != code)
    std::fprintf(stderr, "code %d: %s\n", replayjit_error_code(error),
                 replayjit_error_message(error));
  CHECK(replayjit_error_code(error) == code);
  replayjit_error_destroy(error);
}

template <typename Struct> static Struct sized() {
  Struct whole = {};
  whole.struct_size = sizeof whole;
  return whole;
}

/// A layer shape with a ring.
static replayjit_decode_spec_t ringSpec() {
  replayjit_decode_spec_t spec;
  replayjit_decode_spec_init(&spec, sizeof spec);
  spec.num_key_heads = spec.num_value_heads = 1;
  spec.head_dim_k = spec.head_dim_v = 32;
  spec.ring_depth = 4;
  return spec;
}

static void useSpecs(const replayjit_decode_spec_t &spec) {
  replayjit_decode_spec_t model;
  replayjit_decode_spec_init(&model, sizeof model);
  call([&] { return replayjit_decode_spec_from_model(&model, "kimi-k3", 8); });
  call([&] { return replayjit_decode_spec_from_model(&model, "none", 8); },
       REPLAYJIT_INVALID_ARGUMENT);
  replayjit_decode_tuning_t tuning;
  replayjit_decode_tuning_init(&tuning, sizeof tuning);
  call([&] { return replayjit_target_supports("sm_90a", &spec, nullptr); });
  call([&] {
    return replayjit_target_choose_tuning("sm_90a", 132, &spec, 1, &tuning);
  });
  replayjit_layer_t layer = {};
  call([&] { return replayjit_layer_validate(&spec, &layer); },
       REPLAYJIT_INVALID_ARGUMENT);
  int32_t position = 7, base = 0;
  call(
      [&] { return replayjit_ring_cursor_advance(&spec, &position, &base, 0); },
      REPLAYJIT_INVALID_ARGUMENT);
  int64_t bytes = 0, ring = 0, states = 0;
  const replayjit_decode_spec_t *specs[] = {&spec};
  const int32_t layers = 3;
  call([&] { return replayjit_state_bytes(&spec, &bytes, &ring); });
  call([&] {
    return replayjit_pool_bytes(specs, &layers, 1, 10, 2, 5, &bytes);
  });
  call([&] {
    return replayjit_pool_states(specs, &layers, 1, 2, 5, bytes, &states);
  });
  CHECK(states == 10);
  int32_t family = 0, depth = 0, ring_type = 0;
  call([&] {
    return replayjit_decode_spec_recommend(&spec, 64, -5, &family, &depth,
                                           &ring_type);
  });
}

static void useDevice(replayjit_device_t *device) {
  auto info = sized<replayjit_device_info_t>();
  call([&] { return replayjit_device_info(device, &info); });
  uint64_t address = 0;
  char bytes[64] = {};
  call([&] {
    return replayjit_device_allocate(device, sizeof bytes, "bytes", &address);
  });
  call([&] {
    return replayjit_device_copy_to(device, address, bytes, sizeof bytes);
  });
  call([&] {
    return replayjit_device_copy_from(device, bytes, address, sizeof bytes);
  });
  call([&] { return replayjit_device_free(device, address); });
  void *host = nullptr;
  call([&] {
    return replayjit_device_allocate_mapped(device, 64, "word", &host,
                                            &address);
  });
  call([&] { return replayjit_device_free_mapped(device, host, address); });
  int32_t isCapturing = 0;
  call([&] {
    return replayjit_device_is_capturing(device, nullptr, &isCapturing);
  });
  call([&] { return replayjit_device_synchronize(device, nullptr); });
}

static void useKernels(replayjit_jit_t *jit,
                       const replayjit_decode_spec_t &spec) {
  replayjit_kernel_t *kernel = nullptr, *other = nullptr;
  call([&] { return replayjit_jit_prepare(jit, &spec, 1, &kernel); });
  call([&] { return replayjit_jit_prepare(jit, &spec, -1, &other); },
       REPLAYJIT_INVALID_ARGUMENT);
  auto info = sized<replayjit_kernel_info_t>();
  call([&] { return replayjit_kernel_info(kernel, &info); });
  auto known = sized<replayjit_decode_spec_t>();
  call([&] { return replayjit_kernel_spec(kernel, &known); });
  auto tuning = sized<replayjit_decode_tuning_t>();
  call([&] { return replayjit_kernel_tuning(kernel, &tuning); });
  call(
      [&] { return replayjit_jit_prepare_tuned(jit, &spec, &tuning, &other); });
  replayjit_kernel_release(other);

  replayjit_decode_spec_t missing = spec;
  missing.ring_depth = 5;
  call([&] { return replayjit_jit_prepare(jit, &missing, 1, &other); },
       REPLAYJIT_NOT_FOUND);
  replayjit_decode_spec_t packed = smallSpec();
  const replayjit_decode_spec_t *specs[] = {&spec, &packed, &missing};
  const int32_t rows[] = {1, 1, 1};
  replayjit_kernel_t *kernels[3] = {};
  replayjit_error_t *errors[3] = {};
  auto hear = [](void *, size_t, size_t, const char *,
                 const replayjit_error_t *) {};
  auto releaseAll = [&] {
    for (replayjit_kernel_t *each : kernels)
      replayjit_kernel_release(each);
    for (replayjit_error_t *each : errors)
      replayjit_error_destroy(each);
  };
  call(
      [&] {
        releaseAll();
        return replayjit_jit_prepare_all(jit, specs, rows, 3, hear, nullptr,
                                         kernels, errors);
      },
      REPLAYJIT_NOT_FOUND);
  CHECK(kernels[0] && kernels[1] && !kernels[2] && !errors[0] && errors[2]);
  replayjit_decode_args_t args = makeArgs();
  call([&] { return replayjit_kernel_launch(kernels[1], nullptr, &args, 0); });
  args.batch = -1;
  call([&] { return replayjit_kernel_launch(kernels[1], nullptr, &args, 0); },
       REPLAYJIT_INVALID_ARGUMENT);
  releaseAll();

  replayjit_decode_spec_t materialize = spec;
  materialize.family = REPLAYJIT_FAMILY_MATERIALIZE;
  call([&] {
    return replayjit_jit_prepare_on(jit, nullptr, &materialize, 0, &other);
  });
  replayjit_materialize_args_t layers;
  replayjit_materialize_args_init(&layers, sizeof layers);
  layers.batch = -1;
  call(
      [&] {
        return replayjit_kernel_launch_materialize(other, nullptr, &layers, 0);
      },
      REPLAYJIT_INVALID_ARGUMENT);
  auto counters = sized<replayjit_cache_counters_t>();
  call([&] { return replayjit_jit_counters(jit, &counters); });
  replayjit_kernel_release(other);
  replayjit_kernel_release(kernel);
}

static void usePlan(replayjit_device_t *device, replayjit_pool_t *pool) {
  size_t bytes = 0;
  call([&] { return replayjit_plan_bytes(pool, 2, &bytes); });
  uint64_t memory = 0, keys = 0;
  ok(replayjit_device_allocate(device, bytes + 256, "plan", &memory));
  ok(replayjit_device_allocate(device, 64, "keys", &keys));
  replayjit_plan_t *plan = nullptr, *adopted = nullptr;
  call([&] { return replayjit_plan_create(pool, 2, 0, &plan); });
  call([&] {
    return replayjit_plan_create(pool, 2, (memory + 255) / 256 * 256, &adopted);
  });
  replayjit_group_indices_t indices = {};
  indices.state = indices.dst = keys;
  indices.state_stride = indices.ring_stride = 1;
  indices.dst_stride = indices.track_stride = 1;
  replayjit_step_inputs_t inputs;
  replayjit_step_inputs_init(&inputs, sizeof inputs);
  inputs.live = 1;
  inputs.keys = keys;
  inputs.groups = &indices;
  call([&] { return replayjit_plan_materialize(plan, nullptr, &inputs); });
  call([&] { return replayjit_plan_copy(plan, nullptr, &inputs); });
  call([&] { return replayjit_plan_prepare_extend(plan, nullptr, &inputs); },
       REPLAYJIT_INVALID_ARGUMENT);
  indices.dst = 0;
  call([&] { return replayjit_plan_require_flushed(plan, nullptr, &inputs); });
  call([&] { return replayjit_plan_begin(plan, nullptr, 1, &inputs); });
  replayjit_decode_args_t args;
  replayjit_decode_args_init(&args, sizeof args);
  call([&] { return replayjit_plan_layer_args(plan, 0, 0, 0, 1, &args); });
  call([&] { return replayjit_plan_commit(plan, nullptr, 1, 0); });
  call([&] { return replayjit_plan_set_step(plan, nullptr, 2, 1); });
  call([&] { return replayjit_plan_begin_captured(plan, nullptr, &inputs); });
  call([&] { return replayjit_plan_commit_captured(plan, nullptr, 0); });
  replayjit_plan_release(adopted);
  replayjit_plan_release(plan);
  ok(replayjit_device_free(device, keys));
  ok(replayjit_device_free(device, memory));
}

static void useImages(replayjit_pool_t *pool) {
  const replayjit_group_slot_t slot = {1, 1};
  char *image = nullptr;
  size_t bytes = 0;
  call([&] {
    return replayjit_pool_export(pool, nullptr, &slot, 0,
                                 REPLAYJIT_IMAGE_WITH_RING, &image, &bytes);
  });
  const char *images[] = {image};
  call([&] {
    return replayjit_pool_import(pool, nullptr, &slot, 0, images, &bytes, 1);
  });
  replayjit_image_destroy(image);
  CHECK(replayjit_pool_region_count(pool) == 8);
  auto region = sized<replayjit_region_t>();
  call([&] { return replayjit_pool_region(pool, 7, &region); });
}

static void usePools(replayjit_device_t *device, replayjit_jit_t *jit,
                     const replayjit_decode_spec_t &spec) {
  replayjit_pool_group_t group;
  replayjit_pool_group_init(&group, sizeof group);
  group.spec = &spec;
  group.num_layers = 2;
  group.slots = 3;
  const replayjit_pool_group_t *groups[] = {&group};
  replayjit_pool_t *pool = nullptr;
  call([&] {
    return replayjit_pool_allocate(jit, groups, 1, 4, nullptr, &pool);
  });
  auto cursors = sized<replayjit_cursors_t>();
  call([&] { return replayjit_pool_cursors(pool, &cursors); });
  replayjit_decode_args_t args;
  replayjit_decode_args_init(&args, sizeof args);
  call([&] { return replayjit_pool_layer_args(pool, 0, 1, &args); });
  replayjit_error_word_t word;
  call([&] { return replayjit_pool_poll_errors(pool, &word); });
  call([&] { return replayjit_pool_clear_errors(pool); });
  replayjit_kernel_t *kernel = nullptr;
  call([&] { return replayjit_pool_prepare(pool, 0, 1, &kernel); });
  replayjit_kernel_release(kernel);
  usePlan(device, pool);
  useImages(pool);
  call([&] { return replayjit_pool_reset(pool, nullptr); });

  replayjit_layer_t layers[2];
  for (replayjit_layer_t &layer : layers)
    layer = {args.state,       args.d_ring,  args.k_ring,  args.g_ring,
             args.state_pitch, args.d_pitch, args.k_pitch, args.g_pitch};
  group.layers = layers;
  replayjit_pool_t *adopted = nullptr;
  call([&] {
    return replayjit_pool_adopt(jit, groups, 1, &cursors, nullptr, &adopted);
  });
  replayjit_pool_release(adopted);
  replayjit_pool_release(pool);
}

static void useAll(const char *cache) {
  const replayjit_decode_spec_t spec = ringSpec();
  replayjit_device_t *device = nullptr, *current = nullptr, *cpu = nullptr;
  call([&] { return replayjit_device_create_cuda(0, &device); });
  call([&] { return replayjit_device_create_cuda_current(&current); },
       REPLAYJIT_INVALID_ARGUMENT);
  call([&] { return replayjit_device_create_emulation("sm_90a", &cpu); });
  useDevice(device);
  useDevice(cpu);
  replayjit_device_release(cpu);
  useSpecs(spec);

  replayjit_jit_options_t options;
  replayjit_jit_options_init(&options, sizeof options);
  options.cache_roots = cache;
  options.must_hit = 1;
  options.compile = 0;
  options.workers = 2;
  options.diagnose = [](void *, const char *) {};
  replayjit_jit_t *jit = nullptr;
  call([&] { return replayjit_jit_create(device, &options, &jit); });
  useKernels(jit, spec);
  usePools(device, jit, spec);
  replayjit_jit_release(jit);
  replayjit_device_release(device);
}

//===----------------------------------------------------------------------===//
// All of it
//===----------------------------------------------------------------------===//

/// Made-up kernels, which the fake driver loads, for all that is asked above.
static void fill(const char *folder) {
  DiskCacheOptions options;
  options.roots = {folder};
  Result<DiskCache> cache = DiskCache::open(options);
  CHECK(cache);
  DecodeSpec spec;
  spec.numKeyHeads = spec.numValueHeads = 1;
  spec.headDimK = spec.headDimV = 32;
  spec.ringDepth = 4;
  Result<Target> target = Target::parse("sm_90a");
  CHECK(target);
  for (const CompileRequest &request :
       kernelsOfModel(spec, 1, *target, {132}, Pointers::Aligned)) {
    CompiledKernel kernel;
    kernel.name = kernelName(request.spec, request.tuning);
    kernel.target = request.target;
    kernel.signature.bytes = paramBytesOf(request.spec);
    kernel.launch = {1, 128, 0};
    kernel.ptx = "made up";
    kernel.cubin = {'m', 'a', 'd', 'e', ' ', 'u', 'p', '\0'};
    kernel.assembler = "nothing";
    CHECK(cache->publish(
        CacheKey::of(request.spec, request.tuning, request.target), kernel));
  }
}

int main(int argc, char **argv) {
  CHECK(argc == 2);
  std::filesystem::remove_all(argv[1]);
  fill(argv[1]);
  FakeCuda &fake = *ofDriver<FakeCudaAccess>("fakeCuda")();
  Allocations &all = allocations();
  findCode();
  isCounting = true;
  // What the library keeps for good it makes here, and some memory is there for
  // the exceptions of the C++ library.
  all.before = std::numeric_limits<long>::max();
  useAll(argv[1]);
  const size_t kept = all.live.size();
  CHECK(fake.liveObjects == 0);

  // Many thousands of allocations: some of them, other ones in each way.
  constexpr long stride = 97;
  long runs = 0;
  for (Failing failing : {Failing::Once, Failing::BeyondWhatIsInUse})
    for (long before = failing == Failing::Once ? 0 : stride / 2, failed = 1;
         failed > 0; before += stride, ++runs) {
      all.before = before;
      all.failing = failing;
      all.failed = 0;
      fake.calls.clear();
      useAll(argv[1]);
      failed = all.failed;
      if (fake.liveObjects != 0 || all.live.size() != kept)
        std::fprintf(stderr, "after %ld allocations: %d objects, %zu of %zu\n",
                     before, fake.liveObjects, all.live.size(), kept);
      CHECK(fake.liveObjects == 0 && all.live.size() == kept);
    }
  CHECK(runs > 20); // The counters count.
  std::printf("%ld runs\n", runs);
}
