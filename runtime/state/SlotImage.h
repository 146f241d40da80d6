//===- SlotImage.h - A request's states as bytes ----------------*- C++ -*-===//
//
// Backup, preemption and moves between ranks. An image has the heads that one
// rank holds of one request, all layers, and says which heads of how many they
// are; a rank of another tensor-parallel size takes its own from the images of
// several ranks. For transfers without a copy through the host, `transferList`
// says where everything is.
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_RUNTIME_STATE_SLOTIMAGE_H
#define REPLAYJIT_RUNTIME_STATE_SLOTIMAGE_H

#include "runtime/state/StatePool.h"

#include <span>
#include <string>
#include <string_view>

namespace replayjit::internal {

/// Where a request is in one group.
struct GroupSlot {
  int64_t state = 0;
  int64_t ring = 0; ///< Not looked at by a folded image.
};

enum class ImageForm : uint32_t {
  Folded,   ///< The states alone; the ring must be empty.
  WithRing, ///< Checkpoint, ring and cursor: nothing is folded.
};

/// The bytes of a request: header, states in the order of groups and layers,
/// checksum. One GroupSlot for each group of the pool. `key` is that of the
/// request's cursor; -1, for a cached prefix, counts as cursor 0, and is
/// InvalidArgument with the ring, whose tokens it would lose. Waits for
/// `stream`, which may not be under capture (InvalidArgument). Folded and a
/// cursor other than 0 is InvalidArgument: fold it first
/// (StepPlan::prepareExtend), or materialize it into a spare slot.
Result<std::string> exportSlot(StatePool &pool, void *stream,
                               std::span<const GroupSlot> slots, int32_t key,
                               ImageForm form);

/// Puts a request into slots of this pool and sets the cursor of `key` (-1: the
/// images must be folded, and no cursor is set). `images` are those of the
/// ranks that have this rank's heads, of one form, cursor and request, in any
/// order. Nothing is written unless all is right: a damaged image, another
/// shape, type or ring, a cursor that is not within it, or a head that no image
/// has is InvalidArgument, whoever wrote the image. Waits for `stream`, which
/// may not be under capture (InvalidArgument).
Status importSlot(StatePool &pool, void *stream,
                  std::span<const GroupSlot> slots, int32_t key,
                  std::span<const std::string_view> images);

/// A tensor of a layer for RDMA: slot s is `slotBytes` at base + s * pitch. It
/// consists of `heads` equal parts, which are heads firstHead.. of totalHeads:
/// ranks share it along this axis, its outermost.
struct TransferRegion {
  enum Tensor : uint32_t { State, DRing, KRing, GRing };
  int32_t group = 0, layer = 0; ///< layer within its group.
  Tensor tensor = State;
  uint64_t base = 0;
  int64_t pitchBytes = 0, slotBytes = 0;
  int32_t count = 0; ///< Slots, or rings.
  int32_t heads = 0, firstHead = 0, totalHeads = 0;
};

std::vector<TransferRegion> transferList(const StatePool &pool);
/// How many that are; allocates nothing.
size_t transferCount(const StatePool &pool);

} // namespace replayjit::internal

#endif
