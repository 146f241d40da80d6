//===- PlanReferenceTest.cpp - Begin and commit on the host ---------------===//
//
// Each rule of PlanReference.h on rows written down by hand, then an engine of
// random steps whose cursors are counted apart.
//
//===----------------------------------------------------------------------===//

#include "kernels/Plan/PlanReference.h"
#include "tests/unit/PlanLaunch.h"

#include <catch2/catch.hpp>

using namespace replayjit::internal;
using namespace replayjit::internal::test;

TEST_CASE("begin looks up cursors and copies indices", "[plan]") {
  PlanLaunch plan(planSpec(), 4, 2);
  plan.cursors = {5, 0, 2};
  plan.keys = {2, 0};
  plan.state = {7, 3};
  plan.begin(9);
  CHECK(plan.writePos == ints{2, 5, 0, 0});
  CHECK(plan.stateOut == ints{7, 3, -1, -1});
  // The defaults: ring and dst are the state index, track is none.
  CHECK(plan.ringOut == ints{7, 3, -1, -1});
  CHECK(plan.dstOut == ints{7, 3, -1, -1});
  CHECK(plan.trackOut == ints{-1, -1, -1, -1});
  CHECK(plan.rowKeys == ints{2, 0, -1, -1});
  CHECK(plan.forceFlush == ints{0, 0, 0, 0});
  CHECK(plan.pending == std::vector<int64_t>{9, 9, 0, 0});
  CHECK(plan.error.count == 0);
  CHECK(plan.cursors == ints{5, 0, 2});
}

TEST_CASE("commit moves each cursor once", "[plan]") {
  PlanLaunch plan(planSpec(), 4, 3);
  plan.cursors = {0, 6, 7};
  plan.keys = {0, 1, 2};
  plan.state = {0, 1, 2};
  plan.begin(1);
  plan.commit(2); // not the step that began
  CHECK(plan.cursors == ints{0, 6, 7});
  CHECK(plan.error.count == 3);
  CHECK(ErrorKind(plan.error.kind) == ErrorKind::StepMismatch);
  CHECK(plan.error.value == 1);
  CHECK(plan.error.layer == -1);
  CHECK(plan.pending == std::vector<int64_t>{1, 1, 1, 0});
  plan.commit(1);
  CHECK(plan.cursors == ints{1, 7, 0}); // L = 8: the last one flushed
  plan.commit(1);
  CHECK(plan.cursors == ints{1, 7, 0});
}

TEST_CASE("a begin without commit is rolled back", "[plan]") {
  PlanLaunch plan(planSpec(), 2, 1);
  plan.cursors = {3};
  plan.keys = {0};
  plan.state = {1};
  plan.begin(1);
  plan.begin(2);
  plan.commit(1);
  CHECK(plan.cursors == ints{3});
  plan.commit(2);
  CHECK(plan.cursors == ints{4});
}

TEST_CASE("rows of one key move it by one token", "[plan]") {
  PlanLaunch plan(planSpec(), 3, 3);
  plan.cursors = {3};
  plan.keys = {0, 0, 0};
  plan.state = {4, 4, 4};
  plan.begin(1);
  plan.commit(1);
  CHECK(plan.cursors == ints{4});
}

TEST_CASE("padding: short batches, negative keys, null slots", "[plan]") {
  PlanLaunch plan(planSpec(), 4, 3);
  plan.cursors = {1, 2, 3};
  plan.keys = {0, -1, 2};
  plan.state = {5, 5, -1};
  plan.begin(1);
  CHECK(plan.stateOut == ints{5, -1, -1, -1});
  CHECK(plan.rowKeys == ints{0, -1, -1, -1});
  CHECK(plan.pending == std::vector<int64_t>{1, 0, 0, 0});
  plan.commit(1);
  CHECK(plan.cursors == ints{2, 2, 3});
  CHECK(plan.error.count == 0);

  // Slot 0 is null where block 0 is reserved, and so are the filled rows.
  DecodeSpec reserved = planSpec();
  reserved.nullSlot = NullSlot::NonPositive;
  PlanLaunch other(reserved, 2, 1);
  other.cursors = {4};
  other.keys = {0};
  other.state = {0};
  other.begin(1);
  CHECK(other.stateOut == ints{0, 0});
  CHECK(other.pending == std::vector<int64_t>{0, 0});
}

