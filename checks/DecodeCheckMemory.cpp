//===- DecodeCheckMemory.cpp - The memory of a check ----------------------===//

#include "checks/DecodeCheckMemory.h"

#include "kernels/Families.h"

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

TensorMirror MirrorLayout::padded(const Argument &argument, int64_t count,
                                  int64_t padding) const {
  TensorMirror result;
  result.name = divided(argument.name, '_');
  result.type = argument.type.of(spec);
  result.dims = innerDims(spec, argument);
  result.dims.insert(result.dims.begin(), count);
  result.pitch = result.inner() + padding;
  result.lead = misaligned ? 1 : 0;
  result.present = argument.isThere(spec);
  result.poisoned = poison;
  // Triton's kernels are compiled for dense tensors.
  if (spec.alignment > 0 && spec.abi == LaunchAbi::Native) {
    int64_t unit = spec.alignment / byteSize(result.type);
    result.pitch = (result.pitch + unit - 1) / unit * unit;
  }
  return result;
}

TensorMirror MirrorLayout::dense(const Argument &argument,
                                 int64_t count) const {
  TensorMirror result = padded(argument, count, 0);
  result.pitch = result.inner();
  return result;
}

PoolMirrors MirrorLayout::pools(int64_t slots, int64_t ringSlots,
                                int64_t firstSlot, int64_t padding,
                                int64_t more) const {
  int index = 0;
  auto pool = [&](const char *name) {
    const Argument &argument = find(layerArguments(), name);
    TensorMirror result =
        padded(argument, argument.isPer(perSlot) ? slots : ringSlots,
               padding + index++ * more);
    result.firstRow = firstSlot;
    // A ring of depth 1 is there, so that a kernel may be seen to leave it.
    result.present = traitsOf(spec).rings || argument.isPer(perSlot);
    return result;
  };
  PoolMirrors all;
  all.state = pool("state");
  all.dRing = pool("dRing");
  all.kRing = pool("kRing");
  all.gRing = pool("gRing");
  return all;
}

TensorMirror MirrorLayout::errorWord(const Argument &argument,
                                     bool present) const {
  TensorMirror result = dense(argument, 1);
  result.dims = {1, int64_t(sizeof(ErrorWord) / byteSize(result.type))};
  result.pitch = result.inner();
  result.lead = 0;
  result.present = present;
  return result;
}

//===----------------------------------------------------------------------===//
// The tensors of a launch
//===----------------------------------------------------------------------===//

ArgumentMirrors::ArgumentMirrors(const MirrorLayout &layout,
                                 ArgumentTable table, int64_t rows,
                                 int64_t tokens, int64_t rowPadding,
                                 int64_t indexStride, bool hasErrorWord)
    : table(table) {
  for (const Argument &argument : table)
    if (argument.kind == Argument::Kind::Pointer && !argument.isPer(perSlot) &&
        !argument.isPer(perRing))
      all[argument.name] =
          layout.dense(argument, argument.entries(rows, tokens));
  int tensors = 0, indices = 0;
  for (const Argument &argument : table) {
    if (argument.kind != Argument::Kind::Stride)
      continue;
    const Argument &pointer = table[argument.pointer];
    if (!argument.isOfRows)
      continue;
    TensorMirror &mirror = all.at(pointer.name);
    if (mirror.dims.size() == 1)
      mirror.pitch = indexStride + indices++;
    else
      mirror = layout.padded(pointer, pointer.entries(rows, tokens),
                             rowPadding * (1 + tensors++ % 3));
  }
  const char *word = "errorWord";
  all[word] = layout.errorWord(find(table, word), hasErrorWord);
}

std::vector<TensorMirror *> ArgumentMirrors::list() {
  std::vector<TensorMirror *> mirrors;
  for (auto &[name, mirror] : all)
    mirrors.push_back(&mirror);
  return mirrors;
}

void ArgumentMirrors::place(void *args, bool onDevice) const {
  for (const Argument &argument : table) {
    if (argument.kind == Argument::Kind::Stride) {
      auto found = all.find(table[argument.pointer].name);
      if (found != all.end() && found->second.present)
        memberOf(argument, args) = found->second.pitch;
    } else if (argument.kind == Argument::Kind::Pointer) {
      if (auto found = all.find(argument.name); found != all.end())
        memberOf(argument, args) = found->second.address(onDevice);
    }
  }
}

//===----------------------------------------------------------------------===//
// The way to the device and back
//===----------------------------------------------------------------------===//

MirrorSet::~MirrorSet() {
  for (TensorMirror *mirror : list)
    if (mirror->device)
      (void)device.free(mirror->device); // nothing to be done about it
}

void MirrorSet::create(const std::vector<TensorMirror *> &mirrors) {
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
