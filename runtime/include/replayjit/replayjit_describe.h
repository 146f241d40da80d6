/*===- replayjit_describe.h - The structs, described --------------*- C -*-===*\
|*                                                                            *|
|* What bindings of other languages ask for instead of copying structs by     *|
|* hand: the members of specs, tunings and launch arguments, one at a time.   *|
|* The rules of replayjit.h hold here too.                                    *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/
#ifndef REPLAYJIT_REPLAYJIT_DESCRIBE_H
#define REPLAYJIT_REPLAYJIT_DESCRIBE_H

#include "replayjit/replayjit.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum replayjit_fact_kind_t {
  REPLAYJIT_FACT_NUMBER = 0,
  REPLAYJIT_FACT_TRUTH = 1,
  REPLAYJIT_FACT_CHOICE = 2, /* One of the enums above. */
  REPLAYJIT_FACT_TYPE = 3    /* replayjit_type_t */
} replayjit_fact_kind_t;

/* One member of a spec or a tuning, for those who give them by name. It is the
 * library's and never changes; later minors may add fields at its end. */
typedef struct replayjit_fact_t {
  const char *name; /* "ring_depth" */
  const char *doc;  /* One line. */
  /* Of the values from 0 on, such as "lower-bound"; NULL of a number. */
  const char *const *words;
  int32_t num_words;
  int32_t kind;   /* replayjit_fact_kind_t */
  int32_t usual;  /* The default. */
  int32_t lowest; /* The least value allowed, and the greatest; not all between
                   * them need be. */
  int32_t highest;
} replayjit_fact_t;

/* The members after struct_size, in their order; NULL past the last. */
REPLAYJIT_API const replayjit_fact_t *replayjit_decode_spec_fact(size_t index);
REPLAYJIT_API const replayjit_fact_t *
replayjit_decode_tuning_fact(size_t index);

/* The type of a field of a struct of arguments. */
typedef enum replayjit_field_t {
  REPLAYJIT_FIELD_U64 = 0, /* A device address. */
  REPLAYJIT_FIELD_I64 = 1,
  REPLAYJIT_FIELD_I32 = 2,
  REPLAYJIT_FIELD_F32 = 3
} replayjit_field_t;
typedef struct replayjit_argument_t {
  const char *name;   /* "state_pitch" */
  const char *doc;    /* Type, shape, read or written, who has it. */
  const char *stride; /* Of an address: the field that says how far rows or
                       * slots lie apart; NULL: none. */
  uint32_t offset;    /* In the struct, bytes. */
  int32_t type;       /* replayjit_field_t */
  int32_t is_wide;    /* The spec's alignment is a promise of it and its stride:
                       * 1, if is_kda 2, else 0 */
} replayjit_argument_t;

/* Field `index` of "replayjit_decode_args_t", "replayjit_materialize_args_t" or
 * "replayjit_layer_t", in order and without struct_size and reserved; it and
 * its strings are there as long as the library. NULL past the last one and of
 * any other struct. */
REPLAYJIT_API const replayjit_argument_t *
replayjit_argument(const char *struct_name, size_t index);

#ifdef __cplusplus
}
#endif

#endif