TEST_CASE("a null slot in one group is padding in all", "[plan]") {
  PlanLaunch plan(planSpec(), 2, 2);
  plan.cursors = {1, 1};
  plan.keys = {0, 1};
  plan.state = {5, 6};
  ints other = {-1, 8}, otherOut(2);
  plan.args.groups[1].state = {addressOf(other), 1, addressOf(otherOut)};
  plan.args.groups[1].slots = plan.args.groups[1].ringSlots = 10;
  plan.args.numGroups = 2;
  plan.begin(1);
  CHECK(plan.stateOut == ints{-1, 6});
  CHECK(otherOut == ints{-1, 8});
  plan.commit(1);
  CHECK(plan.cursors == ints{1, 2});
}

TEST_CASE("what is not allowed is padding and is reported", "[plan]") {
  struct Case {
    ErrorKind kind;
    int64_t value;
    int32_t layer;
    void (*break_)(PlanLaunch &);
  };
  const Case cases[] = {
      {ErrorKind::CursorKey, 3, -1, [](PlanLaunch &p) { p.keys[1] = 3; }},
      {ErrorKind::WritePos, 8, -1, [](PlanLaunch &p) { p.cursors[1] = 8; }},
      {ErrorKind::WritePos, -2, -1, [](PlanLaunch &p) { p.cursors[1] = -2; }},
      {ErrorKind::NotFlushed, 4, -1,
       [](PlanLaunch &p) {
         p.cursors = {0, 4, 0};
         p.args.requireFlushed = 1;
       }},
      {ErrorKind::FlushedTooFar, 2, -1,
       [](PlanLaunch &p) {
         p.dropNewest = {0, 4, 0}; // of 2 ring rows
         p.args.dropNewest = addressOf(p.dropNewest);
       }},
      {ErrorKind::StateSlot, 10, 0, [](PlanLaunch &p) { p.state[1] = 10; }},
      {ErrorKind::RingSlot, -1, 0,
       [](PlanLaunch &p) {
         p.ring = {0, -1, 0};
         p.args.groups[0].ring.in = addressOf(p.ring);
       }},
      {ErrorKind::RingSlot, 4, 0,
       [](PlanLaunch &p) {
         p.ring = {0, 4, 0};
         p.args.groups[0].ringSlots = 4;
         p.args.groups[0].ring.in = addressOf(p.ring);
       }},
      {ErrorKind::DstSlot, -1, 0,
       [](PlanLaunch &p) {
         p.dst = {0, -1, 0};
         p.args.groups[0].dst.in = addressOf(p.dst);
       }},
      {ErrorKind::TrackSlot, 10, 0,
       [](PlanLaunch &p) {
         p.track = {-1, 10, 3};
         p.args.groups[0].track.in = addressOf(p.track);
       }},
  };
  for (const Case &c : cases) {
    INFO("kind " << int(c.kind) << ", value " << c.value);
    PlanLaunch plan(planSpec(), 3, 3);
    plan.cursors = {0, 2, 0};
    plan.keys = {0, 1, 2};
    plan.state = {4, 5, 6};
    c.break_(plan);
    const ints before = plan.cursors;
    plan.begin(1);
    CHECK(plan.error.count == 1);
    CHECK(plan.error.kind == uint32_t(c.kind));
    CHECK(plan.error.row == 1);
    CHECK(plan.error.layer == c.layer);
    CHECK(plan.error.value == c.value);
    CHECK(plan.stateOut == ints{4, -1, 6});
    plan.commit(1);
    CHECK(plan.cursors[1] == before[1]);
    CHECK(plan.cursors[0] == before[0] + 1);
  }
}

TEST_CASE("a fresh row starts at 0, whatever its cursor holds", "[plan]") {
  PlanLaunch plan(planSpec(), 2, 2);
  plan.cursors = {77, 5};
  plan.keys = {0, 1};
  plan.state = {1, 2};
  ints fresh = {1, 0};
  plan.args.fresh = addressOf(fresh);
  plan.begin(1);
  CHECK(plan.writePos == ints{0, 5});
  plan.commit(1);
  CHECK(plan.cursors == ints{1, 6});
  CHECK(plan.error.count == 0);
}

