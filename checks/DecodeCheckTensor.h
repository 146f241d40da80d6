//===- DecodeCheckTensor.h - Tensors and errors of a check ------*- C++ -*-===//
//
// The two small tools of the checks: a tensor that lives on the device and on
// the host, and the sum that one error of the report is made from.
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_CHECKS_DECODECHECKTENSOR_H
#define REPLAYJIT_CHECKS_DECODECHECKTENSOR_H

#include "checks/DecodeCheck.h"
#include "kernels/Decode/DecodeReference.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace replayjit::internal {

/// What an output holds before a launch: a quiet NaN with a payload that no
/// arithmetic invents, and another than that of Poison::NaN, so that poison
/// passed on by a kernel does not look unwritten.
inline uint64_t outputPoisonBits(DataType type) {
  switch (type) {
  case DataType::F32:
    return 0x7fc0f00d;
  case DataType::BF16:
    return 0x7fed;
  case DataType::F16:
    return 0x7eed;
  default:
    return 0;
  }
}

/// What memory holds that must not be read. No useful index, as an integer.
inline uint64_t poisonBits(DataType type, Poison poison) {
  const bool isNaN = poison == Poison::NaN;
  const bool isInfinity = poison == Poison::Infinity;
  switch (type) {
  case DataType::F32:
    return isNaN ? 0x7fc0dead : isInfinity ? 0x7f800000 : 0x7149f2ca; // 1e30
  case DataType::BF16:
    return isNaN ? 0x7fde : isInfinity ? 0x7f80 : 0x714a; // 1e30
  case DataType::F16:
    return isNaN ? 0x7ede : isInfinity ? 0x7c00 : 0x7bff; // 65504
  case DataType::I32:
    return 0x7badbad0;
  case DataType::I64:
    return 0x7badbad07badbad0;
  }
  return 0;
}

/// One tensor, on the device and on the host. `host` is what the device holds
/// or must hold; `seen` is what it held when last read. A row is `pitch`
/// elements, of which the first `inner` ones belong to the tensor.
struct TensorMirror {
  std::string name;
  DataType type = DataType::F32;
  std::vector<int64_t> dims; ///< As in the operator contract.
  int64_t pitch = 0;
  int64_t lead = 0;     ///< Elements before the first row.
  int64_t firstRow = 0; ///< The number of the first row that is there.
  bool present = true;  ///< Else no memory and address 0.
  Poison poisoned = Poison::NaN;
  std::vector<char> host, seen;
  uint64_t device = 0; ///< Of the allocation.
  bool dirty = true;   ///< `host` is to be copied to the device.

  int64_t rows() const { return dims[0]; }
  int64_t inner() const {
    int64_t count = 1;
    for (size_t i = 1; i < dims.size(); ++i)
      count *= dims[i];
    return count;
  }
  /// What to add to the address of the allocation so that row 0 would be
  /// there: negative, as a two's complement, where firstRow is not 0.
  uint64_t shift() const {
    return uint64_t((lead - firstRow * pitch) * byteSize(type));
  }
  uint64_t address(bool onDevice) const {
    if (!present)
      return 0;
    return (onDevice ? device : reinterpret_cast<uint64_t>(host.data())) +
           shift();
  }
  HostTensor view() const { return {type, address(false), pitch}; }
  /// Element 0 of a row, if the tensor is there.
  void set(int64_t row, int64_t value) {
    if (present)
      view().set(row, 0, double(value));
    dirty = true;
  }

