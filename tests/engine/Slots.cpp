//===- Slots.cpp - Which blocks are free, and what cached ones hold -------===//

#include "tests/engine/Slots.h"

#include <algorithm>

namespace replayjit::internal::engine {

uint64_t Random::next() { // splitmix64
  uint64_t x = state += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

FreeList::FreeList(int first, int count, uint64_t seed) : random(seed) {
  for (int i = 0; i < count; ++i)
    free.push_back(first + i);
}

int32_t FreeList::take() {
  std::swap(free[random.below(left())], free.back());
  const int32_t number = free.back();
  free.pop_back();
  return number;
}

Prefix *PrefixCache::longest(const Tokens &tokens, int most) {
  for (int length = std::min(most, int(tokens.size())); length > 0; --length) {
    auto found = prefixes.find(Tokens(tokens.begin(), tokens.begin() + length));
    if (found == prefixes.end())
      continue;
    found->second.lastUse = ++clock;
    return &found->second;
  }
  return nullptr;
}

bool PrefixCache::insert(Prefix prefix) {
  prefix.lastUse = ++clock;
  return prefixes.emplace(prefix.tokens, std::move(prefix)).second;
}

std::optional<Prefix> PrefixCache::evict() {
  auto oldest = prefixes.end();
  for (auto it = prefixes.begin(); it != prefixes.end(); ++it)
    if (it->second.users == 0 && (oldest == prefixes.end() ||
                                  it->second.lastUse < oldest->second.lastUse))
      oldest = it;
  if (oldest == prefixes.end())
    return std::nullopt;
  Prefix prefix = std::move(oldest->second);
  prefixes.erase(oldest);
  return prefix;
}

std::optional<Prefix> PrefixCache::removeAny() {
  if (prefixes.empty())
    return std::nullopt;
  Prefix prefix = std::move(prefixes.begin()->second);
  prefixes.erase(prefixes.begin());
  return prefix;
}

} // namespace replayjit::internal::engine
