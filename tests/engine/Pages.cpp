//===- Pages.cpp - Memory of an engine for a pool to adopt ----------------===//

#include "tests/engine/Pages.h"

#include "runtime/state/Sizing.h"
#include "tests/engine/Expect.h"

namespace replayjit::internal::engine {

/// Something of the engine's at the beginning of each page.
static constexpr int64_t headerBytes = 48;
static constexpr uint32_t notANumber = 0x7fff7fff; // in fp32, bf16 and fp16

static int64_t roundedUp(int64_t bytes) { return (bytes + 15) / 16 * 16; }

Pages::Pages(Device &device, std::vector<PoolGroup> &groups, int keys)
    : device(device) {
  for (PoolGroup &group : groups) {
    const DecodeSpec &spec = group.spec;
    const SlotPitches sizes = slotPitches(spec);
    const int64_t state = roundedUp(sizes.state * byteSize(spec.stateType)),
                  d = roundedUp(sizes.dRing * byteSize(spec.ringType)),
                  k = roundedUp(sizes.kRing * byteSize(spec.ringType)),
                  g = roundedUp(sizes.gRing * byteSize(DataType::F32)),
                  layers = group.layers.size(),
                  statePage = headerBytes + layers * state,
                  ringPage = headerBytes + layers * (d + k + g);
    uint64_t states = allocate(group.slots, statePage, notANumber),
             rings = allocate(group.ringSlots, ringPage, notANumber);
    for (int slot = 0; slot < group.slots; ++slot)
      orStop(device.fill32On(device.stream(),
                             states + slot * statePage + headerBytes, 0,
                             layers * state / sizeof(uint32_t)));
    states += headerBytes;
    rings += headerBytes;
    for (ReplayLayer &layer : group.layers) {
      layer = {.state = states,
               .dRing = rings,
               .kRing = rings + d,
               .gRing = rings + d + k,
               .statePitch = statePage / byteSize(spec.stateType),
               .dPitch = ringPage / byteSize(spec.ringType),
               .kPitch = ringPage / byteSize(spec.ringType),
               .gPitch = ringPage / byteSize(DataType::F32)};
      states += state;
      rings += d + k + g;
    }
  }
  table.numKeys = keys;
  table.writePos = allocate(keys, sizeof(int32_t), 0);
  if (groups.front().spec.isCircular)
    table.ringBase = allocate(keys, sizeof(int32_t), 0);
}

uint64_t Pages::allocate(int64_t count, int64_t pageBytes, uint32_t word) {
  memory.emplace_back(device, count * pageBytes, "pages");
  orStop(device.fill32On(device.stream(), memory.back().address, word,
                         count * pageBytes / sizeof(uint32_t)));
  return memory.back().address;
}

uint64_t Pages::planBuffers(size_t bytes) {
  memory.emplace_back(device, bytes, "plan buffers");
  return memory.back().address;
}

} // namespace replayjit::internal::engine
