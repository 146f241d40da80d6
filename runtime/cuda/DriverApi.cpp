//===- DriverApi.cpp - The CUDA driver behind one table -------------------===//

#include "runtime/cuda/DriverApi.h"

#include <fmt/format.h>

#include <atomic>
#include <dlfcn.h>
#include <memory>

namespace replayjit::internal::cuda {

Result<DriverApi> DriverApi::open(const char *path) {
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char *reason = dlerror();
    return Status::error(
        StatusCode::NotFound,
        fmt::format("no CUDA driver: cannot open '{}' ({}); install the NVIDIA "
                    "driver, or name the emulation device",
                    path, reason ? reason : "no reason given"));
  }

  DriverApi api;
  const char *missing = nullptr;
#define REPLAYJIT_CUDA_SYMBOL(name, symbol, parameters)                        \
  api.name = reinterpret_cast<CUresult(*) parameters>(dlsym(library, symbol)); \
  if (!api.name && !missing)                                                   \
    missing = symbol;
#define REPLAYJIT_CUDA_OPTIONAL_SYMBOL(name, symbol, parameters)               \
  api.name = reinterpret_cast<CUresult(*) parameters>(dlsym(library, symbol));
#include "runtime/cuda/DriverSymbols.def"

  if (missing) {
    dlclose(library);
    return Status::error(
        StatusCode::NotFound,
        fmt::format("the CUDA driver '{}' has no '{}'; replayjit needs the "
                    "driver of CUDA 12.0 or newer",
                    path, missing));
  }
  return api;
}

const Result<DriverApi> &DriverApi::get() {
  static std::atomic<const Result<DriverApi> *> kept = nullptr;
  if (const Result<DriverApi> *api = kept)
    return *api;
  // A failure is not kept: perhaps only memory was missing.
  thread_local Result<DriverApi> failed = Status();
  auto opened = std::make_unique<Result<DriverApi>>(open("libcuda.so.1"));
  if (!*opened)
    return failed = std::move(*opened);
  const Result<DriverApi> *first = nullptr;
  if (!kept.compare_exchange_strong(first, opened.get()))
    return *first;
  return *opened.release();
}

std::string DriverApi::version() const {
  int version = 0; // 1000 * major + 10 * minor
  if (cuDriverGetVersion(&version) != CUDA_SUCCESS)
    return "unknown";
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

} // namespace replayjit::internal::cuda
