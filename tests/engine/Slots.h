//===- Slots.h - Which blocks are free, and what cached ones hold *- C++ -*===//
#ifndef REPLAYJIT_TESTS_ENGINE_SLOTS_H
#define REPLAYJIT_TESTS_ENGINE_SLOTS_H

#include "tests/engine/Model.h"

#include <map>
#include <memory>
#include <optional>

namespace replayjit::internal::engine {

/// The same random numbers on every platform.
class Random {
public:
  explicit Random(uint64_t seed) : state(seed) {}
  /// 0 .. count - 1
  int below(int count) { return int(next() % uint64_t(count)); }
  bool chance(int percent) { return below(100) < percent; }
  uint64_t next();

private:
  uint64_t state;
};

/// Numbers first .. first + count - 1, taken in random order, so that what
/// belongs together never has the same one by habit.
class FreeList {
public:
  FreeList(int first, int count, uint64_t seed);
  int32_t take(); ///< One must be left.
  void give(int32_t number) { free.push_back(number); }
  int left() const { return int(free.size()); }

private:
  std::vector<int32_t> free;
  Random random;
};

/// A slot of each group.
using GroupSlots = std::vector<int32_t>;

/// Tokens whose states are in slots of their own.
struct Prefix {
  Tokens tokens;
  GroupSlots slots;
  std::shared_ptr<const Oracle> truth; ///< Over the tokens.
  int users = 0; ///< Requests that read the block in place.
  int64_t lastUse = 0;
};

/// Prefixes by their tokens. The length of a key is the number of tokens that
/// its states have folded.
class PrefixCache {
public:
  /// The longest prefix of `tokens` that is cached and at most `most` long, or
  /// null. The pointer is good until the prefix is removed.
  Prefix *longest(const Tokens &tokens, int most);
  /// False if its tokens are there already; it is then not taken.
  bool insert(Prefix prefix);
  /// Takes the prefix out that was not used for longest and has no users.
  std::optional<Prefix> evict();
  /// Takes any out.
  std::optional<Prefix> removeAny();
  const std::map<Tokens, Prefix> &all() const { return prefixes; }

private:
  std::map<Tokens, Prefix> prefixes;
  int64_t clock = 0;
};

} // namespace replayjit::internal::engine

#endif
