/*===- replayjit_error.h - What calls return ----------------------*- C -*-===*\
|*                                                                            *|
|* replayjit.h includes it, and says there what holds for all errors.         *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/
#ifndef REPLAYJIT_REPLAYJIT_ERROR_H
#define REPLAYJIT_REPLAYJIT_ERROR_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define REPLAYJIT_API __attribute__((visibility("default")))

typedef struct replayjit_error_t replayjit_error_t;

typedef enum replayjit_code_t {
  REPLAYJIT_OK = 0,
  REPLAYJIT_INVALID_ARGUMENT = 1, /* A field or argument breaks a rule. */
  REPLAYJIT_UNSUPPORTED = 2,      /* Legal; this target or build cannot. */
  REPLAYJIT_COMPILE_FAILED = 3,   /* A bug of the compiler's: please report. */
  REPLAYJIT_ASSEMBLE_FAILED = 4,  /* The assembler refused; see the log. */
  REPLAYJIT_NOT_FOUND = 5,    /* A tool, driver, file or kernel is missing. */
  REPLAYJIT_DRIVER_ERROR = 6, /* A CUDA call failed. */
  REPLAYJIT_EXECUTION_FAULT = 7, /* The emulation met a hazard. */
  REPLAYJIT_STORAGE_FAILED = 8,  /* The file system refused. */
  REPLAYJIT_OUT_OF_MEMORY = 9,   /* The host's; a GPU's is a DRIVER_ERROR. */
  REPLAYJIT_INTERNAL = 10        /* A bug of the library's: please report. */
} replayjit_code_t;

/* A replayjit_code_t; REPLAYJIT_OK for NULL. Later minors may add codes. */
REPLAYJIT_API int32_t replayjit_error_code(const replayjit_error_t *error);
/* One sentence: what was asked, what was found, what is allowed. The strings
 * live as long as the error and are never NULL; they are empty for a NULL
 * error. */
REPLAYJIT_API const char *
replayjit_error_message(const replayjit_error_t *error);
/* The stage of compiling or loading that failed ("tiles", "emit PTX",
 * "assemble", "load", ...), or "". */
REPLAYJIT_API const char *replayjit_error_stage(const replayjit_error_t *error);
/* What an assembler or the driver printed, some lines, or "". */
REPLAYJIT_API const char *replayjit_error_log(const replayjit_error_t *error);
/* NULL is allowed. */
REPLAYJIT_API void replayjit_error_destroy(replayjit_error_t *error);

#ifdef __cplusplus
}
#endif

#endif
