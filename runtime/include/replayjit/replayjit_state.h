/*===- replayjit_state.h - States, cursors and steps, in C --------*- C -*-===*\
|*                                                                            *|
|* What an engine keeps from one launch to the next: pools of states and      *|
|* rings over its own memory, the cursor of each request, and the step as a   *|
|* transaction. The rules of replayjit.h hold here too. One thread at a time  *|
|* uses a pool and its plans, but for replayjit_pool_poll_errors.             *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/
#ifndef REPLAYJIT_REPLAYJIT_STATE_H
#define REPLAYJIT_REPLAYJIT_STATE_H

#include "replayjit/replayjit.h"

#ifdef __cplusplus
extern "C" {
#endif

/*===- Sizing: plain arithmetic -------------------------------------------===*/

/* Bytes of one state and of one ring of one layer. */
REPLAYJIT_API replayjit_error_t *
replayjit_state_bytes(const replayjit_decode_spec_t *spec, int64_t *state_bytes,
                      int64_t *ring_bytes);

/* Bytes of `states` states, `rings` rings and `num_keys` cursors, where
 * layers[i] layers have the shape specs[i], i < count. */
REPLAYJIT_API replayjit_error_t *
replayjit_pool_bytes(const replayjit_decode_spec_t *const *specs,
                     const int32_t *layers, size_t count, int64_t states,
                     int64_t rings, int64_t num_keys, int64_t *bytes);
/* The most states that fit into `budget` bytes beside so many rings and
 * cursors. */
REPLAYJIT_API replayjit_error_t *
replayjit_pool_states(const replayjit_decode_spec_t *const *specs,
                      const int32_t *layers, size_t count, int64_t rings,
                      int64_t num_keys, int64_t budget, int64_t *states);

/* How `rows` requests at once decode fastest: *family is REPLAY or PACKED,
 * *ring_depth its L (1 for PACKED), *ring_type that of its rings. The spec's own
 * L does not count; `lower_bound` limits predecayed rings. The fastest that
 * `replay-bench tune` measured of such a spec, if there is a table of it (see
 * tuning_file of replayjit_jit_options_t); else, with the spec's ring type, what
 * was fastest on an H200 or moves the fewest bytes. */
REPLAYJIT_API replayjit_error_t *
replayjit_decode_spec_recommend(const replayjit_decode_spec_t *spec,
                                int32_t rows, float lower_bound,
                                int32_t *family, int32_t *ring_depth,
                                int32_t *ring_type);

/*===- Cursors of rings: plain arithmetic ---------------------------------===*/

/* The cursor of a slot: *write_pos rows are in its ring, the oldest at *base (0
 * unless is_circular). Moves it as a launch does that was (1) or was not (0)
 * forced to flush. Once per step, whatever the number of layers. */
REPLAYJIT_API replayjit_error_t *
replayjit_ring_cursor_advance(const replayjit_decode_spec_t *spec,
                              int32_t *write_pos, int32_t *base,
                              int32_t forced);
/* The same after a launch of VERIFY: the first `accepted` of the row's tokens
 * hold, 0..T and at most as many as it had. Of other families it is 1. Forced
 * is the launch, which then folded the rows before the tokens, not these. */
REPLAYJIT_API replayjit_error_t *
replayjit_ring_cursor_accept(const replayjit_decode_spec_t *spec,
                             int32_t *write_pos, int32_t *base, int32_t forced,
                             int32_t accepted);

/*===- Snapshots: plain arithmetic ----------------------------------------===*/

/* 1 at the steps after which a snapshot is due, every `interval` tokens; 0 at
 * all others, and where interval <= 0. `seq_len` counts the tokens fed with
 * this step's, as that of replayjit_step_inputs_t; for its flush_mask. */
REPLAYJIT_API int32_t replayjit_should_flush(int64_t seq_len, int64_t interval);
/* For drop_newest where a request of which `fed_len` tokens were fed gives away
 * a state that holds `committed_len`, usually one less than prompt plus output,
 * since the token sampled last was never fed. More than the ring has are
 * reported when they are materialized. */
REPLAYJIT_API int64_t replayjit_tokens_to_drop(int64_t committed_len,
                                               int64_t fed_len);

/*===- Pools --------------------------------------------------------------===*/

typedef struct replayjit_pool_t replayjit_pool_t;

/* Layers of one shape that share index arrays. All groups of a pool agree in
 * ring_depth, is_circular, index_type, null_slot and trap_on_error. */