TEST_CASE("where no ring is used its slot may be any number", "[plan]") {
  struct Case {
    const char *what;
    int64_t step;
    int cursor, forceAll, fresh, drop;
    bool isLive;
  };
  for (const Case &c : {Case{"a look at an empty ring", 0, 0, 0, 0, 0, true},
                        {"a look at a ring", 0, 2, 0, 0, 0, false},
                        {"a fresh row", 0, 2, 0, 1, 0, true},
                        {"all of a ring left out", 0, 2, 0, 0, 2, true},
                        {"some of a ring left out", 0, 2, 0, 0, 1, false},
                        {"a fold of an empty ring", 4, 0, 1, 0, 0, true},
                        {"a fold of a ring", 4, 2, 1, 0, 0, false},
                        {"a token", 4, 0, 0, 0, 0, false}})
    for (int ring : {-1, 10, INT32_MIN, INT32_MAX}) {
      INFO(c.what << ", ring " << ring);
      PlanLaunch plan(planSpec(), 1, 1);
      plan.cursors = {c.cursor};
      plan.keys = {0};
      plan.state = {5};
      plan.ring = {ring};
      plan.dropNewest = {c.drop};
      const ints fresh = {c.fresh};
      plan.args.groups[0].ring.in = addressOf(plan.ring);
      plan.args.dropNewest = addressOf(plan.dropNewest);
      plan.args.fresh = addressOf(fresh);
      plan.args.forceAll = c.forceAll;
      plan.begin(c.step);
      CHECK(plan.stateOut == ints{c.isLive ? 5 : -1});
      CHECK(plan.ringOut == ints{c.isLive ? ring : -1});
      CHECK(plan.error.kind ==
            uint32_t(c.isLive ? ErrorKind::None : ErrorKind::RingSlot));
      CHECK(plan.error.value == (c.isLive ? 0 : ring));
    }
}

TEST_CASE("a forced flush empties the ring", "[plan]") {
  PlanLaunch plan(planSpec(), 2, 2);
  plan.cursors = {3, 4};
  plan.keys = {0, 1};
  plan.state = {1, 2};
  ints mask = {0, 5};
  plan.args.flushMask = addressOf(mask);
  plan.begin(1);
  CHECK(plan.forceFlush == ints{0, 1});
  plan.commit(1);
  CHECK(plan.cursors == ints{4, 0});
}

TEST_CASE("a row past its end does not flush", "[plan]") {
  // All three would flush; 20 tokens are known to be the most of row 0, the
  // next has room and the last no limit.
  for (bool isCircular : {false, true}) {
    DecodeSpec spec = planSpec();
    spec.isCircular = isCircular;
    PlanLaunch plan(spec, 3, 3);
    plan.cursors = {7, 7, 7};
    plan.keys = {0, 1, 2};
    plan.state = {1, 2, 3};
    ints seqLen = {22, 21, 99}, most = {20, 21, -1};
    plan.args.seqLen = addressOf(seqLen);
    plan.args.noFlushPast = addressOf(most);
    plan.begin(1);
    CHECK(plan.stateOut == ints{-1, 2, 3});
    CHECK(plan.error.count == 0);
    plan.commit(1);
    CHECK(plan.cursors[0] == 7);
    CHECK(plan.cursors[1] == (isCircular ? 1 : 0));
    // A full circular ring folds all but the newest token.
    seqLen[0] = 21;
    plan.cursors[0] = 7;
    plan.begin(2);
    CHECK(plan.stateOut[0] == (isCircular ? 1 : -1));
  }
}

TEST_CASE("advance_by: taken back, accepted drafts, too many", "[plan]") {
  PlanLaunch plan(planSpec(), 5, 5);
  plan.cursors = {3, 3, 3, 3, 7};
  plan.keys = {0, 1, 2, 3, 4};
  plan.state = {1, 2, 3, 4, 5};
  ints by = {0, 4, 5, -1, 0};
  plan.args.advanceBy = addressOf(by);
  plan.begin(1);
  plan.commit(1);
  CHECK(plan.cursors == ints{3, 7, 3, 3, 0}); // the last one had flushed
  CHECK(plan.error.count == 2);
  CHECK(plan.error.kind == uint32_t(ErrorKind::AdvanceBy));
  CHECK(plan.error.row == 2);
  CHECK(plan.error.value == 5);
}

