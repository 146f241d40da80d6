//===- CapturedGraph.h - How long a captured graph takes --------*- C++ -*-===//
//
// Private to runtime/cuda.
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_RUNTIME_CUDA_CAPTUREDGRAPH_H
#define REPLAYJIT_RUNTIME_CUDA_CAPTUREDGRAPH_H

#include "runtime/Device.h"
#include "runtime/cuda/DriverApi.h"

namespace replayjit::internal::cuda {

/// A graph and its executable form, destroyed with this. The context is current
/// throughout.
class CapturedGraph {
public:
  explicit CapturedGraph(const DriverApi &api) : api(api) {}
  CapturedGraph(const CapturedGraph &) = delete;
  ~CapturedGraph();

  /// Ends the capture of `stream`.
  Status endCapture(CUstream stream);
  /// Replays it `repeats` times on `stream` after a warm-up; the milliseconds
  /// of each replay.
  Result<Times> time(CUstream stream, int repeats);

private:
  const DriverApi &api;
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
};

} // namespace replayjit::internal::cuda

#endif
