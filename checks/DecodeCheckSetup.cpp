//===- DecodeCheckSetup.cpp - Tensors and inputs of a run -----------------===//

#include "checks/DecodeCheckSession.h"

#include <cmath>
#include <map>

namespace replayjit::internal {

DecodeSession::DecodeSession(Device &device, const DecodeProblem &problem)
    : device(device), problem(problem), spec(problem.spec), H(spec.numKeyHeads),
      HV(spec.numValueHeads), K(spec.headDimK), V(spec.headDimV),
      L(spec.ringDepth), G(gateWidth(spec)),
      random(spec, problem.lowerBound, problem.mixedGates, problem.slowGates,
             problem.seed),
      mirrors(device), rows(problem.batch),
      recurrence(problem.spec, problem.batch) {
  const int B = problem.batch, slots = problem.slots;
  const int ringSlots = problem.ringSlotCount();
  const int rowPadding = problem.rowPadding, slotPadding = problem.slotPadding;
  const MirrorLayout layout{spec, problem.poison, problem.misaligned};
  if (spec.hasSeparateQkv) {
    q = layout.padded("q", spec.actType, {B, H, K}, rowPadding);
    k = layout.padded("k", spec.actType, {B, H, K}, 3 * rowPadding);
    v = layout.padded("v", spec.actType, {B, HV, V}, 2 * rowPadding);
  } else {
    q = layout.padded("mixed_qkv", spec.actType, {B, 2 * H * K + HV * V},
                      rowPadding);
    k = v = layout.dense("k or v", spec.actType, {0, 1});
  }
  k.present = v.present = spec.hasSeparateQkv;
  // GDN has no K here.
  auto gates = [&](std::vector<int64_t> dims) {
    if (spec.isKda)
      dims.push_back(K);
    return dims;
  };
  a = layout.padded("a", spec.gateType, gates({B, HV}), rowPadding);
  b = layout.padded("b", spec.betaType, {B, HV}, rowPadding);
  aLog = layout.dense("A_log", spec.paramType, {HV});
  dtBias = layout.dense("dt_bias", spec.biasType, gates({HV}));
  out = layout.padded("out", spec.outType, {B, HV, V}, rowPadding);
  pools = layout.pools(slots, ringSlots, problem.firstSlot, slotPadding);

  const bool hasCursor = spec.family == Family::Replay;
  auto perRow = [&](const char *name, DataType type, int64_t stride,
                    bool present) {
    return layout.perRow(name, type, B, stride, present);
  };
  const int stride = problem.indexStride;
  stateIndices = perRow("state_indices", spec.indexType, stride, true);
  ringIndices =
      perRow("ring_indices", spec.indexType, stride + 1, spec.hasRingIndices);
  dstIndices =
      perRow("dst_indices", spec.indexType, stride + 2, spec.hasDstIndices);
  trackIndices =
      perRow("track_indices", spec.indexType, stride + 3, spec.hasTrackIndices);
  writePos = perRow("write_pos", DataType::I32, 1, hasCursor);
  forceFlush =
      perRow("force_flush", DataType::I32, 1, hasCursor && spec.hasForceFlush);
  ringBase = perRow("ring_base", DataType::I32, 1, spec.isCircular);
  errorWord = layout.errorWord(problem.hasErrorWord);
  mirrors.create({&q,
                  &k,
                  &v,
                  &a,
                  &b,
                  &aLog,
                  &dtBias,
                  &out,
                  &pools.state,
                  &pools.dRing,
                  &pools.kRing,
                  &pools.gRing,
                  &stateIndices,
                  &ringIndices,
                  &dstIndices,
                  &trackIndices,
                  &writePos,
                  &forceFlush,
                  &ringBase,
                  &errorWord});
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
  auto address = [&](const TensorMirror &mirror) {
    return mirror.address(onDevice);
  };
  DecodeArgs args;
  args.q = address(q);
  args.k = address(k);
  args.v = address(v);
  args.a = address(a);
  args.b = address(b);
  args.aLog = address(aLog);
  args.dtBias = address(dtBias);
  args.out = address(out);
  args.state = address(pools.state);
  args.dRing = address(pools.dRing);
  args.kRing = address(pools.kRing);
  args.gRing = address(pools.gRing);
  args.stateIndices = address(stateIndices);
  args.ringIndices = address(ringIndices);
  args.dstIndices = address(dstIndices);
  args.trackIndices = address(trackIndices);
  args.writePos = address(writePos);
  args.forceFlush = address(forceFlush);
  args.ringBase = address(ringBase);
  args.errorWord = address(errorWord);
  args.qStride = q.pitch;
  if (spec.hasSeparateQkv) {
    args.kStride = k.pitch;
    args.vStride = v.pitch;
  }
  args.aStride = a.pitch;
  args.bStride = b.pitch;
  args.outStride = out.pitch;
  args.stateIndexStride = stateIndices.pitch;
  args.ringIndexStride = ringIndices.pitch;
  args.dstIndexStride = dstIndices.pitch;
  args.trackIndexStride = trackIndices.pitch;
  args.statePitch = pools.state.pitch;
  args.dPitch = pools.dRing.pitch;
  args.kPitch = pools.kRing.pitch;
  args.gPitch = pools.gRing.pitch;
  args.batch = problem.batch;
  args.slots = problem.firstSlot + problem.slots;
  if (spec.hasRingIndices)
    args.ringSlots = problem.firstSlot + problem.ringSlotCount();
  args.layer = problem.layer;
  args.scale = problem.scale != 0 ? problem.scale
                                  : float(1 / std::sqrt(double(spec.headDimK)));
  args.lowerBound = problem.lowerBound;
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
      row.cursor = {i % L, spec.isCircular ? (2 * i + 1) % L : 0};
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
  const DecodeTensors tensors(spec, args);
  for (int hv = 0; hv < HV; ++hv) {
    tensors.aLog.set(0, hv, random.aLog[hv]);
    for (int i = hv * G; i < (hv + 1) * G; ++i)
      tensors.dtBias.set(0, i, random.dtBias[i]);
  }
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

/// Indices, cursors and flags of a step; step -1 has no flags and no tracks.
void DecodeSession::writeIndices(int step) {
  for (int i = 0; i < problem.batch; ++i) {
    const Row &row = rows[i];
    stateIndices.set(i, row.slot);
    ringIndices.set(i, row.ringSlot);
    dstIndices.set(i, row.dstSlot);
    trackIndices.set(i, i % 2 ? -1 : INT32_MIN);
    writePos.set(i, row.cursor.writePos);
    ringBase.set(i, row.cursor.base);
    forceFlush.set(i, 0);
  }
  for (const DecodeProblem::ForcedFlush &forced : problem.forcedFlushes)
    if (forced.step == step) // any value but 0 means yes
      forceFlush.set(forced.row, forced.row % 2 ? -1 : 1);
  for (const DecodeProblem::Track &track : problem.tracks)
    if (track.step == step)
      trackIndices.set(track.row, problem.slotNumber(track.slot));
}

/// Fresh inputs of a step. Those of padding rows are poison.
void DecodeSession::fillInputs(int step) {
  writeIndices(step);
  const DecodeArgs args = arguments(/*onDevice=*/false);
  const DecodeTensors tensors(spec, args);
  // Without normalization k must come with a norm near 1 by itself: the delta
  // rule diverges where beta * |k|^2 > 2.
  double qkDeviation = spec.qkL2Norm ? 1 : 1 / std::sqrt(double(K));
  for (int i = 0; i < problem.batch; ++i) {
    rows[i].now = readRow(spec, args, i);
    const DecodeRow &now = rows[i].now;
    if (!now.isLive) {
      errors.add(now.error, i, problem.layer, now.badValue);
      for (TensorMirror *mirror : {&q, &k, &v, &a, &b})
        if (mirror->present)
          mirror->poison(i, 0, mirror->inner());
      continue;
    }
    for (int e = 0; e < H * K; ++e)
      tensors.q.set(i, e, random.gaussian(qkDeviation));
    for (int e = 0; e < H * K; ++e)
      tensors.k.set(i, e, random.gaussian(qkDeviation));
    for (int e = 0; e < HV * V; ++e)
      tensors.v.set(i, e, random.gaussian(1));
    for (int hv = 0; hv < HV; ++hv) {
      for (int c = 0; c < G; ++c)
        tensors.a.set(i, hv * G + c, random.gateInput(now.cursor.writePos, c));
      tensors.b.set(i, hv, random.betaInput());
    }
  }
  for (TensorMirror *mirror : {&q, &k, &v, &a, &b})
    mirror->dirty = true;
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
