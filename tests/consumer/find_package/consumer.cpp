//===- consumer.cpp - replayjit.hpp with neither exceptions nor RTTI ------===//
//
// Packed decode of one token that finds an empty state: its output is
// beta (k . q) v, and the state becomes beta v k^T. Everything else of the
// interface is called once.
//
//===----------------------------------------------------------------------===//

#include <replayjit/replayjit.hpp>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

using namespace replayjit;

#define CHECK(condition)                                                       \
  do {                                                                         \
    if (!(condition)) {                                                        \
      std::fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__,          \
                   #condition);                                                \
      std::exit(1);                                                            \
    }                                                                          \
  } while (false)

template <typename T> static T need(Result<T> result) {
  if (!result)
    std::fprintf(stderr, "%s\n", result.status().message.c_str());
  CHECK(result);
  return std::move(*result);
}

static DecodeSpec packedSpec() {
  DecodeSpec spec;
  spec.family = REPLAYJIT_FAMILY_PACKED;
  spec.num_key_heads = spec.num_value_heads = 1;
  spec.head_dim_k = 32;
  spec.head_dim_v = 16;
  spec.ring_depth = 1;
  spec.act_type = spec.gate_type = spec.beta_type = REPLAYJIT_F32;
  spec.out_type = REPLAYJIT_F32;
  spec.qk_l2_norm = 0;
  return spec;
}

static uint64_t upload(Device &device, const std::vector<float> &values) {
  const size_t bytes = values.size() * sizeof(float);
  const uint64_t address = need(device.allocate(bytes, "values"));
  CHECK(device.copyToDevice(address, values.data(), bytes));
  return address;
}

static std::vector<float> download(Device &device, uint64_t address,
                                   size_t count) {
  std::vector<float> values(count);
  CHECK(device.copyFromDevice(values.data(), address, count * sizeof(float)));
  return values;
}

static void runPacked(Device &device, const Kernel &kernel) {
  constexpr int K = 32, V = 16;
  std::vector<float> mixed(2 * K + V);
  float qk = 0;
  for (int i = 0; i < K; ++i) {
    mixed[i] = 0.01f * float(i);
    mixed[K + i] = 1 - 0.02f * float(i);
    qk += mixed[i] * mixed[K + i];
  }
  for (int i = 0; i < V; ++i)
    mixed[2 * K + i] = float(i) - 4;

  DecodeArgs args;
  args.batch = args.slots = 1;
  args.q = upload(device, mixed);
  args.a = args.b = upload(device, {0}); // beta = sigmoid(0) = 1/2
  args.a_log = args.dt_bias = args.a;
  args.out = upload(device, std::vector<float>(V));
  args.state = upload(device, std::vector<float>(V * K));
  args.state_pitch = V * K;
  args.state_indices = args.a; // slot 0
  CHECK(kernel.launch(device.stream(), args));
  CHECK(device.synchronize(device.stream()));
  const std::vector<float> out = download(device, args.out, V);
  const std::vector<float> state = download(device, args.state, V * K);
  for (int i = 0; i < V; ++i) {
    const float v = mixed[2 * K + i];
    CHECK(std::fabs(out[i] - 0.5f * qk * v) < 1e-5f);
    for (int j = 0; j < K; ++j)
      CHECK(std::fabs(state[i * K + j] - 0.5f * v * mixed[K + j]) < 1e-6f);
  }

  int stream = 0; // None of this device's.
  const Status status = kernel.launch(&stream, args);
  CHECK(status.code != REPLAYJIT_OK && !status.message.empty());
  CHECK(!kernel.launch(device.stream(), MaterializeArgs()));
}

int main() {
  CHECK(replayjit_api_version() == REPLAYJIT_API_VERSION);
  Device device = need(Device::emulation());
  CHECK(device.info().is_emulation);
  CHECK(!need(device.isCapturing(device.stream())));
  CHECK(!Device::emulation("sm_1"));
  JitOptions options;
  options.use_environment = 0;
  Jit jit = need(Jit::create(device, options));

  const DecodeSpec spec = packedSpec();
  CHECK(supports("sm_90a", spec));
  Kernel kernel = need(jit.prepare(spec));
  CHECK(kernel.spec().head_dim_v == 16);
  CHECK(std::strncmp(kernel.info().name, "gdn_packed_h1_hv1_k32_v16", 25) == 0);
  runPacked(device, kernel);

  DecodeTuning tuning = need(chooseTuning(spec, 0, "sm_90a", 132));
  CHECK(tuning.block_v == kernel.tuning().block_v);
  CHECK(supports("sm_90a", spec, tuning));
  tuning.block_v = 16;
  tuning.num_warps = 2;
  runPacked(device, need(jit.prepare(spec, tuning)));

  DecodeSpec bad = need(DecodeSpec::fromModel("qwen3-next", 4));
  bad.ring_depth = 65;
  const Status why = supports("sm_90a", bad);
  CHECK(why.code == REPLAYJIT_INVALID_ARGUMENT && why.stage.empty());
  size_t heard = 0;
  const auto outcomes = jit.prepareAll(
      {{spec, 1}, {bad, 0}},
      [&](size_t done, size_t total, const char *name, const Status &status) {
        ++heard;
        CHECK(done == heard && total == 2 &&
              (name != nullptr) == status.isOk());
      });
  CHECK(heard == 2 && outcomes[0] && !outcomes[1]);
  CHECK(outcomes[1].status().message == why.message);
  CHECK(jit.prepareAll({}).empty());
  CHECK(jit.counters().compiles == 0);

  const MappedMemory memory = need(device.allocateMapped(8, "mapped"));
  CHECK(memory.host && memory.device && device.freeMapped(memory));

  // What is left of a kernel works without its Jit and other handles.
  jit = Jit();
  Kernel copy = kernel;
  kernel = Kernel();
  runPacked(device, copy);
}
