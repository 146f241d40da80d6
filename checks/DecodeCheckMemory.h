//===- DecodeCheckMemory.h - The memory of a check --------------*- C++ -*-===//
//
// What the checks of all families do with their tensors: where these lie, how
// they get to the device and back, and what the error word must hold.
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_CHECKS_DECODECHECKMEMORY_H
#define REPLAYJIT_CHECKS_DECODECHECKMEMORY_H

#include "checks/DecodeCheckTensor.h"
#include "runtime/Device.h"

#include <array>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace replayjit::internal {

/// The tensors of one layer's state pool.
struct PoolMirrors {
  TensorMirror state, dRing, kRing, gRing;

  std::array<TensorMirror *, 3> rings() { return {&dRing, &kRing, &gRing}; }
  ReplayLayer place(bool onDevice) const;
};

/// Where a mirror lies: `padding` elements after each row, and what the spec's
/// alignment and `misaligned` make of that. Nothing here makes memory.
struct MirrorLayout {
  const DecodeSpec &spec;
  Poison poison;
  bool misaligned;

  /// A pointer of the spec, of `count` rows or slots.
  TensorMirror padded(const Argument &argument, int64_t count,
                      int64_t padding) const;
  /// Nothing between two rows; an array of parameters is one row.
  TensorMirror dense(const Argument &argument, int64_t count) const;
  /// Slots are numbered from `firstSlot` on. Each tensor has `more` padding
  /// than the one before.
  PoolMirrors pools(int64_t slots, int64_t ringSlots, int64_t firstSlot,
                    int64_t padding, int64_t more = 0) const;
  /// An ErrorWord, to be filled with zeros.
  TensorMirror errorWord(const Argument &argument, bool present) const;
};

/// The tensors among the arguments of a launch but for its pools, by name.
class ArgumentMirrors {
public:
  /// Rows of tensors, or tokens, are `rowPadding` elements apart or a multiple,
  /// indices `indexStride` or a few more: no two arguments alike.
  ArgumentMirrors(const MirrorLayout &layout, ArgumentTable table, int64_t rows,
                  int64_t tokens, int64_t rowPadding, int64_t indexStride,
                  bool hasErrorWord);

  TensorMirror &operator[](std::string_view name) { return all.at(name); }
  std::vector<TensorMirror *> list();
  /// Puts addresses and strides into the table's struct.
  void place(void *args, bool onDevice) const;

private:
  ArgumentTable table;
  std::map<std::string_view, TensorMirror> all;
};

/// The mirrors of one check and their memory on its device, which is freed with
/// it. The mirrors belong to the caller and outlive it.
class MirrorSet {
public:
  explicit MirrorSet(Device &device) : device(device) {}
  ~MirrorSet();
  MirrorSet(const MirrorSet &) = delete;

  /// Makes their host memory, all of it poison.
  void create(const std::vector<TensorMirror *> &mirrors);
  /// Device memory for those that are present.
  Status allocate();
  Status copyToDevice(); ///< Of those that are dirty.
  Status copyFromDevice();

  auto begin() const { return list.begin(); }
  auto end() const { return list.end(); }

private:
  Device &device;
  std::vector<TensorMirror *> list;
};

/// The most elements between two rows or slots, or from index to index.
inline constexpr int mostSpacing = 1 << 20;

Status checkSpacing(int slotPadding, int indexStride);

/// What the memory of a check follows from, beside its spec.
struct MemoryShape {
  int64_t rows, slots; ///< Slots or rings, whichever are more.
  int64_t layers = 1;
  int rowPadding = 0, slotPadding = 0, indexStride = 1;
};

/// InvalidArgument if the check would need more memory than this machine has.
Status checkMemory(const DecodeSpec &spec, const MemoryShape &shape);

/// What an ErrorWord must hold.
class ExpectedErrors {
public:
  void add(ErrorKind kind, int row, int layer, int64_t value);
  /// Compares after a launch, of which any bad row may have been the first, and
  /// takes over what the device holds. Returns a sentence on what is wrong, or
  /// an empty one.
  std::string check(TensorMirror &mirror);

private:
  uint32_t count = 0;
  std::vector<ErrorWord> first; ///< One of these is recorded.
  bool firstIsOver = false;     ///< Later rows are not the first.
};

/// Breaks `flag` of `report`, and says why unless something was wrong before.
void breakFlag(CheckReport &report, bool &flag, std::string sentence);

} // namespace replayjit::internal

#endif
