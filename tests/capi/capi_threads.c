/* capi_threads.c - many threads on one jit and one device, from C11.
 *
 * Each thread has a problem of its own; memory is filled and read only while no
 * other thread is at work. */
#include "DecodeSteps.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <threads.h>

enum { THREADS = 6, STEPS = 5, LAUNCHES = 4 };

typedef struct worker_t {
  replayjit_jit_t *jit;
  problem_t problem;
  replayjit_kernel_t *kernel;
} worker_t;

static void run(worker_t *workers, thrd_start_t function) {
  thrd_t threads[THREADS];
  for (int i = 0; i < THREADS; ++i)
    CHECK(thrd_create(&threads[i], function, &workers[i]) == thrd_success);
  for (int i = 0; i < THREADS; ++i) {
    int result = -1;
    CHECK(thrd_join(threads[i], &result) == thrd_success && result == 0);
  }
}

static atomic_int arrived;

static int prepare(void *data) {
  worker_t *worker = data;
  replayjit_jit_retain(worker->jit);
  for (++arrived; arrived < THREADS;) /* All ask at once. */
    thrd_yield();
  OK(replayjit_jit_prepare(worker->jit, &worker->problem.spec, ROWS,
                           &worker->kernel));
  replayjit_jit_release(worker->jit);
  return 0;
}

/* A spec that is refused: each thread gets an error of its own. */
static int prepare_bad(void *data) {
  worker_t *worker = data;
  replayjit_decode_spec_t bad = worker->problem.spec;
  bad.alignment = 3;
  replayjit_kernel_t *kernel = NULL;
  replayjit_error_t *error =
      replayjit_jit_prepare(worker->jit, &bad, ROWS, &kernel);
  CHECK(!kernel && strstr(replayjit_error_message(error), "alignment: 3"));
  replayjit_error_destroy(error);
  return 0;
}

/* The token of a step that only appends to the ring may be launched again: the
 * same comes out. One that flushes, as at a full ring, is launched once. */
static int launch(void *data) {
  worker_t *worker = data;
  const bool flushes = worker->problem.cursor[0] == L - 1;
  for (int i = 0; i < (flushes ? 1 : LAUNCHES); ++i) {
    replayjit_kernel_retain(worker->kernel);
    OK(replayjit_kernel_launch(worker->kernel, NULL, &worker->problem.args, 0));
    replayjit_kernel_release(worker->kernel);
  }
  OK(replayjit_device_synchronize(worker->problem.device, NULL));
  return 0;
}

int main(void) {
  static worker_t workers[THREADS];
  replayjit_device_t *device = NULL;
  replayjit_jit_t *jit = NULL;
  OK(replayjit_device_create_emulation("sm_90a", &device));
  OK(replayjit_jit_create(device, NULL, &jit));
  for (int i = 0; i < THREADS; ++i) {
    workers[i].jit = jit;
    problem_create(&workers[i].problem, device);
    workers[i].problem.random += i;
  }

  run(workers, prepare_bad);
  run(workers, prepare);
  replayjit_kernel_info_t first = {.struct_size = sizeof(first)}, other = first;
  OK(replayjit_kernel_info(workers[0].kernel, &first));
  for (int i = 1; i < THREADS; ++i) { /* One kernel, however many asked. */
    OK(replayjit_kernel_info(workers[i].kernel, &other));
    CHECK(other.name == first.name);
  }

  for (int step = 0; step < STEPS; ++step) {
    const int32_t force[ROWS] = {0, 0};
    for (int i = 0; i < THREADS; ++i) {
      problem_t *problem = &workers[i].problem;
      problem_feed(problem);
      OK(replayjit_device_copy_to(device, problem->args.write_pos,
                                  problem->cursor, sizeof(problem->cursor)));
    }
    run(workers, launch);
    for (int i = 0; i < THREADS; ++i) {
      problem_t *problem = &workers[i].problem;
      problem_check_outputs(problem);
      for (int row = 0; row < ROWS; ++row)
        OK(replayjit_ring_cursor_advance(&problem->spec, &problem->cursor[row],
                                         &problem->base[row], force[row]));
    }
  }

  replayjit_jit_release(jit);
  for (int i = 0; i < THREADS; ++i) {
    problem_destroy(&workers[i].problem);
    replayjit_kernel_release(workers[i].kernel);
  }
  replayjit_device_release(device);
  return 0;
}
