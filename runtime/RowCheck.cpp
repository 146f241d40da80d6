//===- RowCheck.cpp - Do the rows of a launch share slots? ----------------===//

#include "runtime/RowCheck.h"

#include "kernels/Decode/SlotConflicts.h"
#include "kernels/Families.h"
#include "kernels/Materialize/MaterializeReference.h"
#include "kernels/Plan/PlanReference.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <vector>

namespace replayjit::internal {

namespace {

/// Puts host copies in the place of device arrays, up to the first that cannot
/// be copied.
class HostArrays {
public:
  HostArrays(Device &device, void *stream) : device(device), stream(stream) {}

  /// `count` elements of `bytes` each, `stride` elements apart; null stays.
  void take(uint64_t &array, int64_t count, int bytes, int64_t stride = 1) {
    if (array == 0 || count <= 0 || !status)
      return;
    const int64_t reach = (count - 1) * stride * bytes; // Of the last element.
    const int64_t first = std::min<int64_t>(reach, 0);
    std::vector<std::byte> &copy = copies.emplace_back(std::abs(reach) + bytes);
    status = device.copyFromDeviceOn(stream, copy.data(), array + first,
                                     copy.size());
    array = reinterpret_cast<uint64_t>(copy.data()) - first;
  }
  Status wait() { return status ? device.synchronizeOn(stream) : status; }

private:
  Device &device;
  void *stream;
  Status status;
  std::vector<std::vector<std::byte>> copies;
};

constexpr int ofInt = sizeof(int32_t);

} // namespace

static Status mayWait(Device &device, void *stream) {
  return device.checkNoCapture(stream, "check the rows of a launch");
}

/// What cannot be read, the launch in emulation reports by itself, and where.
static Status unreadable(const Device &device, const Status &status) {
  return device.isEmulation() ? Status::ok() : status;
}

template <typename Args>
static Status checkCopies(const Device &device, HostArrays &arrays,
                          const DecodeSpec &spec, const Args &args) {
  if (Status status = arrays.wait(); !status)
    return unreadable(device, status);
  return checkSlots(spec, args);
}

/// Elements from one entry of the table's pointer `place` to the next, if a
/// launch says so.
static int64_t strideOf(ArgumentTable table, int place, const void *args) {
  for (const Argument &argument : table)
    if (argument.kind == Argument::Kind::Stride && argument.pointer == place)
      return int64_t(memberOf(argument, args));
  return 1;
}

/// Takes the arrays of which `entriesOf(argument)` are read.
static void takeAll(HostArrays &arrays, const DecodeSpec &spec,
                    ArgumentTable table, void *args, auto entriesOf) {
  for (int i = 0; i < int(table.size()); ++i)
    if (const Argument &argument = table[i];
        argument.kind == Argument::Kind::Pointer && argument.isThere(spec))
      arrays.take(memberOf(argument, args), entriesOf(argument),
                  byteSize(argument.type.of(spec)), strideOf(table, i, args));
}

/// An index, cursor, flag or offset of each row.
static bool isOneARow(const Argument &argument) {
  return (argument.isPer(perRow) || argument.isPer(perRowAndEnd)) &&
         !argument.shape.dims[1].word &&
         argument.access == Argument::Access::Read;
}

template <typename Args>
static Status checkRows(Device &device, void *stream, const DecodeSpec &spec,
                        const Args &given) {
  if (Status status = mayWait(device, stream); !status)
    return status;
  HostArrays arrays(device, stream);
  Args args = given;
  for (ArgumentTable table : Args::tables())
    takeAll(arrays, spec, table, &args, [&](const Argument &argument) {
      return isOneARow(argument) ? argument.entries(args.batch, /*tokens=*/0)
                                 : 0;
    });
  return checkCopies(device, arrays, spec, args);
}

static Status checkRows(Device &device, void *stream, const DecodeSpec &spec,
                        const PlanArgs &given) {
  if (spec.family != Family::PlanBegin)
    return Status::ok();
  if (Status status = mayWait(device, stream); !status)
    return status;
  HostArrays arrays(device, stream);
  PlanArgs args = given;
  // How many rows are live a header says only on the device.
  arrays.take(args.header, 1, sizeof(PlanHeader));
  if (Status status = arrays.wait(); !status)
    return unreadable(device, status);
  const int32_t live = liveRows(args);
  arrays.take(args.cursors, args.numKeys, ofInt);
  if (spec.isCircular)
    arrays.take(args.bases, args.numKeys, ofInt);
  auto ofLiveRows = [live](const Argument &argument) -> int64_t {
    return argument.isPer(perLiveRow) ? live : 0;
  };
  takeAll(arrays, spec, planArguments(), &args, ofLiveRows);
  for (int g = 0; g < args.numGroups; ++g)
    takeAll(arrays, spec, planGroupArguments(), &args.groups[g], ofLiveRows);
  return checkCopies(device, arrays, spec, args);
}

/// If `args` are of type `Args`.
template <typename Args>
static Status checkIf(Device &device, void *stream, const DecodeSpec &spec,
                      LaunchArgs args) {
  if (args.type != &structOf<Args>)
    return Status::ok();
  return checkRows(device, stream, spec, *static_cast<const Args *>(args.data));
}

Status checkRows(Device &device, void *stream, const DecodeSpec &spec,
                 LaunchArgs args) {
  for (auto check :
       {checkIf<DecodeArgs>, checkIf<MaterializeArgs>, checkIf<PlanArgs>})
    if (Status status = check(device, stream, spec, args); !status)
      return status;
  return Status::ok();
}

} // namespace replayjit::internal
