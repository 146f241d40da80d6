//===- Handles.h - What the opaque handles of the C API are -----*- C++ -*-===//
//
// Private to runtime/capi, as are the small helpers that every function uses.
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_RUNTIME_CAPI_HANDLES_H
#define REPLAYJIT_RUNTIME_CAPI_HANDLES_H

#include "replayjit/replayjit.h"
#include "runtime/Jit.h"

#include <atomic>
#include <memory>
#include <string>

struct replayjit_error_t {
  replayjit::internal::Status status;
};

namespace replayjit::internal::capi {

/// A handle counts references; the last release deletes it.
template <typename Handle> struct Counted {
  mutable std::atomic<uint32_t> references = 1;
};
template <typename Handle> void retain(const Handle *handle) {
  if (handle)
    handle->references.fetch_add(1, std::memory_order_relaxed);
}
template <typename Handle> void release(const Handle *handle) {
  if (handle && handle->references.fetch_sub(1, std::memory_order_acq_rel) == 1)
    delete handle;
}

/// For the `catch (...)` that ends each function which returns an error: what
/// was thrown. Allocates nothing where memory is out.
replayjit_error_t *caught() noexcept;

/// Null on success; else the caller's to destroy.
inline replayjit_error_t *toError(Status status) {
  return status ? nullptr : new replayjit_error_t{std::move(status)};
}

/// What is wrong with a pointer that must be there.
inline Status need(const void *pointer, const char *name) {
  if (pointer)
    return Status::ok();
  return Status::invalid(std::string(name) + ": NULL is not allowed");
}

} // namespace replayjit::internal::capi

struct replayjit_device_t
    : replayjit::internal::capi::Counted<replayjit_device_t> {
  std::shared_ptr<replayjit::internal::Device> device;
  std::string description, chip; ///< Handed out by replayjit_device_info.
};

struct replayjit_jit_t : replayjit::internal::capi::Counted<replayjit_jit_t> {
  std::unique_ptr<replayjit::internal::Jit> jit; ///< Shares the device.
};

struct replayjit_kernel_t
    : replayjit::internal::capi::Counted<replayjit_kernel_t> {
  explicit replayjit_kernel_t(replayjit::internal::KernelHandle kernel)
      : kernel(std::move(kernel)) {}
  replayjit::internal::KernelHandle kernel; ///< Shares the device.
};

#endif
