//===- PlanReference.cpp - Begin and commit on the host -------------------===//
//
// B1 to B8 and C1 to C4 are the rules listed in PlanReference.h.
//
//===----------------------------------------------------------------------===//

#include "kernels/Plan/PlanReference.h"

#include "kernels/Decode/DecodeReference.h"
#include "kernels/Decode/SlotConflicts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace replayjit::internal {

namespace {

template <typename T> T load(uint64_t array, int64_t index) {
  T value;
  std::memcpy(&value, reinterpret_cast<const T *>(array) + index, sizeof value);
  return value;
}

template <typename T> void store(uint64_t array, int64_t index, T value) {
  std::memcpy(reinterpret_cast<T *>(array) + index, &value, sizeof value);
}

/// Element `row` of an int32 array, or what counts if there is none.
int32_t loadInt(uint64_t array, int row, int32_t otherwise = 0) {
  return array ? load<int32_t>(array, row) : otherwise;
}

int64_t loadIndex(const DecodeSpec &spec, uint64_t array, int64_t index) {
  return spec.indexType == DataType::I64 ? load<int64_t>(array, index)
                                         : load<int32_t>(array, index);
}

void storeIndex(const DecodeSpec &spec, uint64_t array, int row,
                int64_t value) {
  if (array == 0)
    return;
  if (spec.indexType == DataType::I64)
    store<int64_t>(array, row, value);
  else
    store<int32_t>(array, row, int32_t(value));
}

PlanHeader headerOf(const PlanArgs &args) {
  if (args.header)
    return load<PlanHeader>(args.header, 0);
  return {args.step, args.live};
}

/// The indices of a row in one group, with the defaults put in.
struct GroupRow {
  int64_t state, ring, dst, track;
};

GroupRow readGroup(const DecodeSpec &spec, const PlanGroup &group, int row) {
  auto read = [&](const PlanIndices &indices, int64_t otherwise) {
    return indices.in ? loadIndex(spec, indices.in, row * indices.stride)
                      : otherwise;
  };
  const int64_t state = read(group.state, 0);
  return {state, read(group.ring, state), read(group.dst, state),
          read(group.track, nullSlotOf(spec))};
}

bool isNull(const DecodeSpec &spec, int64_t slot) {
  return spec.nullSlot == NullSlot::Negative ? slot < 0 : slot <= 0;
}

/// B2 within a group: the first kind that is wrong.
ErrorKind judge(const DecodeSpec &spec, const PlanGroup &group,
                const GroupRow &at, bool usesRing, int64_t &badValue) {
  auto wrong = [&](ErrorKind kind, int64_t value) {
    badValue = value;
    return kind;
  };
  if (at.state >= group.slots)
    return wrong(ErrorKind::StateSlot, at.state);
  if (usesRing && (at.ring < 0 || at.ring >= group.ringSlots))
    return wrong(ErrorKind::RingSlot, at.ring);
  if (isNull(spec, at.dst) || at.dst >= group.slots)
    return wrong(ErrorKind::DstSlot, at.dst);
  if (at.track >= group.slots)
    return wrong(ErrorKind::TrackSlot, at.track);
  return ErrorKind::None;
}

} // namespace

PlanRow readRow(const DecodeSpec &spec, const PlanArgs &args, int row) {
  PlanRow result;
  if (row >= headerOf(args).live) // B1
    return result;
  const int64_t key = loadIndex(spec, args.keys, row * args.keyStride);
  if (key < 0)
    return result;
  for (int g = 0; g < args.numGroups; ++g)
    if (isNull(spec, readGroup(spec, args.groups[g], row).state))
      return result;

  auto wrong = [&](ErrorKind kind, int64_t value, int32_t layer = -1) {
    result.error = kind;
    result.badValue = value;
    result.layer = layer;
    return result;
  };
  if (key >= args.numKeys) // B2
    return wrong(ErrorKind::CursorKey, key);
  RingCursor cursor;
  if (!loadInt(args.fresh, row)) { // B3
    cursor.writePos = loadInt(args.cursors, key);
    if (spec.isCircular)
      cursor.base = loadInt(args.bases, key);
  }
  const int32_t L = spec.ringDepth;
  if (cursor.writePos < 0 || cursor.writePos >= L)
    return wrong(ErrorKind::WritePos, cursor.writePos);
  if (cursor.base < 0 || cursor.base >= L)
    return wrong(ErrorKind::RingBase, cursor.base);
  if (args.requireFlushed && cursor.writePos != 0)
    return wrong(ErrorKind::NotFlushed, cursor.writePos);
  const int64_t left =
      int64_t(cursor.writePos) - loadInt(args.dropNewest, row); // B6
  if (left < 0 || left > cursor.writePos)
    return wrong(ErrorKind::FlushedTooFar, -left);
  cursor.writePos = int32_t(left);
  const bool feeds = headerOf(args).step != 0 && !args.forceAll;
  const bool usesRing = feeds || left != 0; // B8
  for (int g = 0; g < args.numGroups; ++g) {
    int64_t badValue = 0;
    const GroupRow at = readGroup(spec, args.groups[g], row);
    if (ErrorKind kind = judge(spec, args.groups[g], at, usesRing, badValue);
        kind != ErrorKind::None)
      return wrong(kind, badValue, g);
  }

  const bool forced = args.forceAll || loadInt(args.flushMask, row);      // B4
  if (args.seqLen && args.noFlushPast && flushes(spec, cursor, forced)) { // B5
    const int64_t folded =
        int64_t(loadInt(args.seqLen, row)) - (spec.isCircular && !forced);
    const int32_t most = loadInt(args.noFlushPast, row);
    if (most >= 0 && folded > most)
      return result;
  }
  result.isLive = true;
  result.cursor = cursor;
  result.forced = forced;
  result.key = int32_t(key);
  return result;
}

