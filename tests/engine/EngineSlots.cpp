//===- EngineSlots.cpp - Requests come, move and go -----------------------===//

#include "tests/engine/Engine.h"

#include "tests/engine/Expect.h"

#include <algorithm>

namespace replayjit::internal::engine {

Engine::Engine(Jit &jit, const Model &model, int numRanks, const Sizes &sizes,
               uint64_t seed, int statesToCheck, Features &features)
    : model(model), spec(model.groups[0].spec), device(jit.device()),
      sizes(sizes), features(features), random(seed),
      statesToCheck(statesToCheck), host(model, sizes),
      freeKeys(0, sizes.keys, seed + 1), worstOut(model.numGroups()),
      worstState(model.numGroups()) {
  for (int rank = 0; rank < numRanks; ++rank)
    ranks.push_back(std::make_unique<Rank>(jit, model, rank, numRanks, sizes));
  for (int rows : sizes.batches)
    arrays.try_emplace(rows, device, model, rows);
  const int first = spec.nullSlot == NullSlot::NonPositive ? 1 : 0;
  for (int g = 0; g < model.numGroups(); ++g) {
    freeStates.emplace_back(first, sizes.states - first, seed + 10 + g);
    freeRings.emplace_back(0, sizes.rings, seed + 20 + g);
  }
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

std::optional<GroupSlots> Engine::takeStates() {
  auto hasRoom = [&] {
    return std::all_of(freeStates.begin(), freeStates.end(),
                       [](const FreeList &list) { return list.left() > 0; });
  };
  while (!hasRoom()) {
    std::optional<Prefix> old = cache.evict();
    if (!old)
      return std::nullopt;
    checkPrefix(*old);
    giveStates(old->slots);
    features.add(Feature::Evicted);
  }
  GroupSlots slots;
  for (FreeList &list : freeStates)
    slots.push_back(list.take());
  return slots;
}

void Engine::giveStates(GroupSlots &slots) {
  for (size_t g = 0; g < slots.size(); ++g)
    freeStates[g].give(slots[g]);
  slots.clear();
}

bool Engine::takePlace(Request &request, bool needsStates) {
  if (running.size() >= size_t(sizes.batches.back()) || freeKeys.left() == 0)
    return false;
  std::vector<GroupSlots *> wanted;
  if (needsStates)
    wanted.push_back(&request.state);
  if (request.tracks)
    for (Request::Track &track : request.track)
      wanted.push_back(&track.slots);
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (std::optional<GroupSlots> slots = takeStates()) {
      *wanted[i] = std::move(*slots);
      continue;
    }
    while (i-- > 0)
      giveStates(*wanted[i]);
    return false;
  }
  request.key = freeKeys.take();
  for (FreeList &list : freeRings) // as many as keys
    request.ring.push_back(list.take());
  request.fresh = true;
  return true;
}

void Engine::release(Request &request) {
  if (request.shared)
    --request.shared->users;
  else
    giveStates(request.state);
  request.shared = nullptr;
  request.state.clear();
  for (Request::Track &track : request.track) {
    giveStates(track.slots);
    track.length = 0;
  }
  for (size_t g = 0; g < request.ring.size(); ++g)
    freeRings[g].give(request.ring[g]);
  request.ring.clear();
  freeKeys.give(request.key);
  request.key = -1;
}

std::unique_ptr<Request> Engine::takeOut(Request &request) {
  auto at = std::find_if(
      running.begin(), running.end(),
      [&](const std::unique_ptr<Request> &it) { return it.get() == &request; });
  std::unique_ptr<Request> taken = std::move(*at);
  running.erase(at);
  release(*taken);
  return taken;
}

/// A running request that has not ended, or null.
Request *Engine::pick() {
  Rows rows;
  for (const std::unique_ptr<Request> &request : running)
    if (!request->ended)
      rows.push_back(request.get());
  return rows.empty() ? nullptr : rows[random.below(int(rows.size()))];
}

Row Engine::rowOf(const Request &request) const {
  Row row;
  row.key = request.key;
  row.state = row.dst = request.state;
  row.ring = request.ring;
  row.fresh = request.fresh;
  return row;
}

RingCursor Engine::cursorOf(const Request &request) const {
  return request.fresh ? RingCursor() : host.cursor(request.key);
}

const RowArrays &Engine::slotRows(const std::vector<Row> &rows) {
  RowArrays &all = arrays.at(sizes.batches.back());
  all.set(rows);
  return all;
}

std::vector<GroupSlot> Engine::groupSlots(const Request &request) const {
  std::vector<GroupSlot> slots;
  for (int g = 0; g < model.numGroups(); ++g)
    slots.push_back({request.state[g], request.ring[g]});
  return slots;
}

/// Gives a request that reads a cached block a block of its own, into which its
/// ring is folded. False if there is no room.
bool Engine::makeOwn(Request &request) {
  if (!request.shared)
    return true;
  std::optional<GroupSlots> slots = takeStates();
  if (!slots)
    return false;
  Row row = rowOf(request);
  row.dst = *slots;
  const StepInputs inputs = slotRows({row}).slots();
  for (auto &rank : ranks)
    orStop(rank->plan().materialize(device.stream(), inputs));
  --request.shared->users;
  request.shared = nullptr;
  request.state = std::move(*slots);
  request.fresh = true; // The ring's tokens are in the state now.
  checkState(request);
  return true;
}

/// A mistake of the engine's: the copy of a checkpoint without its ring. The
/// device refuses and reports it.
void Engine::copyWrongly(const Request &request) {
  if (cursorOf(request).writePos == 0)
    return;
  std::optional<GroupSlots> slots = takeStates();
  if (!slots)
    return;
  Row row = rowOf(request);
  row.dst = *slots;
  const StepInputs inputs = slotRows({row}).slots();
  for (auto &rank : ranks) {
    const std::vector<double> before = rank->readState(0, row.dst[0]);
    orStop(rank->plan().copy(device.stream(), inputs));
    orStop(device.synchronize());
    const ErrorWord word = rank->pool().pollErrors();
    expect(word.count == 1 && word.kind == uint32_t(ErrorKind::NotFlushed) &&
               word.value == cursorOf(request).writePos,
           "a copy without the ring: " + describe(word));
    expect(rank->readState(0, row.dst[0]) == before,
           "a copy that was refused has written");
    rank->pool().clearErrors();
  }
  giveStates(*slots);
  features.add(Feature::CopyRefused);
}

/// Before anything but replay decode. The rows have blocks of their own.
void Engine::foldInPlace(const Rows &rows) {
  std::vector<Row> all;
  for (Request *request : rows) {
    all.push_back(rowOf(*request));
    all.back().dst.assign(model.numGroups(), -1); // It does not count here.
  }
  const StepInputs inputs = slotRows(all).inPlace();
  for (auto &rank : ranks)
    orStop(rank->plan().prepareExtend(device.stream(), inputs));
  for (Request *request : rows) {
    if (cursorOf(*request).writePos > 0)
      features.add(Feature::RingFolded);
    host.setCursor(request->key, RingCursor());
    request->fresh = false;
  }
  for (Row &row : all)
    row.fresh = 0; // The cursors themselves are 0.
  const StepInputs after = slotRows(all).inPlace();
  for (auto &rank : ranks) {
    orStop(rank->plan().requireFlushed(device.stream(), after));
    host.compareWith(device, rank->pool().cursors());
  }
  checkErrors();
}

/// What a prefill kernel does, on the host: from the states that the device
/// has, the tokens up to `until`. The ring is empty.
void Engine::prefill(Request &request, int until) {
  const int numRanks = int(ranks.size());
  for (int layer = 0; layer < model.numLayers(); ++layer) {
    const int slot = request.state[model.groupOf(layer)];
    std::vector<double> state;
    if (request.fed > 0)
      for (auto &rank : ranks) {
        const std::vector<double> part = rank->readState(layer, slot);
        state.insert(state.end(), part.begin(), part.end());
      }
    else
      state.resize(request.oracle.state(layer).size());
    for (int at = request.fed; at < until; ++at)
      stepLayer(model, layer, request.tokens[at], at, state);
    for (int rank = 0; rank < numRanks; ++rank)
      ranks[rank]->writeState(layer, slot,
                              &state[rank * state.size() / numRanks]);
  }
  while (request.fed < until)
    request.feed();
}

//===----------------------------------------------------------------------===//
// Requests
//===----------------------------------------------------------------------===//

bool Engine::admit(std::unique_ptr<Request> &waiting) {
  Request &request = *waiting;
  const int length = int(request.tokens.size());
  Prefix *hit = cache.longest(request.tokens, length - 1);
  const bool shares =
      hit && int(hit->tokens.size()) == length - 1 && random.chance(75);
  if (hit)
    ++hit->users; // It is not evicted for this request.
  if (!takePlace(request, !shares)) {
    if (hit)
      --hit->users;
    return false;
  }
  int until = length - random.chance(40); // A token may be left for a step.
  if (shares) {
    request.shared = hit;
    request.state = hit->slots;
    features.add(Feature::PrefixShared);
  } else if (hit) {
    Row row = rowOf(request);
    row.state = hit->slots;
    row.ring.assign(model.numGroups(), -1); // A prefix has none.
    const StepInputs inputs = slotRows({row}).slots();
    for (auto &rank : ranks)
      orStop(rank->plan().copy(device.stream(), inputs));
    --hit->users;
    features.add(Feature::PrefixHit);
  } else {
    until = std::max(until, 1);
    features.add(Feature::Prefilled);
  }
  while (hit && request.fed < int(hit->tokens.size()))
    request.feed();
  if (!shares && request.fed < until)
    prefill(request, until);
  if (!shares && random.chance(40))
    cachePrompt(request);
  request.sample(model.vocabulary);
  checkState(request);
  running.push_back(std::move(waiting));
  return true;
}

void Engine::fork(int childId) {
  Request *parent = pick();
  if (!parent)
    return;
  auto child = std::make_unique<Request>(*parent);
  child->id = childId;
  child->key = -1;
  child->shared = nullptr;
  child->state.clear();
  child->ring.clear();
  for (Request::Track &track : child->track)
    track = {};
  child->outputs =
      int(child->tokens.size()) - child->promptLen + 1 + random.below(8);
  child->oracle = Oracle(
      model, Tokens(child->tokens.begin(), child->tokens.begin() + child->fed));
  if (!takePlace(*child, /*needsStates=*/true))
    return;
  Row row = rowOf(*parent);
  row.dst = child->state;
  const StepInputs inputs = slotRows({row}).slots();
  for (auto &rank : ranks)
    orStop(rank->plan().materialize(device.stream(), inputs));
  checkState(*parent);
  checkState(*child);
  running.push_back(std::move(child));
  features.add(Feature::Forked);
}

void Engine::cancel() {
  if (Request *request = pick()) {
    copyWrongly(*request);
    takeOut(*request);
    features.add(Feature::Cancelled);
  }
}

std::unique_ptr<Request> Engine::retract() {
  Request *request = pick();
  if (!request)
    return nullptr;
  // The cursor of a fresh request's key is another's still.
  const bool folds = request->fresh || random.chance(50);
  if (folds) {
    if (!makeOwn(*request))
      return nullptr;
    foldInPlace({request});
  }
  const ImageForm form = folds ? ImageForm::Folded : ImageForm::WithRing;
  request->savedCursor = cursorOf(*request);
  request->images.clear();
  for (auto &rank : ranks)
    request->images.push_back(
        orStop(exportSlot(rank->pool(), device.stream(), groupSlots(*request),
                          request->key, form)));
  features.add(folds ? Feature::RetractedFolded : Feature::RetractedRing);
  return takeOut(*request);
}

bool Engine::restore(std::unique_ptr<Request> &waiting) {
  Request &request = *waiting;
  if (!takePlace(request, /*needsStates=*/true))
    return false;
  const std::vector<std::string_view> images(request.images.begin(),
                                             request.images.end());
  for (auto &rank : ranks)
    orStop(importSlot(rank->pool(), device.stream(), groupSlots(request),
                      request.key, images));
  host.setCursor(request.key, request.savedCursor);
  request.fresh = false;
  features.add(images.size() == ranks.size()  ? Feature::Restored
               : images.size() < ranks.size() ? Feature::RestoredSplit
                                              : Feature::RestoredMerged);
  request.images.clear();
  checkState(request);
  running.push_back(std::move(waiting));
  return true;
}

std::vector<std::unique_ptr<Request>> Engine::reset() {
  // A step has begun that nobody may commit afterwards.
  std::vector<Row> rows;
  for (const std::unique_ptr<Request> &request : running)
    rows.push_back(rowOf(*request));
  slotRows(rows);
  const StepInputs inputs = arrays.at(sizes.batches.back()).step();
  ++stepId;
  host.reset();
  for (auto &rank : ranks) {
    orStop(rank->plan().begin(device.stream(), stepId, inputs));
    orStop(rank->pool().resetAll(device.stream()));
    expect(!rank->plan().commit(device.stream(), stepId),
           "a step that a reset made void was committed");
    host.compareWith(device, rank->pool().cursors());
  }
  std::vector<std::unique_ptr<Request>> again;
  while (!running.empty()) {
    std::unique_ptr<Request> request = takeOut(*running.front());
    if (request->ended) {
      features.add(Feature::Finished);
      continue;
    }
    request->fed = 0;
    request->oracle = Oracle(model);
    again.push_back(std::move(request));
  }
  while (std::optional<Prefix> prefix = cache.removeAny())
    giveStates(prefix->slots);
  features.add(Feature::Reset);
  return again;
}

} // namespace replayjit::internal::engine
