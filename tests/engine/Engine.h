//===- Engine.h - A serving engine in miniature -----------------*- C++ -*-===//
//
// START HERE. Requests run in batches over one or two ranks of a model, with
// prefix cache, track slots, forks, retraction and late finishes, as in SGLang
// and vLLM. Each output and state is compared with the request's recurrence;
// what differs ends the program. What to do is drawn at random from a seed.
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_TESTS_ENGINE_ENGINE_H
#define REPLAYJIT_TESTS_ENGINE_ENGINE_H

#include "tests/engine/Features.h"
#include "tests/engine/Rank.h"
#include "tests/engine/Request.h"

#include <list>

namespace replayjit::internal::engine {

/// Snapshots into track slots are due after so many tokens.
inline constexpr int trackInterval = 4;

class Engine {
public:
  /// `statesToCheck`: rows whose states are compared after each step.
  Engine(Jit &jit, const Model &model, int ranks, const Sizes &sizes,
         uint64_t seed, int statesToCheck, Features &features);

  /// Runs the request: looks for a cached prefix and prefills the rest. False
  /// if there is no room, the request being left as it was.
  bool admit(std::unique_ptr<Request> &request);
  /// The same for one that was retracted, from one or more ranks.
  bool restore(std::unique_ptr<Request> &request);
  /// A child that goes on from a running request, if there is one and room.
  void fork(int childId);
  /// Ends a running request without a trace.
  void cancel();
  /// Takes a running request out, as bytes in host memory; null if none runs.
  std::unique_ptr<Request> retract();
  /// Forgets everything on the device; the requests that ran start again.
  std::vector<std::unique_ptr<Request>> reset();

  /// One token of each running request. Requests that had ended before it
  /// finish after it: they ran a step too many.
  void step();

  bool isIdle() const { return running.empty(); }
  size_t numRunning() const { return running.size(); }
  int numRanks() const { return int(ranks.size()); }
  /// The tokens of a request that finished, or nothing.
  Tokens someHistory();
  /// Compares all cached prefixes with the recurrence, and polls for errors.
  void checkCached();
  /// The largest relative error of outputs and states of each group, as a
  /// sentence.
  std::string worst() const;

private:
  using Rows = std::vector<Request *>;
  /// What a request is about to do in a step.
  struct Turn {
    Request *request;
    Row row;
    bool flushes = false;
    GroupSlots dst; ///< Blocks that a flush writes, if other than its own.
    bool isLive = false;
  };
  using Turns = std::vector<Turn>;

  // Places of requests (EngineSlots.cpp)
  std::optional<GroupSlots> takeStates();
  void giveStates(GroupSlots &slots);
  bool takePlace(Request &request, bool needsStates);
  void release(Request &request);
  std::unique_ptr<Request> takeOut(Request &request);
  Request *pick();
  Row rowOf(const Request &request) const;
  RingCursor cursorOf(const Request &request) const;
  const RowArrays &slotRows(const std::vector<Row> &rows);
  std::vector<GroupSlot> groupSlots(const Request &request) const;
  bool makeOwn(Request &request);
  void copyWrongly(const Request &request);
  void foldInPlace(const Rows &rows);
  void prefill(Request &request, int until);

  // Cached prefixes (EngineCache.cpp)
  void cachePrompt(Request &request);
  void finish(Request &request);
  bool donateTrack(Request &request);
  bool donateRing(Request &request);
  bool donateFlush(Request &request);
  void cachePrefix(const Request &request, int length, GroupSlots slots);

  // Steps (EngineStep.cpp)
  int batchFor(size_t rows);
  void extend(const Rows &rows);
  void decode(Rows rows);
  Turns planTurns(const Rows &rows);
  void fill(const Turns &turns, int batch);
  void abort(const Turns &turns, int batch);
  void launch(int batch);
  void run(Turns &turns, int batch);
  void settle(Turns &turns, int batch);
  void move(Turn &turn);

  // Comparisons (EngineCheck.cpp)
  using Outputs = std::vector<std::vector<double>>;
  void checkOutput(const Outputs &expected, int batch, int row);
  void checkZeros(int batch, int row);
  void checkState(const Request &request);
  void checkPrefix(const Prefix &prefix);
  void compareStates(const Oracle &oracle, const GroupSlots &slots,
                     const GroupSlots &rings, RingCursor cursor,
                     const std::string &what);
  void checkErrors() const;

  const Model &model;
  const DecodeSpec &spec; ///< What all groups agree in.
  Device &device;
  const Sizes sizes;
  Features &features;
  Random random;
  const int statesToCheck;

  std::vector<std::unique_ptr<Rank>> ranks;
  std::map<int, RowArrays> arrays; ///< Of each batch size.
  HostPlan host;
  int64_t stepId = 0;

  std::vector<FreeList> freeStates, freeRings; ///< Of each group.
  FreeList freeKeys;
  PrefixCache cache;
  std::vector<Tokens> histories;
  std::list<std::unique_ptr<Request>> running;
  std::vector<double> worstOut, worstState; ///< Of each group.
};

} // namespace replayjit::internal::engine

#endif
