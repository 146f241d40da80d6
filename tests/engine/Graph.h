//===- Graph.h - A captured step --------------------------------*- C++ -*-===//
#ifndef REPLAYJIT_TESTS_ENGINE_GRAPH_H
#define REPLAYJIT_TESTS_ENGINE_GRAPH_H

#include "runtime/Device.h"

#include <functional>

namespace replayjit::internal::engine {

/// A CUDA graph of what `body` launches on the device's own stream. Emulation
/// has none: there a replay runs the body. Any other error ends the program.
class Graph {
public:
  Graph(Device &device, std::function<void()> body);
  ~Graph();
  Graph(const Graph &) = delete;

  void replay();
  /// Whether it is a graph that was not replayed yet.
  bool isNew() const { return exec && !wasReplayed; }

private:
  Device &device;
  std::function<void()> body;
  void *graph = nullptr, *exec = nullptr;
  bool wasReplayed = false;
};

/// Makes the primary context of GPU 0 current for the calling thread, for
/// Graph.
void makeContextCurrent();

} // namespace replayjit::internal::engine

#endif
