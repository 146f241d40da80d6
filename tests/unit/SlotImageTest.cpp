//===- SlotImageTest.cpp - Requests leave a pool and come back ------------===//
//
// Pools of one rank that holds two key heads, and of two ranks with one each,
// in the emulation, whose memory the test reads directly.
//
//===----------------------------------------------------------------------===//

#include "runtime/state/SlotImage.h"
#include "runtime/cache/Digest.h"
#include "tests/unit/StateModel.h"

using namespace replayjit::internal;
using namespace replayjit::internal::test;

namespace {

constexpr int L = 4, K = 16, V = 8, ratio = 2;

/// `heads` key heads from `first` of two, in two layers.
struct Rank {
  std::unique_ptr<StatePool> pool;

  Rank(int heads, int first) {
    PoolGroup group;
    group.spec = makeSpec(heads, ratio * heads, K, V, L);
    group.spec.hasRingIndices = true;
    group.layers.resize(2);
    group.slots = 5;
    group.ringSlots = 3;
    group.keyHeadBegin = first;
    group.keyHeadTotal = 2;
    auto made = StatePool::allocate(sharedJit(), {group}, /*numKeys=*/4);
    REQUIRE(made.status().message == "");
    pool = std::move(*made);
  }

  std::vector<TransferRegion> regions() const { return transferList(*pool); }
  float *slot(const TransferRegion &region, int64_t slot) const {
    return reinterpret_cast<float *>(region.base + slot * region.pitchBytes);
  }
  int32_t &cursor(int key) const {
    return reinterpret_cast<int32_t *>(pool->cursors().writePos)[key];
  }
  /// A number that says what it is, in every element of a slot.
  void fill(GroupSlot at) const {
    for (const TransferRegion &region : regions()) {
      const int64_t each = region.slotBytes / 4 / region.heads;
      const bool isState = region.tensor == TransferRegion::State;
      for (int64_t i = 0; i < each * region.heads; ++i)
        slot(region, isState ? at.state : at.ring)[i] =
            value(region, region.firstHead + i / each, i % each);
    }
  }
  static float value(const TransferRegion &region, int64_t head, int64_t i) {
    return float(region.layer * 1000000 + region.tensor * 100000 +
                 head * 10000 + i);
  }
  bool holds(GroupSlot at, bool withRing) const {
    bool all = true;
    for (const TransferRegion &region : regions()) {
      const bool isState = region.tensor == TransferRegion::State;
      if (!isState && !withRing)
        continue;
      const int64_t each = region.slotBytes / 4 / region.heads;
      for (int64_t i = 0; i < each * region.heads; ++i)
        all &= slot(region, isState ? at.state : at.ring)[i] ==
               value(region, region.firstHead + i / each, i % each);
    }
    return all;
  }
  std::string exported(GroupSlot at, int key, ImageForm form) const {
    auto image = exportSlot(*pool, nullptr, {&at, 1}, key, form);
    REQUIRE(image.status().message == "");
    return *image;
  }
  Status import(GroupSlot at, int key,
                std::vector<std::string_view> images) const {
    return importSlot(*pool, nullptr, {&at, 1}, key, images);
  }
};

/// The image with other bytes from `at` on, and the checksum that is right for
/// them.
template <typename T>
std::string forged(const std::string &image, size_t at, T value) {
  std::string content = image.substr(0, image.size() - digestDigits);
  std::memcpy(&content[at], &value, sizeof value);
  return content + digestOf(content);
}

/// Where an image's fields are.
enum Place : size_t {
  Form = 8,
  NumGroups = 12,
  WritePos = 16,
  RingBase = 20,
  KeyHeads = 68,
  FirstKeyHead = 72,
  Data = 76,
};

} // namespace

TEST_CASE("one rank's request moves to two ranks and back", "[state]") {
  const Rank whole(2, 0), low(1, 0), high(1, 1);
  const GroupSlot from = {3, 1}, there = {0, 2}, back = {4, 0};
  whole.fill(from);
  whole.cursor(2) = 3;
  const std::string image = whole.exported(from, 2, ImageForm::WithRing);
  for (const Rank *rank : {&low, &high}) {
    CHECK_FALSE(rank->holds(there, true));
    REQUIRE(rank->import(there, 1, {image}).message == "");
    CHECK(rank->holds(there, true));
    CHECK(rank->cursor(1) == 3);
    CHECK(rank->cursor(0) == 0);
  }
  const std::string parts[] = {low.exported(there, 1, ImageForm::WithRing),
                               high.exported(there, 1, ImageForm::WithRing)};
  REQUIRE(whole.import(back, 0, {parts[1], parts[0]}).message == "");
  CHECK(whole.holds(back, true));
  CHECK(whole.cursor(0) == 3);
}

