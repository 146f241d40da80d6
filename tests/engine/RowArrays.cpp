//===- RowArrays.cpp - What an engine says of the rows of a step ----------===//

#include "tests/engine/RowArrays.h"

#include "tests/engine/Expect.h"

namespace replayjit::internal::engine {

Memory::Memory(Device &device, size_t bytes, const char *name)
    : device(device), address(orStop(device.allocate(bytes, name))) {}

Memory::~Memory() {
  if (address)
    orStop(device.free(address));
}

static constexpr int columns = 4, numFlags = 6;
enum Flag { Flush, Fresh, SeqLen, NoFlushPast, Drop, Advance };

size_t RowArrays::tableAt(int group) const {
  return size_t(rows) * byteSize(type) * (1 + columns * group);
}

size_t RowArrays::flagsAt(int which) const {
  return tableAt(numGroups) + size_t(rows) * sizeof(int32_t) * which;
}

RowArrays::RowArrays(Device &device, const Model &model, int maxRows)
    : rows(maxRows), numGroups(model.numGroups()),
      type(model.groups[0].spec.indexType), bytes(flagsAt(numFlags)),
      memory(device, bytes.size(), "rows") {
  orStop(device.copyToDevice(memory.address, bytes.data(), bytes.size()));
  groups.resize(numGroups);
  for (int g = 0; g < numGroups; ++g) {
    const uint64_t table = memory.address + tableAt(g);
    groups[g] = {table,
                 columns,
                 table + byteSize(type),
                 columns,
                 table + 2 * byteSize(type),
                 columns,
                 table + 3 * byteSize(type),
                 columns};
  }
  slotGroups = groups;
  for (GroupIndices &group : slotGroups)
    group.track = 0;
  ownGroups = slotGroups;
  for (GroupIndices &group : ownGroups)
    group.dst = 0;
}

void RowArrays::set(const std::vector<Row> &given) {
  live = int(given.size());
  for (int i = 0; i < live; ++i) {
    const Row &row = given[i];
    storeElement(type, bytes.data(), i, row.key);
    for (int g = 0; g < numGroups; ++g) {
      char *table = bytes.data() + tableAt(g);
      storeElement(type, table, columns * i, row.state[g]);
      storeElement(type, table, columns * i + 1, row.ring[g]);
      storeElement(type, table, columns * i + 2, row.dst[g]);
      storeElement(type, table, columns * i + 3,
                   row.track.empty() ? -1 : row.track[g]);
    }
    const int32_t flags[numFlags] = {row.flush,       row.fresh, row.seqLen,
                                     row.noFlushPast, row.drop,  row.advance};
    for (int f = 0; f < numFlags; ++f)
      storeElement(DataType::I32, bytes.data() + flagsAt(f), i, flags[f]);
  }
  orStop(
      memory.device.copyToDevice(memory.address, bytes.data(), bytes.size()));
}

StepInputs RowArrays::inPlace() const {
  StepInputs inputs;
  inputs.live = live;
  inputs.keys = memory.address + keysAt();
  inputs.groups = ownGroups;
  inputs.fresh = memory.address + flagsAt(Fresh);
  return inputs;
}

StepInputs RowArrays::slots() const {
  StepInputs inputs = inPlace();
  inputs.groups = slotGroups;
  return inputs;
}

StepInputs RowArrays::donation() const {
  StepInputs inputs = slots();
  inputs.dropNewest = memory.address + flagsAt(Drop);
  return inputs;
}

StepInputs RowArrays::step() const {
  StepInputs inputs = inPlace();
  inputs.groups = groups;
  inputs.flushMask = memory.address + flagsAt(Flush);
  inputs.seqLen = memory.address + flagsAt(SeqLen);
  inputs.noFlushPast = memory.address + flagsAt(NoFlushPast);
  return inputs;
}

uint64_t RowArrays::advanceBy() const {
  return memory.address + flagsAt(Advance);
}

PlanArgs RowArrays::host() const {
  const StepInputs inputs = step();
  auto onHost = [&](uint64_t address) {
    return address - memory.address + reinterpret_cast<uint64_t>(bytes.data());
  };
  PlanArgs args;
  args.live = live;
  args.keys = onHost(inputs.keys);
  args.fresh = onHost(inputs.fresh);
  args.flushMask = onHost(inputs.flushMask);
  args.seqLen = onHost(inputs.seqLen);
  args.noFlushPast = onHost(inputs.noFlushPast);
  args.advanceBy = onHost(advanceBy());
  args.numGroups = numGroups;
  for (int g = 0; g < numGroups; ++g) {
    PlanGroup &group = args.groups[g];
    group.state = {onHost(groups[g].state), columns, 0};
    group.ring = {onHost(groups[g].ring), columns, 0};
    group.dst = {onHost(groups[g].dst), columns, 0};
    group.track = {onHost(groups[g].track), columns, 0};
  }
  return args;
}

} // namespace replayjit::internal::engine
