/* capi.c - every function of replayjit.h, from C11.
 *
 * Usage: capi CACHE_FOLDER. Kernels run in the emulation; tests/consumer covers
 * a CUDA device over a driver made up. */
#include "DecodeSteps.h"
#include "replayjit/replayjit_describe.h"

#include <stdbool.h>
#include <string.h>

static void check_versions(void) {
  CHECK(replayjit_api_version() == REPLAYJIT_API_VERSION);
  char release[16]; /* The release's major and minor, before its patch. */
  snprintf(release, sizeof(release), "%u.%u.", REPLAYJIT_API_VERSION >> 16,
           REPLAYJIT_API_VERSION & 0xffff);
  CHECK(strncmp(EXPECTED_VERSION, release, strlen(release)) == 0);
  CHECK(strcmp(replayjit_version(), EXPECTED_VERSION) == 0);
  CHECK(replayjit_has_compiler() == 1);
  CHECK(replayjit_error_code(NULL) == REPLAYJIT_OK);
  CHECK(strcmp(replayjit_error_message(NULL), "") == 0);
  CHECK(strcmp(replayjit_error_stage(NULL), "") == 0);
  CHECK(strcmp(replayjit_error_log(NULL), "") == 0);
  replayjit_error_destroy(NULL);
}

/* b and dt_bias have types of their own. */
static void check_types(void) {
  replayjit_decode_spec_t spec;
  replayjit_decode_spec_init(&spec, sizeof(spec));
  spec.act_type = spec.gate_type = REPLAYJIT_F32;
  OK(replayjit_target_supports("sm_90a", &spec, NULL));
  spec.act_type = REPLAYJIT_BF16;
  OK(replayjit_target_supports("sm_90a", &spec, NULL));
  spec.bias_type = REPLAYJIT_I32;
  FAILS(replayjit_target_supports("sm_90a", &spec, NULL),
        REPLAYJIT_INVALID_ARGUMENT, "biasType: int32 is not allowed");
  spec.bias_type = REPLAYJIT_F16;
  OK(replayjit_target_supports("sm_90a", &spec, NULL));
  spec.bias_type = REPLAYJIT_I64 + 1;
  FAILS(replayjit_target_supports("sm_90a", &spec, NULL),
        REPLAYJIT_INVALID_ARGUMENT,
        "biasType: 5 is not allowed; it must be 0 to 4");

  /* Of a caller whose struct ends earlier. */
  const size_t old = offsetof(replayjit_decode_spec_t, abi);
  spec.abi = 77;
  replayjit_decode_spec_init(&spec, old);
  CHECK(spec.abi == 77);
  OK(replayjit_target_supports("sm_90a", &spec, NULL));
}

/* Each member is told: name, doc, words and default. */
static void check_facts(void) {
  replayjit_decode_spec_t spec;
  replayjit_decode_spec_init(&spec, sizeof(spec));
  const int32_t *members = (const int32_t *)&spec + 1;
  size_t count = 0;
  const replayjit_fact_t *fact;
  for (; (fact = replayjit_decode_spec_fact(count)); ++count) {
    CHECK(fact->usual == members[count]);
    CHECK(fact->lowest <= fact->usual && fact->usual <= fact->highest);
    CHECK(fact->name[0] && fact->doc[0]);
    CHECK((fact->num_words == 0) == (fact->kind == REPLAYJIT_FACT_NUMBER));
    CHECK((fact->words == NULL) == (fact->num_words == 0));
  }
  CHECK(sizeof(spec) == (1 + count) * sizeof(int32_t));
  CHECK(!replayjit_decode_spec_fact(SIZE_MAX));

  fact = replayjit_decode_spec_fact(0);
  CHECK(strcmp(fact->name, "family") == 0 &&
        fact->kind == REPLAYJIT_FACT_CHOICE);
  CHECK(strcmp(fact->words[3], "plan-begin") == 0);
  fact = replayjit_decode_spec_fact(1);
  CHECK(strcmp(fact->name, "is_kda") == 0 &&
        fact->kind == REPLAYJIT_FACT_TRUTH);
  fact = replayjit_decode_spec_fact(2);
  CHECK(strcmp(fact->name, "num_key_heads") == 0);
  CHECK(fact->lowest == 1 && fact->highest == 1024 && fact->usual == 16);

  replayjit_decode_tuning_t tuning;
  replayjit_decode_tuning_init(&tuning, sizeof(tuning));
  for (count = 0; replayjit_decode_tuning_fact(count); ++count)
    CHECK(replayjit_decode_tuning_fact(count)->usual ==
          ((const int32_t *)&tuning)[1 + count]);
  CHECK(sizeof(tuning) == (1 + count) * sizeof(int32_t));
}

