//===- Graph.cpp - A captured step ----------------------------------------===//

#include "tests/engine/Graph.h"

#include "runtime/cuda/CudaError.h"
#include "tests/engine/Expect.h"

namespace replayjit::internal::engine {

using namespace cuda;

void makeContextCurrent() {
  const Result<DriverApi> &api = DriverApi::get();
  orStop(api.status());
  CUcontext context = nullptr;
  orStop(REPLAYJIT_CU(*api, cuInit, 0));
  orStop(REPLAYJIT_CU(*api, cuDevicePrimaryCtxRetain, &context, 0));
  orStop(REPLAYJIT_CU(*api, cuCtxPushCurrent, context));
}

Graph::Graph(Device &device, std::function<void()> body)
    : device(device), body(std::move(body)) {
  if (device.isEmulation())
    return;
  const DriverApi &api = *DriverApi::get();
  auto stream = static_cast<CUstream>(device.stream());
  orStop(REPLAYJIT_CU(api, cuStreamBeginCapture, stream,
                      CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  this->body();
  CUgraph captured = nullptr;
  orStop(REPLAYJIT_CU(api, cuStreamEndCapture, stream, &captured));
  CUgraphExec made = nullptr;
  orStop(REPLAYJIT_CU(api, cuGraphInstantiate, &made, captured, 0));
  graph = captured;
  exec = made;
}

Graph::~Graph() {
  if (!exec)
    return;
  const DriverApi &api = *DriverApi::get();
  (void)api.cuGraphExecDestroy(static_cast<CUgraphExec>(exec));
  (void)api.cuGraphDestroy(static_cast<CUgraph>(graph));
}

void Graph::replay() {
  if (!exec)
    return body();
  wasReplayed = true;
  orStop(REPLAYJIT_CU(*DriverApi::get(), cuGraphLaunch,
                      static_cast<CUgraphExec>(exec),
                      static_cast<CUstream>(device.stream())));
}

} // namespace replayjit::internal::engine
