//===- capi_processes.cpp - Processes that start on one empty cache -------===//
//
// Usage: capi-processes CACHE_FOLDER. Sixteen ranks, each with a driver, a
// device and a Jit of its own, prepare the same two kernels through the C API:
// each is compiled by one of them.
//
//===----------------------------------------------------------------------===//

#include "tests/capi/FakeDriver.h"

#include <atomic>
#include <filesystem>
#include <new>
#include <string>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

using namespace replayjit::internal::cuda;

static constexpr int ranks = 16, kernels = 2;

/// Of all processes.
struct Totals {
  std::atomic<int> ready, compiles, compiled, damaged;
};

static void hear(void *totals, const char *sentence) {
  std::fprintf(stderr, "%s\n", sentence);
  ++static_cast<Totals *>(totals)->damaged;
}

static void runRank(Totals &all, const char *folder) {
  FakeCuda &fake = *ofDriver<FakeCudaAccess>("fakeCuda")();
  const replayjit_decode_args_t args = makeArgs();
  fake.params = {{0, paramsOf(args).size()}};
  replayjit_device_t *device = nullptr;
  ok(replayjit_device_create_cuda(0, &device));
  replayjit_jit_options_t options;
  replayjit_jit_options_init(&options, sizeof options);
  options.use_environment = 0;
  options.cache_roots = folder;
  options.assembler = "driver";
  options.diagnose = hear;
  options.diagnose_data = &all;
  replayjit_jit_t *jit = nullptr;
  ok(replayjit_jit_create(device, &options, &jit));
  for (++all.ready; all.ready < ranks;)
    usleep(1000);

  for (int i = 0; i < kernels; ++i) {
    replayjit_decode_spec_t spec = smallSpec();
    spec.num_value_heads = i + 1;
    replayjit_kernel_t *kernel = nullptr;
    ok(replayjit_jit_prepare(jit, &spec, 1, &kernel));
    replayjit_kernel_info_t info = {};
    info.struct_size = sizeof info;
    ok(replayjit_kernel_info(kernel, &info));
    all.compiled += info.origin == REPLAYJIT_COMPILED;
    CHECK(fake.loadedImage == "linked cubin");
    replayjit_kernel_release(kernel);
  }
  replayjit_cache_counters_t counters = {};
  counters.struct_size = sizeof counters;
  ok(replayjit_jit_counters(jit, &counters));
  all.compiles += int(counters.compiles);
  CHECK(counters.hits + counters.compiles == kernels);
  replayjit_jit_release(jit);
  replayjit_device_release(device);
}

int main(int argc, char **argv) {
  CHECK(argc == 2);
  std::filesystem::remove_all(argv[1]);
  void *memory = mmap(nullptr, sizeof(Totals), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK(memory != MAP_FAILED);
  Totals &all = *new (memory) Totals{};
  std::vector<pid_t> children;
  for (int i = 0; i < ranks; ++i) {
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
      alarm(240); // One that hangs dies.
      runRank(all, argv[1]);
      std::exit(0);
    }
    children.push_back(child);
  }
  for (pid_t child : children) {
    int state = 0;
    CHECK(waitpid(child, &state, 0) == child);
    CHECK(WIFEXITED(state) && WEXITSTATUS(state) == 0);
  }
  CHECK(all.compiles == kernels);
  CHECK(all.compiled == kernels);
  CHECK(all.damaged == 0);
}
