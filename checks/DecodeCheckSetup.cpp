//===- DecodeCheckSetup.cpp - Tensors and inputs of a run -----------------===//

#include "checks/DecodeCheckSession.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace replayjit::internal {

static MirrorLayout layoutOf(const DecodeProblem &problem) {
  return {problem.spec, problem.poison, problem.misaligned};
}

DecodeSession::DecodeSession(Device &device, const DecodeProblem &problem)
    : device(device), problem(problem), spec(problem.spec), H(spec.numKeyHeads),
      HV(spec.numValueHeads), K(spec.headDimK), V(spec.headDimV),
      L(spec.ringDepth), G(gateWidth(spec)),
      random(spec, problem.lowerBound, problem.mixedGates, problem.slowGates,
             problem.seed),
      tensors(layoutOf(problem), decodeArguments(), problem.batch,
              problem.tokenCount(), problem.rowPadding, problem.indexStride,
              problem.hasErrorWord),
      pools(layoutOf(problem).pools(problem.slots, problem.ringSlotCount(),
                                    problem.firstSlot, problem.slotPadding)),
      out(tensors["out"]),
      errorWord(tensors["errorWord"]), inputs{&tensors["q"],
                                              &tensors["k"],
                                              &tensors["v"],
                                              &tensors["a"],
                                              &tensors["b"],
                                              &tensors["outGate"]},
      mirrors(device), rows(problem.batch),
      recurrence(problem.spec, problem.batch) {
  mirrors.create(tensors.list());
  mirrors.create({&pools.state, &pools.dRing, &pools.kRing, &pools.gRing});
  errorWord.fill(0);

  const Tolerances bounds = tolerancesFor(spec, problem.tuning);
  auto limited = [&](double bound) {
    return ErrorSum::within(bounds.worstFactor * bound);
  };
  outSum = limited(bounds.out);
  checkpointSum = finalSum = limited(bounds.state);
  dSum = kSum = limited(bounds.ring);
  gSum = limited(bounds.gate);
}

DecodeArgs DecodeSession::arguments(bool onDevice) {
  DecodeArgs args;
  tensors.place(&args, onDevice);
  setLayer(args, pools.place(onDevice));
  args.batch = problem.batch;
  args.slots = problem.firstSlot + problem.slots;
  if (spec.hasRingIndices)
    args.ringSlots = problem.firstSlot + problem.ringSlotCount();
  args.tokens = int32_t(problem.tokenCount());
  args.layer = problem.layer;
  args.scale = problem.scale != 0 ? problem.scale
                                  : float(1 / std::sqrt(double(spec.headDimK)));
  args.lowerBound = problem.lowerBound;
  args.stepMin = checkedStepMin;
  args.stepMax = checkedStepMax;
  return args;
}

/// Each row's slots and first cursor.
void DecodeSession::placeRows() {
  std::map<int64_t, int> users;
  for (int i = 0; i < problem.batch; ++i) {
    Row &row = rows[i];
    row.slot = problem.slotNumber(
        problem.rowSlots.empty() ? problem.slots - 1 - i : problem.rowSlots[i]);
    row.dstSlot = row.slot;
    if (!problem.rowDstSlots.empty())
      row.dstSlot = problem.slotNumber(problem.rowDstSlots[i]);
    row.ringSlot = row.slot;
    if (spec.hasRingIndices)
      row.ringSlot = problem.slotNumber(problem.rowRingSlots.empty()
                                            ? (i + 1) % problem.ringSlotCount()
                                            : problem.rowRingSlots[i]);
    if (problem.staggered)
      row.cursor = {i % cursorEnd(spec), spec.isCircular ? (2 * i + 1) % L : 0};
    for (const DecodeProblem::BadCursor &bad : problem.badCursors)
      if (bad.row == i)
        row.cursor.writePos = bad.writePos;
    for (const DecodeProblem::BadBase &bad : problem.badBases)
      if (bad.row == i)
        row.cursor.base = bad.base;
    ++users[row.slot];
  }
  for (Row &row : rows)
    row.isShared = users[row.slot] > 1;
}

void DecodeSession::initialize() {
  const DecodeArgs args = arguments(/*onDevice=*/false);
  const DecodeTensors host(spec, args);
  for (int hv = 0; hv < HV && hasLogRate(spec); ++hv)
    host.aLog.set(0, hv, random.aLog[hv]);
  for (int i = 0; i < HV * G && hasBias(spec); ++i)
    host.dtBias.set(0, i, random.dtBias[i]);
  if (spec.skip != Skip::None)
    for (int i = 0; i < (spec.skip == Skip::Head ? HV : HV * V); ++i)
      host.skip.set(0, i, random.gaussian(1));
  placeRows();
  writeIndices(/*step=*/-1);
  const ReplayTensors views(spec, args);
  for (int i = 0; i < problem.batch; ++i) {
    Row &row = rows[i];
    const DecodeRow start = readRow(spec, args, i);
    if (!start.isLive)
      continue;
    random.fillState(views.state, row.slot);
    random.fillRing(views, row.ringSlot, start.cursor);
    row.sums.resize(HV * G);
    std::vector<double> &truth = recurrence.state(i);
    for (int hv = 0; hv < HV; ++hv) {
      std::vector<double> S =
          materialize(spec, views, row.slot, row.ringSlot, hv, start.cursor);
      std::copy(S.begin(), S.end(), truth.begin() + int64_t(hv) * V * K);
      if (start.cursor.writePos == 0)
        continue;
      const int newest = ringRow(spec, start.cursor, start.cursor.writePos - 1);
      for (int c = 0; c < G; ++c)
        row.sums[hv * G + c] =
            views.gRing.get(row.ringSlot, (int64_t(hv) * L + newest) * G + c);
    }
  }
}

