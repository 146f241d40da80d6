/* capi_state.c - every function of replayjit_state.h, from C11.
 *
 * The steps of capi.c through a pool and a plan: the cursors and indices are
 * the plan's, the outputs and states those of the plain recurrence. */
#include "DecodeSteps.h"

#include <replayjit/replayjit_state.h>

#include <string.h>

#define REFUSED(call, text) FAILS((call), REPLAYJIT_INVALID_ARGUMENT, (text))

static replayjit_layer_t layer_of(const replayjit_decode_args_t *args) {
  return (replayjit_layer_t){args->state,   args->d_ring,      args->k_ring,
                             args->g_ring,  args->state_pitch, args->d_pitch,
                             args->k_pitch, args->g_pitch};
}

static void check_sizes(const replayjit_decode_spec_t *spec) {
  int64_t state = 0, ring = 0, bytes = 0, states = 0;
  OK(replayjit_state_bytes(spec, &state, &ring));
  CHECK(state == 4 * HV * V * K);
  CHECK(ring == 4 * (HV * L * V + H * L * K + HV * L));
  replayjit_decode_spec_t illegal = *spec;
  illegal.num_value_heads = -1;
  replayjit_error_t *refused = replayjit_state_bytes(&illegal, &state, &ring);
  CHECK(replayjit_error_code(refused) == REPLAYJIT_INVALID_ARGUMENT);
  replayjit_error_destroy(refused);
  const int32_t layers = 3;
  OK(replayjit_pool_bytes(&spec, &layers, 1, 10, 2, 5, &bytes));
  CHECK(bytes >= 3 * (10 * state + 2 * ring) + 4 * 5);
  OK(replayjit_pool_states(&spec, &layers, 1, 2, 5, bytes, &states));
  CHECK(states == 10);
  replayjit_error_t *error =
      replayjit_pool_states(&spec, &layers, 1, 2, 5, 1, &states);
  CHECK(replayjit_error_code(error) == REPLAYJIT_INVALID_ARGUMENT);
  replayjit_error_destroy(error);

  CHECK(replayjit_should_flush(10, 5) == 1);
  CHECK(replayjit_should_flush(11, 5) == 0);
  CHECK(replayjit_should_flush(10, 0) == 0); /* No snapshots. */
  CHECK(replayjit_tokens_to_drop(15, 17) == 2);

  int32_t family = -1, depth = -1, ring_type = -1;
  OK(replayjit_decode_spec_recommend(spec, 256, -5, &family, &depth,
                                     &ring_type));
  CHECK(family == REPLAYJIT_FAMILY_REPLAY ? depth > 1 : depth == 1);
  CHECK(ring_type == spec->ring_type);
}

/* The rows of the problem: keys 0 and 1, slots 1 and 2. */
typedef struct rows_t {
  replayjit_group_indices_t indices;
  replayjit_step_inputs_t inputs;
  uint64_t mask;
} rows_t;

static void make_rows(problem_t *problem, rows_t *rows) {
  const int32_t keys[ROWS] = {0, 1}, mask[ROWS] = {0, 0};
  memset(rows, 0, sizeof(*rows));
  replayjit_group_indices_init(&rows->indices);
  CHECK(rows->indices.ring == 0 && rows->indices.ring_stride == 1 &&
        rows->indices.dst_stride == 1 && rows->indices.track_stride == 1);
  rows->indices.state = problem->args.state_indices;
  replayjit_step_inputs_init(&rows->inputs, sizeof(rows->inputs));
  CHECK(rows->inputs.key_stride == 1);
  rows->inputs.live = ROWS;
  rows->inputs.keys = problem_upload(problem, "keys", keys, sizeof(keys));
  rows->mask = problem_upload(problem, "mask", mask, sizeof(mask));
  rows->inputs.flush_mask = rows->mask;
  rows->inputs.groups = &rows->indices;
}

/* The launch of the one layer in a step that has begun. */
static void launch(problem_t *problem, replayjit_pool_t *pool,
                   replayjit_plan_t *plan) {
  replayjit_kernel_t *kernel = NULL;
  OK(replayjit_pool_prepare(pool, 0, ROWS, &kernel));
  replayjit_decode_args_t args;
  replayjit_decode_args_init(&args, sizeof(args));
  OK(replayjit_plan_layer_args(plan, 0, 0, 0, ROWS, &args));
  CHECK(args.batch == ROWS && args.state == problem->args.state);
  args.q = problem->args.q;
  args.q_stride = problem->args.q_stride;
  args.a = problem->args.a;
  args.a_stride = problem->args.a_stride;
  args.b = problem->args.b;
  args.b_stride = problem->args.b_stride;
  args.a_log = problem->args.a_log;
  args.dt_bias = problem->args.dt_bias;
  args.out = problem->args.out;
  args.out_stride = problem->args.out_stride;
  args.scale = problem->args.scale;
  OK(replayjit_kernel_launch(kernel, NULL, &args, 0));
  replayjit_kernel_release(kernel);
  problem_check_outputs(problem);
}

