//===- FakeDriver.h - The C API over a driver made up -----------*- C++ -*-===//
//
// libcuda.so.1 is tests/unit/FakeCuda.cpp for the programs that include this.
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_TESTS_CAPI_FAKEDRIVER_H
#define REPLAYJIT_TESTS_CAPI_FAKEDRIVER_H

#include "tests/unit/FakeCuda.h"

#include <replayjit/replayjit.h>

#include <cstddef>
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

inline void ok(replayjit_error_t *error) {
  if (error)
    std::fprintf(stderr, "%s\n", replayjit_error_message(error));
  CHECK(!error);
}

/// A function of the driver; ends the test if a real one was found first.
template <typename Function> Function ofDriver(const char *symbol) {
  void *driver = dlopen("libcuda.so.1", RTLD_NOW);
  CHECK(driver);
  auto function = reinterpret_cast<Function>(dlsym(driver, symbol));
  CHECK(function);
  return function;
}

/// Small, of the packed family.
inline replayjit_decode_spec_t smallSpec() {
  replayjit_decode_spec_t spec;
  replayjit_decode_spec_init(&spec, sizeof spec);
  spec.family = REPLAYJIT_FAMILY_PACKED;
  spec.num_key_heads = spec.num_value_heads = 1;
  spec.head_dim_k = spec.head_dim_v = 32;
  spec.ring_depth = 1;
  return spec;
}

/// Legal arguments of it that point nowhere.
inline replayjit_decode_args_t makeArgs() {
  replayjit_decode_args_t args;
  replayjit_decode_args_init(&args, sizeof args);
  args.batch = 3;
  args.slots = 5;
  args.state_indices = args.state = args.q = args.a = args.b = args.a_log =
      args.dt_bias = args.out = 0x10000;
  args.q_stride = 96;
  args.a_stride = args.b_stride = 1;
  args.out_stride = 32;
  args.state_pitch = 32 * 32;
  return args;
}

/// What a launch hands to the driver.
inline std::string paramsOf(const replayjit_decode_args_t &args) {
  const size_t header = offsetof(replayjit_decode_args_t, state_indices);
  return {reinterpret_cast<const char *>(&args) + header, sizeof args - header};
}

#endif
