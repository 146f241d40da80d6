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

Result<double> CapturedGraph::time(CUstream stream, int repeats) {
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

  std::vector<float> times(repeats);
  for (int i = 0; i < repeats; ++i)
    REPLAYJIT_CU_RETURN(api, cuEventElapsedTime, &times[i],
                        events.pairs[i].start, events.pairs[i].stop);
  std::sort(times.begin(), times.end());
  return (double(times[(repeats - 1) / 2]) + double(times[repeats / 2])) / 2;
}

} // namespace replayjit::internal::cuda