TEST_CASE("a circular ring wraps and keeps the newest token", "[plan]") {
  DecodeSpec spec = planSpec();
  spec.isCircular = true;
  PlanLaunch plan(spec, 2, 2);
  plan.cursors = {7, 7};
  plan.bases = {3, 3};
  plan.keys = {0, 1};
  plan.state = {1, 2};
  ints by = {1, 0};
  plan.args.advanceBy = addressOf(by);
  plan.begin(1);
  CHECK(plan.ringBase == ints{3, 3});
  plan.commit(1);
  CHECK(plan.cursors == ints{1, 0});
  CHECK(plan.bases == ints{2, 2}); // (3 + 7) mod 8
}

TEST_CASE("a header stands in for step and live rows", "[plan]") {
  PlanLaunch plan(planSpec(), 3, 3);
  plan.cursors = {1, 1, 1};
  plan.keys = {0, 1, 2};
  plan.state = {1, 2, 3};
  PlanHeader header;
  plan.args.header = reinterpret_cast<uint64_t>(&header);
  plan.begin(0);
  plan.commit(0);
  CHECK(plan.cursors == ints{1, 1, 1}); // as in capture and warm-up
  header = {5, 2, 0};
  plan.begin(0);
  plan.commit(0);
  CHECK(plan.cursors == ints{2, 2, 1});
}

TEST_CASE("64-bit indices with strides", "[plan]") {
  DecodeSpec spec = planSpec();
  spec.indexType = DataType::I64;
  PlanLaunch plan(spec, 2, 2);
  plan.cursors = {1, 2};
  std::vector<int64_t> keys = {1, 99, 0}, state = {4, 99, 99, 5}, out(2);
  plan.args.keys = addressOf(keys);
  plan.args.keyStride = 2;
  plan.args.groups[0] = {};
  plan.args.groups[0].state = {addressOf(state), 3, addressOf(out)};
  plan.args.groups[0].slots = plan.args.groups[0].ringSlots = 10;
  plan.begin(1);
  CHECK(plan.rowKeys == ints{1, 0});
  CHECK(plan.writePos == ints{2, 1});
  CHECK(out == std::vector<int64_t>{4, 5});
}

TEST_CASE("cursors of random steps are those counted apart", "[plan]") {
  for (bool isCircular : {false, true}) {
    DecodeSpec spec = planSpec();
    spec.isCircular = isCircular;
    std::mt19937 random(3);
    auto below = [&](int n) { return int(random() % n); };
    constexpr int keys = 6;
    PlanLaunch plan(spec, 4, 4);
    plan.cursors.assign(keys, 0);
    plan.bases.assign(keys, 0);
    plan.args.numKeys = keys;
    // What a ring holds, oldest first; a flush empties it.
    std::vector<int> held(keys);
    ints mask(4);
    plan.args.flushMask = addressOf(mask);
    for (int step = 1; step <= 500; ++step) {
      ints order = {0, 1, 2, 3, 4, 5};
      std::shuffle(order.begin(), order.end(), random);
      plan.keys.assign(order.begin(), order.begin() + 4);
      plan.state = {1, 2, 3, 4};
      plan.args.live = below(5);
      for (int &m : mask)
        m = below(10) == 0;
      plan.begin(step);
      if (below(5) == 0)
        continue; // aborted
      plan.commit(step);
      for (int row = 0; row < plan.args.live; ++row) {
        int &rows = held[plan.keys[row]];
        const bool isFull = rows + 1 == spec.ringDepth;
        if (mask[row] || (isFull && !isCircular))
          rows = 0;
        else
          rows = isFull ? 1 : rows + 1;
      }
      CHECK(plan.cursors == ints(held.begin(), held.end()));
    }
    CHECK(plan.error.count == 0);
  }
}
