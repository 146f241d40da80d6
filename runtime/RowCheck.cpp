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

static Status checkRows(Device &device, void *stream, const DecodeSpec &spec,
                        const DecodeArgs &given) {
  if (Status status = mayWait(device, stream); !status)
    return status;
  HostArrays arrays(device, stream);
  DecodeArgs args = given;
  const int index = byteSize(spec.indexType);
  arrays.take(args.stateIndices, args.batch, index, args.stateIndexStride);
  if (spec.hasRingIndices)
    arrays.take(args.ringIndices, args.batch, index, args.ringIndexStride);
  if (spec.hasDstIndices)
    arrays.take(args.dstIndices, args.batch, index, args.dstIndexStride);
  if (spec.hasTrackIndices)
    arrays.take(args.trackIndices, args.batch, index, args.trackIndexStride);
  if (traitsOf(spec).rings) {
    arrays.take(args.writePos, args.batch, ofInt);
    if (spec.hasForceFlush)
      arrays.take(args.forceFlush, args.batch, ofInt);
    if (spec.isCircular)
      arrays.take(args.ringBase, args.batch, ofInt);
  }
  if (tokenRowsOf(spec) == TokenRows::Counted)
    arrays.take(args.tokenCounts, args.batch, ofInt);
  if (tokenRowsOf(spec) == TokenRows::Ragged)
    arrays.take(args.tokenOffsets, args.batch + int64_t(1), ofInt);
  return checkCopies(device, arrays, spec, args);
}

static Status checkRows(Device &device, void *stream, const DecodeSpec &spec,
                        const MaterializeArgs &given) {
  if (Status status = mayWait(device, stream); !status)
    return status;
  HostArrays arrays(device, stream);
  MaterializeArgs args = given;
  const int index = byteSize(spec.indexType);
  arrays.take(args.srcIndices, args.batch, index, args.srcIndexStride);
  arrays.take(args.dstIndices, args.batch, index, args.dstIndexStride);
  if (spec.hasRingIndices)
    arrays.take(args.ringIndices, args.batch, index, args.ringIndexStride);
  arrays.take(args.writePos, args.batch, ofInt);
  if (spec.isCircular)
    arrays.take(args.ringBase, args.batch, ofInt);
  if (spec.hasMask)
    arrays.take(args.mask, args.batch, ofInt);
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
  const int index = byteSize(spec.indexType);
  // How many rows are live a header says only on the device.
  arrays.take(args.header, 1, sizeof(PlanHeader));
  if (Status status = arrays.wait(); !status)
    return unreadable(device, status);
  const int32_t live = liveRows(args);
  arrays.take(args.keys, live, index, args.keyStride);
  arrays.take(args.cursors, args.numKeys, ofInt);
  if (spec.isCircular)
    arrays.take(args.bases, args.numKeys, ofInt);
  for (uint64_t PlanArgs::*array :
       {&PlanArgs::flushMask, &PlanArgs::fresh, &PlanArgs::seqLen,
        &PlanArgs::noFlushPast, &PlanArgs::dropNewest})
    arrays.take(args.*array, live, ofInt);
  for (int g = 0; g < args.numGroups; ++g)
    for (PlanIndices PlanGroup::*kind : {&PlanGroup::state, &PlanGroup::ring,
                                         &PlanGroup::dst, &PlanGroup::track}) {
      PlanIndices &indices = args.groups[g].*kind;
      arrays.take(indices.in, live, index, indices.stride);
    }
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
