//===- EngineCache.cpp - What finished requests leave behind --------------===//

#include "tests/engine/Engine.h"

#include "tests/engine/Expect.h"

namespace replayjit::internal::engine {

/// Takes over the slots, whose states have folded the first `length` tokens.
void Engine::cachePrefix(const Request &request, int length, GroupSlots slots) {
  Prefix prefix;
  prefix.tokens.assign(request.tokens.begin(), request.tokens.begin() + length);
  prefix.slots = slots;
  prefix.truth = std::make_shared<Oracle>(model, prefix.tokens);
  checkPrefix(prefix);
  if (!cache.insert(std::move(prefix)))
    giveStates(slots);
}

/// A request whose ring is empty, right after prefill.
void Engine::cachePrompt(Request &request) {
  std::optional<GroupSlots> slots = takeStates();
  if (!slots)
    return;
  Row row = rowOf(request);
  row.dst = *slots;
  const StepInputs inputs = slotRows({row}).slots();
  for (auto &rank : ranks)
    orStop(rank->plan().copy(device.stream(), inputs));
  cachePrefix(request, request.fed, std::move(*slots));
  features.add(Feature::CachedPrompt);
}

/// The newest snapshot that has no token too many.
bool Engine::donateTrack(Request &request) {
  const int committed = request.committedLen();
  Request::Track *best = nullptr;
  bool hasNewer = false;
  for (Request::Track &track : request.track) {
    hasNewer |= track.length > committed;
    if (track.length > 0 && track.length <= committed &&
        (!best || track.length > best->length))
      best = &track;
  }
  if (!best)
    return false;
  cachePrefix(request, best->length, std::move(best->slots));
  best->slots.clear();
  features.add(Feature::DonatedTrack);
  if (hasNewer)
    features.add(Feature::DonatedOlder);
  return true;
}

/// Checkpoint and ring, without what was fed past the end.
bool Engine::donateRing(Request &request) {
  const int64_t drop = tokensToDrop(request.committedLen(), request.fed);
  if (drop < 0 || drop > cursorOf(request).writePos)
    return false;
  std::optional<GroupSlots> slots = takeStates();
  if (!slots)
    return false;
  Row row = rowOf(request);
  row.dst = *slots;
  row.drop = int32_t(drop);
  const StepInputs inputs = slotRows({row}).donation();
  for (auto &rank : ranks)
    orStop(rank->plan().materialize(device.stream(), inputs));
  cachePrefix(request, request.committedLen(), std::move(*slots));
  features.add(drop ? Feature::DonatedDropped : Feature::DonatedRing);
  return true;
}

/// The checkpoint as it is; the key is cut to what it has folded.
bool Engine::donateFlush(Request &request) {
  const int length = request.fed - cursorOf(request).writePos;
  if (request.shared || length <= 0 || length > request.committedLen())
    return false;
  cachePrefix(request, length, std::move(request.state));
  request.state.clear();
  features.add(Feature::DonatedFlush);
  return true;
}

void Engine::finish(Request &request) {
  constexpr bool (Engine::*ways[])(Request &) = {
      &Engine::donateTrack, &Engine::donateRing, &Engine::donateFlush};
  // The first that can; one in ten requests is not worth keeping.
  const int first = random.below(3);
  if (!random.chance(10))
    for (int i = 0; i < 3; ++i)
      if ((this->*ways[(first + i) % 3])(request))
        break;
  histories.push_back(request.tokens);
  features.add(Feature::Finished);
  takeOut(request);
}

Tokens Engine::someHistory() {
  return histories.empty() ? Tokens()
                           : histories[random.below(int(histories.size()))];
}

} // namespace replayjit::internal::engine
