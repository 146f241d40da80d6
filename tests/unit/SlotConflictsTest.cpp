//===- SlotConflictsTest.cpp - Two rows of one launch on one slot ---------===//
//
// First by hand what counts as a conflict, then that launches of the emulation
// and plans find it without being asked.
//
//===----------------------------------------------------------------------===//

#include "kernels/Decode/SlotConflicts.h"
#include "kernels/Materialize/MaterializeReference.h"

#include "kernels/Plan/PlanReference.h"
#include "tests/unit/PlanLaunch.h"
#include "tests/unit/StateModel.h"

using namespace replayjit::internal;
using namespace replayjit::internal::test;

namespace {

const std::string because =
    "; the rows of one launch run at once, so each needs a slot of its own";

/// A launch on host memory: one entry a row.
struct Rows {
  ints state = {}, ring = {}, dst = {}, track = {}, writePos = {}, forced = {};
  ints base = {};

  std::string said(const DecodeSpec &spec) {
    DecodeArgs args;
    args.batch = int32_t(state.size());
    args.slots = args.ringSlots = 10;
    for (auto [field, array] : {std::pair(&DecodeArgs::stateIndices, &state),
                                {&DecodeArgs::ringIndices, &ring},
                                {&DecodeArgs::dstIndices, &dst},
                                {&DecodeArgs::trackIndices, &track},
                                {&DecodeArgs::writePos, &writePos},
                                {&DecodeArgs::ringBase, &base},
                                {&DecodeArgs::forceFlush, &forced}}) {
      array->resize(state.size());
      args.*field = addressOf(*array);
    }
    return checkSlots(spec, args).message;
  }
};

DecodeSpec withIndices() {
  DecodeSpec spec;
  spec.ringDepth = 4;
  spec.hasRingIndices = spec.hasDstIndices = spec.hasTrackIndices = true;
  return spec;
}

} // namespace

TEST_CASE("rows with drafts keep them in the ring, whether they fold or not",
          "[slots]") {
  DecodeSpec spec = withIndices();
  spec.family = Family::Verify;
  spec.isCircular = true;
  spec.hasTrackIndices = false;
  spec.numTokens = 2;
  for (int forced : {0, 1}) {
    const Rows same = {.state = {1, 2},
                       .ring = {3, 3},
                       .dst = {4, 5},
                       .writePos = {1, 0},
                       .forced = {forced, forced}};
    CHECK(Rows(same).said(spec) ==
          "rows 0 and 1 share ring slot 3, which row 0 writes" + because);
  }
  // Two may read a checkpoint that neither writes.
  CHECK(Rows{.state = {1, 1}, .ring = {2, 3}, .dst = {4, 5}, .writePos = {1, 1}}
            .said(spec) == "");
  CHECK(Rows{.state = {1, 1}, .ring = {2, 3}, .dst = {4, 4}, .writePos = {1, 1}}
            .said(spec) ==
        "rows 0 and 1 share state slot 4, which row 0 writes" + because);
  // Of an empty ring nothing is folded.
  CHECK(Rows{.state = {1, 1}, .ring = {2, 3}, .dst = {4, 4}}.said(spec) == "");
}

TEST_CASE("two live rows on one slot", "[slots]") {
  DecodeSpec spec;
  spec.ringDepth = 4;
  CHECK(Rows{.state = {1, 2, 0}}.said(spec) == "");
  // Both append, or flush; padding has no slot, nor has a bad row.
  CHECK(Rows{.state = {1, 2, 1}}.said(spec) ==
        "rows 0 and 2 share ring slot 1, which row 0 writes" + because);
  CHECK(Rows{.state = {1, 2, 1}, .writePos = {3, 3, 3}}.said(spec) ==
        "rows 0 and 2 share state slot 1, which row 0 writes" + because);
  CHECK(Rows{.state = {5, 1, 5}, .writePos = {1, 0, 3}}.said(spec) ==
        "rows 0 and 2 share state slot 5, which row 2 writes" + because);
  CHECK(Rows{.state = {-1, -1, 77, 77}}.said(spec) == "");
  CHECK(Rows{.state = {3, 3}, .writePos = {0, 9}}.said(spec) == "");

  DecodeSpec packed;
  packed.family = Family::Packed;
  packed.ringDepth = 1;
  CHECK(Rows{.state = {4, 4}}.said(packed) ==
        "rows 0 and 1 share state slot 4, which row 0 writes" + because);
}

TEST_CASE("forks share what they only read", "[slots]") {
  const DecodeSpec spec = withIndices();
  // A checkpoint, with rings of their own, also as they flush elsewhere.
  Rows forks{.state = {1, 1},
             .ring = {2, 3},
             .dst = {4, 5},
             .track = {-1, -1},
             .writePos = {1, 3}};
  CHECK(forks.said(spec) == "");
  forks.forced = {1, 1};
  forks.ring = {2, 2}; // Nobody appends.
  CHECK(forks.said(spec) == "");
  forks.forced = {1, 0};
  CHECK(forks.said(spec) == "");
  forks.writePos = {1, 2};
  CHECK(forks.said(spec) ==
        "rows 0 and 1 share ring slot 2, which row 1 writes" + because);
  // An empty ring is not read.
  forks.writePos = {0, 2};
  CHECK(forks.said(spec) == "");
  // The slot of a flush, or of tracking, is the state of another row.
  forks = {.state = {1, 6},
           .ring = {2, 3},
           .dst = {6, 5},
           .track = {-1, -1},
           .writePos = {3, 1}};
  CHECK(forks.said(spec) ==
        "rows 0 and 1 share state slot 6, which row 0 writes" + because);
  forks.writePos = {2, 1};
  CHECK(forks.said(spec) == "");
  forks.track = {-1, 1};
  CHECK(forks.said(spec) ==
        "rows 0 and 1 share state slot 1, which row 1 writes" + because);
}