typedef struct replayjit_pool_group_t {
  uint32_t struct_size;
  int32_t num_layers;                  /* 1 to 4096 */
  const replayjit_decode_spec_t *spec; /* Of its decode kernels; ABI_NATIVE. */
  const replayjit_layer_t *layers; /* [num_layers], on the host; not looked at
                                    * by replayjit_pool_allocate. */
  int32_t slots;                   /* States of each layer. */
  int32_t ring_slots; /* Rings; if has_ring_indices, else as many as slots. */
  /* Which of the model's key heads this rank holds: num_key_heads of them from
   * key_head_begin, of key_head_total [0, 0: all of them]. */
  int32_t key_head_begin;
  int32_t key_head_total;
} replayjit_pool_group_t;

/* The cursor of each key, in device memory, all zero at first. A key is what
 * the engine likes: a request, a ring slot, a block. */
typedef struct replayjit_cursors_t {
  uint32_t struct_size;
  int32_t num_keys;
  uint64_t write_pos; /* [num_keys] int32 */
  uint64_t ring_base; /* [num_keys] int32, if is_circular */
} replayjit_cursors_t;

/* In brackets: the default. */
typedef struct replayjit_pool_options_t {
  uint32_t struct_size;
  int32_t batch_invariant; /* 1: one variant of a kernel for every batch size,
                            * so that bits do not depend on it [0] */
  replayjit_error_word_t *error_word; /* The engine's, as the host sees it */
  uint64_t error_word_address; /* and as kernels do [NULL, 0: a word of the
                                * pool's] */
  void *stream; /* The engine's. While it is under capture no kernel is prepared
                 * for the pool and no plan is made: an error, before anything
                 * is touched [NULL] */
  int32_t check_rows; /* For debugging, 1: a begin checks that no two rows share
                       * a slot that one of them writes, as
                       * REPLAYJIT_LAUNCH_CHECK_ROWS does of a launch [0] */
  int32_t reserved;
} replayjit_pool_options_t;

/* Write the defaults; pass sizeof(*struct). */
REPLAYJIT_API void replayjit_pool_group_init(replayjit_pool_group_t *group,
                                             size_t struct_size);
REPLAYJIT_API void replayjit_cursors_init(replayjit_cursors_t *cursors,
                                          size_t struct_size);
REPLAYJIT_API void
replayjit_pool_options_init(replayjit_pool_options_t *options,
                            size_t struct_size);

/* A pool over the engine's memory, which outlives it. Prepares kernels, so
 * never under capture: INVALID_ARGUMENT if options->stream is. `options` may be
 * NULL. The pool keeps the jit. */
REPLAYJIT_API replayjit_error_t *replayjit_pool_adopt(
    replayjit_jit_t *jit, const replayjit_pool_group_t *const *groups,
    size_t num_groups, const replayjit_cursors_t *cursors,
    const replayjit_pool_options_t *options, replayjit_pool_t **pool);
/* The same over memory of the pool's, which starts as zero. */
REPLAYJIT_API replayjit_error_t *replayjit_pool_allocate(
    replayjit_jit_t *jit, const replayjit_pool_group_t *const *groups,
    size_t num_groups, int32_t num_keys,
    const replayjit_pool_options_t *options, replayjit_pool_t **pool);
REPLAYJIT_API void replayjit_pool_retain(replayjit_pool_t *pool);
REPLAYJIT_API void replayjit_pool_release(replayjit_pool_t *pool);

/* Where the cursors are. Fills in a struct whose struct_size is set. */
REPLAYJIT_API replayjit_error_t *
replayjit_pool_cursors(const replayjit_pool_t *pool,
                       replayjit_cursors_t *cursors);
/* The decode kernel of a group for `rows` requests at once. */
REPLAYJIT_API replayjit_error_t *
replayjit_pool_prepare(replayjit_pool_t *pool, int32_t group, int32_t rows,
                       replayjit_kernel_t **kernel);
/* State, rings, slot counts and error word of a layer of a group, in arguments
 * whose other fields get their defaults. `args` is initialized. */
REPLAYJIT_API replayjit_error_t *
replayjit_pool_layer_args(const replayjit_pool_t *pool, int32_t group,
                          int32_t layer, replayjit_decode_args_t *args);

/* What kernels and plans have found wrong since the last clear: kind 0 where
 * nothing is. Does not wait for the device; from any thread. */
REPLAYJIT_API replayjit_error_t *
replayjit_pool_poll_errors(const replayjit_pool_t *pool,
                           replayjit_error_word_t *word);
/* Once the device is idle. */
REPLAYJIT_API replayjit_error_t *
replayjit_pool_clear_errors(replayjit_pool_t *pool);
/* All cursors become 0 and no step that has begun can be committed, in the
 * order of `stream`. */
