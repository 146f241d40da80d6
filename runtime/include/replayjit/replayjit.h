/*===- replayjit.h - The C interface of libreplayjit --------------*- C -*-===*\
|*                                                                            *|
|* Generates, caches and launches the decode kernels of linear-attention      *|
|* models. C11; nothing here needs CUDA, LLVM or C++.                         *|
|*                                                                            *|
|* Errors. A call that can fail returns an error, NULL on success, which the  *|
|* caller hands to replayjit_error_destroy. On an error nothing is written to *|
|* the outputs, except where it says so. Nothing is printed, and the process  *|
|* is not ended, not even where memory is out (OUT_OF_MEMORY), with two       *|
|* limits. A compilation begins only where there is address space enough, but *|
|* if memory ends in its midst LLVM ends the process; so does the emulation   *|
|* in the midst of a launch. Sentences name fields as C++ does: numKeyHeads   *|
|* is num_key_heads here.                                                     *|
|*                                                                            *|
|* Structs. Each begins with struct_size, which its _init function writes.    *|
|* From 1.0 on new fields are added at the end: a library accepts the smaller *|
|* struct of an older caller, whose missing fields keep their defaults, and   *|
|* refuses one larger than it knows, or whose size is no multiple of the      *|
|* struct's alignment, since it may end within a field (InvalidArgument). Of  *|
|* a struct it fills in, it writes no more than struct_size bytes. A struct   *|
|* that never changes has no struct_size, and its _init function takes none.  *|
|* Zeros ("= {}") are not the defaults of all structs. Strings in structs are *|
|* the caller's and are copied; strings handed out belong to the object they  *|
|* came from.                                                                 *|
|*                                                                            *|
|* NULL is InvalidArgument where it is not said to be allowed; a function     *|
|* that returns nothing then does nothing.                                    *|
|*                                                                            *|
|* Handles count references: each create, prepare and retain is paired with a *|
|* release. A kernel keeps its device, so handles may be released in any      *|
|* order. Any thread may call anything, with one rule for each device: while  *|
|* one thread allocates, frees or copies on it, no other uses it.             *|
|*                                                                            *|
|* Streams are CUstream or cudaStream_t, as void *; NULL is the legacy        *|
|* default stream. Device pointers are uint64_t; device memory is the         *|
|* caller's. Sizes are in bytes, strides and pitches in elements.             *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/
#ifndef REPLAYJIT_REPLAYJIT_H
#define REPLAYJIT_REPLAYJIT_H

#include "replayjit/replayjit_error.h"
#include "replayjit/replayjit_launch.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*===- Versions -----------------------------------------------------------===*/

/* Major version times 65536 plus minor, both those of the release. Before 1.0 a
 * minor may change anything: a library serves callers of its own version alone,
 * and its file is libreplayjit.so.0.minor. From 1.0 on a library serves callers
 * of its own major whose minor is not above its own: minors only add functions,
 * flags, enumerators and fields at the ends of structs, and the file is
 * libreplayjit.so.major. */
#define REPLAYJIT_API_VERSION ((0u << 16) | 1u)

/* The REPLAYJIT_API_VERSION that the library was built with. */
REPLAYJIT_API uint32_t replayjit_api_version(void);
/* The release, such as "0.1.0". */
REPLAYJIT_API const char *replayjit_version(void);
/* 1 if this build can compile; 0 if it only runs what is cached. */
REPLAYJIT_API int32_t replayjit_has_compiler(void);

/*===- Specs: what a kernel computes --------------------------------------===*/

typedef enum replayjit_family_t {
  REPLAYJIT_FAMILY_REPLAY = 0,      /* Checkpoint and ring; decode. */
  REPLAYJIT_FAMILY_PACKED = 1,      /* No ring: the state at every token. */
  REPLAYJIT_FAMILY_MATERIALIZE = 2, /* Checkpoint plus ring into a slot. */
  REPLAYJIT_FAMILY_VERIFY = 5 /* Checkpoint and ring; several tokens a row. */
} replayjit_family_t;

typedef enum replayjit_type_t {
  REPLAYJIT_F32 = 0,
  REPLAYJIT_BF16 = 1,
  REPLAYJIT_F16 = 2,
  REPLAYJIT_I32 = 3,
  REPLAYJIT_I64 = 4
} replayjit_type_t;

typedef enum replayjit_gate_t {
  REPLAYJIT_GATE_SOFTPLUS = 0,    /* g = -exp(A_log) softplus(x) */
  REPLAYJIT_GATE_LOWER_BOUND = 1, /* g = lower_bound sigmoid(exp(A_log) x) */
  REPLAYJIT_GATE_LOG_DECAY = 2,   /* g = a */
  REPLAYJIT_GATE_FIXED = 3,       /* g = A_log */
  REPLAYJIT_GATE_RATE = 4 /* g = A softplus(x): A_log holds A = -exp(A_log) */
} replayjit_gate_t;

