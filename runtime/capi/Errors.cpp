//===- Errors.cpp - Versions and errors of the C API ----------------------===//

#include "base/Exceptions.h"
#include "runtime/capi/Handles.h"

using namespace replayjit::internal;

uint32_t replayjit_api_version() { return REPLAYJIT_API_VERSION; }

const char *replayjit_version() { return REPLAYJIT_VERSION_TEXT; }

int32_t replayjit_error_code(const replayjit_error_t *error) {
  return error ? int32_t(error->status.code) : REPLAYJIT_OK;
}

static const char *textOf(const replayjit_error_t *error,
                          std::string Status::*text) {
  return error ? (error->status.*text).c_str() : "";
}

const char *replayjit_error_message(const replayjit_error_t *error) {
  return textOf(error, &Status::message);
}
const char *replayjit_error_stage(const replayjit_error_t *error) {
  return textOf(error, &Status::stage);
}
const char *replayjit_error_log(const replayjit_error_t *error) {
  return textOf(error, &Status::log);
}

// There when there is no memory for another.
static replayjit_error_t outOfMemory{
    Status::error(StatusCode::OutOfMemory, "out of memory")};

replayjit_error_t *capi::caught() noexcept {
  try {
    return toError(caughtStatus());
  } catch (...) { // std::bad_alloc
    return &outOfMemory;
  }
}

void replayjit_error_destroy(replayjit_error_t *error) {
  if (error != &outOfMemory)
    delete error;
}