void planBeginHost(const DecodeSpec &spec, const PlanArgs &args) {
  const int64_t step = headerOf(args).step, none = nullSlotOf(spec);
  for (int row = 0; row < args.batch; ++row) {
    const PlanRow at = readRow(spec, args, row);
    reportError(args.errorWord, at.error, row, at.layer, at.badValue);
    store<int32_t>(args.writePos, row, at.cursor.writePos); // B7
    if (spec.isCircular)
      store<int32_t>(args.ringBase, row, at.cursor.base);
    store<int32_t>(args.forceFlush, row, at.forced);
    store<int32_t>(args.rowKeys, row, at.key);
    store<int64_t>(args.pending, row, at.isLive ? step : 0);
    for (int g = 0; g < args.numGroups; ++g) {
      const PlanGroup &group = args.groups[g];
      GroupRow indices = {none, none, none, none};
      if (at.isLive)
        indices = readGroup(spec, group, row);
      storeIndex(spec, group.state.out, row, indices.state);
      storeIndex(spec, group.ring.out, row, indices.ring);
      storeIndex(spec, group.dst.out, row, indices.dst);
      storeIndex(spec, group.track.out, row, indices.track);
    }
  }
}

void planCommitHost(const DecodeSpec &spec, const PlanArgs &args) {
  const int64_t step = headerOf(args).step;
  for (int row = 0; row < args.batch; ++row) {
    const int64_t pending = load<int64_t>(args.pending, row);
    if (step == 0 || pending == 0) // C1
      continue;
    if (pending != step) { // C4
      reportError(args.errorWord, ErrorKind::StepMismatch, row, -1, pending);
      continue;
    }
    store<int64_t>(args.pending, row, 0);
    RingCursor cursor = {load<int32_t>(args.writePos, row), 0};
    if (spec.isCircular)
      cursor.base = load<int32_t>(args.ringBase, row);
    const int32_t advanceBy = loadInt(args.advanceBy, row, /*otherwise=*/1);
    const std::optional<RingCursor> next = advance(
        spec, cursor, load<int32_t>(args.forceFlush, row) != 0, advanceBy);
    if (!next) { // C2
      reportError(args.errorWord, ErrorKind::AdvanceBy, row, -1, advanceBy);
      continue;
    }
    const int32_t key = load<int32_t>(args.rowKeys, row);
    store<int32_t>(args.cursors, key, next->writePos);
    if (spec.isCircular)
      store<int32_t>(args.bases, key, next->base);
  }
}

int32_t liveRows(const PlanArgs &args) {
  return std::clamp(headerOf(args).live, 0, args.batch);
}

Status checkSlots(const DecodeSpec &spec, const PlanArgs &args) {
  const bool isStep = headerOf(args).step != 0;
  for (int g = 0; g < args.numGroups; ++g) {
    SlotUses states, rings;
    for (int i = 0; i < liveRows(args); ++i) {
      const PlanRow row = readRow(spec, args, i);
      if (!row.isLive)
        continue;
      const GroupRow at = readGroup(spec, args.groups[g], i);
      const bool writesState = !isStep || flushes(spec, row.cursor, row.forced);
      states.read(i, at.state);
      if (writesState)
        states.write(i, at.dst);
      if (isStep && !isNull(spec, at.track))
        states.write(i, at.track);
      if (row.cursor.writePos > 0)
        rings.read(i, at.ring);
      if (isStep && (!writesState || (spec.isCircular && !row.forced)))
        rings.write(i, at.ring);
    }
    for (const Status &status :
         {states.check("state slot"), rings.check("ring slot")})
      if (!status)
        return Status::invalid(
            fmt::format("groups[{}]: {}", g, status.message));
  }
  return Status::ok();
}

} // namespace replayjit::internal