typedef enum replayjit_beta_t {
  REPLAYJIT_BETA_SIGMOID = 0,
  REPLAYJIT_BETA_TWICE_SIGMOID = 1, /* Up to 2 */
  REPLAYJIT_BETA_GIVEN = 2,         /* beta = b */
  REPLAYJIT_BETA_STEP = 3,          /* beta = softplus(x), as in the gate */
  REPLAYJIT_BETA_ONE = 4            /* beta = 1 */
} replayjit_beta_t;

typedef enum replayjit_rule_t {
  REPLAYJIT_RULE_DELTA = 0,   /* d = beta (v - S diag(alpha) k) */
  REPLAYJIT_RULE_ADDITIVE = 1 /* d = beta v */
} replayjit_rule_t;

typedef enum replayjit_skip_t {
  REPLAYJIT_SKIP_NONE = 0,
  REPLAYJIT_SKIP_HEAD = 1,   /* o += D v, where D is [HV] */
  REPLAYJIT_SKIP_CHANNEL = 2 /* D is [HV, V] */
} replayjit_skip_t;

typedef enum replayjit_ring_format_t {
  REPLAYJIT_RING_RAW = 0,       /* g and k */
  REPLAYJIT_RING_PREFIX = 1,    /* The sum P of the gates so far, and k */
  REPLAYJIT_RING_PREDECAYED = 2 /* P and k exp(-P) */
} replayjit_ring_format_t;

/* Which tokens a row r of VERIFY has, from place r*T of the lists on. */
typedef enum replayjit_token_rows_t {
  REPLAYJIT_TOKENS_FULL = 0,    /* T of them. */
  REPLAYJIT_TOKENS_COUNTED = 1, /* token_counts[r] of them. */
  REPLAYJIT_TOKENS_RAGGED = 2   /* token_offsets[r] to token_offsets[r+1]. */
} replayjit_token_rows_t;

typedef enum replayjit_null_slot_t {
  REPLAYJIT_NULL_NEGATIVE = 0,    /* slot < 0 is padding */
  REPLAYJIT_NULL_NON_POSITIVE = 1 /* slot <= 0 is */
} replayjit_null_slot_t;

typedef enum replayjit_readout_t {
  REPLAYJIT_READOUT_OUTPUT_ONLY = 0, /* fp32 products; no state is formed */
  REPLAYJIT_READOUT_REBUILD = 1      /* Tiles of it, on tensor cores */
} replayjit_readout_t;

typedef enum replayjit_programmatic_launch_t {
  REPLAYJIT_PROGRAMMATIC_NONE = 0,
  REPLAYJIT_PROGRAMMATIC_LATE = 1, /* The next may start after our wait */
  REPLAYJIT_PROGRAMMATIC_EARLY = 2 /* The next may start when we do */
} replayjit_programmatic_launch_t;

/* What a programmatic launch reads only once the kernel before has ended. */
typedef enum replayjit_dependents_t {
  REPLAYJIT_DEPENDENTS_TOKEN = 0, /* q, k, v, a and b */
  REPLAYJIT_DEPENDENTS_ALL = 1
} replayjit_dependents_t;

typedef enum replayjit_abi_t {
  REPLAYJIT_ABI_NATIVE = 0, /* Strides, bounds and error word at run time */
  REPLAYJIT_ABI_TRITON = 1  /* As Triton launches it: dense, no bounds */
} replayjit_abi_t;

/* The facts that are compiled in. Batch, strides and slot counts are arguments
 * of a launch. In brackets: the default. Truths are 0 or 1, types a
 * replayjit_type_t. What a family does not have is ignored. */
