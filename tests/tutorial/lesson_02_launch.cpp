//===- lesson_02_launch.cpp - One token -----------------------------------===//
//
// Lesson 1, and a launch. The state is empty, so for each value head the token
// (q, k, v) with weight beta gives  o = beta (k . q) v,  which is checked.
//
//===----------------------------------------------------------------------===//

#include "Lesson.h"

using namespace replayjit;

int main() {
  constexpr int H = 1, HV = 2, K = 32, V = 16, L = 4;
  DecodeSpec spec;
  spec.num_key_heads = H;
  spec.num_value_heads = HV;
  spec.head_dim_k = K;
  spec.head_dim_v = V;
  spec.ring_depth = L;
  spec.act_type = spec.gate_type = spec.beta_type = REPLAYJIT_F32;
  spec.out_type = REPLAYJIT_F32;
  spec.qk_l2_norm = 0;      // q and k are taken as they are
  spec.has_force_flush = 0; // lesson 4
  Device device = orStop(Device::emulation());
  Jit jit = orStop(Jit::create(device));
  Kernel kernel = orStop(jit.prepare(spec, 1));

  // All memory is the caller's; an engine hands over pointers into its own
  // pools. A slot holds the state of one request: here there is one slot.
  Numbers numbers;
  const std::vector<float> mixed = numbers.draw(2 * H * K + HV * V);
  DecodeArgs args;
  args.batch = 1;
  args.slots = 1;
  args.q = upload(device, "q, k and v", mixed);
  args.q_stride = 2 * H * K + HV * V;
  // b = 0: beta = sigmoid(0) = 1/2. The gate does not matter to an empty state.
  args.a = args.b = upload(device, "a and b", std::vector<float>(HV));
  args.a_stride = args.b_stride = HV;
  args.a_log = args.dt_bias = args.a;
  args.out = upload(device, "out", std::vector<float>(HV * V));
  args.out_stride = HV * V;
  args.state = upload(device, "state", std::vector<float>(HV * V * K));
  args.state_pitch = HV * V * K;
  // The ring: what the last tokens added to the state, and did not write to it.
  args.d_ring = upload(device, "d ring", std::vector<float>(HV * L * V));
  args.d_pitch = HV * L * V;
  args.k_ring = upload(device, "k ring", std::vector<float>(H * L * K));
  args.k_pitch = H * L * K;
  args.g_ring = upload(device, "g ring", std::vector<float>(HV * L));
  args.g_pitch = HV * L;
  // Row 0 of the batch has slot 0, and no row of its ring is in use.
  args.state_indices = upload(device, "slots", std::vector<int32_t>{0});
  args.write_pos = upload(device, "cursors", std::vector<int32_t>{0});

  // Arguments are checked first; a sentence says what is wrong.
  DecodeArgs wrong = args;
  wrong.state_pitch = 8;
  std::printf("%s\n", kernel.launch(device.stream(), wrong).message.c_str());

  orStop(kernel.launch(device.stream(), args));
  orStop(device.synchronize(device.stream()));

  const float *q = mixed.data(), *k = q + K, *v = k + K;
  float kq = 0;
  for (int i = 0; i < K; ++i)
    kq += k[i] * q[i];
  const auto out = download<float>(device, args.out, HV * V);
  for (int i = 0; i < HV * V; ++i)
    expect(std::fabs(out[i] - 0.5f * kq * v[i]) < 1e-5f, "o = beta (k.q) v");
  // The token went to the ring; the state in memory is still empty.
  for (float value : download<float>(device, args.state, HV * V * K))
    expect(value == 0, "the state is not written");
  std::printf("one token: ok\n");
}
