//===- replayjit.hpp - The C interface, for C++17 ---------------*- C++ -*-===//
//
// Header-only: values and scopes over replayjit.h, whose contract holds here
// too. No exceptions and no RTTI are needed or used. Structs are those of C,
// initialized; handles are cheap to copy, and a default-constructed or
// moved-from one may only be assigned to and destroyed.
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_REPLAYJIT_HPP
#define REPLAYJIT_REPLAYJIT_HPP

#include "replayjit/replayjit.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace replayjit {

/// Success, or what replayjit_error_t says.
struct [[nodiscard]] Status {
  replayjit_code_t code = REPLAYJIT_OK;
  std::string message = {};
  std::string stage = {};
  std::string log = {};

  bool isOk() const { return code == REPLAYJIT_OK; }
  explicit operator bool() const { return isOk(); } ///< True on success.

  /// Of an error, which is left to its owner; null is success.
  static Status of(const replayjit_error_t *error) {
    if (!error)
      return {};
    return {replayjit_code_t(replayjit_error_code(error)),
            replayjit_error_message(error), replayjit_error_stage(error),
            replayjit_error_log(error)};
  }
  /// The same, and destroys it.
  static Status take(replayjit_error_t *error) {
    Status status = of(error);
    replayjit_error_destroy(error);
    return status;
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

namespace detail {

/// A reference to a C handle.
template <typename C, void (*Retain)(C *), void (*Release)(C *)> class Handle {
public:
  Handle() = default;
  explicit Handle(C *handle) : handle(handle) {} ///< Takes the reference.
  Handle(const Handle &other) : handle(other.handle) {
    if (handle)
      Retain(handle);
  }
  Handle(Handle &&other) noexcept
      : handle(std::exchange(other.handle, nullptr)) {}
  Handle &operator=(Handle other) noexcept {
    std::swap(handle, other.handle);
    return *this;
  }
  ~Handle() { Release(handle); }

  C *get() const { return handle; } ///< Stays this object's.
  explicit operator bool() const { return handle != nullptr; }

private:
  C *handle = nullptr;
};

} // namespace detail

/// Whether a library of API version `found` serves a caller of `wanted`; see
/// REPLAYJIT_API_VERSION.
constexpr bool serves(uint32_t found, uint32_t wanted) {
  return found >> 16 == wanted >> 16 &&
         (found >> 16 == 0 ? found == wanted : found >= wanted);
}

/// Unsupported if the library does not serve callers of this header. Devices
/// and Jits are created only where it does.
inline Status checkVersion() {
  const uint32_t found = replayjit_api_version();
  const uint32_t wanted = REPLAYJIT_API_VERSION;
  if (serves(found, wanted))
    return {};
  auto text = [](uint32_t version) {
    return std::to_string(version >> 16) + "." +
           std::to_string(version & 0xffff);
  };
  return {REPLAYJIT_UNSUPPORTED, "libreplayjit has API version " + text(found) +
                                     "; this program was built for " +
                                     text(wanted)};
}

struct DecodeSpec : replayjit_decode_spec_t {
  DecodeSpec() { replayjit_decode_spec_init(this, sizeof(*this)); }
  static Result<DecodeSpec> fromModel(const char *model, int tensorParallel) {
    DecodeSpec spec;
    Status status = Status::take(
        replayjit_decode_spec_from_model(&spec, model, tensorParallel));
    return status ? Result<DecodeSpec>(spec) : status;
  }
};

struct DecodeTuning : replayjit_decode_tuning_t {
  DecodeTuning() { replayjit_decode_tuning_init(this, sizeof(*this)); }
};

struct DecodeArgs : replayjit_decode_args_t {
  DecodeArgs() { replayjit_decode_args_init(this, sizeof(*this)); }
};

struct MaterializeArgs : replayjit_materialize_args_t {
  MaterializeArgs() { replayjit_materialize_args_init(this, sizeof(*this)); }
};

/// Element of an array in device memory.
struct Layer : replayjit_layer_t {
  Layer() { replayjit_layer_init(this); }
};

struct ErrorWord : replayjit_error_word_t {
  ErrorWord() { replayjit_error_word_init(this); }
};

struct JitOptions : replayjit_jit_options_t {
  JitOptions() { replayjit_jit_options_init(this, sizeof(*this)); }
};

/// Strings of these two live as long as what they came from.
struct DeviceInfo : replayjit_device_info_t {
  DeviceInfo() { replayjit_device_info_init(this, sizeof(*this)); }
};
struct KernelInfo : replayjit_kernel_info_t {
  KernelInfo() { replayjit_kernel_info_init(this, sizeof(*this)); }
};

struct CacheCounters : replayjit_cache_counters_t {
  CacheCounters() { replayjit_cache_counters_init(this, sizeof(*this)); }
};

/// Ok if the spec can be compiled for `chip`, else why not.
inline Status supports(const char *chip, const DecodeSpec &spec) {
  return Status::take(replayjit_target_supports(chip, &spec, nullptr));
}
inline Status supports(const char *chip, const DecodeSpec &spec,
                       const DecodeTuning &tuning) {
  return Status::take(replayjit_target_supports(chip, &spec, &tuning));
}

inline Result<DecodeTuning> chooseTuning(const DecodeSpec &spec, int rows,
                                         const char *chip,
                                         int multiprocessors) {
  DecodeTuning tuning;
  Status status = Status::take(replayjit_target_choose_tuning(
      chip, multiprocessors, &spec, rows, &tuning));
  return status ? Result<DecodeTuning>(tuning) : status;
}

/// Host memory that kernels reach as well.
struct MappedMemory {
  void *host = nullptr;
  uint64_t device = 0; ///< The address for kernels.
};

class Device {
public:
  Device() = default;
  static Result<Device> cuda(int ordinal = 0) {
    if (Status version = checkVersion(); !version)
      return version;
    replayjit_device_t *device = nullptr;
    Status status =
        Status::take(replayjit_device_create_cuda(ordinal, &device));
    return status ? Result<Device>(Device(device)) : status;
  }
  /// Over the context that is current in the calling thread.
  static Result<Device> cudaCurrent() {
    if (Status version = checkVersion(); !version)
      return version;
    replayjit_device_t *device = nullptr;
    Status status = Status::take(replayjit_device_create_cuda_current(&device));
    return status ? Result<Device>(Device(device)) : status;
  }
  static Result<Device> emulation(const char *chip = "sm_90a") {
    if (Status version = checkVersion(); !version)
      return version;
    replayjit_device_t *device = nullptr;
    Status status =
        Status::take(replayjit_device_create_emulation(chip, &device));
    return status ? Result<Device>(Device(device)) : status;
  }

  DeviceInfo info() const {
    DeviceInfo info;
    // Fails on a struct_size that is not right, which this is.
    replayjit_error_destroy(replayjit_device_info(handle.get(), &info));
    return info;
  }
  Result<uint64_t> allocate(size_t bytes, const char *name) {
    uint64_t address = 0;
    Status status = Status::take(
        replayjit_device_allocate(handle.get(), bytes, name, &address));
    return status ? Result<uint64_t>(address) : status;
  }
  Result<MappedMemory> allocateMapped(size_t bytes, const char *name) {
    MappedMemory memory;
    Status status = Status::take(replayjit_device_allocate_mapped(
        handle.get(), bytes, name, &memory.host, &memory.device));
    return status ? Result<MappedMemory>(memory) : status;
  }
  Status freeMapped(const MappedMemory &memory) {
    return Status::take(
        replayjit_device_free_mapped(handle.get(), memory.host, memory.device));
  }
  Status free(uint64_t address) {
    return Status::take(replayjit_device_free(handle.get(), address));
  }
  Status copyToDevice(uint64_t dst, const void *src, size_t bytes) {
    return Status::take(
        replayjit_device_copy_to(handle.get(), dst, src, bytes));
  }
  Status copyFromDevice(void *dst, uint64_t src, size_t bytes) {
    return Status::take(
        replayjit_device_copy_from(handle.get(), dst, src, bytes));
  }
  /// The device's own; null under emulation.
  void *stream() const { return replayjit_device_stream(handle.get()); }
  /// Null: whether any stream is that waits for the legacy default stream.
  Result<bool> isCapturing(void *stream) const {
    int32_t answer = 0;
    Status status = Status::take(
        replayjit_device_is_capturing(handle.get(), stream, &answer));
    return status ? Result<bool>(answer != 0) : status;
  }
  Status synchronize(void *stream) {
    return Status::take(replayjit_device_synchronize(handle.get(), stream));
  }
  replayjit_device_t *get() const { return handle.get(); }

private:
  explicit Device(replayjit_device_t *device) : handle(device) {}
  detail::Handle<replayjit_device_t, replayjit_device_retain,
                 replayjit_device_release>
      handle;
};

/// Stands for a loaded kernel; copies are equal.
class Kernel {
public:
  Kernel() = default;
  explicit Kernel(replayjit_kernel_t *kernel) : handle(kernel) {}

  KernelInfo info() const {
    KernelInfo info;
    replayjit_error_destroy(replayjit_kernel_info(handle.get(), &info));
    return info;
  }
  DecodeSpec spec() const {
    DecodeSpec spec;
    replayjit_error_destroy(replayjit_kernel_spec(handle.get(), &spec));
    return spec;
  }
  DecodeTuning tuning() const {
    DecodeTuning tuning;
    replayjit_error_destroy(replayjit_kernel_tuning(handle.get(), &tuning));
    return tuning;
  }

  /// `flags`: REPLAYJIT_LAUNCH_*. replayjit_launch.h says what a programmatic
  /// launch asks of the kernels before and behind it.
  Status launch(void *stream, const DecodeArgs &args,
                uint32_t flags = 0) const {
    return Status::take(
        replayjit_kernel_launch(handle.get(), stream, &args, flags));
  }
  Status launch(void *stream, const MaterializeArgs &args,
                uint32_t flags = 0) const {
    return Status::take(replayjit_kernel_launch_materialize(
        handle.get(), stream, &args, flags));
  }
  replayjit_kernel_t *get() const { return handle.get(); }

private:
  detail::Handle<replayjit_kernel_t, replayjit_kernel_retain,
                 replayjit_kernel_release>
      handle;
};

struct KernelRequest {
  DecodeSpec spec;
  int rows = 0;
};

class Jit {
public:
  Jit() = default;
  static Result<Jit> create(const Device &device,
                            const JitOptions &options = JitOptions()) {
    if (Status version = checkVersion(); !version)
      return version;
    replayjit_jit_t *jit = nullptr;
    Status status =
        Status::take(replayjit_jit_create(device.get(), &options, &jit));
    return status ? Result<Jit>(Jit(jit)) : status;
  }

  Result<Kernel> prepare(const DecodeSpec &spec, int rows = 0) {
    replayjit_kernel_t *kernel = nullptr;
    Status status =
        Status::take(replayjit_jit_prepare(handle.get(), &spec, rows, &kernel));
    return status ? Result<Kernel>(Kernel(kernel)) : status;
  }
  /// Before a launch on `stream`; see replayjit_jit_prepare_on.
  Result<Kernel> prepareOn(void *stream, const DecodeSpec &spec, int rows = 0) {
    replayjit_kernel_t *kernel = nullptr;
    Status status = Status::take(
        replayjit_jit_prepare_on(handle.get(), stream, &spec, rows, &kernel));
    return status ? Result<Kernel>(Kernel(kernel)) : status;
  }
  Result<Kernel> prepare(const DecodeSpec &spec, const DecodeTuning &tuning) {
    return prepareOn(nullptr, spec, tuning);
  }
  Result<Kernel> prepareOn(void *stream, const DecodeSpec &spec,
                           const DecodeTuning &tuning) {
    replayjit_kernel_t *kernel = nullptr;
    Status status = Status::take(replayjit_jit_prepare_tuned_on(
        handle.get(), stream, &spec, &tuning, &kernel));
    return status ? Result<Kernel>(Kernel(kernel)) : status;
  }

  /// The outcome of each request, in order. progress(done, total, name, status)
  /// hears of each when it is done; see replayjit_progress_fn. `stream` as in
  /// prepareOn.
  template <typename Progress>
  std::vector<Result<Kernel>>
  prepareAll(const std::vector<KernelRequest> &requests, Progress progress,
             void *stream = nullptr) {
    const size_t count = requests.size();
    std::vector<const replayjit_decode_spec_t *> specs;
    std::vector<int32_t> rows;
    for (const KernelRequest &request : requests) {
      specs.push_back(&request.spec);
      rows.push_back(request.rows);
    }
    std::vector<replayjit_kernel_t *> kernels(count);
    std::vector<replayjit_error_t *> errors(count);
    auto hear = [](void *data, size_t done, size_t total, const char *name,
                   const replayjit_error_t *error) {
      (*static_cast<Progress *>(data))(done, total, name, Status::of(error));
    };
    const Status all = Status::take(replayjit_jit_prepare_all_on(
        handle.get(), stream, specs.data(), rows.data(), count, hear, &progress,
        kernels.data(), errors.data()));
    std::vector<Result<Kernel>> outcomes;
    for (size_t i = 0; i < count; ++i) {
      if (kernels[i])
        outcomes.push_back(Kernel(kernels[i]));
      else // No error of its own: the call was refused as a whole.
        outcomes.push_back(errors[i] ? Status::take(errors[i]) : all);
    }
    return outcomes;
  }
  std::vector<Result<Kernel>>
  prepareAll(const std::vector<KernelRequest> &requests) {
    return prepareAll(requests,
                      [](size_t, size_t, const char *, const Status &) {});
  }

  CacheCounters counters() const {
    CacheCounters counters;
    replayjit_error_destroy(replayjit_jit_counters(handle.get(), &counters));
    return counters;
  }
  replayjit_jit_t *get() const { return handle.get(); }

private:
  explicit Jit(replayjit_jit_t *jit) : handle(jit) {}
  detail::Handle<replayjit_jit_t, replayjit_jit_retain, replayjit_jit_release>
      handle;
};

} // namespace replayjit

#endif
