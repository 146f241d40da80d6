//===- HostPlan.cpp - The plan of an engine that plans on the CPU ---------===//

#include "tests/engine/HostPlan.h"

#include "tests/engine/Expect.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace replayjit::internal::engine {

static uint64_t addressOf(const auto &vector, size_t at = 0) {
  return reinterpret_cast<uint64_t>(vector.data() + at);
}

HostPlan::HostPlan(const Model &model, const Sizes &sizes)
    : spec(model.groups[0].spec), cursors(sizes.keys), bases(sizes.keys) {
  const size_t rows = sizes.batches.back();
  buffers.resize(4 * rows);
  pending.resize(rows);
  indices.resize(4 * rows * model.numGroups());
  args.numKeys = sizes.keys;
  args.numGroups = model.numGroups();
  args.cursors = addressOf(cursors);
  args.bases = addressOf(bases);
  args.writePos = addressOf(buffers);
  args.ringBase = addressOf(buffers, rows);
  args.forceFlush = addressOf(buffers, 2 * rows);
  args.rowKeys = addressOf(buffers, 3 * rows);
  args.pending = addressOf(pending);
  args.errorWord = reinterpret_cast<uint64_t>(&errors);
  for (int g = 0; g < args.numGroups; ++g) {
    PlanGroup &group = args.groups[g];
    group.slots = sizes.states;
    group.ringSlots = sizes.rings;
    size_t at = 4 * rows * g;
    for (PlanIndices *kind :
         {&group.state, &group.ring, &group.dst, &group.track}) {
      kind->out = addressOf(indices, at);
      at += rows;
    }
  }
}

void HostPlan::begin(const RowArrays &rows, int64_t step, int batch) {
  const PlanArgs in = rows.host();
  args.step = step;
  args.batch = batch;
  args.live = in.live;
  args.keys = in.keys;
  args.fresh = in.fresh;
  args.flushMask = in.flushMask;
  args.seqLen = in.seqLen;
  args.noFlushPast = in.noFlushPast;
  args.advanceBy = in.advanceBy;
  for (int g = 0; g < args.numGroups; ++g)
    for (PlanIndices PlanGroup::*kind : {&PlanGroup::state, &PlanGroup::ring,
                                         &PlanGroup::dst, &PlanGroup::track}) {
      (args.groups[g].*kind).in = (in.groups[g].*kind).in;
      (args.groups[g].*kind).stride = (in.groups[g].*kind).stride;
    }
  planBeginHost(spec, args);
  expect(errors.count == 0, "the host's plan: " + describe(errors));
}

void HostPlan::commit() {
  planCommitHost(spec, args);
  expect(errors.count == 0, "the host's commit: " + describe(errors));
}

RingCursor HostPlan::cursor(int32_t key) const {
  return {cursors[key], bases[key]};
}

void HostPlan::setCursor(int32_t key, RingCursor cursor) {
  cursors[key] = cursor.writePos;
  bases[key] = cursor.base;
}

void HostPlan::reset() {
  std::fill(cursors.begin(), cursors.end(), 0);
  std::fill(bases.begin(), bases.end(), 0);
}

//===----------------------------------------------------------------------===//
// The device's
//===----------------------------------------------------------------------===//

template <typename Visit>
void HostPlan::forEachBuffer(const PlanArgs &device, Visit visit) const {
  const size_t ints = size_t(args.batch) * sizeof(int32_t);
  visit("writePos", args.writePos, device.writePos, ints);
  if (spec.isCircular)
    visit("ringBase", args.ringBase, device.ringBase, ints);
  visit("forceFlush", args.forceFlush, device.forceFlush, ints);
  visit("rowKeys", args.rowKeys, device.rowKeys, ints);
  visit("pending", args.pending, device.pending, args.batch * sizeof(int64_t));
  const size_t slots = size_t(args.batch) * byteSize(spec.indexType);
  for (int g = 0; g < args.numGroups; ++g) {
    const PlanGroup &ours = args.groups[g], &theirs = device.groups[g];
    visit("state", ours.state.out, theirs.state.out, slots);
    visit("ring", ours.ring.out, theirs.ring.out, slots);
    visit("dst", ours.dst.out, theirs.dst.out, slots);
    visit("track", ours.track.out, theirs.track.out, slots);
  }
}

static void upload(Device &device, uint64_t host, uint64_t to, size_t bytes) {
  orStop(device.copyToDevice(to, reinterpret_cast<void *>(host), bytes));
}

static void compare(Device &device, const char *name, uint64_t host,
                    uint64_t from, size_t bytes) {
  std::vector<char> seen(bytes);
  orStop(device.copyFromDevice(seen.data(), from, bytes));
  expect(std::memcmp(seen.data(), reinterpret_cast<void *>(host), bytes) == 0,
         fmt::format("{}: the device's are not the host's", name));
}

void HostPlan::uploadTo(Device &device, const StepPlan &plan) const {
  forEachBuffer(plan.buffers(),
                [&](const char *name, uint64_t host, uint64_t to,
                    size_t bytes) { upload(device, host, to, bytes); });
}

void HostPlan::compareWith(Device &device, const StepPlan &plan) const {
  forEachBuffer(plan.buffers(), [&](const char *name, uint64_t host,
                                    uint64_t from, size_t bytes) {
    compare(device, name, host, from, bytes);
  });
}

void HostPlan::uploadTo(Device &device, const CursorTable &table) const {
  upload(device, args.cursors, table.writePos, cursors.size() * 4);
  if (spec.isCircular)
    upload(device, args.bases, table.ringBase, bases.size() * 4);
}

void HostPlan::compareWith(Device &device, const CursorTable &table) const {
  compare(device, "cursors", args.cursors, table.writePos, cursors.size() * 4);
  if (spec.isCircular)
    compare(device, "ring bases", args.bases, table.ringBase, bases.size() * 4);
}

} // namespace replayjit::internal::engine
