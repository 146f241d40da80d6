//===- state_wrapper.cpp - A request moves between pools, in C++17 --------===//

#include <replayjit/replayjit_state.hpp>

#include <cstdio>
#include <cstdlib>
#include <cstring>

using namespace replayjit;

#define CHECK(condition)                                                       \
  do {                                                                         \
    if (!(condition)) {                                                        \
      std::fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__,          \
                   #condition);                                                \
      std::exit(1);                                                            \
    }                                                                          \
  } while (false)

template <typename T> static T orStop(Result<T> result) {
  if (!result)
    std::fprintf(stderr, "%s\n", result.status().message.c_str());
  CHECK(result);
  return std::move(*result);
}
static void orStop(const Status &status) {
  if (!status)
    std::fprintf(stderr, "%s\n", status.message.c_str());
  CHECK(status);
}

static constexpr int keys = 3, slots = 4, layers = 2;

static StatePool makePool(const Jit &jit, const DecodeSpec &spec) {
  PoolGroup group;
  group.spec = &spec;
  group.num_layers = layers;
  group.slots = slots;
  return orStop(StatePool::allocate(jit, {group}, keys));
}

int main() {
  Device device = orStop(Device::emulation());
  JitOptions options;
  options.use_environment = 0;
  const Jit jit = orStop(Jit::create(device, options));
  DecodeSpec spec;
  spec.num_key_heads = 1;
  spec.num_value_heads = 2;
  spec.head_dim_k = spec.head_dim_v = 16;
  spec.ring_depth = 4;
  StatePool from = makePool(jit, spec), to = makePool(jit, spec);

  const Cursors cursors = from.cursors();
  CHECK(cursors.num_keys == keys && cursors.write_pos && !cursors.ring_base);
  const int32_t held[keys] = {0, 2, 0}, none[keys] = {0};
  orStop(device.copyToDevice(cursors.write_pos, held, sizeof held));

  // State and three rings of each layer; slot 3 says which tensor it is of.
  const std::vector<TransferRegion> regions = from.regions();
  CHECK(regions.size() == 4 * layers);
  for (size_t i = 0; i < regions.size(); ++i) {
    const TransferRegion &region = regions[i];
    CHECK(region.layer == int(i / 4) && region.tensor == int(i % 4));
    CHECK(region.count == slots && region.total_heads == region.heads);
    const std::string content(size_t(region.slot_bytes), char('a' + i));
    orStop(device.copyToDevice(region.base + 3 * region.pitch_bytes,
                               content.data(), content.size()));
  }
  const std::vector<GroupSlot> source = {{3, 3}}, target = {{1, 2}};
  CHECK(from.exportSlot(nullptr, source, 1, ImageForm::Folded)
            .status()
            .message.find("2 tokens in its ring") != std::string::npos);
  const std::string image =
      orStop(from.exportSlot(nullptr, source, 1, ImageForm::WithRing));
  orStop(to.importSlot(nullptr, target, 2, {image}));

  int32_t moved[keys];
  orStop(device.copyFromDevice(moved, to.cursors().write_pos, sizeof moved));
  CHECK(moved[0] == none[0] && moved[1] == none[1] && moved[2] == 2);
  for (const TransferRegion &region : to.regions()) {
    const char name = char('a' + 4 * region.layer + region.tensor);
    std::string content(size_t(region.slot_bytes), ' ');
    const int64_t slot = region.tensor == 0 ? 1 : 2;
    orStop(device.copyFromDevice(content.data(),
                                 region.base + slot * region.pitch_bytes,
                                 content.size()));
    CHECK(content == std::string(content.size(), name));
  }
  std::string damaged = image;
  damaged[20] ^= 1;
  CHECK(!to.importSlot(nullptr, target, 2, {damaged}));
}