typedef struct replayjit_decode_spec_t {
  uint32_t struct_size;
  /* Which kernel: of a token with a ring, of one without, of rings to fold, of
   * the cursors of a step, or of several tokens with a ring: a
   * replayjit_family_t [replay] */
  int32_t family;
  int32_t is_kda; /* Kimi Delta Attention: the gate is a vector over K [0] */
  int32_t num_key_heads;   /* Key heads, H; 1 to 1024 [16] */
  int32_t num_value_heads; /* Value heads, a multiple of H; 1 to 1024 [32] */
  int32_t head_dim_k;      /* Size of a key head, K; 1 to 256 [128] */
  int32_t head_dim_v;      /* Size of a value head, V; 1 to 256 [128] */
  /* Tokens between two flushes, L; packed has no ring, so 1; 1 to 64 [16] */
  int32_t ring_depth;
  int32_t act_type;   /* Type of q, k and v [bf16] */
  /* Type of a, of which the gate is made, and the step [bf16] */
  int32_t gate_type;
  int32_t beta_type;  /* Type of b, of which beta is made [bf16] */
  int32_t param_type; /* Type of A_log [fp32] */
  int32_t bias_type;  /* Type of dt_bias, and of D [fp32] */
  int32_t out_type;   /* Type of the output [bf16] */
  int32_t state_type; /* Type of the state [fp32] */
  int32_t ring_type; /* Type of the ring's d and k; its gates are fp32 [fp32] */
  int32_t index_type; /* Type of all indices [int32] */
  int32_t qk_l2_norm; /* q and k are L2-normalized over K (eps 1e-6) [1] */
  /* How a decay follows from a; with logDecay, a is its logarithm, and there
   * is no A_log and no dt_bias; with fixed, A_log is, and there is no a; with
   * rate, A_log holds -exp of itself: a replayjit_gate_t [softplus] */
  int32_t gate;
  int32_t beta_round;      /* beta is rounded through the type of b [0] */
  int32_t has_force_flush; /* The force_flush argument is present [1] */
  /* What a ring row of KDA holds; all but raw need the bounded gate, and
   * predecayed the L2 norm (or unit keys) and as many value heads as key
   * heads: a replayjit_ring_format_t [raw] */
  int32_t ring_format;
  int32_t is_circular; /* A full ring wraps around and keeps its newest tokens
                        * [0] */
  /* q, k and v are three tensors instead of one [0] */
  int32_t has_separate_qkv;
  int32_t has_ring_indices; /* Rings have indices of their own [0] */
  /* A flush writes the state to the slot of another index [0] */
  int32_t has_dst_indices;
  /* A further index says where the state is stored too [0] */
  int32_t has_track_indices;
  int32_t has_mask; /* Materialize: the mask argument is present [1] */
  /* What the error word reports ends the launch too, as a fault of the
   * whole context: for debugging [0] */
  int32_t trap_on_error;
  /* May start before the kernel before it ends, and where it lets the next
   * one start: after its wait, or at its own start; needs sm_90: a
   * replayjit_programmatic_launch_t [none] */
  int32_t programmatic_launch;
  /* Slots that mean no request: below 0, or 0 too: a replayjit_null_slot_t
   * [negative] */
  int32_t null_slot;
  /* How the state is read: its parts by fp32 products, or tiles of it that
   * tensor cores make: a replayjit_readout_t [output-only] */
  int32_t readout;
  /* Bytes that divide every pointer, row stride and slot pitch; 0: those of
   * an element [16] */
  int32_t alignment;
  /* How a launch hands over its arguments: one struct, or what Triton's
   * launcher passes to the replay kernel, all dense: a replayjit_abi_t
   * [native] */
  int32_t abi;
  /* How beta follows from b; with step, it is softplus(a + dt_bias), and with
   * one, 1, and there is no b: a replayjit_beta_t [sigmoid] */
  int32_t beta;
  /* Predecayed rings without the L2 norm: the caller's keys have a norm of 1
   * or less [0] */
  int32_t has_unit_keys;
  /* Tokens that a row of verify has at most, T; 1 to 16 [1] */
  int32_t num_tokens;
  /* How many tokens a row of verify has: T, those counted, or those from one
   * offset to the next: a replayjit_token_rows_t [full] */
  int32_t token_rows;
  /* What a programmatic launch reads only once the kernel before has ended:
   * the token's q, k, v, a and b, or all arguments: a replayjit_dependents_t
   * [token] */
  int32_t dependents;
  /* What a token adds along its key: what the state lacks of v, or v; each
   * times beta: a replayjit_rule_t [delta] */
  int32_t rule;
  /* What else goes into the output: D v, where D has a number for each value
   * head, or for each channel of it: a replayjit_skip_t [none] */
  int32_t skip;
  /* The output is multiplied by silu(z), of a z as v [0] */
  int32_t has_out_gate;
  int32_t has_step_limits; /* The step is cut to step_min and step_max [0] */
} replayjit_decode_spec_t;

/* Choices that change speed; see replayjit_target_choose_tuning. */
typedef struct replayjit_decode_tuning_t {
  uint32_t struct_size;
  /* Rows of the state per block; 8, 16, 32, 64, 128 or 256 [32] */
  int32_t block_v;
  int32_t block_k;   /* Columns per K tile; a power of two [128] */
  int32_t num_warps; /* Warps per block; 1, 2, 4 or 8 [4] */
  /* Ring rows folded per step of a flush; 0: all of a 16-bit ring at once, by
     exact products on tensor cores; 0, 1, 2, 4 or 8 [4] */
  int32_t flush_rows;
  /* Cap of a thread's registers; 0: none; else 32 to 255 [0] */
  int32_t max_registers;
  /* The least bytes that a block copies to shared memory before it loads them;
     0: none; else 16 to 1048576 [0] */
  int32_t stage_bytes;
  /* A 16-bit state is read by exact products on tensor cores, with q and k
     split into numbers of fewer digits [0] */
  int32_t split_vectors;
} replayjit_decode_tuning_t;

