//===- lesson_01_compile.cpp - From a spec to a kernel --------------------===//
//
// A spec says what is compiled in: head counts and sizes, element types, the
// depth L of the ring. Everything else, such as how many requests decode
// together, is an argument of a launch.
//
//===----------------------------------------------------------------------===//

#include "Lesson.h"

using namespace replayjit;

int main() {
  // A shipped model, on one of four ranks: a quarter of its heads.
  DecodeSpec spec = orStop(DecodeSpec::fromModel("qwen3-next", 4));
  std::printf("%d key heads, %d value heads of %d x %d, ring of %d rows\n",
              spec.num_key_heads, spec.num_value_heads, spec.head_dim_v,
              spec.head_dim_k, spec.ring_depth);

  // Whether a spec can be compiled is asked without compiling it. The answer
  // is one sentence: the field, its value, what is allowed.
  DecodeSpec odd = spec;
  odd.num_value_heads = 7;
  const Status why = supports("sm_90a", odd);
  std::printf("7 value heads: %s\n", why.message.c_str());
  expect(why.code == REPLAYJIT_INVALID_ARGUMENT, "7 heads are refused");

  // Devices are named by the caller, and nothing falls back from one to the
  // other. On a machine with a GPU: Device::cuda(0).
  Device device = orStop(Device::emulation("sm_90a"));

  // A Jit has the kernels of a device. By default it reads the REPLAYJIT_*
  // variables, once, and keeps compiled kernels in ~/.cache/replayjit; the
  // emulation's live in memory only.
  Jit jit = orStop(Jit::create(device));

  // A smaller model compiles faster. prepare may take a second or two the first
  // time on a machine, a millisecond from disk, and no time from memory.
  spec.num_key_heads = 1;
  spec.num_value_heads = 2;
  spec.head_dim_k = spec.head_dim_v = 32;
  spec.ring_depth = 4;
  Kernel kernel = orStop(jit.prepare(spec, /*rows=*/1));
  const KernelInfo info = kernel.info();
  std::printf("%s\n%u blocks a request, %u threads each\n", info.name,
              info.blocks_per_row, info.threads);
  expect(orStop(jit.prepare(spec, 1)).info().name == info.name,
         "the second time it is the same kernel");
}
