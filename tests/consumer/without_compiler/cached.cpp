//===- cached.cpp - A cached kernel, launched without a compiler ----------===//
//
// libcuda.so.1 is tests/unit/FakeCuda.cpp here, which records the launch.
//
//===----------------------------------------------------------------------===//

#include "tests/unit/FakeCuda.h"

#include <replayjit/replayjit.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>

#define CHECK(condition)                                                       \
  do {                                                                         \
    if (!(condition)) {                                                        \
      std::fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__,          \
                   #condition);                                                \
      std::exit(1);                                                            \
    }                                                                          \
  } while (false)

static void ok(replayjit_error_t *error) {
  if (error)
    std::fprintf(stderr, "%s\n", replayjit_error_message(error));
  CHECK(!error);
}

static void fails(replayjit_error_t *error, int code, const char *text) {
  CHECK(error && replayjit_error_code(error) == code);
  CHECK(std::strstr(replayjit_error_message(error), text));
  replayjit_error_destroy(error);
}

/// Legal arguments that point nowhere.
static replayjit_decode_args_t makeArgs(const replayjit_decode_spec_t &spec) {
  replayjit_decode_args_t args;
  replayjit_decode_args_init(&args, sizeof args);
  args.batch = 3;
  args.slots = 5;
  for (uint64_t replayjit_decode_args_t::*pointer :
       {&replayjit_decode_args_t::state_indices,
        &replayjit_decode_args_t::write_pos, &replayjit_decode_args_t::state,
        &replayjit_decode_args_t::q, &replayjit_decode_args_t::a,
        &replayjit_decode_args_t::b, &replayjit_decode_args_t::a_log,
        &replayjit_decode_args_t::dt_bias, &replayjit_decode_args_t::out,
        &replayjit_decode_args_t::d_ring, &replayjit_decode_args_t::k_ring,
        &replayjit_decode_args_t::g_ring,
        &replayjit_decode_args_t::force_flush})
    args.*pointer = 0x10000;
  const int64_t H = spec.num_key_heads, HV = spec.num_value_heads;
  const int64_t K = spec.head_dim_k, V = spec.head_dim_v, L = spec.ring_depth;
  args.q_stride = 2 * H * K + HV * V;
  args.a_stride = args.b_stride = HV;
  args.out_stride = HV * V;
  args.state_pitch = HV * V * K;
  args.d_pitch = HV * L * V;
  args.k_pitch = H * L * K;
  args.g_pitch = HV * L;
  return args;
}

int main() {
  void *driver = dlopen("libcuda.so.1", RTLD_NOW);
  CHECK(driver);
  auto access = reinterpret_cast<FakeCudaAccess>(dlsym(driver, "fakeCuda"));
  CHECK(access); // Else a real driver was found before ours.
  replayjit::internal::cuda::FakeCuda &fake = *access();

  replayjit_decode_spec_t spec;
  replayjit_decode_spec_init(&spec, sizeof spec);
  const replayjit_decode_args_t args = makeArgs(spec);
  const size_t header = offsetof(replayjit_decode_args_t, state_indices);
  const std::string params(reinterpret_cast<const char *>(&args) + header,
                           sizeof args - header);
  fake.params = {{0, params.size()}};

  CHECK(replayjit_has_compiler() == 0);
  replayjit_device_t *device = nullptr, *emulation = nullptr;
  replayjit_jit_t *jit = nullptr;
  replayjit_kernel_t *kernel = nullptr;
  ok(replayjit_device_create_emulation("sm_90a", &emulation));
  ok(replayjit_jit_create(emulation, nullptr, &jit));
  fails(replayjit_jit_prepare(jit, &spec, 0, &kernel), REPLAYJIT_UNSUPPORTED,
        "this program has no compiler");
  replayjit_jit_release(jit);
  replayjit_device_release(emulation);

  ok(replayjit_device_create_cuda(0, &device));
  ok(replayjit_jit_create(device, nullptr, &jit));
  ok(replayjit_jit_prepare(jit, &spec, 0, &kernel));
  CHECK(fake.loadedImage == "made-up cubin");
  replayjit_kernel_info_t info = {};
  info.struct_size = sizeof info;
  ok(replayjit_kernel_info(kernel, &info));
  CHECK(info.origin == REPLAYJIT_CACHED);
  CHECK(std::strcmp(info.assembler, "ptxas 13.0.88") == 0);
  CHECK(info.registers == fake.registers);

  int stream = 0;
  for (uint32_t flags : {0u, REPLAYJIT_LAUNCH_UNCHECKED}) {
    fake.lastLaunch = {};
    ok(replayjit_kernel_launch(kernel, &stream, &args, flags));
    CHECK(fake.lastLaunch.hStream == static_cast<void *>(&stream));
    CHECK(fake.lastLaunch.gridDimX == 3 * info.blocks_per_row);
    CHECK(fake.lastParams == params);
  }
  ok(replayjit_kernel_launch(kernel, nullptr, &args, 0));
  CHECK(fake.lastLaunch.hStream == nullptr);
  void *own = replayjit_device_stream(device);
  ok(replayjit_kernel_launch(kernel, own, &args, 0));
  CHECK(own && fake.lastLaunch.hStream == own);
  fake.failures["cuLaunchKernelEx"] = 700;
  fails(replayjit_kernel_launch(kernel, &stream, &args, 0),
        REPLAYJIT_DRIVER_ERROR, "CUDA_ERROR_ILLEGAL_ADDRESS (700)");
  fake.failures.clear();

  replayjit_kernel_t *other = nullptr;
  spec.ring_depth = 7;
  fails(replayjit_jit_prepare(jit, &spec, 0, &other), REPLAYJIT_NOT_FOUND,
        "spec.ringDepth: 7 is asked for; the entry has 16");
  CHECK(!other);

  // The kernel keeps its device until the last.
  replayjit_jit_release(jit);
  replayjit_device_release(device);
  ok(replayjit_kernel_launch(kernel, &stream, &args, 0));
  replayjit_kernel_release(kernel);
  CHECK(fake.liveObjects == 0);
}