TEST_CASE("a folded image needs no ring and no cursor", "[state]") {
  const Rank whole(2, 0), low(1, 0), high(1, 1);
  const GroupSlot from = {1, -1}, there = {2, -1};
  for (const Rank *rank : {&low, &high}) {
    GroupSlot filled = from;
    filled.ring = 0;
    rank->fill(filled);
  }
  const std::string parts[] = {low.exported(from, -1, ImageForm::Folded),
                               high.exported(from, 3, ImageForm::Folded)};
  REQUIRE(whole.import(there, -1, {parts[0], parts[1]}).message == "");
  CHECK(whole.holds(there, false));

  // A cursor that is set says that the ring counts for nothing.
  whole.cursor(2) = 2;
  REQUIRE(whole.import(there, 2, {parts[0], parts[1]}).message == "");
  CHECK(whole.cursor(2) == 0);
}

TEST_CASE("images that do not fit are refused", "[state]") {
  const Rank whole(2, 0), low(1, 0);
  const GroupSlot from = {1, 1}, there = {2, 2};
  whole.fill(from);
  whole.cursor(1) = 2;
  CHECK(exportSlot(*whole.pool, nullptr, {&from, 1}, 1, ImageForm::Folded)
            .status()
            .message ==
        "key: 1 has 2 tokens in its ring, which a folded image would lose; "
        "fold them first, or export with the ring");
  CHECK(exportSlot(*whole.pool, nullptr, {&from, 1}, -1, ImageForm::WithRing)
            .status()
            .message ==
        "key: -1 is not allowed for an image with a ring, which needs a "
        "cursor");
  const std::string image = whole.exported(from, 1, ImageForm::WithRing);
  auto refuses = [&](std::string_view bytes, const char *why) {
    CHECK_THAT(whole.import(there, 0, {bytes}).message, Catch::Contains(why));
    CHECK_FALSE(whole.holds(there, true));
    CHECK(whole.cursor(0) == 0);
  };
  for (size_t at = 8; at < image.size(); at += image.size() / 13) {
    std::string flipped = image;
    flipped[at] ^= 1;
    refuses(flipped, "images[0]: it is damaged: its checksum is another");
  }
  for (size_t size = 0; size < image.size(); size += image.size() / 13)
    refuses(std::string_view(image).substr(0, size), "images[0]: ");
  refuses("something else that is long enough to be an image of some slot",
          "this is no image of a slot");

  const std::string part = low.exported(from, 1, ImageForm::WithRing);
  refuses(part, "head 2 of 4 of group 0 is in none of them");
  CHECK_THAT(whole.import(there, 0, {image, part}).message,
             Catch::Contains("images[1]: its form or its cursor is not that"));
  CHECK_THAT(whole.import({5, 2}, 0, {image}).message,
             Catch::Contains("slots[0].state: 5 is not allowed"));
  CHECK_THAT(whole.import(there, -1, {image}).message,
             Catch::Contains("key: -1 is not allowed for images with a ring"));
  REQUIRE(whole.import(there, 0, {image}).message == "");
  CHECK(whole.holds(there, true));
}