/* Names lead to fields. */
static void check_arguments(void) {
  const char *decode = "replayjit_decode_args_t";
  const replayjit_argument_t *found = NULL;
  size_t count = 0;
  for (; replayjit_argument(decode, count); ++count)
    if (strcmp(replayjit_argument(decode, count)->name, "out") == 0)
      found = replayjit_argument(decode, count);
  CHECK(count == 48 && found != NULL);
  CHECK(found->offset == offsetof(replayjit_decode_args_t, out));
  CHECK(found->type == REPLAYJIT_FIELD_U64 && found->is_wide == 1);
  CHECK(strcmp(found->stride, "out_stride") == 0);
  CHECK(strcmp(found->doc, "[tokens, HV, V] out_type, written") == 0);
  found = replayjit_argument("replayjit_layer_t", 4);
  CHECK(found && strcmp(found->name, "state_pitch") == 0);
  CHECK(found->offset == offsetof(replayjit_layer_t, state_pitch));
  CHECK(found->type == REPLAYJIT_FIELD_I64 && found->stride == NULL);
  CHECK(replayjit_argument("replayjit_materialize_args_t", 0) != NULL);
  CHECK(replayjit_argument("replayjit_decode_spec_t", 0) == NULL);
  CHECK(replayjit_argument(NULL, 0) == NULL);
}

static void check_specs(void) {
  replayjit_decode_spec_t spec;
  replayjit_decode_spec_init(&spec, sizeof(spec));
  OK(replayjit_decode_spec_from_model(&spec, "qwen3-next", 4));
  CHECK(spec.num_key_heads == 4 && spec.num_value_heads == 8);
  CHECK(spec.head_dim_k == 128 && spec.ring_depth == 16 && spec.has_mask == 1);
  FAILS(replayjit_decode_spec_from_model(&spec, "gpt-2", 1),
        REPLAYJIT_INVALID_ARGUMENT, "model: 'gpt-2' is unknown");
  FAILS(replayjit_decode_spec_from_model(&spec, NULL, 1),
        REPLAYJIT_INVALID_ARGUMENT, "model: NULL");

  bool found = false;
  size_t names = 0;
  for (; replayjit_target_name(names); ++names)
    found |= strcmp(replayjit_target_name(names), "sm_90a") == 0;
  CHECK(found && !replayjit_target_name(names + 5));

  replayjit_decode_tuning_t tuning;
  replayjit_decode_tuning_init(&tuning, sizeof(tuning));
  CHECK(tuning.block_v == 32 && tuning.block_k == 128);
  OK(replayjit_target_supports("sm_90a", &spec, NULL));
  OK(replayjit_target_supports("sm_90a", &spec, &tuning));
  spec.programmatic_launch = REPLAYJIT_PROGRAMMATIC_EARLY;
  FAILS(replayjit_target_supports("sm_80", &spec, &tuning),
        REPLAYJIT_UNSUPPORTED,
        "programmaticLaunch: early is not allowed for sm_80");
  spec.programmatic_launch = REPLAYJIT_PROGRAMMATIC_NONE;
  OK(replayjit_target_choose_tuning("sm_90a", 132, &spec, 1, &tuning));
  FAILS(replayjit_target_choose_tuning("sm_9", 132, &spec, 1, &tuning),
        REPLAYJIT_INVALID_ARGUMENT, "target: 'sm_9' is unknown");
  FAILS(replayjit_target_choose_tuning("sm_90a", 0, &spec, 1, &tuning),
        REPLAYJIT_INVALID_ARGUMENT, "on 0 multiprocessors");

  spec.head_dim_k = 257;
  FAILS(replayjit_target_supports("sm_90a", &spec, NULL),
        REPLAYJIT_INVALID_ARGUMENT, "headDimK: 257 is not allowed");
  spec.head_dim_k = 128;
  spec.is_kda = 2; /* No bool; must not become one in silence. */
  FAILS(replayjit_target_supports("sm_90a", &spec, NULL),
        REPLAYJIT_INVALID_ARGUMENT, "isKda: 2 is not allowed");
  spec.is_kda = 0;
  spec.family = 3; /* Not of this interface. */
  FAILS(replayjit_target_supports("sm_90a", &spec, NULL),
        REPLAYJIT_INVALID_ARGUMENT, "family: 3 is not allowed");
  spec.family = REPLAYJIT_FAMILY_REPLAY;
  spec.readout = 2;
  FAILS(replayjit_target_supports("sm_90a", &spec, NULL),
        REPLAYJIT_INVALID_ARGUMENT, "readout: 2 is not allowed");

  int32_t write_pos = 3, base = 0;
  problem_spec(&spec);
  OK(replayjit_ring_cursor_advance(&spec, &write_pos, &base, 0));
  CHECK(write_pos == 0 && base == 0);
  write_pos = L;
  FAILS(replayjit_ring_cursor_advance(&spec, &write_pos, &base, 0),
        REPLAYJIT_INVALID_ARGUMENT, "write_pos: 4 is not allowed");
  write_pos = 1;
  FAILS(replayjit_ring_cursor_accept(&spec, &write_pos, &base, 0, 2),
        REPLAYJIT_INVALID_ARGUMENT, "accepted: 2 is not allowed");

  spec.family = REPLAYJIT_FAMILY_VERIFY; /* L = 4 */
  spec.is_circular = 1;
  spec.num_tokens = 2;
  write_pos = 0;
  OK(replayjit_ring_cursor_accept(&spec, &write_pos, &base, 1, 1));
  CHECK(write_pos == 1 && base == 0);
  OK(replayjit_ring_cursor_accept(&spec, &write_pos, &base, 0, 2));
  CHECK(write_pos == 2 && base == 1); /* 1 + 2T > L: folded. */
  OK(replayjit_ring_cursor_accept(&spec, &write_pos, &base, 0, 0));
  CHECK(write_pos == 0 && base == 3);
  FAILS(replayjit_ring_cursor_accept(&spec, &write_pos, &base, 0, 3),
        REPLAYJIT_INVALID_ARGUMENT,
        "accepted: 3 is not allowed; it must be 0 to 2");
  write_pos = 3;
  FAILS(replayjit_ring_cursor_accept(&spec, &write_pos, &base, 0, 0),
        REPLAYJIT_INVALID_ARGUMENT,
        "write_pos: 3 is not allowed; it must be 0 to 2");
}