/// How many tokens a row brings, if rows differ; all at step -1.
int DecodeSession::tokensOf(int step, int row) {
  const int T = tokensPerRow(spec);
  if (step < 0 || tokenRowsOf(spec) == TokenRows::Full)
    return T;
  for (const DecodeProblem::BadCount &bad : problem.badCounts)
    if (bad.row == row)
      return bad.count;
  return random.below(T + 1);
}

/// Indices, cursors and flags of a step; step -1 has no flags and no tracks.
void DecodeSession::writeIndices(int step) {
  int64_t end = 0;
  for (int i = 0; i < problem.batch; ++i) {
    const Row &row = rows[i];
    tensors["stateIndices"].set(i, row.slot);
    tensors["ringIndices"].set(i, row.ringSlot);
    tensors["dstIndices"].set(i, row.dstSlot);
    tensors["trackIndices"].set(i, i % 2 ? -1 : INT32_MIN);
    tensors["writePos"].set(i, row.cursor.writePos);
    tensors["ringBase"].set(i, row.cursor.base);
    tensors["forceFlush"].set(i, 0);
    const int count = tokensOf(step, i);
    tensors["tokenCounts"].set(i, count);
    tensors["tokenOffsets"].set(i, end);
    end += count;
  }
  tensors["tokenOffsets"].set(problem.batch, end);
  for (const DecodeProblem::ForcedFlush &forced : problem.forcedFlushes)
    if (forced.step == step) // any value but 0 means yes
      tensors["forceFlush"].set(forced.row, forced.row % 2 ? -1 : 1);
  for (const DecodeProblem::Track &track : problem.tracks)
    if (track.step == step)
      tensors["trackIndices"].set(track.row, problem.slotNumber(track.slot));
}

/// A token that goes to ring row `ringRow`.
void DecodeSession::fillToken(int64_t place, int ringRow) {
  const DecodeArgs args = arguments(/*onDevice=*/false);
  const DecodeTensors host(spec, args);
  // Without normalization k must come with a norm near 1 by itself: the delta
  // rule diverges where beta * |k|^2 > 2.
  double qkDeviation = spec.qkL2Norm ? 1 : 1 / std::sqrt(double(K));
  for (int e = 0; e < H * K; ++e)
    host.q.set(place, e, random.gaussian(qkDeviation));
  for (int e = 0; e < H * K; ++e)
    host.k.set(place, e, random.gaussian(qkDeviation));
  for (int e = 0; e < HV * V; ++e)
    host.v.set(place, e, random.gaussian(1));
  for (int hv = 0; hv < HV; ++hv) {
    for (int c = 0; c < G && hasGateInput(spec); ++c)
      host.a.set(place, hv * G + c, random.gateInput(ringRow, c));
    if (hasBetaInput(spec))
      host.b.set(place, hv, random.betaInput());
  }
  for (int e = 0; e < HV * V && spec.hasOutGate; ++e)
    host.outGate.set(place, e, random.gaussian(1));
}

/// Fresh inputs of a step. Tokens that no live row has are poison.
void DecodeSession::fillInputs(int step) {
  writeIndices(step);
  for (TensorMirror *mirror : inputs) {
    for (int64_t row = 0; mirror->present && row < mirror->dims[0]; ++row)
      mirror->poison(row, 0, mirror->inner());
    mirror->dirty = true;
  }
  const DecodeArgs args = arguments(/*onDevice=*/false);
  for (int i = 0; i < problem.batch; ++i) {
    rows[i].now = readRow(spec, args, i);
    const DecodeRow &now = rows[i].now;
    if (!now.isLive) {
      errors.add(now.error, i, problem.layer, now.badValue);
      continue;
    }
    for (int64_t t = 0; t < now.numTokens; ++t)
      fillToken(now.firstToken + t, now.cursor.writePos + int(t));
    // A ring without room for two launches is not to be filled by one.
    const int64_t most = std::min<int64_t>(now.numTokens, L - spec.numTokens);
    if (traitsOf(spec).drafts)
      rows[i].accepted = random.below(most + 1);
  }
  out.fill(outputPoisonBits(out.type));
}

/// Every head's part of a ring row.
void DecodeSession::poisonRing(int64_t ringSlot, int64_t place) {
  for (int64_t hv = 0; hv < HV; ++hv) {
    pools.dRing.poison(ringSlot, (hv * L + place) * V, V);
    pools.gRing.poison(ringSlot, (hv * L + place) * G, G);
  }
  for (int64_t h = 0; h < H; ++h)
    pools.kRing.poison(ringSlot, (h * L + place) * K, K);
}

void DecodeSession::acceptRing(int64_t ringSlot, int64_t place) {
  for (int64_t hv = 0; hv < HV; ++hv) {
    pools.dRing.accept(ringSlot, (hv * L + place) * V, V);
    pools.gRing.accept(ringSlot, (hv * L + place) * G, G);
  }
  for (int64_t h = 0; h < H; ++h)
    pools.kRing.accept(ringSlot, (h * L + place) * K, K);
}

} // namespace replayjit::internal
