//===- capi_launch.cpp - What a launch does not do ------------------------===//
//
// Calls of malloc and of locks that the library makes itself are counted: this
// program's functions stand before the C library's, and look at who calls.
//
//===----------------------------------------------------------------------===//

#include "tests/capi/FakeDriver.h"

#include <atomic>
#include <pthread.h>

using namespace replayjit::internal::cuda;

namespace {
std::atomic<bool> isCounting = false;
std::atomic<int> allocations = 0, locks = 0;
} // namespace

static void countIfOurs(std::atomic<int> &counter, void *caller) {
  Dl_info info = {};
  if (isCounting.exchange(false)) { // What this calls is not counted.
    if (dladdr(caller, &info) && std::strstr(info.dli_fname, "libreplayjit"))
      ++counter;
    isCounting = true;
  }
}

// Not where a sanitizer has functions of its own in their place.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
static constexpr bool counts = false;
#else
static constexpr bool counts = true;
#define CALLER __builtin_return_address(0)

extern "C" void *__libc_malloc(size_t);
extern "C" void *malloc(size_t bytes) {
  countIfOurs(allocations, CALLER);
  return __libc_malloc(bytes);
}

template <typename Lock> static int next(const char *name, Lock *lock) {
  return reinterpret_cast<int (*)(Lock *)>(dlsym(RTLD_NEXT, name))(lock);
}
extern "C" int pthread_mutex_lock(pthread_mutex_t *mutex) noexcept {
  countIfOurs(locks, CALLER);
  return next("pthread_mutex_lock", mutex);
}
extern "C" int pthread_rwlock_rdlock(pthread_rwlock_t *lock) noexcept {
  countIfOurs(locks, CALLER);
  return next("pthread_rwlock_rdlock", lock);
}
extern "C" int pthread_rwlock_wrlock(pthread_rwlock_t *lock) noexcept {
  countIfOurs(locks, CALLER);
  return next("pthread_rwlock_wrlock", lock);
}
#endif

struct Counted {
  int allocations, locks;
};
template <typename Body> static Counted during(Body body) {
  allocations = locks = 0;
  isCounting = true;
  body();
  isCounting = false;
  return {allocations, locks};
}

int main() {
  FakeCuda &fake = *ofDriver<FakeCudaAccess>("fakeCuda")();
  const replayjit_decode_spec_t spec = smallSpec();
  replayjit_decode_args_t args = makeArgs();
  fake.params = {{0, paramsOf(args).size()}};
  replayjit_device_t *device = nullptr;
  ok(replayjit_device_create_cuda(0, &device));
  replayjit_jit_options_t options;
  replayjit_jit_options_init(&options, sizeof options);
  options.use_environment = 0;
  options.cache_roots = "";
  options.assembler = "driver";
  replayjit_jit_t *jit = nullptr;
  ok(replayjit_jit_create(device, &options, &jit));
  replayjit_kernel_t *kernel = nullptr;
  // The counters count: preparing does both.
  const Counted prepared =
      during([&] { ok(replayjit_jit_prepare(jit, &spec, 1, &kernel)); });
  CHECK(!counts || (prepared.allocations > 0 && prepared.locks > 0));

  int place = 0;
  for (uint32_t flags : {0u, REPLAYJIT_LAUNCH_UNCHECKED}) {
    fake.calls.clear();
    replayjit_error_t *error = nullptr;
    const Counted launched = during(
        [&] { error = replayjit_kernel_launch(kernel, &place, &args, flags); });
    ok(error);
    CHECK(launched.allocations == 0);
    CHECK(launched.locks == 0);
    CHECK(fake.calls.size() == 1 && fake.calls[0] == "cuLaunchKernelEx");
    CHECK(fake.lastParams == paramsOf(args));
  }
  // What fails makes a sentence, which counts.
  args.batch = -1;
  replayjit_error_t *error = nullptr;
  const Counted failed = during(
      [&] { error = replayjit_kernel_launch(kernel, &place, &args, 0); });
  CHECK(error);
  replayjit_error_destroy(error);
  CHECK(!counts || failed.allocations > 0);

  replayjit_kernel_release(kernel);
  replayjit_jit_release(jit);
  replayjit_device_release(device);
}