/* Callers of an older and a newer library, and those who forgot. */
static void check_sizes(replayjit_device_t *device) {
  struct {
    replayjit_decode_spec_t spec;
    char newer[16];
  } large;
  memset(&large, 1, sizeof(large));
  replayjit_decode_spec_init(&large.spec, sizeof(large));
  CHECK(large.spec.struct_size == sizeof(large) && large.newer[15] == 0);
  FAILS(replayjit_target_supports("sm_90a", &large.spec, NULL),
        REPLAYJIT_INVALID_ARGUMENT, "this library knows");

  replayjit_decode_spec_t spec;
  memset(&spec, 1, sizeof(spec));
  const size_t old = offsetof(replayjit_decode_spec_t, ring_depth);
  replayjit_decode_spec_init(&spec, old);
  CHECK(spec.struct_size == old && spec.head_dim_v == 128);
  CHECK(spec.ring_depth == 0x01010101); /* Not the library's to write. */
  OK(replayjit_target_supports("sm_90a", &spec, NULL));
  OK(replayjit_decode_spec_from_model(&spec, "kimi-linear", 1));
  CHECK(spec.is_kda == 1 && spec.ring_depth == 0x01010101);

  spec.struct_size = 0;
  FAILS(replayjit_target_supports("sm_90a", &spec, NULL),
        REPLAYJIT_INVALID_ARGUMENT, "_init");
  /* Half a field is not read. */
  spec.struct_size = old + 2;
  FAILS(replayjit_target_supports("sm_90a", &spec, NULL),
        REPLAYJIT_INVALID_ARGUMENT,
        "ends within a field, and must be a multiple of 4");
  replayjit_jit_options_t options;
  replayjit_jit_options_init(&options, sizeof(options));
  options.struct_size = offsetof(replayjit_jit_options_t, cache_roots) + 4;
  replayjit_jit_t *jit = NULL;
  FAILS(replayjit_jit_create(device, &options, &jit),
        REPLAYJIT_INVALID_ARGUMENT,
        "options: a struct_size of 12 is not allowed; it ends within a field, "
        "and must be a multiple of 8");
  replayjit_device_info_t info = {.struct_size = 12};
  FAILS(replayjit_device_info(device, &info), REPLAYJIT_INVALID_ARGUMENT,
        "info: a struct_size of 12");
  FAILS(replayjit_target_supports("sm_90a", NULL, NULL),
        REPLAYJIT_INVALID_ARGUMENT, "spec: NULL");
}

