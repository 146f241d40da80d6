/* DecodeSteps.h - a small decode problem and its plain recurrence, in C. */
#ifndef REPLAYJIT_TESTS_CAPI_DECODESTEPS_H
#define REPLAYJIT_TESTS_CAPI_DECODESTEPS_H

#include <replayjit/replayjit_state.h>

#include <stdio.h>
#include <stdlib.h>

/* Ends the test with what did not hold. */
#define CHECK(condition)                                                       \
  do {                                                                         \
    if (!(condition)) {                                                        \
      fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, #condition);  \
      exit(1);                                                                 \
    }                                                                          \
  } while (0)

/* The same for a call that must succeed. */
#define OK(call) ok((call), __FILE__, __LINE__)
void ok(replayjit_error_t *error, const char *file, int line);
/* The same for one that must fail with this code and a sentence that has this
 * text. */
#define FAILS(call, code, text)                                                \
  fails((call), (code), (text), __FILE__, __LINE__)
void fails(replayjit_error_t *error, int32_t code, const char *text,
           const char *file, int line);

/* K != V, two value heads a key head, all fp32. */
enum { H = 1, HV = 2, K = 32, V = 16, L = 4, ROWS = 2, SLOTS = 3 };
enum { QKV = 2 * H * K + HV * V };

/* The inputs of a step. */
typedef struct token_t {
  float mixed[ROWS][QKV], a[ROWS][HV], b[ROWS][HV];
} token_t;

/* Row r has slot r + 1 of the pool; slot 0 is free. */
typedef struct problem_t {
  replayjit_device_t *device;
  replayjit_decode_spec_t spec;
  replayjit_decode_args_t args;
  uint64_t memory[20];          /* All allocations, */
  size_t allocations;           /* so many. */
  double state[ROWS][HV][V][K]; /* Of the recurrence. */
  double a_log[HV], dt_bias[HV];
  int32_t cursor[ROWS], base[ROWS];
  token_t token; /* The last one fed. */
  unsigned random;
} problem_t;

void problem_spec(replayjit_decode_spec_t *spec);
/* Allocates and fills all that a launch needs. */
void problem_create(problem_t *problem, replayjit_device_t *device);
void problem_destroy(problem_t *problem);

/* A token for each row, to the device. */
void problem_feed(problem_t *problem);
/* Checks `out` against the recurrence, which takes the token that was fed. */
void problem_check_outputs(problem_t *problem);
/* Both, with one launch between them. Moves the cursors. force[r]: row r
 * flushes. */
void problem_step(problem_t *problem, const replayjit_kernel_t *kernel,
                  const int32_t force[ROWS]);
/* Checks that `slot` of the pool holds row `row`'s state. */
void problem_check_slot(problem_t *problem, int slot, int row);

/* Device memory with a copy of `data`, freed with the problem. */
uint64_t problem_upload(problem_t *problem, const char *name, const void *data,
                        size_t bytes);

/* Compiles for emulation and checks some steps; 0, or the process ends. */
int decode_steps_run(void);

#endif
