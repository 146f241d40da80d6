//===- KernelHandle.cpp - A kernel ready to launch ------------------------===//

#include "runtime/KernelHandle.h"

#include "runtime/DecodeLaunch.h"
#include "runtime/RowCheck.h"

#include <fmt/format.h>

#include <limits>
#include <type_traits>

namespace replayjit::internal {

static int64_t rowsOf(const DecodeArgs &args) { return args.batch; }
static int64_t rowsOf(const MaterializeArgs &args) {
  return int64_t(args.batch) * args.numLayers;
}
static int64_t rowsOf(const PlanArgs &args) { return args.batch; }

static const char *argsOf(const DecodeSpec &spec) {
  if (isPlan(spec))
    return "PlanArgs";
  return hasTokens(spec) ? "DecodeArgs" : "MaterializeArgs";
}
template <typename Args> static bool takes(const DecodeSpec &spec) {
  if (isPlan(spec))
    return std::is_same_v<Args, PlanArgs>;
  return std::is_same_v<Args, DecodeArgs> == hasTokens(spec) &&
         !std::is_same_v<Args, PlanArgs>;
}

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

template <typename Args>
Status KernelHandle::checkArgs(void *stream, const Args &args,
                               ArgsCheck check) const {
  const DecodeSpec &spec = kernel->info.spec;
  Device &device = *kernel->device;
  if (check == ArgsCheck::None)
    return Status::ok();
  if (Status status = validateArgs(spec, args); !status)
    return status;
  if (includes(check, ArgsCheck::Memory))
    if (Status status = checkMemory(addressesOf(spec, args)); !status)
      return status;
  if (!includes(check, ArgsCheck::Rows) && !device.isEmulation())
    return Status::ok();
  return checkRows(device, stream, spec, args);
}

template <typename Args, typename Launch>
Status KernelHandle::launchWith(void *stream, const Args &args, ArgsCheck check,
                                Launch launch) const {
  const KernelInfo &info = kernel->info;
  auto refused = [&info](std::string why) {
    return Status::invalid(fmt::format("launch '{}': {}", info.name, why));
  };
  if (!takes<Args>(info.spec))
    return refused(fmt::format("a kernel of family {} takes {}",
                               wordOf(info.spec.family), argsOf(info.spec)));
  if (Status status = checkArgs(stream, args, check); !status) {
    status.message = fmt::format("launch '{}': {}", info.name, status.message);
    return status;
  }
  const int64_t rows = rowsOf(args);
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

static auto onOwnStream(Device &device) {
  return [&device](LoadedKernel &kernel, Grid grid, const void *params,
                   size_t bytes) {
    return device.launch(kernel, grid, params, bytes);
  };
}

Status KernelHandle::launch(const DecodeArgs &args, ArgsCheck check) const {
  Device &device = *kernel->device;
  return launchWith(device.stream(), args, check, onOwnStream(device));
}

Status KernelHandle::launch(const MaterializeArgs &args,
                            ArgsCheck check) const {
  Device &device = *kernel->device;
  return launchWith(device.stream(), args, check, onOwnStream(device));
}

Status KernelHandle::launch(const PlanArgs &args, ArgsCheck check) const {
  Device &device = *kernel->device;
  return launchWith(device.stream(), args, check, onOwnStream(device));
}

template <typename Args>
Status KernelHandle::launchOnWith(void *stream, const Args &args,
                                  ArgsCheck check, LaunchOrder order) const {
  if (order == LaunchOrder::Programmatic &&
      !kernel->info.spec.hasProgrammaticLaunch)
    return Status::invalid(fmt::format(
        "launch '{}': order: programmatic is not allowed for a kernel that "
        "does not wait for its predecessor; prepare it with "
        "hasProgrammaticLaunch",
        kernel->info.name));
  Device &device = *kernel->device;
  return launchWith(
      stream, args, check,
      [&](LoadedKernel &loaded, Grid grid, const void *params, size_t bytes) {
        return device.launchOn(stream, loaded, grid, params, bytes, order);
      });
}

Status KernelHandle::launchOn(void *stream, const DecodeArgs &args,
                              ArgsCheck check, LaunchOrder order) const {
  return launchOnWith(stream, args, check, order);
}

Status KernelHandle::launchOn(void *stream, const MaterializeArgs &args,
                              ArgsCheck check, LaunchOrder order) const {
  return launchOnWith(stream, args, check, order);
}

Status KernelHandle::launchOn(void *stream, const PlanArgs &args,
                              ArgsCheck check, LaunchOrder order) const {
  return launchOnWith(stream, args, check, order);
}

} // namespace replayjit::internal