/* NULL where something must be is an error, and in a void function nothing. */
static void check_nothing(replayjit_device_t *device) {
  replayjit_decode_spec_init(NULL, sizeof(replayjit_decode_spec_t));
  replayjit_decode_tuning_init(NULL, sizeof(replayjit_decode_tuning_t));
  replayjit_decode_args_init(NULL, sizeof(replayjit_decode_args_t));
  replayjit_materialize_args_init(NULL, sizeof(replayjit_materialize_args_t));
  replayjit_jit_options_init(NULL, sizeof(replayjit_jit_options_t));
  replayjit_device_info_init(NULL, sizeof(replayjit_device_info_t));
  replayjit_kernel_info_init(NULL, sizeof(replayjit_kernel_info_t));
  replayjit_cache_counters_init(NULL, sizeof(replayjit_cache_counters_t));
  replayjit_layer_init(NULL);
  replayjit_error_word_init(NULL);
  replayjit_device_retain(NULL);
  replayjit_device_release(NULL);
  uint64_t address = 0;
  OK(replayjit_device_allocate(device, 16, "word", &address));
  FAILS(replayjit_device_copy_to(device, address, NULL, 16),
        REPLAYJIT_INVALID_ARGUMENT, "src: NULL is not allowed");
  FAILS(replayjit_device_copy_from(device, NULL, address, 16),
        REPLAYJIT_INVALID_ARGUMENT, "dst: NULL is not allowed");
  OK(replayjit_device_copy_to(device, address, NULL, 0));
  OK(replayjit_device_copy_from(device, NULL, address, 0));
  OK(replayjit_device_free(device, address));
  FAILS(replayjit_device_allocate(device, SIZE_MAX - 300, "word", &address),
        REPLAYJIT_OUT_OF_MEMORY, "no memory for 'word'");
}

static void check_devices(replayjit_device_t *device) {
  replayjit_device_info_t info = {.struct_size = sizeof(info)};
  OK(replayjit_device_info(device, &info));
  CHECK(info.is_emulation == 1 && info.capability == 90);
  CHECK(strcmp(info.description, "emulation") == 0);
  CHECK(strcmp(info.chip, "sm_90a") == 0);
  FAILS(replayjit_device_create_emulation("sm_1", &device),
        REPLAYJIT_INVALID_ARGUMENT, "target: 'sm_1' is unknown");
  FAILS(replayjit_device_free(device, 64), REPLAYJIT_INVALID_ARGUMENT,
        "is not an allocation");

  void *host = NULL;
  uint64_t address = 0;
  OK(replayjit_device_allocate_mapped(device, 64, "mapped", &host, &address));
  CHECK(host && address && !replayjit_device_stream(device));
  int32_t is_capturing = 7;
  OK(replayjit_device_is_capturing(device, NULL, &is_capturing));
  CHECK(is_capturing == 0);
  FAILS(replayjit_device_is_capturing(device, NULL, NULL),
        REPLAYJIT_INVALID_ARGUMENT, "is_capturing: NULL");
  OK(replayjit_device_free_mapped(device, host, address));
  FAILS(replayjit_device_free_mapped(device, host, address),
        REPLAYJIT_INVALID_ARGUMENT, "emulation");

  /* With a GPU or without: never a crash, never the emulation instead. */
  replayjit_device_t *gpu = NULL;
  replayjit_error_t *error = replayjit_device_create_cuda(1000, &gpu);
  CHECK(error && !gpu);
  replayjit_error_destroy(error);
  error = replayjit_device_create_cuda_current(&gpu); /* None is current. */
  CHECK(error && !gpu);
  replayjit_error_destroy(error);
}

/* One that waits for the kernel before it may be launched either way. The step
 * appends, so that the same one again changes nothing. */
