//===- Errors.cpp - Versions and errors of the C API ----------------------===//

#include "runtime/capi/Handles.h"

uint32_t replayjit_api_version() { return REPLAYJIT_API_VERSION; }

const char *replayjit_version() { return REPLAYJIT_VERSION_TEXT; }

int32_t replayjit_error_code(const replayjit_error_t *error) {
  return error ? int32_t(error->status.code) : REPLAYJIT_OK;
}

static const char *textOf(const replayjit_error_t *error,
                          std::string replayjit::internal::Status::*text) {
  return error ? (error->status.*text).c_str() : "";
}

const char *replayjit_error_message(const replayjit_error_t *error) {
  return textOf(error, &replayjit::internal::Status::message);
}
const char *replayjit_error_stage(const replayjit_error_t *error) {
  return textOf(error, &replayjit::internal::Status::stage);
}
const char *replayjit_error_log(const replayjit_error_t *error) {
  return textOf(error, &replayjit::internal::Status::log);
}

void replayjit_error_destroy(replayjit_error_t *error) { delete error; }