  /// Makes the memory that `dims` and `pitch` ask for, all of it poison.
  void create() {
    host.resize(present ? (lead + rows() * pitch) * byteSize(type) : 0);
    seen.resize(host.size());
    fill(poisonBits(type, poisoned));
  }
  void fill(uint64_t bits) { // little-endian
    size_t size = byteSize(type);
    for (size_t at = 0; at < host.size(); at += size)
      std::memcpy(&host[at], &bits, size);
    dirty = true;
  }
  void poison(int64_t row, int64_t first, int64_t count) {
    uint64_t bits = poisonBits(type, poisoned);
    for (int64_t i = first; i < first + count; ++i)
      std::memcpy(at(host, row, i), &bits, byteSize(type));
    dirty = true;
  }
  bool isOutputPoison(int64_t row, int64_t index) {
    uint64_t bits = outputPoisonBits(type);
    return std::memcmp(at(host, row, index), &bits, byteSize(type)) == 0;
  }
  /// Takes over what the device wrote where it may write.
  void accept(int64_t row, int64_t first, int64_t count) {
    std::memcpy(at(host, row, first), at(seen, row, first),
                count * byteSize(type));
  }
  char *at(std::vector<char> &bytes, int64_t row, int64_t index) {
    return bytes.data() +
           (lead + (row - firstRow) * pitch + index) * byteSize(type);
  }

  /// The first element where the device held other bits than `host`, as row and
  /// index; a place before the first row has a row below firstRow. The two must
  /// differ.
  std::pair<int64_t, int64_t> firstDifference() const {
    auto found = std::mismatch(host.begin(), host.end(), seen.begin());
    int64_t element = (found.first - host.begin()) / byteSize(type) - lead;
    if (element < 0)
      return {firstRow - 1, 0};
    return {firstRow + element / pitch, element % pitch};
  }
  bool isPadding(int64_t row, int64_t index) const {
    return row < firstRow || index >= inner();
  }

  /// "d_ring[3, 0, 7, 12]", or what padding it is.
  std::string place(int64_t row, int64_t index) const {
    if (isPadding(row, index))
      return fmt::format("the padding of {} row {}", name, row);
    std::vector<int64_t> position(dims.size());
    for (size_t i = dims.size() - 1; i > 0; --i) {
      position[i] = index % dims[i];
      index /= dims[i];
    }
    position[0] = row;
    return fmt::format("{}[{}]", name, fmt::join(position, ", "));
  }
};

/// Collects one error of the report.
struct ErrorSum {
  double limit = 0; ///< Of "worst".
  double diff = 0, reference = 0, worst = 0;
  int64_t count = 0;
  std::string worstAt;
  std::string firstBeyond; ///< The first element beyond the limit.

  /// Takes over a limit and nothing else.
  static ErrorSum within(double limit) {
    ErrorSum result;
    result.limit = limit;
    return result;
  }

  /// Compares `expected` with row `row` of `x` from element `first` on.
  void add(const TensorMirror &x, int64_t row, int64_t first,
           std::span<const double> expected, int step) {
    HostTensor view = x.view();
    addValues([&](int64_t i) { return view.get(row, first + i); }, expected,
              [&](int64_t i) {
                return fmt::format("{} at step {}", x.place(row, first + i),
                                   step);
              });
  }

  template <typename Get, typename Place>
  void addValues(Get get, std::span<const double> expected, Place place) {
    for (double ref : expected)
      reference += ref * ref;
    count += int64_t(expected.size());
    const double rms = std::sqrt(reference / double(count));
    for (size_t i = 0; i < expected.size(); ++i) {
      double x = get(i), ref = expected[i];
      double difference = std::abs(x - ref);
      if (!std::isfinite(difference))
        difference = std::numeric_limits<double>::infinity();
      diff += difference * difference;
      double scale = std::abs(ref) + rms;
      double relative = difference == 0 ? 0 : difference / scale;
      if (relative > worst) {
        worst = relative;
        worstAt =
            fmt::format("{} ({:.6g}, should be {:.6g})", place(i), x, ref);
        if (!(worst <= limit) && firstBeyond.empty())
          firstBeyond = worstAt;
      }
    }
  }

  double error() const { return diff == 0 ? 0 : std::sqrt(diff / reference); }
};

} // namespace replayjit::internal

#endif