static void check_programmatic(problem_t *problem, replayjit_jit_t *jit) {
  replayjit_kernel_t *kernel = NULL;
  replayjit_decode_spec_t spec = problem->spec;
  spec.programmatic_launch = REPLAYJIT_PROGRAMMATIC_EARLY;
  spec.dependents = REPLAYJIT_DEPENDENTS_TOKEN;
  OK(replayjit_jit_prepare(jit, &spec, ROWS, &kernel));
  problem_step(problem, kernel, (int32_t[ROWS]){0, 0});
  OK(replayjit_kernel_launch(kernel, NULL, &problem->args,
                             REPLAYJIT_LAUNCH_PROGRAMMATIC));
  OK(replayjit_kernel_launch(kernel, NULL, &problem->args,
                             REPLAYJIT_LAUNCH_PROGRAMMATIC |
                                 REPLAYJIT_LAUNCH_UNCHECKED));
  replayjit_kernel_release(kernel);
}

static void check_launch_errors(problem_t *problem,
                                replayjit_kernel_t *kernel) {
  replayjit_decode_args_t args = problem->args;
  args.q += 4;
  FAILS(replayjit_kernel_launch(kernel, NULL, &args, 0),
        REPLAYJIT_INVALID_ARGUMENT, "must be a multiple of 16 bytes");
  args.batch = 0;
  OK(replayjit_kernel_launch(kernel, NULL, &args, REPLAYJIT_LAUNCH_UNCHECKED));
  args.struct_size = 8; /* Defaults only: no rows. */
  OK(replayjit_kernel_launch(kernel, NULL, &args, 0));
  args.struct_size = offsetof(replayjit_decode_args_t, state) + 4;
  FAILS(replayjit_kernel_launch(kernel, NULL, &args, 0),
        REPLAYJIT_INVALID_ARGUMENT, "args: a struct_size of");
  args.struct_size = sizeof(args) + 8;
  FAILS(replayjit_kernel_launch(kernel, NULL, &args, 0),
        REPLAYJIT_INVALID_ARGUMENT, "args: a struct_size of");
  FAILS(replayjit_kernel_launch(kernel, NULL, &problem->args, 1u << 31),
        REPLAYJIT_INVALID_ARGUMENT, "flags: 0x80000000");
  FAILS(replayjit_kernel_launch(kernel, NULL, &problem->args,
                                REPLAYJIT_LAUNCH_PROGRAMMATIC),
        REPLAYJIT_INVALID_ARGUMENT, "rogrammatic");
  FAILS(replayjit_kernel_launch(kernel, &args, &problem->args, 0),
        REPLAYJIT_INVALID_ARGUMENT, "stream");
  FAILS(replayjit_kernel_launch(NULL, NULL, &problem->args, 0),
        REPLAYJIT_INVALID_ARGUMENT, "kernel: NULL");
  /* Memory that is none of the device's: found by name, on request. */
  float elsewhere[4] = {0};
  args = problem->args;
  OK(replayjit_kernel_launch(kernel, NULL, &args,
                             REPLAYJIT_LAUNCH_CHECK_MEMORY));
  args.a_log = (uint64_t)(uintptr_t)elsewhere;
  FAILS(replayjit_kernel_launch(kernel, NULL, &args,
                                REPLAYJIT_LAUNCH_CHECK_MEMORY),
        REPLAYJIT_INVALID_ARGUMENT, "': aLog: 0x");
  FAILS(replayjit_kernel_launch(kernel, NULL, &args, 5u),
        REPLAYJIT_INVALID_ARGUMENT,
        "flags: 0x5 is not allowed; UNCHECKED and CHECK_MEMORY");
  /* Rows on one slot: by a stride, which any launch sees, or by indices. */
  args = problem->args;
  args.state_index_stride = 0;
  FAILS(replayjit_kernel_launch(kernel, NULL, &args, 0),
        REPLAYJIT_INVALID_ARGUMENT,
        "stateIndexStride: 0 is not allowed with 2 rows");
  const int32_t same[ROWS] = {1, 1};
  args = problem->args;
  OK(replayjit_kernel_launch(kernel, NULL, &args,
                             REPLAYJIT_LAUNCH_CHECK_ROWS |
                                 REPLAYJIT_LAUNCH_CHECK_MEMORY));
  args.state_indices = problem_upload(problem, "same", same, sizeof(same));
  FAILS(replayjit_kernel_launch(kernel, NULL, &args,
                                REPLAYJIT_LAUNCH_CHECK_ROWS),
        REPLAYJIT_INVALID_ARGUMENT, "rows 0 and 1 share");
  FAILS(replayjit_kernel_launch(kernel, NULL, &args, 9u),
        REPLAYJIT_INVALID_ARGUMENT,
        "flags: 0x9 is not allowed; UNCHECKED and CHECK_ROWS");
  /* The emulation's own finding. */
  args = problem->args;
  args.state += 16;
  FAILS(replayjit_kernel_launch(kernel, NULL, &args, 0),
        REPLAYJIT_EXECUTION_FAULT, "state");
}

