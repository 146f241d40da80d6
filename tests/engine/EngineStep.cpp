//===- EngineStep.cpp - One token of each running request -----------------===//

#include "tests/engine/Engine.h"

#include "tests/engine/Expect.h"

#include <algorithm>

namespace replayjit::internal::engine {

void Engine::step() {
  Rows late, decodes, extends;
  const bool isMixed = random.chance(20);
  for (const std::unique_ptr<Request> &request : running) {
    if (request->ended)
      late.push_back(request.get());
    const bool isExtend = isMixed && !request->ended && random.chance(40);
    (isExtend && makeOwn(*request) ? extends : decodes)
        .push_back(request.get());
  }
  if (!extends.empty())
    extend(extends);
  if (!extends.empty() && !decodes.empty())
    features.add(Feature::ExtendedBeside);
  decode(decodes);
  // The host learns of the ends only now.
  for (Request *request : late)
    finish(*request);
}

/// A padded size for so many rows, mostly the smallest.
int Engine::batchFor(size_t rows) {
  if (random.chance(15))
    return sizes.batches.back();
  return *std::find_if(sizes.batches.begin(), sizes.batches.end(),
                       [&](int batch) { return size_t(batch) >= rows; });
}

static std::vector<RowInputs> inputsOf(const Model &model,
                                       const std::vector<Request *> &rows) {
  std::vector<RowInputs> inputs;
  for (const Request *request : rows) {
    RowInputs &row = inputs.emplace_back();
    for (int layer = 0; layer < model.numLayers(); ++layer)
      row.push_back(tokenBytes(model, layer, request->tokens[request->fed],
                               request->fed));
  }
  return inputs;
}

//===----------------------------------------------------------------------===//
// One-token extends
//===----------------------------------------------------------------------===//

void Engine::extend(const Rows &rows) {
  foldInPlace(rows);
  if (random.chance(30)) {
    for (Request *request : rows) {
      prefill(*request, request->fed + 1);
      features.add(Feature::ExtendedHost);
    }
  } else {
    const int batch = batchFor(rows.size());
    std::vector<Row> all;
    for (const Request *request : rows)
      all.push_back(rowOf(*request));
    arrays.at(batch).set(all);
    const std::vector<RowInputs> inputs = inputsOf(model, rows);
    for (auto &rank : ranks) {
      rank->setInputs(batch, inputs);
      rank->extend(batch, arrays.at(batch), int(rows.size()));
    }
    for (size_t i = 0; i < rows.size(); ++i)
      checkOutput(rows[i]->feed(), batch, int(i));
    features.add(Feature::ExtendedPacked, rows.size());
  }
  for (Request *request : rows)
    request->sample(model.vocabulary);
}

//===----------------------------------------------------------------------===//
// Replay decode
//===----------------------------------------------------------------------===//

/// Says for each row whether it flushes, where to, and whether a snapshot is
/// due. A row whose checkpoint is a cached block and that finds no other to
/// flush into sits the step out.
Engine::Turns Engine::planTurns(const Rows &rows) {
  Turns turns;
  const bool movesBlocks = random.chance(60);
  for (Request *request : rows) {
    Turn turn = {request, rowOf(*request), false, {}, false};
    Row &row = turn.row;
    row.seqLen = request->fed + 1;
    if (request->endsByLength)
      row.noFlushPast = request->committedLen();
    row.flush = random.chance(6);
    if (request->tracks && shouldFlush(row.seqLen, trackInterval)) {
      row.track = request->track[request->nextTrack].slots;
      row.flush |= request->flushesWhenTracked;
    }
    turn.flushes = flushes(spec, cursorOf(*request), row.flush);
    if (turn.flushes && (movesBlocks || request->shared)) {
      if (std::optional<GroupSlots> slots = takeStates())
        row.dst = turn.dst = std::move(*slots);
      else if (request->shared)
        continue;
    }
    if (!turn.flushes && row.track.empty() && random.chance(4))
      row.advance = 0; // The token is taken back, and fed again.
    turns.push_back(std::move(turn));
  }
  return turns;
}

/// Tells all what the rows are.
void Engine::fill(const Turns &turns, int batch) {
  std::vector<Row> rows;
  Rows requests;
  for (const Turn &turn : turns) {
    rows.push_back(turn.row);
    requests.push_back(turn.request);
  }
  arrays.at(batch).set(rows);
  const std::vector<RowInputs> inputs = inputsOf(model, requests);
  for (auto &rank : ranks)
    rank->setInputs(batch, inputs);
  host.begin(arrays.at(batch), ++stepId, batch);
}

/// A step that begins, may run, and is not committed.
void Engine::abort(const Turns &turns, int batch) {
  const bool staysAway =
      std::all_of(turns.begin(), turns.end(), [](const Turn &turn) {
        return !turn.flushes || !turn.dst.empty();
      });
  const bool launches = staysAway && random.chance(70);
  fill(turns, batch);
  for (auto &rank : ranks) {
    orStop(rank->plan(batch).begin(device.stream(), stepId,
                                   arrays.at(batch).step()));
    if (launches)
      rank->launch(batch, 0, batch);
    host.compareWith(device, rank->pool().cursors());
  }
  for (size_t i = 0; i < turns.size() && i < size_t(statesToCheck); ++i)
    checkState(*turns[i].request);
  features.add(Feature::Aborted);
  for (const Turn &turn : turns)
    if (launches && turn.flushes)
      features.add(Feature::AbortedFlush);
}

/// All layers of all ranks, perhaps in two slices of the rows.
void Engine::launch(int batch) {
  const bool slices = batch > 1 && random.chance(30);
  const int first = slices ? 1 + random.below(batch - 1) : batch;
  for (auto &rank : ranks) {
    rank->launch(batch, 0, first);
    rank->launch(batch, first, batch - first);
  }
  if (slices)
    features.add(Feature::Sliced);
}

/// From begin to commit, in one of three ways.
void Engine::run(Turns &turns, int batch) {
  fill(turns, batch);
  for (size_t i = 0; i < turns.size(); ++i)
    turns[i].isLive = host.isLive(int(i));
  const RowArrays &rows = arrays.at(batch);
  const int way = random.below(10);
  if (way < 4) {
    for (auto &rank : ranks) {
      Graph &graph = rank->graph(batch, rows);
      if (graph.isNew())
        features.add(Feature::Graphs);
      orStop(rank->plan(batch).setStep(device.stream(), stepId,
                                       int32_t(turns.size())));
      graph.replay();
    }
    features.add(Feature::Captured);
  } else if (way < 7) {
    for (auto &rank : ranks) {
      orStop(rank->plan(batch).begin(device.stream(), stepId, rows.step()));
      host.compareWith(device, rank->plan(batch));
    }
    launch(batch);
    for (auto &rank : ranks)
      for (int i = 0; i < 2; ++i) // The second does nothing.
        orStop(rank->plan(batch).commit(device.stream(), stepId,
                                        rows.advanceBy()));
    features.add(Feature::DevicePlanned);
  } else {
    for (auto &rank : ranks)
      host.uploadTo(device, rank->plan(batch));
    launch(batch);
    features.add(Feature::HostPlanned);
  }
  host.commit();
  if (ranks.front()->overlaps())
    features.add(Feature::Overlapped, ranks.size() * (model.numLayers() - 1));
  for (auto &rank : ranks)
    if (way < 7)
      host.compareWith(device, rank->pool().cursors());
    else
      host.uploadTo(device, rank->pool().cursors());
  checkErrors();
}

void Engine::decode(Rows rows) {
  for (size_t i = rows.size(); i > 1; --i)
    std::swap(rows[i - 1], rows[random.below(int(i))]);
  Turns turns = planTurns(rows);
  const int batch = batchFor(turns.size());
  if (!turns.empty() && random.chance(12)) {
    abort(turns, batch);
    // Another order is another batch.
    std::reverse(turns.begin(), turns.end());
  }
  run(turns, batch);
  settle(turns, batch);
}

/// Compares what a step has done, and books it.
void Engine::settle(Turns &turns, int batch) {
  if (turns.empty())
    features.add(Feature::EmptyBatch);
  for (int row = int(turns.size()); row < batch; ++row)
    checkZeros(batch, row);
  features.add(Feature::Padded, batch - int(turns.size()));
  const size_t firstChecked =
      turns.empty() ? 0 : random.below(int(turns.size()));
  for (size_t i = 0; i < turns.size(); ++i) {
    Turn &turn = turns[i];
    Request &request = *turn.request;
    if (request.ended)
      features.add(Feature::LateStep);
    if (turn.isLive && turn.row.advance == 0) {
      Oracle ahead = request.oracle;
      checkOutput(ahead.feed(request.tokens[request.fed]), batch, int(i));
      request.fresh = false;
      features.add(Feature::TakenBack);
    } else if (turn.isLive) {
      checkOutput(request.feed(), batch, int(i));
      move(turn);
      request.sample(model.vocabulary);
    } else {
      checkZeros(batch, int(i));
      giveStates(turn.dst);
      features.add(Feature::LateStepHeld);
    }
    const size_t distance = (i + turns.size() - firstChecked) % turns.size();
    if (distance < size_t(statesToCheck))
      checkState(request);
  }
}

/// Books the blocks of a row that had a token.
void Engine::move(Turn &turn) {
  Request &request = *turn.request;
  request.fresh = false;
  if (turn.flushes)
    features.add(turn.row.flush ? Feature::ForcedFlush : Feature::NaturalFlush);
  if (request.ring != request.state)
    features.add(Feature::OtherRing);
  if (!turn.dst.empty()) {
    if (request.shared)
      --request.shared->users;
    else
      giveStates(request.state);
    request.shared = nullptr;
    request.state = std::move(turn.dst);
    features.add(Feature::OtherDst);
  }
  if (!turn.row.track.empty()) {
    request.track[request.nextTrack].length = request.fed;
    request.nextTrack = 1 - request.nextTrack;
    features.add(Feature::Tracked);
  }
}

} // namespace replayjit::internal::engine