/* Write the defaults; pass sizeof(*spec). */
REPLAYJIT_API void replayjit_decode_spec_init(replayjit_decode_spec_t *spec,
                                              size_t struct_size);
REPLAYJIT_API void
replayjit_decode_tuning_init(replayjit_decode_tuning_t *tuning,
                             size_t struct_size);

/* The shape and the rule of a shipped model on one rank of `tensor_parallel`:
 * "qwen3-next", "kimi-linear", "nemotron-h-8b", .. (an unknown name is refused
 * with the list). Other fields get their defaults. `spec` is initialized. */
REPLAYJIT_API replayjit_error_t *
replayjit_decode_spec_from_model(replayjit_decode_spec_t *spec,
                                 const char *model, int32_t tensor_parallel);

/*===- Targets ------------------------------------------------------------===*/

/* The targets' names ("sm_80", "sm_90a", ...) in ascending order; NULL past the
 * last. */
REPLAYJIT_API const char *replayjit_target_name(size_t index);

/* Whether a spec, with `tuning` or (NULL) the one chosen for a large batch, can
 * be compiled for `chip`: NULL, or why not. Compiles nothing. */
REPLAYJIT_API replayjit_error_t *
replayjit_target_supports(const char *chip, const replayjit_decode_spec_t *spec,
                          const replayjit_decode_tuning_t *tuning);

/* The tuning that replayjit_jit_prepare uses for `rows` requests that decode
 * together (0: a large batch) on a GPU of `multiprocessors` SMs. `tuning` is
 * initialized. */
REPLAYJIT_API replayjit_error_t *
replayjit_target_choose_tuning(const char *chip, int32_t multiprocessors,
                               const replayjit_decode_spec_t *spec,
                               int32_t rows, replayjit_decode_tuning_t *tuning);

/*===- Devices ------------------------------------------------------------===*/

typedef struct replayjit_device_t replayjit_device_t;

/* CUDA device `ordinal` as the driver numbers it, in its primary context, which
 * is retained and current only within calls. libcuda.so.1 is opened at run
 * time: NotFound where there is none. */
REPLAYJIT_API replayjit_error_t *
replayjit_device_create_cuda(int32_t ordinal, replayjit_device_t **device);
/* The device and the context that are current in the calling thread; makes no
 * context, and the caller keeps that one until the device is no longer used.
 * InvalidArgument if there is none. The way for an engine. */
REPLAYJIT_API replayjit_error_t *
replayjit_device_create_cuda_current(replayjit_device_t **device);
/* Host emulation of `chip`: kernels run on this CPU, checked for hazards and
 * for accesses outside of allocations. It needs a build with the compiler. Its
 * addresses are host addresses. It has one stream, NULL, on which all is done
 * at once. */
REPLAYJIT_API replayjit_error_t *
replayjit_device_create_emulation(const char *chip,
                                  replayjit_device_t **device);
/* One more reference, or one less; the last release waits for nothing and
 * invalidates what is still allocated. NULL is allowed in release. */
REPLAYJIT_API void replayjit_device_retain(replayjit_device_t *device);
REPLAYJIT_API void replayjit_device_release(replayjit_device_t *device);

typedef struct replayjit_device_info_t {
  uint32_t struct_size;
  int32_t is_emulation;
  int32_t multiprocessors;
  int32_t capability;      /* Compute capability times ten. */
  const char *description; /* "NVIDIA H200", "emulation" */
  const char *chip;        /* The target that kernels are compiled for. */
} replayjit_device_info_t;
/* Writes the defaults; pass sizeof(*info). */
REPLAYJIT_API void replayjit_device_info_init(replayjit_device_info_t *info,
                                              size_t struct_size);
/* Fills in `info`, whose struct_size is set. Strings live as long as the
 * device. */
REPLAYJIT_API replayjit_error_t *
replayjit_device_info(const replayjit_device_t *device,
                      replayjit_device_info_t *info);

/* Device memory, 256-byte aligned; for those who have none of their own, and
 * the only memory that the emulation lets kernels touch. `name` appears in its
 * reports. Copies wait until they are done; of 0 bytes the host pointer may be
 * NULL. */
REPLAYJIT_API replayjit_error_t *
replayjit_device_allocate(replayjit_device_t *device, size_t bytes,
                          const char *name, uint64_t *address);
REPLAYJIT_API replayjit_error_t *
replayjit_device_free(replayjit_device_t *device, uint64_t address);
REPLAYJIT_API replayjit_error_t *
replayjit_device_copy_to(replayjit_device_t *device, uint64_t dst,
                         const void *src, size_t bytes);