static void check_kernel(replayjit_kernel_t *kernel) {
  replayjit_kernel_info_t info;
  replayjit_kernel_info_init(&info, sizeof(info));
  OK(replayjit_kernel_info(kernel, &info));
  CHECK(strncmp(info.name, "gdn_decode_h1_hv2_k32_v16_l4_", 29) == 0);
  CHECK(strcmp(info.chip, "sm_90a") == 0 && strcmp(info.assembler, "") == 0);
  CHECK(info.origin == REPLAYJIT_COMPILED && info.threads >= 32);
  CHECK(info.registers == -1);
  replayjit_decode_spec_t spec = {.struct_size = sizeof(spec)};
  OK(replayjit_kernel_spec(kernel, &spec));
  CHECK(spec.head_dim_v == V && spec.ring_depth == L);
  replayjit_decode_tuning_t tuning = {.struct_size = sizeof(tuning)};
  OK(replayjit_kernel_tuning(kernel, &tuning));
  CHECK(tuning.block_v * info.blocks_per_row >= HV * V);
}

/* A kernel tells the types it was asked for. */
static void check_kernel_types(const problem_t *problem, replayjit_jit_t *jit) {
  replayjit_decode_spec_t spec = problem->spec, told = spec;
  spec.act_type = REPLAYJIT_BF16;
  spec.beta_type = REPLAYJIT_BF16;
  spec.param_type = REPLAYJIT_BF16;
  spec.bias_type = REPLAYJIT_F32;
  replayjit_kernel_t *kernel = NULL;
  OK(replayjit_jit_prepare(jit, &spec, 1, &kernel));
  OK(replayjit_kernel_spec(kernel, &told));
  CHECK(memcmp(&spec, &told, sizeof(spec)) == 0);
  replayjit_kernel_info_t info = {.struct_size = sizeof(info)};
  OK(replayjit_kernel_info(kernel, &info));
  CHECK(strstr(info.name, "_gatefp32_betabf16_parambf16_biasfp32_"));
  replayjit_kernel_release(kernel);
}

/* Row 0's checkpoint and ring become the state of slot 0. */
static void check_materialize(problem_t *problem, replayjit_jit_t *jit) {
  const replayjit_decode_args_t *args = &problem->args;
  replayjit_decode_spec_t spec = problem->spec;
  spec.family = REPLAYJIT_FAMILY_MATERIALIZE;
  spec.has_mask = 0;
  replayjit_kernel_t *kernel = NULL;
  OK(replayjit_jit_prepare(jit, &spec, 0, &kernel));

  replayjit_layer_t layer = {args->state,   args->d_ring,      args->k_ring,
                             args->g_ring,  args->state_pitch, args->d_pitch,
                             args->k_pitch, args->g_pitch};
  OK(replayjit_layer_validate(&spec, &layer));
  layer.state_pitch = 1;
  FAILS(replayjit_layer_validate(&spec, &layer), REPLAYJIT_INVALID_ARGUMENT,
        "statePitch: 1 is not allowed");
  layer.state_pitch = args->state_pitch;

  const int32_t src = 1, dst = 0, bad = SLOTS;
  replayjit_error_word_t seen = {0};
  replayjit_materialize_args_t launch;
  replayjit_materialize_args_init(&launch, sizeof(launch));
  CHECK(launch.src_index_stride == 1);
  launch.layers = problem_upload(problem, "layers", &layer, sizeof(layer));
  launch.src_indices = problem_upload(problem, "src", &src, sizeof(src));
  launch.dst_indices = problem_upload(problem, "dst", &dst, sizeof(dst));
  launch.error_word = problem_upload(problem, "error", &seen, sizeof(seen));
  launch.write_pos = args->write_pos;
  OK(replayjit_device_copy_to(problem->device, args->write_pos, problem->cursor,
                              sizeof(problem->cursor)));
  launch.batch = launch.num_layers = 1;
  launch.slots = SLOTS;
  CHECK(problem->cursor[0] > 0); /* The ring holds something. */
  FAILS(replayjit_kernel_launch(kernel, NULL, args, 0),
        REPLAYJIT_INVALID_ARGUMENT, "takes MaterializeArgs");
  OK(replayjit_kernel_launch_materialize(kernel, NULL, &launch, 0));
  problem_check_slot(problem, dst, 0);

  OK(replayjit_device_copy_to(problem->device, launch.src_indices, &bad,
                              sizeof(bad)));
  OK(replayjit_kernel_launch_materialize(kernel, NULL, &launch, 0));
  OK(replayjit_device_copy_from(problem->device, &seen, launch.error_word,
                                sizeof(seen)));
  CHECK(seen.count == 1 && seen.kind == 1 && seen.value == bad);
  replayjit_kernel_release(kernel);
}

