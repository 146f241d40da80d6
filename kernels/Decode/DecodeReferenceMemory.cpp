//===- DecodeReferenceMemory.cpp - What a launch does to memory -----------===//
//
// R1 to R18 are the rules listed in DecodeReference.h.
//
//===----------------------------------------------------------------------===//

#include "kernels/Decode/DecodeReference.h"
#include "kernels/Decode/RowRules.h"
#include "kernels/Families.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace replayjit::internal {

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

DecodeRow readRow(const DecodeSpec &spec, const DecodeArgs &args, int index) {
  const DecodeTensors tensors(spec, args);
  auto read = [&](const HostTensor &tensor) {
    return int64_t(tensor.get(index, 0));
  };
  const int64_t first = firstLegalSlot(spec), L = spec.ringDepth;
  DecodeRow row;
  row.slot = row.ringSlot = row.dstSlot = read(tensors.stateIndices);
  const int64_t T = tokensPerRow(spec); // R19
  row.firstToken = index * T;
  row.numTokens = row.numPlaces = T;
  int64_t end = row.firstToken + T, listed = end;
  if (tokenRowsOf(spec) == TokenRows::Counted)
    row.numTokens = read(tensors.tokenCounts);
  if (tokenRowsOf(spec) == TokenRows::Ragged) {
    row.firstToken = read(tensors.tokenOffsets);
    end = int64_t(tensors.tokenOffsets.get(index + 1, 0));
    row.numTokens = end - row.firstToken;
    listed = args.tokens;
    const bool isListed = std::min(row.firstToken, end) >= 0 &&
                          std::max(row.firstToken, end) <= listed;
    row.numPlaces = isListed ? std::clamp(row.numTokens, int64_t(0), T) : 0;
  }
  if (row.slot < first || row.numTokens == 0) // R1, R19
    return row;

  int64_t writePos = 0, base = 0, track = -1;
  if (traitsOf(spec).rings)
    writePos = read(tensors.writePos);
  if (spec.hasRingIndices) // R15
    row.ringSlot = read(tensors.ringIndices);
  if (spec.hasDstIndices)
    row.dstSlot = read(tensors.dstIndices);
  if (spec.hasTrackIndices)
    track = read(tensors.trackIndices);
  if (spec.isCircular)
    base = read(tensors.ringBase);
  const int64_t ringSlots = spec.hasRingIndices ? args.ringSlots : args.slots;
  judge(row, {{ErrorKind::StateSlot, row.slot, first, args.slots},
              {ErrorKind::WritePos, writePos, 0, cursorEnd(spec)},
              {ErrorKind::RingSlot, row.ringSlot, 0, ringSlots},
              {ErrorKind::DstSlot, row.dstSlot, first, args.slots},
              {ErrorKind::TrackSlot, track, INT64_MIN, args.slots},
              {ErrorKind::RingBase, base, 0, L},
              {ErrorKind::TokenOffset, row.firstToken, 0,
               end < 0 || end > listed ? INT64_MIN : listed + 1},
              {ErrorKind::TokenCount, row.numTokens, 0, T + 1}});
  if (!row.isLive)
    return row;
  row.cursor = {int32_t(writePos), int32_t(base)};
  if (track >= first)
    row.trackSlot = track; // R16
  row.forced = traitsOf(spec).forcedFlush && spec.hasForceFlush &&
               read(tensors.forceFlush) != 0;
  row.flushes = flushes(spec, row.cursor, row.forced); // R3; Packed: L = 1
  return row;
}

bool isLive(const DecodeSpec &spec, const DecodeArgs &args, int row) {
  return readRow(spec, args, row).isLive;
}

bool flushes(const DecodeSpec &spec, const DecodeArgs &args, int row) {
  return readRow(spec, args, row).flushes;
}

void reportError(uint64_t address, ErrorKind kind, int row, int layer,
                 int64_t value) {
  if (address == 0 || kind == ErrorKind::None)
    return;
  ErrorWord word;
  std::memcpy(&word, reinterpret_cast<void *>(address), sizeof(word));
  if (word.count == 0)
    word = {0, uint32_t(kind), row, layer, value};
  ++word.count;
  std::memcpy(reinterpret_cast<void *>(address), &word, sizeof(word));
}