REPLAYJIT_API replayjit_error_t *
replayjit_device_copy_from(replayjit_device_t *device, void *dst, uint64_t src,
                           size_t bytes);
/* Page-locked host memory of any content that kernels reach as well, at
 * *address; such as for an error word. What a kernel writes there the host sees
 * at the latest when it has waited for it. free_mapped takes both. */
REPLAYJIT_API replayjit_error_t *
replayjit_device_allocate_mapped(replayjit_device_t *device, size_t bytes,
                                 const char *name, void **host,
                                 uint64_t *address);
REPLAYJIT_API replayjit_error_t *
replayjit_device_free_mapped(replayjit_device_t *device, void *host,
                             uint64_t address);

/* The device's own stream, for those who have none; NULL under emulation. It
 * lives as long as the device. */
REPLAYJIT_API void *replayjit_device_stream(const replayjit_device_t *device);
/* Whether the stream is under capture: 1 or 0. Of NULL: whether any is that
 * waits for the legacy default stream. */
REPLAYJIT_API replayjit_error_t *
replayjit_device_is_capturing(const replayjit_device_t *device, void *stream,
                              int32_t *is_capturing);
/* Waits for a stream and reports the faults of earlier launches. */
REPLAYJIT_API replayjit_error_t *
replayjit_device_synchronize(replayjit_device_t *device, void *stream);

/*===- Jit: from a spec to a kernel ---------------------------------------===*/

typedef struct replayjit_jit_t replayjit_jit_t;
typedef struct replayjit_kernel_t replayjit_kernel_t;

/* Hears one sentence about each thing that is wrong but stops nothing, such as
 * a damaged cache entry; from any thread, perhaps several at once, until the
 * last reference to the jit is gone. */
typedef void (*replayjit_diagnostic_fn)(void *user_data, const char *sentence);

/* In brackets: the default. Where use_environment is 1, what is left at a
 * default marked (env) comes from that variable of the environment, if it is
 * set and not empty. Variables are read by replayjit_jit_create alone. One
 * whose option is given counts for nothing: whatever it holds is no error. Any
 * other that holds what is not allowed is InvalidArgument (REPLAYJIT_ASSEMBLER
 * once there is something to assemble). must_hit and always_compile exclude
 * each other, wherever each comes from. */
typedef struct replayjit_jit_options_t {
  uint32_t struct_size;
  int32_t use_environment; /* [1] */
  /* Folders of compiled kernels, divided by ':'; the first is written, the
   * others are only read. "": nothing is kept. [NULL (env:
   * REPLAYJIT_CACHE_DIR, else $XDG_CACHE_HOME/replayjit, else
   * $HOME/.cache/replayjit), else ""] */
  const char *cache_roots;
  int64_t cache_max_bytes; /* Of the first folder; 0: any number [-1 (env:
                            * REPLAYJIT_CACHE_MAX_BYTES), else 1 GiB] */
  int32_t cache_read_only; /* 1: the first folder is only read too [0] */
  int32_t must_hit;        /* 1: what is not cached is an error that names the
                            * nearest entry [-1 (env: REPLAYJIT_MUST_HIT)] */
  int32_t always_compile;  /* 1: cached kernels are replaced [-1 (env:
                            * REPLAYJIT_ALWAYS_COMPILE)] */
  int32_t compile; /* 0: as in a build without the compiler, what is not cached
                    * is an error [1] */
  int32_t workers; /* Of prepare_all; 0: one a processor, at most 16 [0] */
  int32_t patience_ms; /* Wait for another process that compiles the same kernel
                        * before compiling it too [60000] */
  const char *ptxas_path;           /* [NULL (env: REPLAYJIT_PTXAS,
                                     * else TRITON_PTXAS_PATH)] */
  const char *nvjitlink_path;       /* [NULL (env: REPLAYJIT_NVJITLINK)] */
  replayjit_diagnostic_fn diagnose; /* [NULL] */
  void *diagnose_data;              /* Handed to diagnose. */
  /* "ptxas", "nvjitlink", or "driver": that of the device's driver; "": whose
   * path is given, nvJitLink's first, else what is found [NULL (env:
   * REPLAYJIT_ASSEMBLER), else ""] */
  const char *assembler;
  /* Tunings that `replay-bench tune` measured, used on the GPU type they are of
   * and where they are legal; "": those of tuning.json in the cache folders, if
   * one has it [NULL (env: REPLAYJIT_TUNING), else ""] */
  const char *tuning_file;
} replayjit_jit_options_t;

/* Writes the defaults; pass sizeof(*options). */
REPLAYJIT_API void replayjit_jit_options_init(replayjit_jit_options_t *options,
                                              size_t struct_size);

/* The kernels of one device, which it keeps. `options` may be NULL: the
 * defaults. */
