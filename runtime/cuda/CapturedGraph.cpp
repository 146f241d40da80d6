//===- CapturedGraph.cpp - How long a captured graph takes ----------------===//

#include "runtime/cuda/CapturedGraph.h"
#include "runtime/cuda/CudaError.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace replayjit::internal::cuda {

namespace {

/// Events around timed replays, destroyed with the scope.
struct EventPairs {
  struct Pair {
    CUevent start = nullptr, stop = nullptr;
  };
  const DriverApi &api;
  std::vector<Pair> pairs;

  explicit EventPairs(const DriverApi &api) : api(api) {}
  EventPairs(const EventPairs &) = delete;
  ~EventPairs() {
    for (Pair &pair : pairs)
      for (CUevent event : {pair.start, pair.stop})
        if (event)
          (void)api.cuEventDestroy(event);
  }
  Status create(int count) {
    pairs.resize(count);
    for (Pair &pair : pairs)
      for (CUevent *event : {&pair.start, &pair.stop})
        REPLAYJIT_CU_RETURN(api, cuEventCreate, event, CU_EVENT_DEFAULT);
    return Status::ok();
  }
};

} // namespace

CapturedGraph::~CapturedGraph() {
  if (exec)
    (void)api.cuGraphExecDestroy(exec);
  if (graph)
    (void)api.cuGraphDestroy(graph);
}

Status CapturedGraph::endCapture(CUstream stream) {
  return REPLAYJIT_CU(api, cuStreamEndCapture, stream, &graph);
}

Result<Times> CapturedGraph::time(CUstream stream, int repeats) {
  if (repeats < 1)
    return Status::invalid(
        fmt::format("time: {} repeats; at least 1 is needed", repeats));
  REPLAYJIT_CU_RETURN(api, cuGraphInstantiate, &exec, graph, 0);
  EventPairs events(api);
  if (Status status = events.create(repeats); !status)
    return status;
  // The timed replays are queued behind the warm-up without a wait, so that
  // the GPU is busy while the host records events: a pair then spans the work
  // of the graph, not the host's time to submit it.
  constexpr int warmups = 3;
  for (int i = 0; i < warmups; ++i)
    REPLAYJIT_CU_RETURN(api, cuGraphLaunch, exec, stream);
  for (EventPairs::Pair &pair : events.pairs) {
    REPLAYJIT_CU_RETURN(api, cuEventRecord, pair.start, stream);
    REPLAYJIT_CU_RETURN(api, cuGraphLaunch, exec, stream);
    REPLAYJIT_CU_RETURN(api, cuEventRecord, pair.stop, stream);
  }
  REPLAYJIT_CU_RETURN(api, cuStreamSynchronize, stream);

  Times times;
  for (const EventPairs::Pair &pair : events.pairs) {
    float milliseconds = 0;
    REPLAYJIT_CU_RETURN(api, cuEventElapsedTime, &milliseconds, pair.start,
                        pair.stop);
    times.push_back(milliseconds);
  }
  std::sort(times.begin(), times.end());
  return times;
}

} // namespace replayjit::internal::cuda