TEST_CASE("an image whose checksum is right may lie all the same",
          "[state][error]") {
  const Rank whole(2, 0);
  const GroupSlot from = {1, 1}, there = {2, 2};
  whole.fill(from);
  whole.cursor(1) = 2;
  const std::string image = whole.exported(from, 1, ImageForm::WithRing);
  const std::string folded = whole.exported(from, -1, ImageForm::Folded);
  auto refuses = [&](const std::string &bytes, const std::string &why,
                     GroupSlot slot) {
    CHECK(whole.import(slot, 0, {bytes}).message == "images[0]: " + why);
    CHECK_FALSE(whole.holds(there, false));
    CHECK(whole.cursor(0) == 0);
  };
  // Of an unknown form the ring's index was not looked at and yet used.
  for (uint32_t form : {2u, 7u, ~0u})
    refuses(forged(image, Form, form),
            "form: " + std::to_string(form) +
                " is not allowed; it must be 0 or 1",
            {2, 1 << 20});
  refuses(forged(image, Form, 0u),
          "layers, head sizes, head counts, types or rings are not those of "
          "the pool",
          there);
  for (int32_t cursor : {-1, L, 1 << 30})
    refuses(forged(image, WritePos, cursor),
            "writePos: " + std::to_string(cursor) +
                " is not allowed; it must be 0 to 3",
            there);
  refuses(forged(folded, WritePos, 1),
          "writePos: 1 is not allowed; it must be 0 to 0", there);
  refuses(forged(image, RingBase, 1), // the rings are not circular
          "ringBase: 1 is not allowed; it must be 0 to 0", there);
  refuses(forged(image, NumGroups, 0),
          "it has another number of groups than the pool", there);
  refuses(forged(image, NumGroups, -1), "it is damaged: its header is cut off",
          there);
  for (auto [heads, first] : {std::pair(0, 0),
                              {-1, 0},
                              {3, 0},
                              {INT32_MAX, 0},
                              {2, 1},
                              {1, 2},
                              {2, -1},
                              {1, INT32_MIN}})
    refuses(forged(forged(image, KeyHeads, heads), FirstKeyHead, first),
            "keyHeads: " + std::to_string(heads) + " from " +
                std::to_string(first) +
                " are not allowed in group 0; they must be 1 to 2 of the "
                "model's 2",
            there);

  // Heads that are allowed, and tensors that are of others.
  const size_t bytes = image.size() - digestDigits - Data;
  refuses(forged(image, KeyHeads, 1),
          "it has " + std::to_string(bytes) +
              " bytes of tensors; its header says " + std::to_string(bytes / 2),
          there);
  std::string content = image.substr(0, image.size() - digestDigits);
  for (std::string other :
       {content + '0', content.substr(0, content.size() - 1),
        content.substr(0, Data)})
    refuses(other + digestOf(other),
            "it has " + std::to_string(other.size() - Data) +
                " bytes of tensors; its header says " + std::to_string(bytes),
            there);
  REQUIRE(whole.import(there, 0, {forged(image, WritePos, L - 1)}).message ==
          "");
  CHECK(whole.holds(there, true));
  CHECK(whole.cursor(0) == L - 1);
}

TEST_CASE("the base of an image is within a circular ring", "[state][error]") {
  StateModel model(/*ringDepth=*/L, /*isCircular=*/true);
  const GroupSlot slot = {1, 1};
  auto image =
      exportSlot(*model.pool, nullptr, {&slot, 1}, 1, ImageForm::WithRing);
  REQUIRE(image.status().message == "");
  auto import = [&](int32_t base) {
    const std::string bytes = forged(*image, RingBase, base);
    const std::string_view images[] = {bytes};
    return importSlot(*model.pool, nullptr, {&slot, 1}, 0, images).message;
  };
  const auto *bases =
      reinterpret_cast<const int32_t *>(model.pool->cursors().ringBase);
  CHECK(import(-1) ==
        "images[0]: ringBase: -1 is not allowed; it must be 0 to 3");
  CHECK(import(L) == "images[0]: ringBase: 4 is not allowed; it must be 0 to "
                     "3");
  CHECK(bases[0] == 0);
  CHECK(import(L - 1) == "");
  CHECK(bases[0] == L - 1);
}

TEST_CASE("the list for transfers covers each tensor once", "[state]") {
  const Rank high(1, 1);
  const std::vector<TransferRegion> list = high.regions();
  REQUIRE(list.size() == 8);
  const TransferRegion &k = list[6];
  CHECK(k.layer == 1);
  CHECK(k.tensor == TransferRegion::KRing);
  CHECK(k.base == high.pool->groups()[0].layers[1].kRing);
  CHECK(k.slotBytes == L * K * 4);
  CHECK(k.count == 3);
  CHECK(k.heads == 1);
  CHECK(k.firstHead == 1);
  CHECK(k.totalHeads == 2);
  const TransferRegion &state = list[0];
  CHECK(state.slotBytes == ratio * V * K * 4);
  CHECK(state.firstHead == ratio);
  CHECK(state.totalHeads == 2 * ratio);
}