REPLAYJIT_API replayjit_error_t *
replayjit_jit_create(replayjit_device_t *device,
                     const replayjit_jit_options_t *options,
                     replayjit_jit_t **jit);
REPLAYJIT_API void replayjit_jit_retain(replayjit_jit_t *jit);
REPLAYJIT_API void replayjit_jit_release(replayjit_jit_t *jit);

/* The kernel for `rows` requests that decode together (0: a large batch), from
 * memory (some 100 ns), else disk, else the compiler. However many threads ask,
 * it is made once; all get the one error if that fails, and the next call tries
 * again. */
REPLAYJIT_API replayjit_error_t *
replayjit_jit_prepare(replayjit_jit_t *jit, const replayjit_decode_spec_t *spec,
                      int32_t rows, replayjit_kernel_t **kernel);
/* The same before a launch on `stream`: while that is under capture only what
 * is in memory is had, and all else is InvalidArgument, before anything is done
 * that would spoil the capture. prepare is prepare_on the legacy default
 * stream: it sees captures of streams that wait for that one. No call of the
 * driver shows the capture of a non-blocking stream that is not named. */
REPLAYJIT_API replayjit_error_t *
replayjit_jit_prepare_on(replayjit_jit_t *jit, void *stream,
                         const replayjit_decode_spec_t *spec, int32_t rows,
                         replayjit_kernel_t **kernel);
/* As prepare, with a tuning of the caller's. */
REPLAYJIT_API replayjit_error_t *replayjit_jit_prepare_tuned(
    replayjit_jit_t *jit, const replayjit_decode_spec_t *spec,
    const replayjit_decode_tuning_t *tuning, replayjit_kernel_t **kernel);
REPLAYJIT_API replayjit_error_t *replayjit_jit_prepare_tuned_on(
    replayjit_jit_t *jit, void *stream, const replayjit_decode_spec_t *spec,
    const replayjit_decode_tuning_t *tuning, replayjit_kernel_t **kernel);

/* Hears of each kernel when it is done: how many are, of how many, and its name
 * and NULL, or NULL and its error, both only for the call. From one thread at a
 * time, not always the same. */
typedef void (*replayjit_progress_fn)(void *user_data, size_t done,
                                      size_t total, const char *name,
                                      const replayjit_error_t *error);

/* Prepares specs[i] for rows[i] requests, i < count, in parallel. kernels[i] is
 * the kernel, or NULL where that failed; errors[i], if `errors` is not NULL, is
 * NULL or why, and the caller destroys it. Returns the first of the failures;
 * of a call that is refused as a whole, all are NULL. `progress` may be
 * NULL. */
REPLAYJIT_API replayjit_error_t *replayjit_jit_prepare_all(
    replayjit_jit_t *jit, const replayjit_decode_spec_t *const *specs,
    const int32_t *rows, size_t count, replayjit_progress_fn progress,
    void *progress_data, replayjit_kernel_t **kernels,
    replayjit_error_t **errors);
/* The same with the stream of prepare_on. */
REPLAYJIT_API replayjit_error_t *replayjit_jit_prepare_all_on(
    replayjit_jit_t *jit, void *stream,
    const replayjit_decode_spec_t *const *specs, const int32_t *rows,
    size_t count, replayjit_progress_fn progress, void *progress_data,
    replayjit_kernel_t **kernels, replayjit_error_t **errors);

/* What the disk cache was asked; what was found in memory is not counted, nor
 * anything under emulation. */
typedef struct replayjit_cache_counters_t {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t hits;     /* Answered by an entry, or by another thread's call. */
  uint64_t misses;   /* Of the first look; some become hits by waiting. */
  uint64_t compiles; /* Compilations started by this jit, failures included. */
  uint64_t waits;    /* Calls that waited for another thread or process. */
} replayjit_cache_counters_t;
/* Writes the defaults; pass sizeof(*counters). */
REPLAYJIT_API void
replayjit_cache_counters_init(replayjit_cache_counters_t *counters,
                              size_t struct_size);
REPLAYJIT_API replayjit_error_t *
replayjit_jit_counters(const replayjit_jit_t *jit,
                       replayjit_cache_counters_t *counters);

/*===- Kernels ------------------------------------------------------------===*/

REPLAYJIT_API void replayjit_kernel_retain(replayjit_kernel_t *kernel);
REPLAYJIT_API void replayjit_kernel_release(replayjit_kernel_t *kernel);

typedef enum replayjit_origin_t {
  REPLAYJIT_COMPILED = 0, /* This process compiled it. */
  REPLAYJIT_CACHED = 1 /* The disk cache had it, or another process made it. */
} replayjit_origin_t;

