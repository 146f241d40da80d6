//===- StepPlan.cpp - One step of a batch, as a transaction ---------------===//

#include "runtime/state/StepPlan.h"

#include "base/Exceptions.h"
#include "kernels/Materialize/MaterializeArgs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

namespace replayjit::internal {

//===----------------------------------------------------------------------===//
// Buffers
//===----------------------------------------------------------------------===//

/// Fills in the addresses of all buffers from `memory` on; returns their bytes.
static size_t layOut(const DecodeSpec &spec, int numGroups, int32_t maxRows,
                     uint64_t memory, PlanArgs &args, uint64_t &header) {
  uint64_t end = memory;
  auto take = [&](size_t bytes) {
    const uint64_t at = end;
    end += (bytes + 255) / 256 * 256;
    return at;
  };
  const size_t rows = maxRows;
  header = take(sizeof(PlanHeader));
  args.pending = take(rows * sizeof(int64_t));
  for (uint64_t PlanArgs::*array :
       {&PlanArgs::writePos, &PlanArgs::forceFlush, &PlanArgs::rowKeys})
    args.*array = take(rows * sizeof(int32_t));
  if (spec.isCircular)
    args.ringBase = take(rows * sizeof(int32_t));
  for (int g = 0; g < numGroups; ++g)
    for (PlanIndices PlanGroup::*kind : {&PlanGroup::state, &PlanGroup::ring,
                                         &PlanGroup::dst, &PlanGroup::track})
      (args.groups[g].*kind).out = take(rows * byteSize(spec.indexType));
  return end - memory;
}

static Status checkMaxRows(int32_t maxRows) {
  if (maxRows >= 1)
    return Status::ok();
  return Status::invalid(
      fmt::format("maxRows: {} is not allowed; it must be 1 or more", maxRows));
}

Result<size_t> StepPlan::bytesFor(const StatePool &pool, int32_t maxRows) {
  if (Status status = checkMaxRows(maxRows); !status)
    return status;
  PlanArgs args;
  uint64_t header;
  return layOut(pool.spec(), int(pool.groups().size()), maxRows,
                /*memory=*/0, args, header);
}

StepPlan::StepPlan(StatePool &pool, int32_t maxRows)
    : pool(pool), rows(maxRows) {
  pool.plans.push_back(this);
}

StepPlan::~StepPlan() {
  std::erase(pool.plans, this);
  if (owned)
    (void)pool.device().free(owned); // What it cannot free is its own loss.
}

Status StepPlan::setUp(uint64_t memory) {
  const DecodeSpec &spec = pool.spec();
  const int numGroups = int(pool.groups().size());
  const size_t bytes = layOut(spec, numGroups, rows, memory, base, header);
  base.cursors = pool.cursors().writePos;
  base.bases = spec.isCircular ? pool.cursors().ringBase : 0;
  base.numKeys = pool.cursors().numKeys;
  base.batch = rows;
  base.numGroups = numGroups;
  base.errorWord = pool.errorWord();
  for (int g = 0; g < numGroups; ++g) {
    base.groups[g].slots = pool.groups()[g].slots;
    base.groups[g].ringSlots = pool.groups()[g].ringSlots;
  }
  Device &device = pool.device();
  if (Status status = device.fill32On(device.stream(), memory, 0, bytes / 4);
      !status)
    return status;
  return device.synchronize();
}

Result<std::unique_ptr<StepPlan>> StepPlan::adopt(StatePool &pool,
                                                  int32_t maxRows,
                                                  uint64_t memory,
                                                  void *stream) {
  if (Status status = pool.device().checkNoCapture(stream, "make a step plan");
      !status)
    return status;
  if (Status status = checkMaxRows(maxRows); !status)
    return status;
  if (memory == 0 || memory % 256 != 0)
    return Status::invalid(
        fmt::format("memory: {:#x} is not allowed; it must be a device address "
                    "and a multiple of 256 bytes",
                    memory));
  std::unique_ptr<StepPlan> plan(new StepPlan(pool, maxRows));
  if (Status status = plan->setUp(memory); !status)
    return status;
  return plan;
}

Result<std::unique_ptr<StepPlan>>
StepPlan::create(StatePool &pool, int32_t maxRows, void *stream) {
  if (Status status = pool.device().checkNoCapture(stream, "make a step plan");
      !status)
    return status;
  const Result<size_t> bytes = bytesFor(pool, maxRows);
  if (!bytes)
    return bytes.status();
  Result<uint64_t> memory = pool.device().allocate(*bytes, "plan");
  if (!memory)
    return memory.status();
  Result<std::unique_ptr<StepPlan>> plan =
      withoutThrowing([&] { return adopt(pool, maxRows, *memory, stream); });
  if (plan)
    (*plan)->owned = *memory;
  else
    (void)pool.device().free(*memory);
  return plan;
}

//===----------------------------------------------------------------------===//
// A step
//===----------------------------------------------------------------------===//

Result<PlanArgs> StepPlan::argsOf(const StepInputs &inputs) const {
  if (inputs.groups.size() != pool.groups().size())
    return Status::invalid(fmt::format("groups: {} are given; the pool has {}",
                                       inputs.groups.size(),
                                       pool.groups().size()));
  PlanArgs args = base;
  args.live = inputs.live;
  args.keys = inputs.keys;
  args.keyStride = inputs.keyStride;
  args.fresh = inputs.fresh;
  for (size_t g = 0; g < inputs.groups.size(); ++g) {
    const GroupIndices &in = inputs.groups[g];
    const DecodeSpec &spec = pool.groups()[g].spec;
    PlanGroup &out = args.groups[g];
    auto set = [](PlanIndices &indices, uint64_t array, int64_t stride) {
      indices.in = array;
      indices.stride = stride;
    };
    set(out.state, in.state, in.stateStride);
    set(out.ring, in.ring, in.ringStride);
    set(out.dst, in.dst, in.dstStride);
    if (in.ring && !spec.hasRingIndices)
      return Status::invalid(fmt::format(
          "groups[{}].ring: not allowed, since the spec of the group's kernels "
          "has no hasRingIndices",
          g));
  }
  return args;
}

/// Adds what only a step has. What the pool's decode kernels cannot do is
/// refused rather than lost.
static Status addStep(const StatePool &pool, const StepInputs &inputs,
                      PlanArgs &args) {
  auto refused = [](size_t g, const char *field, const char *flag) {
    return Status::invalid(
        fmt::format("{}: not allowed, since the spec of groups[{}] has no {}",
                    field, g, flag));
  };
  for (size_t g = 0; g < pool.groups().size(); ++g) {
    const DecodeSpec &spec = pool.groups()[g].spec;
    if (inputs.flushMask && !spec.hasForceFlush)
      return refused(g, "flushMask", "hasForceFlush");
    if (inputs.groups[g].dst && !spec.hasDstIndices)
      return refused(g, "dst", "hasDstIndices");
    if (inputs.groups[g].track && !spec.hasTrackIndices)
      return refused(g, "track", "hasTrackIndices");
  }
  if (inputs.dropNewest)
    return Status::invalid(
        "dropNewest: not allowed in a step; it is of materialize");
  args.flushMask = inputs.flushMask;
  args.seqLen = inputs.seqLen;
  args.noFlushPast = inputs.noFlushPast;
  for (size_t g = 0; g < inputs.groups.size(); ++g) {
    args.groups[g].track.in = inputs.groups[g].track;
    args.groups[g].track.stride = inputs.groups[g].trackStride;
  }
  return Status::ok();
}

static Status checkStepId(int64_t step) {
  if (step > 0)
    return Status::ok();
  return Status::invalid(
      fmt::format("step: {} is not allowed; it must be 1 or more", step));
}

Status StepPlan::begin(void *stream, int64_t step, const StepInputs &inputs) {
  if (Status status = checkStepId(step); !status)
    return status;
  Result<PlanArgs> args = argsOf(inputs);
  if (!args)
    return args.status();
  if (Status status = addStep(pool, inputs, *args); !status)
    return status;
  args->step = step;
  if (Status status = launchBegin(stream, *args); !status)
    return status;
  begun = step;
  return Status::ok();
}

Status StepPlan::commit(void *stream, int64_t step, uint64_t advanceBy) {
  if (Status status = checkStepId(step); !status)
    return status;
  if (step != begun && step != announced)
    return Status::invalid(
        begun ? fmt::format("step: {} is not allowed; the step that began last "
                            "is {}",
                            step, begun)
              : fmt::format("step: {} is not allowed; it has not begun, or it "
                            "is void",
                            step));
  PlanArgs args = base;
  args.step = step;
  args.advanceBy = advanceBy;
  return launchCommit(stream, args);
}

Status StepPlan::beginCaptured(void *stream, const StepInputs &inputs) {
  Result<PlanArgs> args = argsOf(inputs);
  if (!args)
    return args.status();
  if (Status status = addStep(pool, inputs, *args); !status)
    return status;
  args->live = 0;
  args->header = header;
  return launchBegin(stream, *args);
}

Status StepPlan::commitCaptured(void *stream, uint64_t advanceBy) {
  PlanArgs args = base;
  args.header = header;
  args.advanceBy = advanceBy;
  return launchCommit(stream, args);
}

Status StepPlan::setStep(void *stream, int64_t step, int32_t live) {
  if (Status status = checkStepId(step); !status)
    return status;
  if (live < 0 || live > rows)
    return Status::invalid(
        fmt::format("live: {} is not allowed; it must be 0 to {}", live, rows));
  // Fills take their values with them: no host memory has to stay.
  Device &device = pool.device();
  const uint64_t at = header + offsetof(PlanHeader, step);
  if (Status status = device.fill32On(stream, at, uint32_t(step), 1); !status)
    return status;
  if (Status status =
          device.fill32On(stream, at + 4, uint32_t(uint64_t(step) >> 32), 1);
      !status)
    return status;
  if (Status status = device.fill32On(
          stream, header + offsetof(PlanHeader, live), uint32_t(live), 1);
      !status)
    return status;
  announced = step;
  return Status::ok();
}

DecodeArgs StepPlan::argsFor(int group, int layer, int32_t rowBegin,
                             int32_t rowCount) const {
  const DecodeSpec &spec = pool.groups()[group].spec;
  const PlanGroup &indices = base.groups[group];
  DecodeArgs args = pool.layerArgs(group, layer);
  const uint64_t ints = uint64_t(rowBegin) * sizeof(int32_t);
  const uint64_t slots = uint64_t(rowBegin) * byteSize(spec.indexType);
  args.batch = rowCount;
  args.writePos = base.writePos + ints;
  args.forceFlush = base.forceFlush + ints;
  if (spec.isCircular)
    args.ringBase = base.ringBase + ints;
  args.stateIndices = indices.state.out + slots;
  args.ringIndices = indices.ring.out + slots;
  args.dstIndices = indices.dst.out + slots;
  args.trackIndices = indices.track.out + slots;
  return args;
}

//===----------------------------------------------------------------------===//
// Slots between steps
//===----------------------------------------------------------------------===//

/// Refuses what the operation does not use rather than to lose it. What `takes`
/// says it does use.
struct OperationFields {
  bool dst = false, dropNewest = false;
};
static Status refuseUnused(const StepInputs &inputs, const char *operation,
                           OperationFields takes = {}) {
  auto refused = [operation](const std::string &field, const char *where) {
    return Status::invalid(
        fmt::format("{}: not allowed in {}; {}", field, operation, where));
  };
  constexpr const char *ofStep = "it is of a step";
  for (auto [field, address] : {std::pair("flushMask", inputs.flushMask),
                                {"seqLen", inputs.seqLen},
                                {"noFlushPast", inputs.noFlushPast}})
    if (address)
      return refused(field, ofStep);
  if (inputs.dropNewest && !takes.dropNewest)
    return refused("dropNewest", "it is of materialize");
  for (size_t g = 0; g < inputs.groups.size(); ++g) {
    if (inputs.groups[g].track)
      return refused(fmt::format("groups[{}].track", g), ofStep);
    if (inputs.groups[g].dst && !takes.dst)
      return refused(fmt::format("groups[{}].dst", g),
                     "it writes to no other slot");
  }
  return Status::ok();
}

Status StepPlan::materialize(void *stream, const StepInputs &inputs) {
  if (Status status = refuseUnused(inputs, "materialize",
                                   {.dst = true, .dropNewest = true});
      !status)
    return status;
  Result<PlanArgs> args = argsOf(inputs);
  if (!args)
    return args.status();
  args->dropNewest = inputs.dropNewest;
  if (Status status = launchBegin(stream, *args); !status)
    return status;
  return launchMaterialize(stream, *args);
}

Status StepPlan::copy(void *stream, const StepInputs &inputs) {
  if (Status status = refuseUnused(inputs, "copy", {.dst = true}); !status)
    return status;
  Result<PlanArgs> args = argsOf(inputs);
  if (!args)
    return args.status();
  args->requireFlushed = 1;
  if (Status status = launchBegin(stream, *args); !status)
    return status;
  return launchMaterialize(stream, *args);
}

Status StepPlan::requireFlushed(void *stream, const StepInputs &inputs) {
  if (Status status = refuseUnused(inputs, "requireFlushed"); !status)
    return status;
  Result<PlanArgs> args = argsOf(inputs);
  if (!args)
    return args.status();
  args->requireFlushed = 1;
  return launchBegin(stream, *args);
}

Status StepPlan::prepareExtend(void *stream, const StepInputs &inputs) {
  if (Status status = refuseUnused(inputs, "prepareExtend"); !status)
    return status;
  // A step in which every row is forced to flush, and whose one launch is the
  // flush alone.
  Result<PlanArgs> args = argsOf(inputs);
  if (!args)
    return args.status();
  args->step = 1;
  args->forceAll = 1;
  if (Status status = launchBegin(stream, *args); !status)
    return status;
  if (Status status = launchMaterialize(stream, *args); !status)
    return status;
  return launchCommit(stream, *args);
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

Status StepPlan::launchBegin(void *stream, const PlanArgs &args) {
  Status status = pool.planKernels[0].launchOn(stream, args, pool.check);
  if (!status)
    return status; // What began before still stands.
  begun = 0;
  if (!args.header)
    announced = 0;
  return status;
}

Status StepPlan::launchCommit(void *stream, const PlanArgs &args) {
  return pool.planKernels[1].launchOn(stream, args);
}

Status StepPlan::launchMaterialize(void *stream, const PlanArgs &args) {
  for (size_t g = 0; g < pool.groups().size(); ++g) {
    const PoolGroup &group = pool.groups()[g];
    MaterializeArgs launch;
    launch.layers = pool.layerTables[g];
    launch.srcIndices = args.groups[g].state.out;
    launch.dstIndices = args.groups[g].dst.out;
    launch.ringIndices = args.groups[g].ring.out;
    launch.writePos = args.writePos;
    launch.ringBase = args.ringBase;
    launch.errorWord = args.errorWord;
    launch.batch = args.live; // The rest has null slots.
    launch.numLayers = int32_t(group.layers.size());
    launch.slots = group.slots;
    launch.ringSlots = group.ringSlots;
    if (Status status = pool.materialize[g].launchOn(stream, launch); !status)
      return status;
  }
  return Status::ok();
}

} // namespace replayjit::internal