static void check_cursor(problem_t *problem, const replayjit_pool_t *pool,
                         int32_t expected) {
  replayjit_cursors_t cursors;
  replayjit_cursors_init(&cursors, sizeof(cursors));
  OK(replayjit_pool_cursors(pool, &cursors));
  int32_t now[ROWS];
  CHECK(cursors.num_keys == ROWS);
  OK(replayjit_device_copy_from(problem->device, now, cursors.write_pos,
                                sizeof(now)));
  CHECK(now[0] == expected);
}

static void check_steps(problem_t *problem, replayjit_pool_t *pool,
                        replayjit_plan_t *plan, rows_t *rows) {
  const int32_t forced[ROWS] = {1, 0}, none[ROWS] = {0, 0};
  for (int step = 0; step < 6; ++step) {
    problem_feed(problem);
    OK(replayjit_device_copy_to(problem->device, rows->mask,
                                step == 2 ? forced : none, sizeof(forced)));
    OK(replayjit_plan_begin(plan, NULL, step + 1, &rows->inputs));
    launch(problem, pool, plan);
    REFUSED(replayjit_plan_commit(plan, NULL, step + 2, 0),
            "is not allowed; the step that began last is");
    OK(replayjit_plan_commit(plan, NULL, step + 1, 0));
    OK(replayjit_plan_commit(plan, NULL, step + 1, 0)); /* Does nothing. */
  }
  check_cursor(problem, pool, 3); /* Forced in the third step. */

  /* The same for a graph; capture itself would move no cursor. */
  problem_feed(problem);
  OK(replayjit_plan_set_step(plan, NULL, 7, ROWS));
  OK(replayjit_plan_begin_captured(plan, NULL, &rows->inputs));
  launch(problem, pool, plan);
  OK(replayjit_plan_commit_captured(plan, NULL, 0));
  check_cursor(problem, pool, 0);
  problem_feed(problem);
  OK(replayjit_plan_begin(plan, NULL, 8, &rows->inputs));
  launch(problem, pool, plan);
  OK(replayjit_plan_commit(plan, NULL, 8, 0));
  check_cursor(problem, pool, 1);
}

/* What makes all rows write one slot is no step, nor are two rows on one. */
static void check_shared_slots(problem_t *problem, replayjit_plan_t *plan,
                               const rows_t *rows) {
  replayjit_step_inputs_t inputs = rows->inputs;
  const replayjit_group_indices_t zeros = {.state = rows->indices.state};
  inputs.groups = &zeros;
  REFUSED(replayjit_plan_begin(plan, NULL, 20, &inputs),
          "groups[0].state.stride: 0 is not allowed with 2 rows");
  inputs = rows->inputs;
  inputs.key_stride = 0;
  REFUSED(replayjit_plan_begin(plan, NULL, 20, &inputs),
          "keyStride: 0 is not allowed with 2 rows");
  const int32_t same[ROWS] = {1, 1};
  replayjit_group_indices_t shared = rows->indices;
  shared.state = problem_upload(problem, "same", same, sizeof(same));
  inputs = rows->inputs;
  inputs.groups = &shared;
  REFUSED(replayjit_plan_begin(plan, NULL, 20, &inputs),
          "groups[0]: rows 0 and 1 share");
}