static void count_progress(void *user_data, size_t done, size_t total,
                           const char *name, const replayjit_error_t *error) {
  size_t *heard = user_data;
  CHECK(done == ++*heard && total == 3);
  CHECK(!name == !!error);
}

/* What a caller may not release must not be left in the arrays. */
static void check_refused(replayjit_jit_t *jit,
                          const replayjit_decode_spec_t *const *specs,
                          const int32_t *rows, const char *text) {
  replayjit_kernel_t *kernels[3];
  replayjit_error_t *errors[3];
  memset(kernels, 1, sizeof(kernels));
  memset(errors, 1, sizeof(errors));
  FAILS(replayjit_jit_prepare_all(jit, specs, rows, 3, NULL, NULL, kernels,
                                  errors),
        REPLAYJIT_INVALID_ARGUMENT, text);
  for (int i = 0; i < 3; ++i)
    CHECK(!kernels[i] && !errors[i]);
}

static void check_prepare_all(replayjit_jit_t *jit) {
  replayjit_decode_spec_t good, other, bad;
  problem_spec(&good);
  problem_spec(&other);
  problem_spec(&bad);
  other.state_type = REPLAYJIT_BF16;
  bad.alignment = 3;
  const replayjit_decode_spec_t *specs[] = {&good, &bad, &other};
  const int32_t rows[] = {ROWS, 1, 0};
  replayjit_kernel_t *kernels[3] = {NULL};
  replayjit_error_t *errors[3] = {NULL};
  size_t heard = 0;
  FAILS(replayjit_jit_prepare_all(jit, specs, rows, 3, count_progress, &heard,
                                  kernels, errors),
        REPLAYJIT_INVALID_ARGUMENT, "alignment: 3 is not allowed");
  CHECK(heard == 3 && kernels[0] && !kernels[1] && kernels[2]);
  replayjit_kernel_t *again = NULL;
  OK(replayjit_jit_prepare_all_on(jit, NULL, specs, rows, 1, NULL, NULL, &again,
                                  NULL));
  replayjit_kernel_release(again);
  CHECK(!errors[0] && errors[1] && !errors[2]);
  replayjit_error_destroy(errors[1]);
  replayjit_kernel_release(kernels[0]);
  replayjit_kernel_release(kernels[2]);

  bad.family = 9; /* Found before anything is prepared. */
  check_refused(jit, specs, rows, "specs[1]: family: 9 is not allowed");
  check_refused(NULL, specs, rows, "jit: NULL");
  check_refused(jit, NULL, rows, "specs: NULL");
  check_refused(jit, specs, NULL, "rows: NULL");
  FAILS(replayjit_jit_prepare_all(jit, specs, rows, 3, NULL, NULL, NULL, NULL),
        REPLAYJIT_INVALID_ARGUMENT, "kernels: NULL");
}

static void hear(void *user_data, const char *sentence) {
  (void)sentence;
  ++*(int *)user_data;
}