REPLAYJIT_API replayjit_error_t *replayjit_pool_reset(replayjit_pool_t *pool,
                                                      void *stream);

/*===- Images: a request's states as bytes --------------------------------===*/

/* Where a request is in one group. */
typedef struct replayjit_group_slot_t {
  int64_t state;
  int64_t ring; /* Not looked at by a folded image. */
} replayjit_group_slot_t;
/* Writes -1: no slot. */
REPLAYJIT_API void replayjit_group_slot_init(replayjit_group_slot_t *slot);

typedef enum replayjit_image_t {
  REPLAYJIT_IMAGE_FOLDED = 0,   /* The states; the ring must be empty. */
  REPLAYJIT_IMAGE_WITH_RING = 1 /* Checkpoint, ring and cursor. */
} replayjit_image_t;

/* The bytes of a request, which the caller hands to replayjit_image_destroy.
 * slots[g] for each group g; `key` is that of its cursor, or -1 for a folded
 * state without one. Waits for `stream`. */
REPLAYJIT_API replayjit_error_t *
replayjit_pool_export(replayjit_pool_t *pool, void *stream,
                      const replayjit_group_slot_t *slots, int32_t key,
                      int32_t form, char **image, size_t *bytes);
REPLAYJIT_API void replayjit_image_destroy(char *image);
/* Puts a request into slots of this pool and sets the cursor of `key` (-1, for
 * folded images: none). images[i] of bytes[i] are those of the ranks that have
 * this rank's heads; the number of ranks may have been another. Writes nothing
 * unless all is right. Waits for `stream`. */
REPLAYJIT_API replayjit_error_t *replayjit_pool_import(
    replayjit_pool_t *pool, void *stream, const replayjit_group_slot_t *slots,
    int32_t key, const char *const *images, const size_t *bytes, size_t count);

/* A tensor of a layer for RDMA: slot s is slot_bytes at base + s * pitch_bytes.
 * It consists of `heads` equal parts, heads first_head.. of total_heads. */
typedef struct replayjit_region_t {
  uint32_t struct_size;
  int32_t group;
  int32_t layer;  /* Within its group. */
  int32_t tensor; /* 0 state, 1 d_ring, 2 k_ring, 3 g_ring */
  uint64_t base;
  int64_t pitch_bytes;
  int64_t slot_bytes;
  int32_t count; /* Slots, or rings. */
  int32_t heads;
  int32_t first_head;
  int32_t total_heads;
} replayjit_region_t;
/* Writes the defaults; pass sizeof(*region). */
REPLAYJIT_API void replayjit_region_init(replayjit_region_t *region,
                                         size_t struct_size);
/* How many there are, and one of them; `region` has its struct_size. */
REPLAYJIT_API size_t replayjit_pool_region_count(const replayjit_pool_t *pool);
REPLAYJIT_API replayjit_error_t *
replayjit_pool_region(const replayjit_pool_t *pool, size_t index,
                      replayjit_region_t *region);

/*===- Plans: one step of a batch -----------------------------------------===*/

typedef struct replayjit_plan_t replayjit_plan_t;

/* The index arrays of one group, in device memory, of index_type: [live] each,
 * so many elements apart [1]. 0: ring and dst are the state index, track is
 * none. With two rows or more the stride of slots that are written is not 0.
 * Element of an array that is handed over as it is, so it never changes. */
typedef struct replayjit_group_indices_t {
  uint64_t state;
  int64_t state_stride;
  uint64_t ring; /* Between steps any number where the cursor is 0. */
  int64_t ring_stride;
  uint64_t dst; /* Where a flush, a materialize or a copy writes. */
  int64_t dst_stride;
  uint64_t track;
  int64_t track_stride;
} replayjit_group_indices_t;
/* Writes the defaults. */
REPLAYJIT_API void
replayjit_group_indices_init(replayjit_group_indices_t *indices);

/* The rows of a step or of an operation on slots. Addresses are read on the
 * device, in the order of the stream. Those of rows are [live] int32 arrays, or
 * 0: not given. */
typedef struct replayjit_step_inputs_t {
  uint32_t struct_size;
  int32_t live;       /* Rows, at most the plan's; the others are padding. */
  uint64_t keys;      /* [live] of index_type; negative: padding */
  int64_t key_stride; /* [1] */
  const replayjit_group_indices_t *groups; /* One for each group, on the host */
  uint64_t flush_mask;                     /* Not 0: flush now; should_flush. */
  uint64_t fresh;         /* Not 0: a new request; its cursor counts as 0. */
  uint64_t seq_len;       /* Tokens fed to the row, this step's included. */
  uint64_t no_flush_past; /* A row that would fold more tokens is padding. */
  uint64_t
      drop_newest; /* Materialize: ring rows to leave out; tokens_to_drop. */
} replayjit_step_inputs_t;
/* Writes the defaults; pass sizeof(*inputs). */
REPLAYJIT_API void replayjit_step_inputs_init(replayjit_step_inputs_t *inputs,
                                              size_t struct_size);

