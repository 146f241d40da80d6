//===- Request.h - Tokens, their memory, and the recurrence -----*- C++ -*-===//
//
// From lesson 3 on: what lesson 2 spells out, for several rows and slots.
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_TESTS_TUTORIAL_REQUEST_H
#define REPLAYJIT_TESTS_TUTORIAL_REQUEST_H

#include "Lesson.h"

#include <replayjit/replayjit_state.h>

/// One key head, so that key head 0 serves both value heads.
constexpr int HV = 2, K = 32, V = 16, L = 4, qkvWidth = 2 * K + HV * V;

inline replayjit::DecodeSpec lessonSpec() {
  replayjit::DecodeSpec spec;
  spec.num_key_heads = 1;
  spec.num_value_heads = HV;
  spec.head_dim_k = K;
  spec.head_dim_v = V;
  spec.ring_depth = L;
  spec.act_type = spec.gate_type = spec.beta_type = REPLAYJIT_F32;
  spec.out_type = REPLAYJIT_F32;
  return spec;
}

/// What a model's projections give for one token.
struct Token {
  std::vector<float> qkv;  ///< [2*K + HV*V]
  std::vector<float> a, b; ///< [HV]
  static Token draw(Numbers &numbers) {
    return {numbers.draw(qkvWidth), numbers.draw(HV), numbers.draw(HV)};
  }
};

/// The operator as its definition says, one state of [HV, V, K].
struct Recurrence {
  std::vector<double> state = std::vector<double>(HV * V * K);

  std::vector<double> step(const Token &token) {
    const std::vector<double> q = unit(token.qkv.data());
    const std::vector<double> k = unit(token.qkv.data() + K);
    std::vector<double> out(HV * V);
    for (int row = 0; row < HV * V; ++row) {
      const int head = row / V;
      // A_log = dt_bias = 0: g = -softplus(a)
      const double alpha = std::exp(-std::log1p(std::exp(token.a[head])));
      const double beta = 1 / (1 + std::exp(-token.b[head]));
      double *s = &state[row * K], sk = 0;
      for (int i = 0; i < K; ++i)
        sk += (s[i] *= alpha) * k[i];
      const double d = beta * (token.qkv[2 * K + row] - sk);
      for (int i = 0; i < K; ++i)
        out[row] += (s[i] += d * k[i]) * q[i];
    }
    return out;
  }

private:
  static std::vector<double> unit(const float *x) {
    double sum = 1e-6;
    for (int i = 0; i < K; ++i)
      sum += double(x[i]) * x[i];
    std::vector<double> result(K);
    for (int i = 0; i < K; ++i)
      result[i] = x[i] / std::sqrt(sum);
    return result;
  }
};

inline bool isNear(const std::vector<float> &ours,
                   const std::vector<double> &theirs) {
  for (size_t i = 0; i < theirs.size(); ++i)
    if (!(std::fabs(ours[i] - theirs[i]) < 1e-5))
      return false;
  return ours.size() == theirs.size();
}

/// The engine's memory for `rows` requests and `slots` states.
class Memory {
public:
  Memory(replayjit::Device &device, int rows, int slots) : device(device) {
    const std::vector<float> zeros(size_t(slots) * HV * V * K);
    auto make = [&](const char *name, size_t count) {
      const std::vector<float> some(zeros.begin(), zeros.begin() + count);
      return upload(device, name, some);
    };
    args.batch = rows;
    args.slots = slots;
    args.q = make("qkv", rows * qkvWidth);
    args.q_stride = qkvWidth;
    args.a = make("a", rows * HV);
    args.b = make("b", rows * HV);
    args.a_stride = args.b_stride = HV;
    args.a_log = args.dt_bias = make("parameters", HV);
    args.out = make("out", rows * HV * V);
    args.out_stride = HV * V;
    args.state = make("state", zeros.size());
    args.state_pitch = HV * V * K;
    args.d_ring = make("d ring", slots * HV * L * V);
    args.d_pitch = HV * L * V;
    args.k_ring = make("k ring", slots * L * K);
    args.k_pitch = L * K;
    args.g_ring = make("g ring", slots * HV * L);
    args.g_pitch = HV * L;
    args.state_indices = make("slots", rows);
    args.write_pos = make("cursors", rows);
    args.force_flush = make("forced", rows);
  }

  void setSlots(const std::vector<int32_t> &slots) {
    set(args.state_indices, slots);
  }
  void setCursors(const std::vector<int32_t> &cursors) {
    set(args.write_pos, cursors);
  }
  void setForced(const std::vector<int32_t> &forced) {
    set(args.force_flush, forced);
  }
  void setTokens(const std::vector<Token> &tokens) {
    std::vector<float> qkv, a, b;
    for (const Token &token : tokens) {
      qkv.insert(qkv.end(), token.qkv.begin(), token.qkv.end());
      a.insert(a.end(), token.a.begin(), token.a.end());
      b.insert(b.end(), token.b.begin(), token.b.end());
    }
    set(args.q, qkv);
    set(args.a, a);
    set(args.b, b);
  }

  /// For lesson 5, where states and cursors are a pool's.
  void addInputsTo(replayjit::DecodeArgs &to) const {
    to.q = args.q;
    to.q_stride = args.q_stride;
    to.a = args.a;
    to.a_stride = args.a_stride;
    to.b = args.b;
    to.b_stride = args.b_stride;
    to.a_log = args.a_log;
    to.dt_bias = args.dt_bias;
    to.out = args.out;
    to.out_stride = args.out_stride;
  }

  std::vector<float> output(int row) {
    return download<float>(device, args.out + 4 * row * args.out_stride,
                           HV * V);
  }
  std::vector<float> state(int slot) {
    return download<float>(device, args.state + 4 * slot * args.state_pitch,
                           HV * V * K);
  }

  replayjit::DecodeArgs args;

private:
  template <typename T> void set(uint64_t to, const std::vector<T> &values) {
    orStop(device.copyToDevice(to, values.data(), values.size() * sizeof(T)));
  }
  replayjit::Device &device;
};

#endif