typedef struct replayjit_kernel_info_t {
  uint32_t struct_size;
  int32_t origin;          /* replayjit_origin_t */
  const char *name;        /* Of the entry point. */
  const char *chip;        /* It is made for. */
  const char *assembler;   /* "ptxas 13.0.88"; "" under emulation. */
  uint32_t blocks_per_row; /* The grid has batch * blocks_per_row blocks, */
  uint32_t threads;        /* each of so many threads */
  uint32_t shared_bytes;   /* and so much dynamic shared memory. */
  int32_t registers;       /* A thread. These five: -1 if not known. */
  int32_t spill_store_bytes;
  int32_t spill_load_bytes;
  int32_t stack_bytes;
  int32_t static_shared_bytes;
} replayjit_kernel_info_t;
/* Writes the defaults; pass sizeof(*info). */
REPLAYJIT_API void replayjit_kernel_info_init(replayjit_kernel_info_t *info,
                                              size_t struct_size);
/* Fill in a struct whose struct_size is set. Strings live as long as the
 * kernel. */
REPLAYJIT_API replayjit_error_t *
replayjit_kernel_info(const replayjit_kernel_t *kernel,
                      replayjit_kernel_info_t *info);
REPLAYJIT_API replayjit_error_t *
replayjit_kernel_spec(const replayjit_kernel_t *kernel,
                      replayjit_decode_spec_t *spec);
REPLAYJIT_API replayjit_error_t *
replayjit_kernel_tuning(const replayjit_kernel_t *kernel,
                        replayjit_decode_tuning_t *tuning);

/*===- Launches -----------------------------------------------------------===*/

/* The arguments of a decode step, REPLAY, PACKED or VERIFY. Inner dimensions
 * are dense. What the spec does not have is ignored. Strides and pitches are at
 * most 2^32 bytes. Inputs may repeat (stride 0); indices of slots that are
 * written may not where there are two rows or more. Tensors of `tokens` list
 * one a row; of VERIFY those of all rows (see replayjit_token_rows_t), whose
 * places without a token get zeros. */
typedef struct replayjit_decode_args_t {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t state_indices;     /* [B], of index_type */
  int64_t state_index_stride; /* [1] */
  int32_t batch;              /* B; 0 is a valid no-op */
  int32_t slots;              /* Of state; and of the rings, see ring_slots */
  uint64_t write_pos; /* [B] int32: ring rows in use, 0..L-1; VERIFY 0..L-T */
  uint64_t state;             /* [slots, HV, V, K], read and written */
  int64_t state_pitch;        /* From slot to slot, >= HV*V*K */
  uint64_t q; /* [tokens, 2*H*K + HV*V], q then k then v; or q */
  int64_t q_stride;           /* Of a row of q, or of all three */
  uint64_t a; /* GDN [tokens, HV]; KDA [tokens, HV, K]; unless GATE_FIXED */
  int64_t a_stride;
  uint64_t b; /* [tokens, HV], unless BETA_STEP or BETA_ONE */
  int64_t b_stride;
  uint64_t a_log;   /* [HV] */
  uint64_t dt_bias; /* GDN [HV]; KDA [HV, K] */
  uint64_t out;     /* [tokens, HV, V] */
  int64_t out_stride;
  uint64_t d_ring; /* [ring_slots, HV, L, V] */
  int64_t d_pitch;
  uint64_t k_ring; /* [ring_slots, H, L, K] */
  int64_t k_pitch;
  uint64_t g_ring; /* [ring_slots, HV, L], KDA [.., HV, L, K] */
  int64_t g_pitch;
  uint64_t force_flush; /* [B] int32, if has_force_flush */
  float scale;          /* Of q, after its norm [1] */
  float lower_bound;    /* Of that gate: finite, negative [-5] */
  uint64_t k;           /* [tokens, H, K], if has_separate_qkv */
  int64_t k_stride;
  uint64_t v; /* [tokens, HV, V], if has_separate_qkv */
  int64_t v_stride;
  uint64_t ring_base;         /* [B] int32, if is_circular */
  uint64_t ring_indices;      /* [B], if has_ring_indices */
  int64_t ring_index_stride;  /* [1] */
  uint64_t dst_indices;       /* [B], if has_dst_indices */
  int64_t dst_index_stride;   /* [1] */
  uint64_t track_indices;     /* [B], if has_track_indices; null slots: none */
  int64_t track_index_stride; /* [1] */
  uint64_t error_word;        /* A replayjit_error_word_t on the device, or 0 */
  int32_t ring_slots;         /* If has_ring_indices; else slots */
  int32_t layer;              /* What an error word calls this launch */
  uint64_t token_counts;      /* [B] int32, if TOKENS_COUNTED: 0..T */
  uint64_t token_offsets;     /* [B + 1] int32, if TOKENS_RAGGED */
  uint64_t skip;              /* D: [HV], or [HV, V] if SKIP_CHANNEL */
  uint64_t out_gate;          /* z: [tokens, HV, V], if has_out_gate */
  int64_t out_gate_stride;
  float step_min; /* If has_step_limits: 0 or more [0], */
  float step_max; /* and step_min or more [infinity] */
  int32_t tokens; /* Those of all rows, if TOKENS_RAGGED */
} replayjit_decode_args_t;

