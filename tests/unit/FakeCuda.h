//===- FakeCuda.h - Controls of the fake CUDA driver ------------*- C++ -*-===//
//
// The fake is a shared library with the driver's symbols. A test opens it as a
// driver, and reaches these controls through the symbol "fakeCuda".
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_TESTS_UNIT_FAKECUDA_H
#define REPLAYJIT_TESTS_UNIT_FAKECUDA_H

#include "runtime/cuda/DriverTypes.h"

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace replayjit::internal::cuda {

/// A context of the fake.
struct FakeContext {
  CUdevice device = 0;
  unsigned long long id = 0;
  int retained = 0; ///< Of a primary context: how often.
  bool isAlive = true;
};

/// What the fake answers, and what it saw. Device memory is host memory, so
/// copies work; a launch only records its arguments. Like the driver it refuses
/// the wrong context (CUDA_ERROR_INVALID_CONTEXT), and what is unsafe while
/// there is a capture, which it then spoils.
struct FakeCuda {
  // Answers.
  std::map<std::string, int> failures; ///< Function -> its result from now on.
  int deviceCount = 1;
  int driverVersion = 13000;
  int major = 9, minor = 0;
  int registers = 40, localBytes = 16, staticSharedBytes = 1024;
  int maxThreads = 1024;
  std::vector<std::pair<size_t, size_t>> params; ///< Offset and size of each.
  std::string linkErrorLog, linkInfoLog;
  std::set<CUstream> capturing;   ///< Streams under capture.
  std::set<CUstream> nonBlocking; ///< Streams not ordered with the legacy one.
  std::vector<float> elapsed;     ///< Milliseconds, one per question, then 0.
  /// What the driver knows of addresses: where memory begins, its bytes, and
  /// the device whose kernels may use it. Allocating adds to it.
  std::map<CUdeviceptr, std::pair<size_t, CUdevice>> memory;

  std::map<CUcontext, FakeContext> contexts;

  /// A context of the caller's.
  CUcontext addContext(CUdevice device) {
    auto handle = reinterpret_cast<CUcontext>(0x100 * (contexts.size() + 1));
    contexts[handle] = {device, ++lastContextId, 0, true};
    return handle;
  }
  CUcontext primary(CUdevice device) const {
    for (const auto &[handle, context] : contexts)
      if (context.retained > 0 && context.device == device)
        return handle;
    return nullptr;
  }

  // Records.
  unsigned long long lastContextId = 0;
  std::map<CUmodule, CUcontext> modules; ///< What is loaded, and where.
  std::map<CUstream, CUcontext> streams; ///< What was created, and where.
  bool isCaptureSpoiled = false;
  std::vector<std::string> calls; ///< Function names, in order.
  std::string loadedImage;        ///< Up to its first NUL.
  std::string linkedPtx;
  std::map<int, int> functionAttributes; ///< Set on the function.
  CUlaunchConfig lastLaunch = {};
  bool isProgrammatic = false;   ///< The last launch.
  std::string lastParams;        ///< The bytes of the parameter buffer.
  CUstream lastStream = nullptr; ///< Of a copy or fill.
  unsigned hostAllocFlags = 0;
  int contextDepth = 0;  ///< Pushed and not yet popped.
  int contextPushes = 0; ///< All that were pushed.
  int liveObjects = 0;   ///< Created and not yet destroyed, of any kind.
};

} // namespace replayjit::internal::cuda

/// A pointer to the one FakeCuda; exported by the fake as `fakeCuda`.
using FakeCudaAccess = replayjit::internal::cuda::FakeCuda *(*)();

#endif
