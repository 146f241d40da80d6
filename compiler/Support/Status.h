//===- Status.h - Errors at the public edge --------------------*- C++ -*-===//
//
// Plain values for what can go wrong; no exceptions, no LLVM types.
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_COMPILER_SUPPORT_STATUS_H
#define REPLAYJIT_COMPILER_SUPPORT_STATUS_H

#include <optional>
#include <string>
#include <utility>

namespace replayjit {

/// Why a call failed. The numeric values are stable.
enum class StatusCode {
  Ok = 0,
  InvalidArgument = 1, ///< A spec, tuning, target or argument breaks a rule.
  Unsupported = 2,     ///< Legal, but this target or build cannot do it.
  CompileFailed = 3,   ///< A compiler stage rejected a program we built: a bug.
  AssembleFailed = 4,  ///< PTX was not accepted by the assembler; log inside.
  NotFound = 5,        ///< A tool, library, file or symbol is missing.
  DriverError = 6,     ///< A CUDA driver call failed; call, code, text inside.
  ExecutionFault = 7,  ///< Emulation found a hazard in the running program.
  StorageFailed = 8,   ///< The cache's file system refused; errno's text inside.
};

/// Success, or a code and one sentence that names what was asked, what was
/// found and what is allowed.
struct [[nodiscard]] Status {
  StatusCode code = StatusCode::Ok;
  std::string message;

  static Status ok() { return {}; }
  static Status error(StatusCode code, std::string message) {
    return {code, std::move(message)};
  }
  static Status invalid(std::string message) {
    return {StatusCode::InvalidArgument, std::move(message)};
  }
  bool isOk() const { return code == StatusCode::Ok; }
  explicit operator bool() const { return isOk(); } ///< True on success.
};

/// A value, or the Status that says why there is none.
template <typename T> class [[nodiscard]] Result {
public:
  Result(T value) : value_(std::move(value)) {}
  Result(Status status) : status_(std::move(status)) {}

  explicit operator bool() const { return value_.has_value(); }
  const Status &status() const { return status_; }
  T &operator*() { return *value_; }
  const T &operator*() const { return *value_; }
  T *operator->() { return &*value_; }
  const T *operator->() const { return &*value_; }

private:
  std::optional<T> value_;
  Status status_;
};

} // namespace replayjit

#endif
