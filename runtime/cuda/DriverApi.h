//===- DriverApi.h - The CUDA driver behind one table -----------*- C++ -*-===//
//
// The driver is opened with dlopen, so the library loads on a machine without
// one. Call through the table with the macros of CudaError.h.
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_RUNTIME_CUDA_DRIVERAPI_H
#define REPLAYJIT_RUNTIME_CUDA_DRIVERAPI_H

#include "base/Status.h"
#include "runtime/cuda/DriverTypes.h"

namespace replayjit::internal::cuda {

/// The driver's functions. A plain value: the library stays open for the life
/// of the process, so copies never dangle.
struct DriverApi {
#define REPLAYJIT_CUDA_SYMBOL(name, symbol, parameters)                        \
  CUresult(*name) parameters = nullptr;
#include "runtime/cuda/DriverSymbols.def"

  /// The table of the library at `path`. NotFound if it cannot be opened or
  /// lacks a symbol. Does not call cuInit.
  static Result<DriverApi> open(const char *path);

  /// The table of libcuda.so.1, opened by the first caller; thread-safe. A
  /// failure is kept: a driver does not appear while a process runs.
  static const Result<DriverApi> &get();

  /// "13.0", or "unknown" if the driver does not say.
  std::string version() const;
};

} // namespace replayjit::internal::cuda

#endif