/* The bytes of a plan's buffers for up to max_rows rows, 1 or more. */
REPLAYJIT_API replayjit_error_t *
replayjit_plan_bytes(const replayjit_pool_t *pool, int32_t max_rows,
                     size_t *bytes);
/* A plan with buffers in `memory`, device memory of the engine's, 256-byte
 * aligned, or (0) of its own. Their addresses never change. It keeps the
 * pool. */
REPLAYJIT_API replayjit_error_t *replayjit_plan_create(replayjit_pool_t *pool,
                                                       int32_t max_rows,
                                                       uint64_t memory,
                                                       replayjit_plan_t **plan);
REPLAYJIT_API void replayjit_plan_retain(replayjit_plan_t *plan);
REPLAYJIT_API void replayjit_plan_release(replayjit_plan_t *plan);

/* Fills the buffers for a step, in the order of `stream`; `step` is above 0 and
 * used once. Without a commit it is rolled back, but for what launches have
 * flushed. Like all that follow, it neither waits, locks nor allocates. */
REPLAYJIT_API replayjit_error_t *
replayjit_plan_begin(replayjit_plan_t *plan, void *stream, int64_t step,
                     const replayjit_step_inputs_t *inputs);
/* Moves the cursors of its rows, once for all layers: by advance_by, [max_rows]
 * int32 on the device, or (0) by one token. INVALID_ARGUMENT unless `step` is
 * the one that began last, here or in a graph, and is not void. A second commit
 * does nothing. */
REPLAYJIT_API replayjit_error_t *replayjit_plan_commit(replayjit_plan_t *plan,
                                                       void *stream,
                                                       int64_t step,
                                                       uint64_t advance_by);
/* For a graph: step and live rows are those that set_step gave last, 0 at
 * first, so that capture and warm-up move no cursor. */
REPLAYJIT_API replayjit_error_t *
replayjit_plan_begin_captured(replayjit_plan_t *plan, void *stream,
                              const replayjit_step_inputs_t *inputs);
REPLAYJIT_API replayjit_error_t *
replayjit_plan_commit_captured(replayjit_plan_t *plan, void *stream,
                               uint64_t advance_by);
/* Before each replay, on its stream. */
REPLAYJIT_API replayjit_error_t *replayjit_plan_set_step(replayjit_plan_t *plan,
                                                         void *stream,
                                                         int64_t step,
                                                         int32_t live);

/* The arguments of a layer for row_count rows from row_begin of the step: pool,
 * cursors and indices. The caller adds inputs, parameters, out, scale and
 * lower_bound, offset by the same rows. `args` is initialized. A programmatic
 * launch reads what begin writes before it waits, so another kernel stands in
 * between: see replayjit_launch.h. */
REPLAYJIT_API replayjit_error_t *
replayjit_plan_layer_args(const replayjit_plan_t *plan, int32_t group,
                          int32_t layer, int32_t row_begin, int32_t row_count,
                          replayjit_decode_args_t *args);

/* Between steps; a step that has begun is void afterwards. What one does not
 * use is InvalidArgument if it is given: flush_mask, seq_len, no_flush_past and
 * track are of a step alone, drop_newest of materialize, and dst of
 * materialize, copy and a step. */

/* dst = checkpoint plus ring of state, in all layers; cursors stay. */
REPLAYJIT_API replayjit_error_t *
replayjit_plan_materialize(replayjit_plan_t *plan, void *stream,
                           const replayjit_step_inputs_t *inputs);
/* The same for rows whose ring is empty; another is reported, not copied. */
REPLAYJIT_API replayjit_error_t *
replayjit_plan_copy(replayjit_plan_t *plan, void *stream,
                    const replayjit_step_inputs_t *inputs);
/* Before rows run anything but replay decode: folds their rings into their own
 * states and sets their cursors to 0. */
REPLAYJIT_API replayjit_error_t *
replayjit_plan_prepare_extend(replayjit_plan_t *plan, void *stream,
                              const replayjit_step_inputs_t *inputs);
/* For debugging: reports the rows whose cursor is not 0. */
REPLAYJIT_API replayjit_error_t *
replayjit_plan_require_flushed(replayjit_plan_t *plan, void *stream,
                               const replayjit_step_inputs_t *inputs);

#ifdef __cplusplus
}
#endif

#endif
