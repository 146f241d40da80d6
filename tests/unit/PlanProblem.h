//===- PlanProblem.h - Random plans, on the host and on a device *- C++ -*-===//
//
// For unit tests in the emulation and for tests/gpu/PlanStepsTest.cpp.
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_TESTS_UNIT_PLANPROBLEM_H
#define REPLAYJIT_TESTS_UNIT_PLANPROBLEM_H

#include "kernels/Plan/PlanReference.h"
#include "runtime/Device.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <numeric>
#include <random>
#include <vector>

namespace replayjit::internal::test {

/// Host memory of fixed size, cut into aligned arrays.
class Arena {
public:
  static constexpr size_t bytes = 16384;
  Arena() : memory(bytes / 8) {}

  uint64_t base() const { return reinterpret_cast<uint64_t>(memory.data()); }
  uint64_t take(size_t size) {
    const uint64_t at = base() + used;
    used += (size + 63) / 64 * 64;
    if (used > bytes)
      std::abort(); // The constant above is too small.
    return at;
  }
  template <typename T> T *at(uint64_t address) {
    return reinterpret_cast<T *>(address);
  }
  std::vector<char> content() const {
    const char *begin = reinterpret_cast<const char *>(memory.data());
    return {begin, begin + bytes};
  }

private:
  std::vector<uint64_t> memory;
  size_t used = 0;
};

/// Random arguments over an arena; most rows are legal.
class PlanProblem {
public:
  static constexpr int maxRows = 12, numKeys = 40, slots = 8, ringSlots = 5;

  PlanProblem(const DecodeSpec &spec, Arena &arena, std::mt19937 &random)
      : spec(spec), arena(arena), random(random) {
    args.batch = 1 + below(maxRows);
    args.live = below(args.batch + 1);
    args.numKeys = numKeys;
    args.numGroups = below(maxPlanGroups + 1);
    args.step = below(4) ? 1 + below(5) * int64_t(0x100000001) : 0;
    args.forceAll = below(8) == 0;
    args.requireFlushed = below(8) == 0;
    args.keyStride = 1 + below(3);
    args.keys = indices(args.keyStride, numKeys, below(3) == 0,
                        /*isDistinct=*/true);
    args.cursors = numbers(numKeys, 0, spec.ringDepth, /*mayBeWild=*/true);
    args.bases = numbers(numKeys, 0, spec.ringDepth, /*mayBeWild=*/true);
    args.flushMask = maybe([&] { return numbers(maxRows, -1, 2); });
    args.fresh = maybe([&] { return numbers(maxRows, 0, 2); });
    if (below(2)) {
      args.seqLen = numbers(maxRows, 1, 40);
      args.noFlushPast = numbers(maxRows, -1, 40);
    }
    args.dropNewest = below(3) ? 0 : numbers(maxRows, 0, 2);
    args.advanceBy = maybe([&] { return numbers(maxRows, -1, 4); });
    for (uint64_t PlanArgs::*array :
         {&PlanArgs::writePos, &PlanArgs::ringBase, &PlanArgs::forceFlush,
          &PlanArgs::rowKeys})
      args.*array = numbers(maxRows, 0, 100);
    args.pending = arena.take(maxRows * sizeof(int64_t));
    args.errorWord = arena.take(sizeof(ErrorWord));
    *arena.at<ErrorWord>(args.errorWord) = ErrorWord();
    if (below(3) == 0) {
      args.header = arena.take(sizeof(PlanHeader));
      *arena.at<PlanHeader>(args.header) = {args.step, args.live, 0};
      args.step = args.live = 0;
    }
    for (int g = 0; g < args.numGroups; ++g)
      args.groups[g] = group();
  }

  PlanArgs args;

private:
  int below(int n) { return int(random() % n); }
  uint64_t maybe(const std::function<uint64_t()> &make) {
    return below(2) ? make() : 0;
  }
  /// int32 from low to high-1; one in 20 is far off if `mayBeWild`.
  uint64_t numbers(int count, int low, int high, bool mayBeWild = false) {
    const uint64_t array = arena.take(count * sizeof(int32_t));
    for (int i = 0; i < count; ++i)
      arena.at<int32_t>(array)[i] =
          mayBeWild && below(20) == 0 ? wild() : low + below(high - low);
    return array;
  }
  int32_t wild() {
    constexpr int32_t values[] = {-1, INT32_MIN, INT32_MAX, 64, 1000};
    return values[below(5)];
  }
  /// Of one key and different flags, the row that comes last would count.
  uint64_t indices(int64_t stride, int end, bool mayBeWild,
                   bool isDistinct = false) {
    const size_t count = maxRows * stride;
    std::vector<int> order(end - 1);
    std::iota(order.begin(), order.end(), 1);
    std::shuffle(order.begin(), order.end(), random);
    const uint64_t array = arena.take(count * byteSize(spec.indexType));
    for (size_t i = 0; i < count; ++i) {
      int64_t value = isDistinct ? order[i] : 1 + below(end - 1);
      if (mayBeWild && below(10) == 0)
        value = wild();
      if (spec.indexType == DataType::I64)
        arena.at<int64_t>(array)[i] = value;
      else
        arena.at<int32_t>(array)[i] = int32_t(value);
    }
    return array;
  }
  PlanGroup group() {
    PlanGroup result;
    const bool mayBeWild = below(4) == 0;
    auto fill = [&](PlanIndices &kind, bool isGiven, int end) {
      kind.stride = 1 + below(3);
      if (isGiven)
        kind.in = indices(kind.stride, end, mayBeWild);
      if (below(6))
        kind.out = arena.take(maxRows * byteSize(spec.indexType));
    };
    fill(result.state, true, slots);
    fill(result.ring, below(2), ringSlots);
    fill(result.dst, below(2), slots);
    fill(result.track, below(2), slots);
    result.slots = slots;
    result.ringSlots = result.ring.in ? ringSlots : slots;
    return result;
  }