void HostTensor::store(int64_t row, int64_t index, double value,
                       double &overflow) const {
  constexpr double largest = 65504;
  if (type == DataType::F16 && std::isfinite(value) &&
      std::isinf(roundTo(type, value))) {
    overflow = std::max(overflow, std::abs(value));
    value = std::copysign(largest, value);
  }
  set(row, index, value);
}

void reportOverflow(uint64_t address, int row, int layer, double overflow) {
  if (overflow > 0)
    reportError(address, ErrorKind::Overflow, row, layer,
                int64_t(std::min(overflow, 0x1p62)));
}

//===----------------------------------------------------------------------===//
// Checkpoint plus ring
//===----------------------------------------------------------------------===//

ReplayTensors::ReplayTensors(const DecodeSpec &spec, const ReplayLayer &layer)
    : state{spec.stateType, layer.state, layer.statePitch}, dRing{spec.ringType,
                                                                  layer.dRing,
                                                                  layer.dPitch},
      kRing{spec.ringType, layer.kRing, layer.kPitch}, gRing{DataType::F32,
                                                             layer.gRing,
                                                             layer.gPitch} {}

ReplayTensors::ReplayTensors(const DecodeSpec &spec, const DecodeArgs &args)
    : ReplayTensors(spec, ReplayLayer{args.state, args.dRing, args.kRing,
                                      args.gRing, args.statePitch, args.dPitch,
                                      args.kPitch, args.gPitch}) {}

std::vector<double> materialize(const DecodeSpec &spec,
                                const ReplayTensors &tensors, int64_t slot,
                                int64_t ringSlot, int valueHead,
                                RingCursor cursor) {
  const int K = spec.headDimK, V = spec.headDimV, L = spec.ringDepth;
  const int G = gateWidth(spec);
  const int keyHead = valueHead / (spec.numValueHeads / spec.numKeyHeads); // R7
  auto gate = [&](int j, int i) {
    const int64_t row = int64_t(valueHead) * L + ringRow(spec, cursor, j);
    return tensors.gRing.get(ringSlot, row * G + i);
  };

  // R8, from the newest row down: `gates` is the sum of the gates after row j.
  std::vector<double> S(V * K), gates(G);
  const int m = cursor.writePos;
  for (int j = m - 1; j >= 0; --j) {
    if (spec.ringFormat == RingFormat::Prefix) // R12
      for (int i = 0; i < G; ++i)
        gates[i] = gate(m - 1, i) - gate(j, i);
    if (spec.ringFormat == RingFormat::Predecayed) // R13
      for (int i = 0; i < G; ++i)
        gates[i] = gate(m - 1, i);
    const std::vector<double> W = decayOf(spec, gates.data());
    const int place = ringRow(spec, cursor, j);
    for (int v = 0; v < V; ++v) {
      double d =
          tensors.dRing.get(ringSlot, (int64_t(valueHead) * L + place) * V + v);
      for (int k = 0; k < K; ++k)
        S[v * K + k] +=
            d * W[k] *
            tensors.kRing.get(ringSlot, (int64_t(keyHead) * L + place) * K + k);
    }
    if (spec.ringFormat == RingFormat::Raw)
      for (int i = 0; i < G; ++i)
        gates[i] += gate(j, i);
  }
  if (spec.ringFormat != RingFormat::Raw)
    for (int i = 0; i < G && m > 0; ++i)
      gates[i] = gate(m - 1, i);
  const std::vector<double> A = decayOf(spec, gates.data());
  for (int i = 0; i < V * K; ++i)
    S[i] += A[i % K] * tensors.state.get(slot, int64_t(valueHead) * V * K + i);
  return S;
}

