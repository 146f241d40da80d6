//===- Request.h - One request on its way ------------------------*- C++
//-*-===//
#ifndef REPLAYJIT_TESTS_ENGINE_REQUEST_H
#define REPLAYJIT_TESTS_ENGINE_REQUEST_H

#include "runtime/state/SlotImage.h"
#include "tests/engine/Slots.h"

namespace replayjit::internal::engine {

/// `tokens` are the prompt and what was sampled; the first `fed` of them are in
/// checkpoint and ring. Between two steps a running request has one token that
/// is not fed.
struct Request {
  Request(const Model &model, int id, Tokens prompt, int outputs)
      : id(id), promptLen(int(prompt.size())), outputs(outputs),
        tokens(std::move(prompt)), oracle(model) {}

  int id, promptLen, outputs;
  Tokens tokens;
  int fed = 0;
  Oracle oracle; ///< Over the tokens fed.
  /// The engine knows the number of outputs in advance; else it learns of the
  /// end a step late and has not said where folding must stop.
  bool endsByLength = true;
  bool tracks = false;
  bool flushesWhenTracked = false;
  bool ended = false; ///< All outputs are sampled.

  // Where it is, while it runs.
  int32_t key = -1;
  GroupSlots state, ring; ///< The state is that of `shared`, if there is one.
  Prefix *shared = nullptr;
  bool fresh = true; ///< No step has moved the key's cursor since it was given.
  /// Snapshots are taken into one, then the other.
  struct Track {
    GroupSlots slots;
    int length = 0; ///< Tokens of the snapshot; 0: none.
  } track[2];
  int nextTrack = 0;

  // While it waits in host memory.
  std::vector<std::string> images; ///< Of each rank it ran on.
  RingCursor savedCursor;

  /// Tokens that count once all outputs are sampled: the last is never fed.
  int committedLen() const { return promptLen + outputs - 1; }

  /// Draws the next token unless one is waiting or there are no more outputs.
  void sample(int vocabulary) {
    if (fed < int(tokens.size()) || ended)
      return;
    Random random(uint64_t(id) * 1000 + tokens.size());
    tokens.push_back(random.below(vocabulary));
    ended = int(tokens.size()) == promptLen + outputs;
  }
  /// Feeds the token that waits; the outputs of each layer.
  std::vector<std::vector<double>> feed() { return oracle.feed(tokens[fed++]); }
};

} // namespace replayjit::internal::engine

#endif