/* Row 0's ring, in all the ways out of it. */
static void check_slots(problem_t *problem, replayjit_pool_t *pool,
                        replayjit_plan_t *plan, rows_t *rows) {
  const int32_t to_0[ROWS] = {0, -1};
  const uint64_t dst = problem_upload(problem, "dst", to_0, sizeof(to_0));
  rows->inputs.live = 1;
  rows->inputs.flush_mask = 0;
  rows->indices.dst = dst;
  replayjit_error_word_t word;
  OK(replayjit_plan_materialize(plan, NULL, &rows->inputs));
  problem_check_slot(problem, 0, 0);
  OK(replayjit_pool_poll_errors(pool, &word));
  CHECK(word.count == 0);
  /* What has a ring is not copied but reported. */
  OK(replayjit_plan_copy(plan, NULL, &rows->inputs));
  OK(replayjit_pool_poll_errors(pool, &word));
  CHECK(word.count == 1 && word.row == 0);
  OK(replayjit_pool_clear_errors(pool));
  rows->indices.dst = 0;
  OK(replayjit_plan_require_flushed(plan, NULL, &rows->inputs));
  rows->indices.dst = dst;
  OK(replayjit_pool_poll_errors(pool, &word));
  CHECK(word.count == 1);
  OK(replayjit_pool_clear_errors(pool));

  const replayjit_group_slot_t from = {1, 1}, to = {0, 0};
  char *image = NULL;
  size_t bytes = 0;
  replayjit_error_t *error = replayjit_pool_export(
      pool, NULL, &from, 0, REPLAYJIT_IMAGE_FOLDED, &image, &bytes);
  CHECK(error && !image); /* It has a ring. */
  replayjit_error_destroy(error);
  /* Without a key nobody knows how many tokens that holds. */
  REFUSED(replayjit_pool_export(pool, NULL, &from, -1,
                                REPLAYJIT_IMAGE_WITH_RING, &image, &bytes),
          "key: -1 is not allowed for an image with a ring");
  CHECK(!image);
  rows->inputs.drop_newest = rows->mask;
  REFUSED(replayjit_plan_copy(plan, NULL, &rows->inputs),
          "dropNewest: not allowed in copy");
  rows->inputs.drop_newest = 0;
  REFUSED(replayjit_plan_prepare_extend(plan, NULL, &rows->inputs),
          "groups[0].dst: not allowed in prepareExtend");
  rows->indices.dst = 0;
  OK(replayjit_plan_prepare_extend(plan, NULL, &rows->inputs));
  problem_check_slot(problem, 1, 0);
  check_cursor(problem, pool, 0);

  float nothing[HV * V * K] = {0};
  OK(replayjit_device_copy_to(problem->device, problem->args.state, nothing,
                              sizeof(nothing)));
  OK(replayjit_pool_export(pool, NULL, &from, 0, REPLAYJIT_IMAGE_FOLDED, &image,
                           &bytes));
  CHECK(bytes >= sizeof(nothing));
  const char *images[] = {image};
  image[bytes - 1] ^= 1;
  error = replayjit_pool_import(pool, NULL, &to, -1, images, &bytes, 1);
  CHECK(error);
  replayjit_error_destroy(error);
  image[bytes - 1] ^= 1;
  const char *nothing_there[] = {image, NULL};
  const size_t sizes[] = {bytes, 0};
  const struct {
    const char *const *images;
    const size_t *bytes;
    const char *text;
  } missing[] = {{NULL, sizes, "images: NULL"},
                 {nothing_there, NULL, "bytes: NULL"},
                 {nothing_there, sizes, "images[1]: NULL"}};
  for (int i = 0; i < 3; ++i) {
    error = replayjit_pool_import(pool, NULL, &to, -1, missing[i].images,
                                  missing[i].bytes, 2);
    CHECK(replayjit_error_code(error) == REPLAYJIT_INVALID_ARGUMENT);
    CHECK(strstr(replayjit_error_message(error), missing[i].text));
    replayjit_error_destroy(error);
  }
  OK(replayjit_pool_import(pool, NULL, &to, -1, images, &bytes, 1));
  problem_check_slot(problem, 0, 0);
  replayjit_image_destroy(image);
  replayjit_image_destroy(NULL);

  CHECK(replayjit_pool_region_count(pool) == 4);
  replayjit_region_t region;
  replayjit_region_init(&region, sizeof(region));
  OK(replayjit_pool_region(pool, 0, &region));
  CHECK(region.base == problem->args.state && region.heads == HV);
  CHECK(region.slot_bytes == sizeof(nothing) && region.count == SLOTS);
  error = replayjit_pool_region(pool, 4, &region);
  CHECK(error);
  replayjit_error_destroy(error);
}

