//===- DecodeCheckMemory.cpp - The memory of a check ----------------------===//

#include "checks/DecodeCheckMemory.h"

#include <algorithm>
#include <utility>

namespace replayjit::internal {

ReplayLayer PoolMirrors::place(bool onDevice) const {
  return {state.address(onDevice),
          dRing.address(onDevice),
          kRing.address(onDevice),
          gRing.address(onDevice),
          state.pitch,
          dRing.pitch,
          kRing.pitch,
          gRing.pitch};
}

TensorMirror MirrorLayout::padded(const char *name, DataType type,
                                  std::vector<int64_t> dims,
                                  int64_t padding) const {
  TensorMirror result;
  result.name = name;
  result.type = type;
  result.dims = std::move(dims);
  result.pitch = result.inner() + padding;
  result.lead = misaligned ? 1 : 0;
  result.poisoned = poison;
  // Triton's kernels are compiled for dense tensors.
  if (spec.alignment > 0 && spec.abi == LaunchAbi::Native) {
    int64_t unit = spec.alignment / byteSize(type);
    result.pitch = (result.pitch + unit - 1) / unit * unit;
  }
  return result;
}

TensorMirror MirrorLayout::dense(const char *name, DataType type,
                                 std::vector<int64_t> dims) const {
  TensorMirror result = padded(name, type, std::move(dims), 0);
  result.pitch = result.inner();
  return result;
}

TensorMirror MirrorLayout::perRow(const char *name, DataType type, int64_t rows,
                                  int64_t stride, bool present) const {
  TensorMirror result = dense(name, type, {rows});
  result.pitch = stride;
  result.present = present;
  return result;
}

PoolMirrors MirrorLayout::pools(int64_t slots, int64_t ringSlots,
                                int64_t firstSlot, int64_t padding,
                                int64_t more) const {
  const int64_t H = spec.numKeyHeads, HV = spec.numValueHeads;
  const int64_t K = spec.headDimK, V = spec.headDimV, L = spec.ringDepth;
  const bool hasRings = spec.family != Family::Packed;
  auto pool = [&](const char *name, DataType type, std::vector<int64_t> dims,
                  int index) {
    TensorMirror result =
        padded(name, type, std::move(dims), padding + index * more);
    result.firstRow = firstSlot;
    result.present = hasRings || index == 0;
    return result;
  };
  std::vector<int64_t> gates = {ringSlots, HV, L};
  if (spec.isKda)
    gates.push_back(K);
  return {pool("state", spec.stateType, {slots, HV, V, K}, 0),
          pool("d_ring", spec.ringType, {ringSlots, HV, L, V}, 1),
          pool("k_ring", spec.ringType, {ringSlots, H, L, K}, 2),
          pool("g_ring", DataType::F32, gates, 3)};
}

TensorMirror MirrorLayout::errorWord(bool present) const {
  TensorMirror result =
      dense("error_word", DataType::I32, {1, sizeof(ErrorWord) / 4});
  result.lead = 0;
  result.present = present;
  return result;
}

//===----------------------------------------------------------------------===//
// The way to the device and back
//===----------------------------------------------------------------------===//

MirrorSet::~MirrorSet() {
  for (TensorMirror *mirror : list)
    if (mirror->device)
      (void)device.free(mirror->device); // nothing to be done about it
}

void MirrorSet::create(std::initializer_list<TensorMirror *> mirrors) {
  for (TensorMirror *mirror : mirrors) {
    mirror->create();
    list.push_back(mirror);
  }
}

Status MirrorSet::allocate() {
  for (TensorMirror *mirror : list) {
    if (!mirror->present)
      continue;
    Result<uint64_t> memory =
        device.allocate(mirror->host.size(), mirror->name);
    if (!memory)
      return memory.status();
    mirror->device = *memory;
  }
  return Status::ok();
}

Status MirrorSet::copyToDevice() {
  for (TensorMirror *mirror : list) {
    if (!mirror->dirty || mirror->host.empty())
      continue;
    if (Status status = device.copyToDevice(mirror->device, mirror->host.data(),
                                            mirror->host.size());
        !status)
      return status;
    mirror->dirty = false;
  }
  return Status::ok();
}

Status MirrorSet::copyFromDevice() {
  for (TensorMirror *mirror : list) {
    if (mirror->seen.empty())
      continue;
    if (Status status = device.copyFromDevice(
            mirror->seen.data(), mirror->device, mirror->seen.size());
        !status)
      return status;
  }
  return Status::ok();
}

//===----------------------------------------------------------------------===//
// The error word
//===----------------------------------------------------------------------===//

void ExpectedErrors::add(ErrorKind kind, int row, int layer, int64_t value) {
  if (kind == ErrorKind::None)
    return;
  ++count;
  if (!firstIsOver)
    first.push_back({0, uint32_t(kind), row, layer, value});
}

std::string ExpectedErrors::check(TensorMirror &mirror) {
  if (!mirror.present)
    return "";
  mirror.host = mirror.seen;
  ErrorWord held;
  std::memcpy(&held, mirror.seen.data(), sizeof(held));
  auto isHeld = [&](const ErrorWord &word) {
    return word.kind == held.kind && word.row == held.row &&
           word.layer == held.layer && word.value == held.value;
  };
  const bool none = first.empty() && isHeld(ErrorWord());
  const auto recorded = std::find_if(first.begin(), first.end(), isHeld);
  if (held.count == count && (none || recorded != first.end())) {
    if (count > 0) {
      first = {*recorded}; // which must not change any more
      firstIsOver = true;
    }
    return "";
  }
  std::string expected = "an empty record";
  if (!first.empty())
    expected =
        fmt::format("kind {} of row {}, layer {}, value {}{}", first[0].kind,
                    first[0].row, first[0].layer, first[0].value,
                    first.size() > 1 ? " or that of another row" : "");
  return fmt::format("error_word has count {}, kind {}, row {}, layer {}, "
                     "value {}; it should have count {} and {}",
                     held.count, held.kind, held.row, held.layer, held.value,
                     count, expected);
}

void breakFlag(CheckReport &report, bool &flag, std::string sentence) {
  flag = false;
  if (report.firstProblem.empty())
    report.firstProblem = std::move(sentence);
}

} // namespace replayjit::internal