TEST_CASE("a circular ring that is full is flushed and written", "[slots]") {
  DecodeSpec spec = withIndices();
  spec.isKda = spec.isCircular = true;
  ints base(2);
  DecodeArgs args;
  args.batch = 2;
  args.slots = args.ringSlots = 10;
  const ints state = {1, 2}, ring = {3, 3}, dst = {4, 5}, none = {-1, -1},
             full = {3, 3}, forced = {1, 1}, zeros = {0, 0};
  args.stateIndices = addressOf(state);
  args.ringIndices = addressOf(ring);
  args.dstIndices = addressOf(dst);
  args.trackIndices = addressOf(none);
  args.writePos = addressOf(full);
  args.ringBase = addressOf(base);
  args.forceFlush = addressOf(zeros);
  CHECK_THAT(checkSlots(spec, args).message, Catch::Contains("ring slot 3"));
  args.forceFlush = addressOf(forced);
  CHECK(checkSlots(spec, args).message == "");
}

TEST_CASE("destinations of materialize are their own", "[slots]") {
  DecodeSpec spec;
  spec.family = Family::Materialize;
  auto said = [&](const ints &src, const ints &dst, const ints &mask) {
    const ints writePos(src.size());
    MaterializeArgs args;
    args.batch = int32_t(src.size());
    args.slots = 10;
    args.srcIndices = addressOf(src);
    args.dstIndices = addressOf(dst);
    args.writePos = addressOf(writePos);
    args.mask = addressOf(mask);
    return checkSlots(spec, args).message;
  };
  CHECK(said({1, 1, 2}, {3, 4, 2}, {1, 1, 1}) == "");
  CHECK(said({1, 1, 2}, {3, 4, 3}, {1, 1, 1}) ==
        "rows 0 and 2 share state slot 3, which row 0 writes" + because);
  CHECK(said({1, 2}, {2, 5}, {1, 1}) ==
        "rows 0 and 1 share state slot 2, which row 0 writes" + because);
  CHECK(said({1, 2}, {2, 5}, {1, 0}) == "");
}

TEST_CASE("two keys of a plan on one slot", "[slots][plan]") {
  PlanLaunch plan(test::planSpec(), 4, 3);
  plan.cursors = {0, 1, 7};
  plan.keys = {0, 1, 2};
  plan.state = {4, 5, 4};
  auto said = [&](int64_t step) {
    plan.bind();
    plan.args.step = step;
    return checkSlots(plan.spec, plan.args).message;
  };
  CHECK(said(1) == "groups[0]: rows 0 and 2 share state slot 4, which row 2 "
                   "writes" +
                       because);
  plan.cursors = {0, 1, 2};
  CHECK(said(1) == "groups[0]: rows 0 and 2 share ring slot 4, which row 0 "
                   "writes" +
                       because);
  CHECK_THAT(said(0), Catch::Contains("state slot 4")); // In place.
  plan.dst = {6, 7, 8};
  plan.args.groups[0].dst.in = addressOf(plan.dst);
  CHECK(said(0) == ""); // A fork.
  plan.args.live = 2;
  CHECK(said(1) == "");
  // A header counts in place of the arguments.
  PlanHeader header{1, 3, 0};
  plan.args.header = reinterpret_cast<uint64_t>(&header);
  CHECK_THAT(said(0), Catch::Contains("ring slot 4"));
}

TEST_CASE("emulation finds rows that share a slot", "[slots][state]") {
  StateModel model(/*ringDepth=*/4);
  const std::vector<ModelRow> rows = {{0, 1, 0, 3}, {1, 2, 1, 4}};
  model.begin(rows);
  CHECK(model.launchFirst(rows, ArgsCheck::Rows).message == "");
  // The engine's mistake: the index of another row.
  auto *rings =
      reinterpret_cast<int32_t *>(model.plan->buffers().groups[0].ring.out);
  rings[1] = rings[0];
  for (ArgsCheck check : {ArgsCheck::Full, ArgsCheck::Rows}) {
    const Status status = model.launchFirst(rows, check);
    CHECK(status.code == StatusCode::InvalidArgument);
    CHECK_THAT(status.message, Catch::StartsWith("launch 'gdn_decode") &&
                                   Catch::Contains("rows 0 and 1 share ring "
                                                   "slot 0"));
  }
  CHECK(model.launchFirst(rows, ArgsCheck::None).message == "");

  const StepInputs shared = model.inputs({rows[0], {1, 2, 0, 4}});
  CHECK_THAT(model.plan->begin(nullptr, 99, shared).message,
             Catch::Contains("groups[0]: rows 0 and 1 share ring slot 0"));
}