static void check_own_memory(problem_t *problem, replayjit_jit_t *jit) {
  replayjit_pool_group_t group;
  replayjit_pool_group_init(&group, sizeof(group));
  group.spec = &problem->spec;
  group.num_layers = 2;
  group.slots = group.ring_slots = 4;
  const replayjit_pool_group_t *groups[] = {&group};
  replayjit_pool_options_t options;
  replayjit_pool_options_init(&options, sizeof(options));
  replayjit_pool_t *pool = NULL;
  options.batch_invariant = 7;
  REFUSED(replayjit_pool_allocate(jit, groups, 1, 8, &options, &pool),
          "batch_invariant: 7 is not allowed; it must be 0 or 1");
  options.batch_invariant = 1;
  options.check_rows = -1;
  REFUSED(replayjit_pool_allocate(jit, groups, 1, 8, &options, &pool),
          "check_rows: -1 is not allowed; it must be 0 or 1");
  options.check_rows = 1;
  for (int i = 0; i < 2; ++i) { /* Before there is memory for so many. */
    group.num_layers = i ? INT32_MAX : 0;
    REFUSED(replayjit_pool_allocate(jit, groups, 1, 8, &options, &pool),
            "is not allowed; it must be 1 to 4096");
  }
  group.num_layers = 2;
  OK(replayjit_pool_allocate(jit, groups, 1, 8, &options, &pool));
  replayjit_decode_args_t first, second;
  replayjit_decode_args_init(&first, sizeof(first));
  replayjit_decode_args_init(&second, sizeof(second));
  OK(replayjit_pool_layer_args(pool, 0, 0, &first));
  OK(replayjit_pool_layer_args(pool, 0, 1, &second));
  CHECK(first.state && first.state != second.state && second.slots == 4);
  replayjit_error_t *error = replayjit_pool_layer_args(pool, 0, 2, &first);
  CHECK(strstr(replayjit_error_message(error), "layer: 2 is not allowed"));
  replayjit_error_destroy(error);

  /* A plan in the engine's memory keeps its pool. */
  size_t bytes = 0;
  REFUSED(replayjit_plan_bytes(pool, -5, &bytes),
          "maxRows: -5 is not allowed; it must be 1 or more");
  CHECK(bytes == 0);
  OK(replayjit_plan_bytes(pool, ROWS, &bytes));
  uint64_t memory = 0;
  OK(replayjit_device_allocate(problem->device, bytes, "plan", &memory));
  replayjit_plan_t *plan = NULL;
  OK(replayjit_plan_create(pool, ROWS, memory, &plan));
  replayjit_pool_retain(pool);
  replayjit_pool_release(pool);
  replayjit_pool_release(pool);
  replayjit_plan_retain(plan);
  replayjit_plan_release(plan);
  OK(replayjit_plan_set_step(plan, NULL, 1, 0));
  replayjit_plan_release(plan);
  OK(replayjit_device_free(problem->device, memory));
}

int main(void) {
  replayjit_device_t *device = NULL;
  replayjit_jit_t *jit = NULL;
  OK(replayjit_device_create_emulation("sm_90a", &device));
  OK(replayjit_jit_create(device, NULL, &jit));
  problem_t problem;
  problem_create(&problem, device);
  check_sizes(&problem.spec);

  const int32_t zeros[ROWS] = {0};
  const replayjit_layer_t layer = layer_of(&problem.args);
  replayjit_pool_group_t group;
  replayjit_pool_group_init(&group, sizeof(group));
  group.spec = &problem.spec;
  group.layers = &layer;
  group.num_layers = 1;
  group.slots = group.ring_slots = SLOTS;
  const replayjit_pool_group_t *groups[] = {&group};
  replayjit_cursors_t cursors;
  replayjit_cursors_init(&cursors, sizeof(cursors));
  cursors.num_keys = ROWS;
  cursors.write_pos = problem_upload(&problem, "cursors", zeros, sizeof(zeros));
  replayjit_pool_t *pool = NULL;
  replayjit_plan_t *plan = NULL;
  group.layers = NULL;
  REFUSED(replayjit_pool_adopt(jit, groups, 1, &cursors, NULL, &pool),
          "groups[0]: layers: NULL is not allowed");
  group.layers = &layer;
  replayjit_pool_group_init(NULL, sizeof(group));
  replayjit_cursors_init(NULL, sizeof(cursors));
  replayjit_pool_options_init(NULL, sizeof(replayjit_pool_options_t));
  replayjit_step_inputs_init(NULL, sizeof(replayjit_step_inputs_t));
  replayjit_region_init(NULL, sizeof(replayjit_region_t));
  replayjit_group_indices_init(NULL);
  replayjit_group_slot_init(NULL);
  OK(replayjit_pool_adopt(jit, groups, 1, &cursors, NULL, &pool));
  OK(replayjit_plan_create(pool, ROWS, 0, &plan));
  rows_t rows;
  make_rows(&problem, &rows);
  check_steps(&problem, pool, plan, &rows);
  check_shared_slots(&problem, plan, &rows);
  check_slots(&problem, pool, plan, &rows);

  problem_feed(&problem);
  OK(replayjit_plan_begin(plan, NULL, 9, &rows.inputs));
  OK(replayjit_pool_reset(pool, NULL));
  REFUSED(replayjit_plan_commit(plan, NULL, 9, 0),
          "step: 9 is not allowed; it has not begun, or it is void");
  check_cursor(&problem, pool, 0);
  check_own_memory(&problem, jit);

  replayjit_plan_release(plan);
  replayjit_pool_release(pool);
  problem_destroy(&problem);
  replayjit_jit_release(jit);
  replayjit_device_release(device);
  return 0;
}
