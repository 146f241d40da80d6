//===- Exceptions.h - Where exceptions become a Status ----------*- C++ -*-===//
//
// Nothing of ours throws. But an allocation that fails does, and the standard
// library's ways through: std::bad_alloc unwinds our code up to the C interface
// (runtime/capi), and on the way stops where something must be put in order
// first: a flight that others wait for, a thread's end, a destructor.
//
// Not for code over LLVM, which cannot be unwound.
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_BASE_EXCEPTIONS_H
#define REPLAYJIT_BASE_EXCEPTIONS_H

#include "base/Status.h"

namespace replayjit::internal {

/// For a `catch (...)`: what was thrown, as OutOfMemory or Internal. Where
/// memory is out it allocates nothing.
Status caughtStatus() noexcept;

/// What `body` returns, a Status or a Result, or what it throws.
template <typename Body>
auto withoutThrowing(Body &&body) noexcept -> decltype(body()) {
  try {
    return body();
  } catch (...) {
    return caughtStatus();
  }
}

} // namespace replayjit::internal

#endif
