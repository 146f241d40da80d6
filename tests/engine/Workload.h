//===- Workload.h - Requests for two engines of one model -------*- C++ -*-===//
#ifndef REPLAYJIT_TESTS_ENGINE_WORKLOAD_H
#define REPLAYJIT_TESTS_ENGINE_WORKLOAD_H

#include "tests/engine/Engine.h"

namespace replayjit::internal::engine {

struct WorkloadOptions {
  int requests = 100; ///< That finish, over both engines.
  uint64_t seed = 1;
  /// The most rows whose states are compared after each step.
  int statesToCheck = 64;
  int burst = 4;    ///< Requests that wait at most before others come.
  int longest = 24; ///< Tokens of a prompt.
  int outputs = 16; ///< The most that a request asks for.
};

/// An engine on one rank and an engine on two, which exchange the requests that
/// they retract. Prompts share beginnings, and some continue what a finished
/// request has said.
class Workload {
public:
  Workload(Jit &jit, const Model &model, const Sizes &sizes,
           const WorkloadOptions &options, Features &features);
  /// Runs until enough have finished and none is left.
  void run();
  std::vector<std::string> worst() const;

private:
  std::unique_ptr<Request> newRequest();
  void arrive(Engine &engine);
  void disturb(Engine &engine);
  bool isIdle() const;
  int numFinished() const;

  const Model &model;
  const WorkloadOptions options;
  Random random;
  std::vector<std::unique_ptr<Engine>> engines;
  std::vector<Tokens> families;
  std::list<std::unique_ptr<Request>> waiting, retracted;
  int numRequests = 0, numForks = 0, numRounds = 0;
};

} // namespace replayjit::internal::engine

#endif
