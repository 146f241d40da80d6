//===- Status.h - Errors at the public edge --------------------*- C++ -*-===//
//
// Plain values for what can go wrong; no exceptions, no LLVM types.
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_BASE_STATUS_H
#define REPLAYJIT_BASE_STATUS_H

#include <optional>
#include <string>
#include <utility>

namespace replayjit::internal {

/// Why a call failed. The numeric values are stable.
enum class StatusCode {
  Ok = 0,
  InvalidArgument = 1, ///< A spec, tuning, target or argument breaks a rule.
  Unsupported = 2,     ///< Legal, but this target or build cannot do it.
  CompileFailed = 3,   ///< A compiler stage rejected a program we built: a bug.
  AssembleFailed = 4,  ///< PTX was not accepted by the assembler; see `log`.
  NotFound = 5,        ///< A tool, library, file or symbol is missing.
  DriverError = 6,     ///< A CUDA driver call failed; call, code, text inside.
  ExecutionFault = 7,  ///< Emulation found a hazard in the running program.
  StorageFailed = 8, ///< The cache's file system refused; errno's text inside.
  OutOfMemory = 9, ///< The host's memory; a GPU's is a DriverError.
  Internal = 10,   ///< An exception that nobody expects: a bug.
};

/// Success, or a code and one sentence that names what was asked, what was
/// found and what is allowed.
struct [[nodiscard]] Status {
  StatusCode code = StatusCode::Ok;
  std::string message;
  /// The stage of compiling or loading that failed, in the words of
  /// CompiledKernel::stages, or "load"; empty if none did.
  std::string stage = {};
  std::string log = {}; ///< What an assembler or the driver printed.

  static Status ok() { return {}; }
  static Status error(StatusCode code, std::string message,
                      std::string stage = {}, std::string log = {}) {
    return {code, std::move(message), std::move(stage), std::move(log)};
  }
  static Status invalid(std::string message) {
    return {StatusCode::InvalidArgument, std::move(message)};
  }
  bool isOk() const { return code == StatusCode::Ok; }
  explicit operator bool() const { return isOk(); } ///< True on success.

  /// The message with `context` and ": " in front.
  Status within(const std::string &context) && {
    message = context + ": " + message;
    return std::move(*this);
  }
  /// For people: the message, and below it the log if there is one.
  std::string text() const {
    return log.empty() ? message : message + "\n" + log;
  }
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

} // namespace replayjit::internal

#endif
