//===- StatePool.cpp - The states of all layers of a model ----------------===//

#include "runtime/state/StatePool.h"

#include "kernels/Families.h"
#include "kernels/Materialize/MaterializeSpec.h"

#include "runtime/state/Sizing.h"
#include "runtime/state/StepPlan.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <limits>

namespace replayjit::internal {

//===----------------------------------------------------------------------===//
// What groups must be
//===----------------------------------------------------------------------===//

static Status inGroup(size_t number, const std::string &what) {
  return Status::invalid(fmt::format("groups[{}]: {}", number, what));
}

static Status checkGroup(const PoolGroup &group, size_t number,
                         const Target &target) {
  const DecodeSpec &spec = group.spec;
  if (Status status = supports(spec, target); !status)
    return Status::error(status.code,
                         fmt::format("groups[{}]: {}", number, status.message));
  if (!traitsOf(spec).tokens)
    return inGroup(number,
                   fmt::format("family {} is not allowed; it must be replay or "
                               "packed",
                               wordOf(spec.family)));
  if (spec.abi != LaunchAbi::Native) // Those know no error word, for one.
    return inGroup(number, "abi: triton is not allowed; it must be native, "
                           "whose launches take what a pool gives");
  if (group.layers.empty() || group.layers.size() > size_t(maxGroupLayers))
    return inGroup(number,
                   fmt::format("layers: {} are not allowed; there must be 1 to "
                               "{}",
                               group.layers.size(), maxGroupLayers));
  if (group.slots < 1)
    return inGroup(number, fmt::format("slots: {} is not allowed; it must be 1 "
                                       "or more",
                                       group.slots));
  if (spec.hasRingIndices && group.ringSlots < 1)
    return inGroup(number, fmt::format("ringSlots: {} is not allowed with "
                                       "hasRingIndices; it must be 1 or more",
                                       group.ringSlots));
  if (!spec.hasRingIndices && group.ringSlots != 0 &&
      group.ringSlots != group.slots)
    return inGroup(number, fmt::format("ringSlots: {} is not allowed without "
                                       "hasRingIndices; it must be slots, {}",
                                       group.ringSlots, group.slots));
  // Value heads are counted in as many bits.
  const int32_t mostHeads = std::numeric_limits<int32_t>::max() /
                            (spec.numValueHeads / spec.numKeyHeads);
  if (group.keyHeadTotal < 0 || group.keyHeadTotal > mostHeads)
    return inGroup(number, fmt::format("keyHeadTotal: {} is not allowed; it "
                                       "must be 0 to {}",
                                       group.keyHeadTotal, mostHeads));
  const int32_t total =
      group.keyHeadTotal ? group.keyHeadTotal : spec.numKeyHeads;
  if (group.keyHeadBegin < 0 || total < spec.numKeyHeads ||
      group.keyHeadBegin > total - spec.numKeyHeads)
    return inGroup(number,
                   fmt::format("keyHeadBegin: {} is not allowed; {} of {} key "
                               "heads must start at 0 to {}",
                               group.keyHeadBegin, spec.numKeyHeads, total,
                               std::max(0, total - spec.numKeyHeads)));
  return Status::ok();
}

/// One logical cursor serves a row in all groups.
static Status checkGroups(const std::vector<PoolGroup> &groups,
                          const Target &target) {
  if (groups.empty() || groups.size() > maxPlanGroups)
    return Status::invalid(
        fmt::format("groups: {} are not allowed; there must be 1 to {}",
                    groups.size(), maxPlanGroups));
  const DecodeSpec &first = groups.front().spec;
  for (size_t g = 0; g < groups.size(); ++g) {
    if (Status status = checkGroup(groups[g], g, target); !status)
      return status;
    const DecodeSpec &spec = groups[g].spec;
    auto differs = [&](const char *field, auto ours, auto theirs) {
      return inGroup(g, fmt::format("{}: {} is not allowed; all groups of a "
                                    "pool agree in it, and groups[0] has {}",
                                    field, ours, theirs));
    };
    if (spec.ringDepth != first.ringDepth)
      return differs("ringDepth", spec.ringDepth, first.ringDepth);
    if (spec.isCircular != first.isCircular)
      return differs("isCircular", spec.isCircular, first.isCircular);
    if (spec.indexType != first.indexType)
      return differs("indexType", wordOf(spec.indexType),
                     wordOf(first.indexType));
    if (spec.nullSlot != first.nullSlot)
      return differs("nullSlot", int(spec.nullSlot), int(first.nullSlot));
    if (spec.trapOnError != first.trapOnError) // One plan reports for all.
      return differs("trapOnError", spec.trapOnError, first.trapOnError);
  }
  return Status::ok();
}

static Status checkCursors(const DecodeSpec &spec, const CursorTable &table) {
  if (table.numKeys < 1)
    return Status::invalid(fmt::format(
        "numKeys: {} is not allowed; it must be 1 or more", table.numKeys));
  if (table.writePos == 0 || table.writePos % sizeof(int32_t))
    return Status::invalid(fmt::format(
        "cursors.writePos: {:#x} is not allowed; it must be a device address "
        "and a multiple of 4 bytes",
        table.writePos));
  if (spec.isCircular && (table.ringBase == 0 || table.ringBase % 4))
    return Status::invalid(fmt::format(
        "cursors.ringBase: {:#x} is not allowed with circular rings; it must "
        "be a device address and a multiple of 4 bytes",
        table.ringBase));
  return Status::ok();
}

static Status checkOptions(const PoolOptions &options) {
  const SharedErrorWord &word = options.errorWord;
  if ((word.host == nullptr) == (word.device == 0))
    return Status::ok();
  return Status::invalid(fmt::format(
      "errorWord: {} address without a {} address is not allowed; both must be "
      "given, or neither",
      word.host ? "a host" : "a device", word.host ? "device" : "host"));
}

//===----------------------------------------------------------------------===//
// Making one
//===----------------------------------------------------------------------===//

StatePool::StatePool(Jit &jit, std::vector<PoolGroup> groups,
                     CursorTable cursors)
    : jit(jit), groupList(std::move(groups)), cursorTable(cursors) {
  for (PoolGroup &group : groupList)
    if (!group.spec.hasRingIndices)
      group.ringSlots = group.slots;
}

StatePool::~StatePool() {
  for (uint64_t address : memory)
    (void)device().free(address); // What a device cannot free is its own loss.
  if (ownsErrors)
    (void)device().freeMapped({errors.host, errors.device});
}

Result<uint64_t> StatePool::own(size_t bytes, const char *name) {
  memory.reserve(memory.size() + 1); // What is allocated must not be lost.
  Result<uint64_t> address = device().allocate(bytes, name);
  if (address)
    memory.push_back(*address);
  return address;
}

Result<std::unique_ptr<StatePool>>
StatePool::adopt(Jit &jit, std::vector<PoolGroup> groups, CursorTable cursors,
                 PoolOptions options, void *stream) {
  for (const Status &status :
       {jit.device().checkNoCapture(stream, "adopt a state pool"),
        checkOptions(options), checkGroups(groups, jit.device().target())})
    if (!status)
      return status;
  if (Status status = checkCursors(groups.front().spec, cursors); !status)
    return status;
  for (size_t g = 0; g < groups.size(); ++g)
    for (const ReplayLayer &layer : groups[g].layers)
      if (Status status = validateLayer(groups[g].spec, layer); !status)
        return inGroup(g, status.message);
  std::unique_ptr<StatePool> pool(
      new StatePool(jit, std::move(groups), cursors));
  if (Status status = pool->setUp(options); !status)
    return status;
  return pool;
}

Result<std::unique_ptr<StatePool>>
StatePool::allocate(Jit &jit, std::vector<PoolGroup> groups, int32_t numKeys,
                    PoolOptions options, void *stream) {
  for (const Status &status :
       {jit.device().checkNoCapture(stream, "allocate a state pool"),
        checkOptions(options), checkGroups(groups, jit.device().target())})
    if (!status)
      return status;
  if (numKeys < 1)
    return Status::invalid(fmt::format(
        "numKeys: {} is not allowed; it must be 1 or more", numKeys));
  std::unique_ptr<StatePool> pool(
      new StatePool(jit, std::move(groups), {0, 0, numKeys}));
  for (PoolGroup &group : pool->groupList)
    if (Status status = pool->allocateLayers(group); !status)
      return status;
  for (uint64_t CursorTable::*table :
       {&CursorTable::writePos, &CursorTable::ringBase}) {
    if (table == &CursorTable::ringBase && !pool->spec().isCircular)
      continue;
    Result<uint64_t> address =
        pool->own(size_t(numKeys) * sizeof(int32_t), "cursors");
    if (!address)
      return address.status();
    pool->cursorTable.*table = *address;
  }
  if (Status status = pool->setUp(options); !status)
    return status;
  Device &device = pool->device();
  if (Status status = pool->resetAll(device.stream()); !status)
    return status;
  if (Status status = device.synchronize(); !status)
    return status;
  return pool;
}

Status StatePool::allocateLayers(PoolGroup &group) {
  const DecodeSpec &spec = group.spec;
  const SlotPitches pitches = slotPitches(spec);
  auto tensor = [&](const char *name, DataType type, int32_t count,
                    int64_t elements, uint64_t &address, int64_t &pitch) {
    pitch = elements;
    if (elements == 0)
      return Status::ok();
    const size_t bytes = size_t(count) * pitch * byteSize(type);
    Result<uint64_t> memory = own(bytes, name);
    if (!memory)
      return memory.status();
    address = *memory;
    return device().fill32On(device().stream(), address, 0, bytes / 4);
  };
  for (ReplayLayer &layer : group.layers)
    for (const Status &status :
         {tensor("state", spec.stateType, group.slots, pitches.state,
                 layer.state, layer.statePitch),
          tensor("d_ring", spec.ringType, group.ringSlots, pitches.dRing,
                 layer.dRing, layer.dPitch),
          tensor("k_ring", spec.ringType, group.ringSlots, pitches.kRing,
                 layer.kRing, layer.kPitch),
          tensor("g_ring", DataType::F32, group.ringSlots, pitches.gRing,
                 layer.gRing, layer.gPitch)})
      if (!status)
        return status;
  return Status::ok();
}

Status StatePool::setUp(const PoolOptions &options) {
  batchInvariant = options.batchInvariant;
  check = options.checkRows ? ArgsCheck::Rows : ArgsCheck::Full;
  errors = options.errorWord;
  if (!errors.host) {
    Result<MappedMemory> word =
        device().allocateMapped(sizeof(ErrorWord), "error word");
    if (!word)
      return word.status();
    errors = {static_cast<ErrorWord *>(word->host), word->device};
    ownsErrors = true;
    clearErrors();
  }
  for (const PoolGroup &group : groupList) {
    const size_t bytes = group.layers.size() * sizeof(ReplayLayer);
    Result<uint64_t> table = own(bytes, "layers");
    if (!table)
      return table.status();
    layerTables.push_back(*table);
    if (Status status =
            device().copyToDevice(*table, group.layers.data(), bytes);
        !status)
      return status;
    Result<KernelHandle> kernel =
        jit.prepare(materializeSpec(group.spec), /*rows=*/0);
    if (!kernel)
      return kernel.status();
    materialize.push_back(*kernel);
  }
  for (Family family : {Family::PlanBegin, Family::PlanCommit}) {
    Result<KernelHandle> kernel = jit.prepare(planSpec(spec(), family), 0);
    if (!kernel)
      return kernel.status();
    planKernels.push_back(*kernel);
  }
  return Status::ok();
}

//===----------------------------------------------------------------------===//
// Using it
//===----------------------------------------------------------------------===//

Result<KernelHandle> StatePool::prepareDecode(int group, int rows,
                                              void *stream) {
  if (group < 0 || group >= int(groupList.size()))
    return Status::invalid(
        fmt::format("group: {} is not allowed; it must be 0 to {}", group,
                    groupList.size() - 1));
  return jit.prepare(groupList[group].spec,
                     batchInvariant ? std::min(rows, 0) : rows, stream);
}

DecodeArgs StatePool::layerArgs(int group, int layer) const {
  const PoolGroup &of = groupList[group];
  DecodeArgs args;
  args.slots = of.slots;
  args.ringSlots = of.ringSlots;
  setLayer(args, of.layers[layer]);
  args.errorWord = errors.device;
  args.layer = layer;
  for (int before = 0; before < group; ++before)
    args.layer += int32_t(groupList[before].layers.size());
  return args;
}

static std::string reasonFor(ErrorKind kind, int64_t value) {
  switch (kind) {
  case ErrorKind::None:
    return {};
  case ErrorKind::StateSlot:
    return fmt::format("state index {} is beyond the last slot", value);
  case ErrorKind::WritePos:
    return fmt::format("cursor {} is not within the ring", value);
  case ErrorKind::RingSlot:
    return fmt::format("ring index {} is not that of a ring", value);
  case ErrorKind::DstSlot:
    return fmt::format("destination index {} is not that of a slot", value);
  case ErrorKind::TrackSlot:
    return fmt::format("track index {} is beyond the last slot", value);
  case ErrorKind::RingBase:
    return fmt::format("ring base {} is not within the ring", value);
  case ErrorKind::CursorKey:
    return fmt::format("key {} is beyond the last cursor", value);
  case ErrorKind::NotFlushed:
    return fmt::format("its ring holds {} tokens and must be empty", value);
  case ErrorKind::FlushedTooFar:
    if (value < 0)
      return fmt::format("dropNewest is negative, as if more tokens were "
                         "committed than fed; less those in the ring it is {}",
                         value);
    return fmt::format("it has flushed {} tokens too far to leave them out",
                       value);
  case ErrorKind::AdvanceBy:
    return fmt::format("its ring cannot advance by {} tokens", value);
  case ErrorKind::StepMismatch:
    return fmt::format("step {} began for it and another was committed", value);
  case ErrorKind::Overflow:
    return fmt::format("a number of magnitude {} is beyond fp16 and was stored "
                       "as its largest",
                       value);
  }
  return fmt::format("error kind {} with value {}", int(kind), value);
}

std::string describe(const ErrorWord &word) {
  if (word.kind == 0)
    return {};
  std::string where = fmt::format("row {}", word.row);
  if (word.layer >= 0)
    where += fmt::format(", layer or group {}", word.layer);
  return fmt::format("{}: {} ({} rows in error)", where,
                     reasonFor(ErrorKind(word.kind), word.value), word.count);
}

// The device writes the kind last and clearErrors clears it first, each in an
// order that the poll keeps: a kind before and after the rest is that of one
// report, which is whole.

ErrorWord StatePool::pollErrors() const {
  auto read = [](auto &field) {
    return std::atomic_ref(field).load(std::memory_order_acquire);
  };
  ErrorWord &host = *errors.host, word;
  word.kind = read(host.kind);
  word.count = read(host.count);
  if (word.kind == 0)
    return word;
  word.row = read(host.row);
  word.layer = read(host.layer);
  word.value = read(host.value);
  return read(host.kind) ? word : ErrorWord();
}

void StatePool::clearErrors() {
  auto clear = [](auto &field) {
    std::atomic_ref(field).store(0, std::memory_order_release);
  };
  ErrorWord &host = *errors.host;
  clear(host.kind);
  clear(host.row);
  clear(host.layer);
  clear(host.value);
  clear(host.count);
}

Status StatePool::resetAll(void *stream) {
  for (uint64_t table : {cursorTable.writePos, cursorTable.ringBase})
    if (table)
      if (Status status =
              device().fill32On(stream, table, 0, cursorTable.numKeys);
          !status)
        return status;
  for (StepPlan *plan : plans) {
    plan->begun = plan->announced = 0;
    if (Status status =
            device().fill32On(stream, plan->buffers().pending, 0,
                              size_t(plan->maxRows()) * sizeof(int64_t) / 4);
        !status)
      return status;
  }
  return Status::ok();
}

} // namespace replayjit::internal