  const DecodeSpec &spec;
  Arena &arena;
  std::mt19937 &random;
};

/// The arguments for a copy of their memory that lies `distance` further on.
inline PlanArgs moved(PlanArgs args, uint64_t distance) {
  auto move = [&](uint64_t &address) {
    if (address)
      address += distance;
  };
  for (uint64_t PlanArgs::*array :
       {&PlanArgs::keys, &PlanArgs::cursors, &PlanArgs::bases,
        &PlanArgs::header, &PlanArgs::flushMask, &PlanArgs::fresh,
        &PlanArgs::seqLen, &PlanArgs::noFlushPast, &PlanArgs::dropNewest,
        &PlanArgs::advanceBy, &PlanArgs::writePos, &PlanArgs::ringBase,
        &PlanArgs::forceFlush, &PlanArgs::rowKeys, &PlanArgs::pending,
        &PlanArgs::errorWord})
    move(args.*array);
  for (PlanGroup &group : args.groups)
    for (PlanIndices PlanGroup::*kind : {&PlanGroup::state, &PlanGroup::ring,
                                         &PlanGroup::dst, &PlanGroup::track}) {
      move((group.*kind).in);
      move((group.*kind).out);
    }
  return args;
}

/// How many problems there were, and of how many the plan did something.
struct PlanCounts {
  int same = 0, reported = 0, moved = 0;
};

/// Solves `rounds` random problems on the host and by the two launches, and
/// compares all memory after each. Counts until one differs.
inline Result<PlanCounts>
comparePlans(Device &device, const DecodeSpec &spec,
             const std::function<Status(const PlanArgs &)> &begin,
             const std::function<Status(const PlanArgs &)> &commit,
             int rounds) {
  Result<uint64_t> memory = device.allocate(Arena::bytes, "plans");
  if (!memory)
    return memory.status();
  std::mt19937 random(11);
  PlanCounts counts;
  std::vector<char> seen(Arena::bytes);
  // Which of several bad rows comes first is not said.
  auto isSame = [&](Arena &arena, uint64_t errorWord) {
    std::vector<char> expected = arena.content();
    ErrorWord ours, theirs;
    char *const places[] = {expected.data(), seen.data()};
    ErrorWord *const words[] = {&ours, &theirs};
    for (int i = 0; i < 2; ++i) {
      char *word = places[i] + (errorWord - arena.base());
      std::memcpy(words[i], word, sizeof(ErrorWord));
      std::memset(word, 0, sizeof(ErrorWord));
    }
    if (ours.count == 1 && std::memcmp(&ours, &theirs, sizeof ours) != 0)
      return false;
    return ours.count == theirs.count && expected == seen;
  };
  for (; counts.same < rounds; ++counts.same) {
    Arena arena;
    PlanArgs args = PlanProblem(spec, arena, random).args;
    PlanArgs onDevice = moved(args, *memory - arena.base());
    if (Status status =
            device.copyToDevice(*memory, arena.content().data(), Arena::bytes);
        !status)
      return status;
    auto step = [&](const auto &launch) {
      if (Status status = launch(onDevice); !status)
        return status;
      if (Status status = device.synchronize(); !status)
        return status;
      return device.copyFromDevice(seen.data(), *memory, Arena::bytes);
    };
    planBeginHost(spec, args);
    if (Status status = step(begin); !status)
      return status;
    if (!isSame(arena, args.errorWord))
      break;
    counts.reported += arena.at<ErrorWord>(args.errorWord)->count > 0;
    const std::vector<char> begun = arena.content();
    if (counts.same % 4 == 0 && args.step) // C4: not the step that began.
      onDevice.step = ++args.step;
    planCommitHost(spec, args);
    if (Status status = step(commit); !status)
      return status;
    if (!isSame(arena, args.errorWord))
      break;
    counts.moved += arena.content() != begun;
  }
  if (Status status = device.free(*memory); !status)
    return status;
  return counts;
}

/// Specs whose plans differ.
inline std::vector<DecodeSpec> planSpecs() {
  std::vector<DecodeSpec> specs(3);
  specs[0].ringDepth = 8;
  specs[1].ringDepth = 5;
  specs[1].isCircular = true;
  specs[1].indexType = DataType::I64;
  specs[1].nullSlot = NullSlot::NonPositive;
  specs[2].ringDepth = 1;
  specs[2].nullSlot = NullSlot::NonPositive;
  return specs;
}

} // namespace replayjit::internal::test

#endif
