/* DecodeSteps.c - a small decode problem and its plain recurrence. */
#include "DecodeSteps.h"

#include <math.h>
#include <string.h>

void ok(replayjit_error_t *error, const char *file, int line) {
  if (!error)
    return;
  fprintf(stderr, "%s:%d: error %d: %s\nstage: %s\n%s\n", file, line,
          replayjit_error_code(error), replayjit_error_message(error),
          replayjit_error_stage(error), replayjit_error_log(error));
  exit(1);
}

void fails(replayjit_error_t *error, int32_t code, const char *text,
           const char *file, int line) {
  if (!error || replayjit_error_code(error) != code ||
      !strstr(replayjit_error_message(error), text)) {
    fprintf(stderr, "%s:%d: code %d and '%s' expected, got %d and '%s'\n", file,
            line, code, text, replayjit_error_code(error),
            replayjit_error_message(error));
    exit(1);
  }
  replayjit_error_destroy(error);
}

/* Between -1 and 1. */
static double draw(problem_t *problem) {
  problem->random = problem->random * 1664525u + 1013904223u;
  return (double)(problem->random >> 8) / (1 << 23) - 1;
}

static void fill(problem_t *problem, float *values, size_t count,
                 double spread) {
  for (size_t i = 0; i < count; ++i)
    values[i] = (float)(spread * draw(problem));
}

uint64_t problem_upload(problem_t *problem, const char *name, const void *data,
                        size_t bytes) {
  uint64_t address = 0;
  OK(replayjit_device_allocate(problem->device, bytes, name, &address));
  OK(replayjit_device_copy_to(problem->device, address, data, bytes));
  CHECK(problem->allocations <
        sizeof(problem->memory) / sizeof(problem->memory[0]));
  problem->memory[problem->allocations++] = address;
  return address;
}

void problem_spec(replayjit_decode_spec_t *spec) {
  replayjit_decode_spec_init(spec, sizeof(*spec));
  spec->num_key_heads = H;
  spec->num_value_heads = HV;
  spec->head_dim_k = K;
  spec->head_dim_v = V;
  spec->ring_depth = L;
  spec->act_type = spec->gate_type = spec->beta_type = REPLAYJIT_F32;
  spec->out_type = REPLAYJIT_F32;
}

void problem_create(problem_t *problem, replayjit_device_t *device) {
  memset(problem, 0, sizeof(*problem));
  problem->device = device;
  problem->random = 7;
  problem_spec(&problem->spec);

  replayjit_decode_args_t *args = &problem->args;
  replayjit_decode_args_init(args, sizeof(*args));
  args->batch = ROWS;
  args->slots = SLOTS;
  args->scale = 0.5f;
  args->q_stride = QKV;
  args->a_stride = args->b_stride = HV;
  args->out_stride = HV * V;
  args->state_pitch = HV * V * K;
  args->d_pitch = HV * L * V;
  args->k_pitch = H * L * K;
  args->g_pitch = HV * L;

  static float state[SLOTS][HV][V][K], zeros[SLOTS * HV * L * K];
  float parameters[2][HV];
  const int32_t slots[ROWS] = {1, 2};
  fill(problem, &state[0][0][0][0], SLOTS * HV * V * K, 0.5);
  fill(problem, &parameters[0][0], 2 * HV, 0.5);
  for (int hv = 0; hv < HV; ++hv) {
    problem->a_log[hv] = parameters[0][hv];
    problem->dt_bias[hv] = parameters[1][hv];
    for (int row = 0; row < ROWS; ++row)
      for (int i = 0; i < V * K; ++i)
        (&problem->state[row][hv][0][0])[i] = (&state[row + 1][hv][0][0])[i];
  }
  args->state = problem_upload(problem, "state", state, sizeof(state));
  args->a_log =
      problem_upload(problem, "a_log", parameters[0], sizeof(parameters[0]));
  args->dt_bias =
      problem_upload(problem, "dt_bias", parameters[1], sizeof(parameters[1]));
  args->state_indices =
      problem_upload(problem, "state_indices", slots, sizeof(slots));
  args->d_ring = problem_upload(problem, "d_ring", zeros,
                                sizeof(float) * SLOTS * HV * L * V);
  args->k_ring = problem_upload(problem, "k_ring", zeros,
                                sizeof(float) * SLOTS * H * L * K);
  args->g_ring =
      problem_upload(problem, "g_ring", zeros, sizeof(float) * SLOTS * HV * L);
  args->q =
      problem_upload(problem, "mixed_qkv", zeros, sizeof(float) * ROWS * QKV);
  args->a = problem_upload(problem, "a", zeros, sizeof(float) * ROWS * HV);
  args->b = problem_upload(problem, "b", zeros, sizeof(float) * ROWS * HV);
  args->out =
      problem_upload(problem, "out", zeros, sizeof(float) * ROWS * HV * V);
  args->write_pos =
      problem_upload(problem, "write_pos", zeros, sizeof(int32_t) * ROWS);
  args->force_flush =
      problem_upload(problem, "force_flush", zeros, sizeof(int32_t) * ROWS);
}