static replayjit_jit_t *make_jit(replayjit_device_t *device,
                                 const char *folder) {
  static int heard;
  replayjit_jit_t *jit = NULL;
  replayjit_jit_options_t options;
  replayjit_jit_options_init(&options, sizeof(options));
  CHECK(options.use_environment == 1 && options.compile == 1);
  options.use_environment = 0;
  options.cache_roots = folder;
  options.workers = 2;
  options.diagnose = hear;
  options.diagnose_data = &heard;
  OK(replayjit_jit_create(device, &options, &jit));
  CHECK(heard == 0);

  replayjit_jit_t *none = NULL;
  options.must_hit = 2;
  FAILS(replayjit_jit_create(device, &options, &none),
        REPLAYJIT_INVALID_ARGUMENT, "must_hit: 2 is not allowed");
  options.must_hit = 1;
  FAILS(replayjit_jit_create(device, &options, &none),
        REPLAYJIT_INVALID_ARGUMENT, "under emulation");
  options.must_hit = 0;
  options.assembler = "cuobjdump";
  FAILS(replayjit_jit_create(device, &options, &none),
        REPLAYJIT_INVALID_ARGUMENT, "assembler: 'cuobjdump' is not allowed");
  options.assembler = NULL;
  options.compile = 0;
  OK(replayjit_jit_create(device, &options, &none));
  replayjit_decode_spec_t spec;
  problem_spec(&spec);
  replayjit_kernel_t *kernel = NULL;
  FAILS(replayjit_jit_prepare(none, &spec, 1, &kernel), REPLAYJIT_UNSUPPORTED,
        "no compiler");
  CHECK(!kernel);
  replayjit_jit_retain(none);
  replayjit_jit_release(none);
  replayjit_jit_release(none);
  return jit;
}

int main(int argc, char **argv) {
  CHECK(argc == 2);
  check_versions();
  check_specs();
  check_types();
  check_facts();
  check_arguments();

  replayjit_device_t *device = NULL;
  OK(replayjit_device_create_emulation("sm_90a", &device));
  check_sizes(device);
  check_nothing(device);
  check_devices(device);
  replayjit_jit_t *jit = make_jit(device, argv[1]);

  problem_t problem;
  problem_create(&problem, device);
  replayjit_kernel_t *kernel = NULL, *tuned = NULL;
  OK(replayjit_jit_prepare(jit, &problem.spec, ROWS, &kernel));
  check_kernel(kernel);
  check_kernel_types(&problem, jit);
  for (int step = 0; step < 7; ++step)
    problem_step(&problem, kernel, (int32_t[ROWS]){step == 4, 0});
  check_materialize(&problem, jit);

  replayjit_kernel_t *again = NULL;
  OK(replayjit_jit_prepare_on(jit, NULL, &problem.spec, ROWS, &again));
  problem_step(&problem, again, (int32_t[ROWS]){0, 0});
  replayjit_kernel_release(again);

  replayjit_decode_tuning_t tuning;
  replayjit_decode_tuning_init(&tuning, sizeof(tuning));
  OK(replayjit_target_choose_tuning("sm_90a", 132, &problem.spec, 0, &tuning));
  tuning.block_v = 16;
  tuning.num_warps = 1;
  OK(replayjit_jit_prepare_tuned(jit, &problem.spec, &tuning, &tuned));
  OK(replayjit_jit_prepare_tuned_on(jit, NULL, &problem.spec, &tuning, &again));
  replayjit_kernel_release(again);
  problem_step(&problem, tuned, (int32_t[ROWS]){1, 1});
  problem_check_slot(&problem, 1, 0);
  problem_check_slot(&problem, 2, 1);
  replayjit_kernel_release(tuned);
  check_prepare_all(jit);
  check_programmatic(&problem, jit);

  replayjit_cache_counters_t counters = {.struct_size = sizeof(counters)};
  OK(replayjit_jit_counters(jit, &counters));
  CHECK(counters.compiles == 0); /* Emulation has no disk cache. */

  /* A kernel outlives all else. */
  replayjit_kernel_retain(kernel);
  replayjit_kernel_release(kernel);
  replayjit_device_retain(device);
  replayjit_device_release(device);
  replayjit_jit_release(jit);
  problem_step(&problem, kernel, (int32_t[ROWS]){0, 0});
  check_launch_errors(&problem, kernel); /* Its last launch spoils the ring. */
  problem_destroy(&problem);
  replayjit_device_release(device);
  replayjit_kernel_release(kernel);
  replayjit_kernel_release(NULL);
  return 0;
}