/* One layer of a materialize launch; an array of these lies in device memory,
 * so it has no struct_size and never changes. Fields as in
 * replayjit_decode_args_t. */
typedef struct replayjit_layer_t {
  uint64_t state, d_ring, k_ring, g_ring;
  int64_t state_pitch, d_pitch, k_pitch, g_pitch;
} replayjit_layer_t;
/* Writes zeros. */
REPLAYJIT_API void replayjit_layer_init(replayjit_layer_t *layer);

/* The arguments of MATERIALIZE: for each row and layer, the state of slot dst
 * becomes checkpoint plus ring of slot src. Rows of a null slot are skipped.
 * Where src = dst the caller sets the cursor to 0 afterwards. */
typedef struct replayjit_materialize_args_t {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t layers;       /* [num_layers] replayjit_layer_t */
  uint64_t src_indices;  /* [B] */
  uint64_t dst_indices;  /* [B] */
  uint64_t ring_indices; /* [B], if has_ring_indices; any if write_pos is 0 */
  uint64_t write_pos;    /* [B] int32, the source's cursor */
  uint64_t ring_base;    /* [B] int32, if is_circular */
  uint64_t mask;         /* [B] int32, if has_mask: 0 skips the row */
  uint64_t error_word;
  int64_t src_index_stride;  /* [1] */
  int64_t dst_index_stride;  /* [1] */
  int64_t ring_index_stride; /* [1] */
  int32_t batch;
  int32_t num_layers;
  int32_t slots;
  int32_t ring_slots;
} replayjit_materialize_args_t;

/* Write the defaults; pass sizeof(*args). */
REPLAYJIT_API void replayjit_decode_args_init(replayjit_decode_args_t *args,
                                              size_t struct_size);
REPLAYJIT_API void
replayjit_materialize_args_init(replayjit_materialize_args_t *args,
                                size_t struct_size);

/* What is wrong with a layer of a spec, before it goes to the device. */
REPLAYJIT_API replayjit_error_t *
replayjit_layer_validate(const replayjit_decode_spec_t *spec,
                         const replayjit_layer_t *layer);

/* Memory that kernels write and the host may read at any time. Zero it before
 * use. The first bad row fills it in, `kind` last; each adds one to count. A
 * bad row is then treated as padding. It never changes. */
typedef struct replayjit_error_word_t {
  uint32_t count;
  uint32_t kind; /* 0 none, 1 state slot, 2 write_pos, 3 ring slot, 4 dst slot,
                  * 5 track slot, 6 ring_base; of a plan: 7 key, 8 a ring that
                  * should be empty, 9 tokens that are folded already, 10
                  * advance_by, 11 a step that is not the one to commit. Of a
                  * row that is no padding: 12 a number beyond fp16, stored as
                  * its largest; such a row may count more than once. Of
                  * VERIFY: 13 tokens that are not within the list of all, 14
                  * more tokens than num_tokens or fewer than none */
  int32_t row;
  int32_t layer; /* That of the launch, or its place in the table of a
                  * materialize launch. Of a plan, whose rows all layers share:
                  * the group for kinds 1, 3, 4 and 5, else -1. */
  int64_t value; /* The index or cursor that is not allowed; of kind 9 the
                  * tokens to leave out less those in the ring; of kind 12 the
                  * magnitude, rounded down. */
} replayjit_error_word_t;
/* Writes zeros, to a word that the host may write. */
REPLAYJIT_API void replayjit_error_word_init(replayjit_error_word_t *word);

/* Launches a step of args->batch rows; `flags` are REPLAYJIT_LAUNCH_*, added
 * (replayjit_launch.h). Neither locks, allocates nor touches a
 * file unless it fails (but see CHECK_MEMORY), so the stream may be under
 * capture. The arguments are copied; memory they point to is used in stream
 * order. Cursors are the caller's: see replayjit_ring_cursor_advance in
 * replayjit_state.h. Under emulation the launch is done when this returns, and
 * its fault is the error. */
REPLAYJIT_API replayjit_error_t *
replayjit_kernel_launch(const replayjit_kernel_t *kernel, void *stream,
                        const replayjit_decode_args_t *args, uint32_t flags);
REPLAYJIT_API replayjit_error_t *replayjit_kernel_launch_materialize(
    const replayjit_kernel_t *kernel, void *stream,
    const replayjit_materialize_args_t *args, uint32_t flags);

#ifdef __cplusplus
}
#endif

#endif