void problem_destroy(problem_t *problem) {
  for (size_t i = 0; i < problem->allocations; ++i)
    OK(replayjit_device_free(problem->device, problem->memory[i]));
  problem->allocations = 0;
}

static void normalize(double *x, const float *from, double scale) {
  double sum = 1e-6;
  for (int i = 0; i < K; ++i)
    sum += (double)from[i] * from[i];
  for (int i = 0; i < K; ++i)
    x[i] = scale * from[i] / sqrt(sum);
}

/* One token of one value head; o gets the output. */
static void recur(problem_t *problem, int row, int hv, double *o) {
  const token_t *token = &problem->token;
  const float *mixed = token->mixed[row];
  const double a = token->a[row][hv], b = token->b[row][hv];
  const int h = hv / (HV / H);
  double q[K], k[K];
  normalize(q, mixed + h * K, problem->args.scale);
  normalize(k, mixed + (H + h) * K, 1);
  const float *v = mixed + 2 * H * K + hv * V;
  const double beta = 1 / (1 + exp(-b));
  const double alpha =
      exp(-exp(problem->a_log[hv]) * log1p(exp(a + problem->dt_bias[hv])));
  for (int i = 0; i < V; ++i) {
    double *s = problem->state[row][hv][i];
    double sk = 0;
    for (int j = 0; j < K; ++j)
      sk += (s[j] *= alpha) * k[j];
    o[i] = 0;
    for (int j = 0; j < K; ++j)
      o[i] += (s[j] += beta * (v[i] - sk) * k[j]) * q[j];
  }
}

void problem_feed(problem_t *problem) {
  const replayjit_decode_args_t *args = &problem->args;
  token_t *token = &problem->token;
  fill(problem, &token->mixed[0][0], ROWS * QKV, 1);
  fill(problem, &token->a[0][0], ROWS * HV, 1);
  fill(problem, &token->b[0][0], ROWS * HV, 1);
  OK(replayjit_device_copy_to(problem->device, args->q, token->mixed,
                              sizeof(token->mixed)));
  OK(replayjit_device_copy_to(problem->device, args->a, token->a,
                              sizeof(token->a)));
  OK(replayjit_device_copy_to(problem->device, args->b, token->b,
                              sizeof(token->b)));
}

void problem_check_outputs(problem_t *problem) {
  float out[ROWS][HV][V];
  OK(replayjit_device_copy_from(problem->device, out, problem->args.out,
                                sizeof(out)));
  for (int row = 0; row < ROWS; ++row)
    for (int hv = 0; hv < HV; ++hv) {
      double o[V];
      recur(problem, row, hv, o);
      for (int i = 0; i < V; ++i)
        CHECK(fabs(out[row][hv][i] - o[i]) < 1e-5);
    }
}

void problem_step(problem_t *problem, const replayjit_kernel_t *kernel,
                  const int32_t force[ROWS]) {
  const replayjit_decode_args_t *args = &problem->args;
  problem_feed(problem);
  OK(replayjit_device_copy_to(problem->device, args->write_pos, problem->cursor,
                              sizeof(problem->cursor)));
  OK(replayjit_device_copy_to(problem->device, args->force_flush, force,
                              sizeof(int32_t) * ROWS));
  void *stream = replayjit_device_stream(problem->device);
  OK(replayjit_kernel_launch(kernel, stream, args, 0));
  OK(replayjit_device_synchronize(problem->device, stream));
  problem_check_outputs(problem);
  for (int row = 0; row < ROWS; ++row)
    OK(replayjit_ring_cursor_advance(&problem->spec, &problem->cursor[row],
                                     &problem->base[row], force[row]));
}

void problem_check_slot(problem_t *problem, int slot, int row) {
  float state[HV][V][K];
  OK(replayjit_device_copy_from(problem->device, state,
                                problem->args.state + slot * sizeof(state),
                                sizeof(state)));
  for (int i = 0; i < HV * V * K; ++i)
    CHECK(fabs((&state[0][0][0])[i] - (&problem->state[row][0][0][0])[i]) <
          1e-5);
}

int decode_steps_run(void) {
  replayjit_device_t *device = NULL;
  replayjit_jit_t *jit = NULL;
  replayjit_kernel_t *kernel = NULL;
  problem_t problem;
  OK(replayjit_device_create_emulation("sm_90a", &device));
  OK(replayjit_jit_create(device, NULL, &jit));
  problem_create(&problem, device);
  OK(replayjit_jit_prepare(jit, &problem.spec, ROWS, &kernel));
  for (int step = 0; step < 5; ++step)
    problem_step(&problem, kernel, (int32_t[ROWS]){0, step == 2});
  problem_destroy(&problem);
  replayjit_kernel_release(kernel);
  replayjit_jit_release(jit);
  replayjit_device_release(device);
  return 0;
}
