//===- KernelHandle.cpp - A kernel ready to launch ------------------------===//

#include "runtime/KernelHandle.h"

#include "runtime/DecodeLaunch.h"
#include "runtime/RowCheck.h"

#include <fmt/format.h>

#include <limits>

namespace replayjit::internal {

Status
KernelHandle::checkMemory(const std::vector<NamedAddress> &pointers) const {
  for (const NamedAddress &pointer : pointers)
    if (Status status = kernel->device->checkAddress(pointer.address);
        !status) {
      status.message = fmt::format("{}: {}", pointer.name, status.message);
      return status;
    }
  return Status::ok();
}

Status KernelHandle::checkArgs(void *stream, LaunchArgs args,
                               ArgsCheck check) const {
  const LaunchRules &rules = kernel->rules;
  Device &device = *kernel->device;
  if (check == ArgsCheck::None)
    return Status::ok();
  if (Status status = args.type->validate(rules, args.data); !status)
    return status;
  if (includes(check, ArgsCheck::Memory))
    if (Status status = checkMemory(args.type->addresses(rules, args.data));
        !status)
      return status;
  if (!includes(check, ArgsCheck::Rows) && !device.isEmulation())
    return Status::ok();
  return checkRows(device, stream, rules.spec, args);
}

template <typename Launch>
Status KernelHandle::launchWith(void *stream, LaunchArgs args, ArgsCheck check,
                                Launch launch) const {
  const KernelInfo &info = kernel->info;
  auto refused = [&info](std::string why) {
    return Status::invalid(fmt::format("launch '{}': {}", info.name, why));
  };
  const ArgsStruct &taken = *familyOf(info.spec.family).args;
  if (args.type != &taken)
    return refused(fmt::format("a kernel of family {} takes {}",
                               wordOf(info.spec.family), taken.name));
  if (Status status = checkArgs(stream, args, check); !status) {
    status.message = fmt::format("launch '{}': {}", info.name, status.message);
    return status;
  }
  const int64_t rows = taken.rows(args.data);
  const int64_t perRow = info.launch.blocksPerRow;
  constexpr int64_t mostBlocks = std::numeric_limits<int32_t>::max();
  if (rows < 0 || (perRow && rows > mostBlocks / perRow))
    return refused(fmt::format("{} rows of {} blocks are not allowed; a grid "
                               "has at most 2^31 - 1 blocks",
                               rows, perRow));
  if (rows == 0)
    return Status::ok();
  const Grid grid = gridOf(info.spec, info.launch, uint32_t(rows));
  return withParams(info.spec, args, [&](const void *params, size_t bytes) {
    return launch(*kernel->loaded, grid, params, bytes);
  });
}

Status KernelHandle::launch(LaunchArgs args, ArgsCheck check) const {
  Device &device = *kernel->device;
  return launchWith(
      device.stream(), args, check,
      [&](LoadedKernel &loaded, Grid grid, const void *params, size_t bytes) {
        return device.launch(loaded, grid, params, bytes);
      });
}

Status KernelHandle::launchOn(void *stream, LaunchArgs args, ArgsCheck check,
                              LaunchOrder order) const {
  if (order == LaunchOrder::Programmatic &&
      kernel->info.spec.programmaticLaunch == ProgrammaticLaunch::None)
    return Status::invalid(fmt::format(
        "launch '{}': order: programmatic is not allowed for a kernel that "
        "does not wait for its predecessor; prepare it with a "
        "programmaticLaunch",
        kernel->info.name));
  Device &device = *kernel->device;
  return launchWith(
      stream, args, check,
      [&](LoadedKernel &loaded, Grid grid, const void *params, size_t bytes) {
        return device.launchOn(stream, loaded, grid, params, bytes, order);
      });
}

} // namespace replayjit::internal