std::vector<double> materialize(const DecodeSpec &spec, const DecodeArgs &args,
                                int64_t slot, int valueHead, int ringRows) {
  return materialize(spec, ReplayTensors(spec, args), slot, slot, valueHead,
                     {ringRows, 0});
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

void appendRecord(const DecodeSpec &spec, const DecodeTensors &tensors,
                  int64_t ringSlot, RingCursor cursor, const RingRecord &record,
                  double &overflow) {
  const int K = spec.headDimK, V = spec.headDimV, G = gateWidth(spec);
  const int ratio = spec.numValueHeads / spec.numKeyHeads, hv = record.hv;
  auto at = [&](int head, int row, int width, int i) {
    return (int64_t(head) * spec.ringDepth + row) * width + i;
  };
  const int place = ringRow(spec, cursor, cursor.writePos);
  std::vector<double> gates(record.gates, record.gates + G);
  if (spec.ringFormat != RingFormat::Raw && cursor.writePos > 0) { // R12
    const int newest = ringRow(spec, cursor, cursor.writePos - 1);
    for (int i = 0; i < G; ++i)
      gates[i] += tensors.gRing.get(ringSlot, at(hv, newest, G, i));
  }
  for (int v = 0; v < V; ++v)
    tensors.dRing.store(ringSlot, at(hv, place, V, v), record.d[v], overflow);
  for (int i = 0; i < G; ++i)
    tensors.gRing.set(ringSlot, at(hv, place, G, i), gates[i]);
  for (int i = 0; i < K && hv % ratio == 0; ++i) {
    double k = record.k[i];
    if (spec.ringFormat == RingFormat::Predecayed) // R13: H = HV
      k *= std::exp(-gates[i]);
    tensors.kRing.store(ringSlot, at(hv / ratio, place, K, i), k, overflow);
  }
}

/// One live row of a launch.
static void stepRow(const DecodeSpec &spec, const DecodeArgs &args, int index,
                    const DecodeRow &row) {
  const DecodeTensors tensors(spec, args);
  const int H = spec.numKeyHeads, HV = spec.numValueHeads;
  const int K = spec.headDimK, V = spec.headDimV, G = gateWidth(spec);
  const DecodeToken token = readToken(spec, args, index);
  const bool keepsToken = row.keepsToken(spec);
  const bool appends = !row.flushes || keepsToken;
  double overflow = 0; // R18
  for (int hv = 0; hv < HV; ++hv) {
    const int h = hv / (HV / H); // R7
    const std::vector<double> S =
        materialize(spec, ReplayTensors(spec, args), row.slot, row.ringSlot, hv,
                    row.cursor);
    const double *q = &token.q[h * K], *k = &token.k[h * K];
    const std::vector<double> alpha = decayOf(spec, &token.g[hv * G]);
    std::vector<double> ds(V);
    for (int v = 0; v < V; ++v) { // R9
      double Sk = 0, Sq = 0, kq = 0;
      for (int i = 0; i < K; ++i) {
        Sk += S[v * K + i] * alpha[i] * k[i];
        Sq += S[v * K + i] * alpha[i] * q[i];
        kq += k[i] * q[i];
      }
      if (spec.rule == Rule::Additive)
        Sk = 0;
      const int at = hv * V + v;
      const double d = token.beta[hv] * (token.v[at] - Sk);
      tensors.out.store(index, at,
                        (Sq + d * kq + token.skip[at]) * token.outGate[at],
                        overflow);
      ds[v] = d;
      for (int i = 0; i < K; ++i) {
        const int64_t at = (int64_t(hv) * V + v) * K + i;
        const double next = S[v * K + i] * alpha[i] + d * k[i];
        if (row.flushes) // R10, R14
          tensors.state.store(row.dstSlot, at, keepsToken ? S[v * K + i] : next,
                              overflow);
        if (row.trackSlot >= 0) // R16
          tensors.state.store(row.trackSlot, at, next, overflow);
      }
    }
    if (appends)
      appendRecord(spec, tensors, row.ringSlot, row.end(spec),
                   {hv, ds.data(), k, &token.g[hv * G]}, overflow);
  }
  reportOverflow(args.errorWord, index, args.layer, overflow);
}

void replayStep(const DecodeSpec &spec, const DecodeArgs &args) {
  const DecodeTensors tensors(spec, args);
  for (int index = 0; index < args.batch; ++index) {
    const DecodeRow row = readRow(spec, args, index);
    if (row.isLive) {
      stepRow(spec, args, index, row);
      continue;
    }
    for (int i = 0; i < spec.numValueHeads * spec.headDimV; ++i) // R1, R2
      tensors.out.set(index, i, 0);
    reportError(args.errorWord, row.error, index, args.layer, row.badValue);
  }
}

} // namespace replayjit::internal
