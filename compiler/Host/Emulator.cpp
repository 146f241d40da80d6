//===- Emulator.cpp - The blocks of a grid, one after another -------------===//

#include "compiler/Host/Emulator.h"

#include "compiler/Host/Block.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <mutex>
#include <numeric>
#include <random>

namespace replayjit::internal::host {

static std::vector<uint32_t> blockOrder(const GridLaunch &launch) {
  const Grid &blocks = launch.blocks;
  std::vector<uint32_t> order(blocks.x * blocks.y * blocks.z);
  std::iota(order.begin(), order.end(), 0);
  if (launch.order.kind == LaneOrder::Kind::Reverse)
    std::reverse(order.begin(), order.end());
  if (launch.order.kind == LaneOrder::Kind::Shuffled)
    std::shuffle(order.begin(), order.end(),
                 std::minstd_rand(launch.order.seed));
  return order;
}

Status runGrid(const GridLaunch &launch, const MemoryMap &memory) {
  if (!launch.entry)
    return Status::invalid("emulation: the launch has no entry");
  if (launch.threads < 1 || launch.threads > Clocks::maxLanes)
    return Status::invalid(
        fmt::format("emulation: {} threads per block; allowed are 1 to {}",
                    launch.threads, Clocks::maxLanes));
  const Grid &blocks = launch.blocks;
  constexpr uint64_t most = std::numeric_limits<int32_t>::max();
  // In two steps, since three factors may overflow.
  const uint64_t plane = uint64_t(blocks.x) * blocks.y;
  if (blocks.z != 0 && plane > most / blocks.z)
    return Status::invalid(
        fmt::format("emulation: {} x {} x {} blocks; allowed are {} in all",
                    blocks.x, blocks.y, blocks.z, most));
  if (launch.sharedBytes > maxSharedBytes)
    return Status::invalid(fmt::format(
        "emulation: {} bytes of shared memory per block; allowed are {}",
        launch.sharedBytes, maxSharedBytes));

  // Kept between launches for its stacks. Never destroyed, so that a launch
  // may come from a static destructor of the host.
  static std::mutex mutex;
  static Block &block = *new Block;
  std::lock_guard<std::mutex> lock(mutex);
  if (!block.beginGrid(launch, memory))
    return Status::error(StatusCode::ExecutionFault,
                         fmt::format("emulation: no memory for the stacks of "
                                     "{} lanes",
                                     launch.threads));
  for (uint32_t index : blockOrder(launch))
    if (!block.run(index))
      return Status::error(StatusCode::ExecutionFault, block.failure());
  return Status::ok();
}

} // namespace replayjit::internal::host
