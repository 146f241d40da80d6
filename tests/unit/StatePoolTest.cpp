//===- StatePoolTest.cpp - Slots and cursors from step to step ------------===//
//
// A small model in the emulation, against the plain recurrence.
//
//===----------------------------------------------------------------------===//

#include "tests/unit/StateModel.h"

#include <fmt/format.h>

using namespace replayjit::internal;
using namespace replayjit::internal::test;

namespace {

/// fp32 rings and states, some tens of tokens.
constexpr double bound = 3e-6;
/// What one token more or less makes, at the least.
constexpr double wrong = 1e-2;

Tokens range(int begin, int end) {
  Tokens tokens;
  for (int token = begin; token < end; ++token)
    tokens.push_back(token);
  return tokens;
}

Tokens joined(Tokens a, const Tokens &b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

ErrorKind kindOf(const StateModel &model) {
  return ErrorKind(model.pool->pollErrors().kind);
}

/// Feeds tokens begin..end-1, one a step.
void feed(StateModel &model, ModelRow row, int begin, int end) {
  for (row.token = begin; row.token < end; ++row.token) {
    model.decode({row});
    row.fresh = false;
  }
}

} // namespace

TEST_CASE("requests of any ring phase decode as the recurrence", "[state]") {
  StateModel model(/*ringDepth=*/5);
  // Request r starts at step 2r, has prompt tokens 100r.. in its state.
  std::vector<Tokens> fed(3);
  for (int step = 0; step < 16; ++step) {
    std::vector<ModelRow> rows = {{-1, -1, -1, 0}}; // padding comes first
    for (int r = 0; r < 3 && 2 * r <= step; ++r) {
      ModelRow row{r, r + 3, r + 1, 100 * r + step};
      row.flush = (step + r) % 7 == 6;
      row.fresh = step == 2 * r;
      if (row.fresh) {
        fed[r] = range(1000 + r, 1004 + r);
        model.prefill(row.slot, fed[r]);
      }
      fed[r].push_back(row.token);
      rows.push_back(row);
    }
    model.decode(rows);
    for (int r = 0; r + 1 < int(rows.size()); ++r)
      CHECK(model.outError(r + 1, fed[r]) < bound);
  }
  CHECK(kindOf(model) == ErrorKind::None);
}

TEST_CASE("a step and an operation of no rows", "[state]") {
  StateModel model;
  const ModelRow row{0, 1, 0, 1};
  model.decode({row});
  model.decode({});
  REQUIRE(model.plan->prepareExtend(nullptr, model.slotInputs({})).message ==
          "");
  CHECK(model.cursor(0) == 1);
  // All rows of the plan are padding now.
  const auto *slots = reinterpret_cast<const int32_t *>(
      model.plan->buffers().groups[0].state.out);
  CHECK(std::count(slots, slots + StateModel::maxRows, -1) ==
        StateModel::maxRows);
  CHECK(kindOf(model) == ErrorKind::None);
}

TEST_CASE("a batch in two slices", "[state]") {
  StateModel model(/*ringDepth=*/3);
  Tokens fed[3];
  for (int step = 0; step < 8; ++step) {
    std::vector<ModelRow> rows;
    for (int r = 0; r < 3; ++r) {
      rows.push_back({r, r + 1, r, 50 * r + step});
      fed[r].push_back(50 * r + step);
    }
    model.begin(rows);
    model.launch(rows, 0, 1);
    model.launch(rows, 1, 3);
    model.commit();
    for (int r = 0; r < 3; ++r)
      CHECK(model.outError(r, fed[r]) < bound);
  }
}

TEST_CASE("a second turn hits the prefix of the first", "[state]") {
  // L = 16, a prompt of 10 tokens, 20 outputs. The last one sampled is fed, by
  // a step that ran before its end was known, or not. The key has 29 tokens.
  for (bool lastIsFed : {false, true}) {
    INFO("last token fed: " << lastIsFed);
    StateModel model;
    const int fed = lastIsFed ? 30 : 29, committed = 29;
    const ModelRow request{1, 2, 3};
    const int cached = 5;
    model.prefill(request.slot, range(0, 10));
    feed(model, request, 10, fed);
    CHECK(model.cursor(request.key) == fed - 10 - 16);

    // The checkpoint alone is that of 26 tokens.
    CHECK(model.stateError(request.slot, range(0, 26)) < bound);
    CHECK(model.stateError(request.slot, range(0, committed)) > wrong);

    StepInputs donation = model.slotInputs({request}, {cached});
    donation.dropNewest = model.upload({int32_t(tokensToDrop(committed, fed))});
    REQUIRE(model.plan->materialize(nullptr, donation).message == "");
    CHECK(model.stateError(cached, range(0, committed)) < bound);
    CHECK(model.cursor(request.key) == fed - 10 - 16); // it may go on
    CHECK(kindOf(model) == ErrorKind::None);

    // Its own request has a key and a ring; the cached prefix has neither, and
    // is not touched.
    ModelRow next{2, 7, 0};
    ModelRow source = next;
    source.slot = cached;
    source.ring = -1;
    source.fresh = true;
    REQUIRE(model.plan->copy(nullptr, model.slotInputs({source}, {next.slot}))
                .message == "");
    next.fresh = true;
    feed(model, next, 200, 220);
    CHECK(model.outError(0, joined(range(0, committed), range(200, 220))) <
          bound);
    CHECK(model.stateError(cached, range(0, committed)) < bound);
    CHECK(kindOf(model) == ErrorKind::None);
  }
}

TEST_CASE("a copy of the checkpoint alone loses the ring", "[state]") {
  StateModel model;
  const ModelRow request{1, 2, 3};
  model.prefill(request.slot, range(0, 10));
  feed(model, request, 10, 29);
  const int cached = 5;

  // The checked copy says so, and copies nothing.
  model.prefill(cached, range(70, 75));
  REQUIRE(model.plan->copy(nullptr, model.slotInputs({request}, {cached}))
              .message == "");
  const ErrorWord error = model.pool->pollErrors();
  CHECK(error.kind == uint32_t(ErrorKind::NotFlushed));
  CHECK(error.value == 3);
  CHECK(error.count == 1);
  CHECK(model.stateError(cached, range(70, 75)) < bound);

  // Unchecked, as if the ring were empty: what a second turn then computes is
  // not the continuation of the 29 tokens.
  ModelRow naive = request;
  naive.fresh = true;
  REQUIRE(model.plan->materialize(nullptr, model.slotInputs({naive}, {cached}))
              .message == "");
  ModelRow next{2, cached, 0};
  next.fresh = true;
  feed(model, next, 200, 205);
  CHECK(model.outError(0, joined(range(0, 29), range(200, 205))) > wrong);
  CHECK(model.outError(0, joined(range(0, 26), range(200, 205))) < bound);
}

TEST_CASE("a slot without a ring is copied, but not decoded", "[state]") {
  // Ring indices that are none, or not given: the default is the slot's, 6.
  enum { Negative = -1, PastEnd = StateModel::ringSlots, NotGiven };
  for (bool circular : {false, true})
    for (int ring : {int(Negative), int(PastEnd), int(NotGiven)}) {
      INFO("circular " << circular << ", ring " << ring);
      StateModel model(/*ringDepth=*/4, circular);
      const ModelRow cached{1, 6, ring}, filled{0, 1, 0};
      std::vector<GroupIndices> groups;
      auto inputs = [&](const ModelRow &row, const ints &dst) {
        StepInputs result = model.slotInputs({row}, dst);
        groups.assign(result.groups.begin(), result.groups.end());
        for (GroupIndices &group : groups)
          if (ring == NotGiven)
            group.ring = 0;
        result.groups = groups;
        return result;
      };
      auto says = [&](const Status &status) {
        REQUIRE(status.message == "");
        const ErrorKind kind = kindOf(model);
        model.pool->clearErrors();
        return kind;
      };
      StepPlan &plan = *model.plan;
      model.prefill(cached.slot, range(0, 5));
      feed(model, filled, 20, 22);
      REQUIRE(kindOf(model) == ErrorKind::None);

      CHECK(says(plan.copy(nullptr, inputs(cached, {2}))) == ErrorKind::None);
      CHECK(model.stateError(2, range(0, 5)) < bound);
      // The key of another request, which `fresh` says does not count.
      ModelRow fresh = cached;
      fresh.key = filled.key;
      fresh.fresh = true;
      CHECK(says(plan.materialize(nullptr, inputs(fresh, {3}))) ==
            ErrorKind::None);
      CHECK(model.stateError(3, range(0, 5)) < bound);
      CHECK(says(plan.prepareExtend(nullptr, inputs(cached, {}))) ==
            ErrorKind::None);
      CHECK(model.stateError(cached.slot, range(0, 5)) < bound);

      // Where a ring is read or a token is fed, it must be there.
      ModelRow read = fresh;
      read.fresh = false;
      CHECK(says(plan.materialize(nullptr, inputs(read, {4}))) ==
            ErrorKind::RingSlot);
      CHECK(model.stateError(4, {}) == 0);
      CHECK(says(plan.begin(nullptr, ++model.step, inputs(cached, {}))) ==
            ErrorKind::RingSlot);
    }
}

TEST_CASE("a token too many, flushed, cannot be left out", "[state]") {
  // 16 tokens fill the ring and flush; 15 are committed.
  StateModel model;
  const ModelRow request{0, 1, 0};
  feed(model, request, 0, 16);
  CHECK(model.cursor(0) == 0);
  StepInputs donation = model.slotInputs({request}, {4});
  donation.dropNewest = model.upload({int32_t(tokensToDrop(15, 16))});
  REQUIRE(model.plan->materialize(nullptr, donation).message == "");
  CHECK(kindOf(model) == ErrorKind::FlushedTooFar);
  CHECK(describe(model.pool->pollErrors()) ==
        "row 0: it has flushed 1 tokens too far to leave them out (1 rows in "
        "error)");
  model.pool->clearErrors();
  donation.dropNewest = model.upload({int32_t(tokensToDrop(21, 16))});
  REQUIRE(model.plan->materialize(nullptr, donation).message == "");
  CHECK(describe(model.pool->pollErrors()) ==
        "row 0: dropNewest is negative, as if more tokens were committed than "
        "fed; less those in the ring it is -5 (1 rows in error)");

  // With its length known to the step, the last one is padding.
  StateModel careful;
  feed(careful, request, 0, 15);
  ModelRow last = request;
  last.token = 15;
  StepInputs inputs = careful.inputs({last});
  inputs.seqLen = careful.upload({16});
  inputs.noFlushPast = careful.upload({15});
  REQUIRE(careful.plan->begin(nullptr, 900, inputs).message == "");
  careful.launch({last}, 0, 1);
  REQUIRE(careful.plan->commit(nullptr, 900).message == "");
  CHECK(careful.cursor(0) == 15);
  StepInputs late = careful.slotInputs({request}, {4});
  REQUIRE(careful.plan->materialize(nullptr, late).message == "");
  CHECK(careful.stateError(4, range(0, 15)) < bound);
  CHECK(kindOf(careful) == ErrorKind::None);
}

TEST_CASE("what begins and does not commit never was", "[state]") {
  StateModel model(/*ringDepth=*/6);
  const ModelRow row{0, 1, 0};
  feed(model, row, 0, 3);
  ModelRow lost = row;
  lost.token = 77;
  model.begin({lost});
  model.launch({lost}, 0, 1);
  feed(model, row, 3, 9);
  CHECK(model.outError(0, range(0, 9)) < bound);
}

TEST_CASE("a flush to another slot can be taken back", "[state]") {
  for (bool inPlace : {false, true}) {
    StateModel model(/*ringDepth=*/4, /*isCircular=*/false, /*hasDst=*/true);
    ModelRow row{0, 1, 2};
    const int to = inPlace ? row.slot : 5;
    for (row.token = 0; row.token < 3; ++row.token)
      model.decode({row});
    ModelRow lost = row;
    lost.token = 77;
    model.begin({lost}, {to}); // flushes
    model.launch({lost}, 0, 1);
    model.begin({row}, {to});
    model.launch({row}, 0, 1);
    model.commit();
    CHECK(model.cursor(0) == 0);
    if (inPlace) { // the lost token is in the state, and the ring counts twice
      CHECK(model.stateError(to, range(0, 4)) > wrong);
      continue;
    }
    CHECK(model.stateError(to, range(0, 4)) < bound);
    row.slot = to;
    for (row.token = 4; row.token < 6; ++row.token)
      model.decode({row});
    CHECK(model.outError(0, range(0, 6)) < bound);
  }
}

TEST_CASE("before an extend the ring is folded in place", "[state]") {
  StateModel model;
  const ModelRow row{1, 2, 1}, flushed{2, 3, 2};
  feed(model, row, 0, 5);
  model.prefill(flushed.slot, range(40, 44));
  REQUIRE(model.plan->requireFlushed(nullptr, model.slotInputs({flushed}))
              .message == "");
  CHECK(kindOf(model) == ErrorKind::None);
  REQUIRE(model.plan->requireFlushed(nullptr, model.slotInputs({flushed, row}))
              .message == "");
  CHECK(kindOf(model) == ErrorKind::NotFlushed);
  CHECK(model.pool->pollErrors().row == 1);
  model.pool->clearErrors();

  const StepInputs rows = model.slotInputs({row, flushed});
  REQUIRE(model.plan->prepareExtend(nullptr, rows).message == "");
  CHECK(model.cursor(1) == 0);
  CHECK(model.stateError(row.slot, range(0, 5)) < bound);
  CHECK(model.stateError(flushed.slot, range(40, 44)) < bound);
  REQUIRE(model.plan->requireFlushed(nullptr, rows).message == "");
  CHECK(kindOf(model) == ErrorKind::None);
  // The extend itself, then decode again.
  model.prefill(row.slot, range(0, 8));
  feed(model, row, 8, 20);
  CHECK(model.outError(0, range(0, 20)) < bound);
}

TEST_CASE("a snapshot to a track slot does not disturb the ring", "[state]") {
  StateModel model(/*ringDepth=*/8);
  ModelRow row{0, 1, 2};
  for (row.token = 0; row.token < 12; ++row.token) {
    row.track = shouldFlush(row.token + 1, 5) ? 6 : -1;
    model.decode({row});
    CHECK(model.cursor(0) == (row.token + 1) % 8);
  }
  CHECK(model.stateError(6, range(0, 10)) < bound);
  CHECK(model.outError(0, range(0, 12)) < bound);
}

TEST_CASE("after resetAll nothing that has begun is committed", "[state]") {
  StateModel model;
  const ModelRow row{0, 1, 0, 5};
  feed(model, row, 0, 3);
  model.begin({row});
  REQUIRE(model.pool->resetAll(nullptr).message == "");
  CHECK_THAT(model.plan->commit(nullptr, model.step).message,
             Catch::Contains("has not begun, or it is void"));
  CHECK(model.cursor(0) == 0);
}

TEST_CASE("only the step that began last is committed", "[state]") {
  StateModel model;
  const ModelRow row{0, 1, 0, 5};
  const auto commit = [&](int64_t step) {
    return model.plan->commit(nullptr, step).message;
  };
  CHECK(commit(1) == "step: 1 is not allowed; it has not begun, or it is void");
  model.begin({row});
  const int64_t step = model.step;
  for (int64_t other : {step - 1, step + 1})
    if (other > 0)
      CHECK(commit(other) ==
            fmt::format("step: {} is not allowed; the step that began last is "
                        "{}",
                        other, step));
  CHECK(model.cursor(0) == 0);
  CHECK(commit(step) == "");
  CHECK(commit(step) == ""); // Again: nothing.
  CHECK(model.cursor(0) == 1);
  // Each operation on slots makes a step void.
  for (auto operation : {&StepPlan::materialize, &StepPlan::copy,
                         &StepPlan::prepareExtend, &StepPlan::requireFlushed}) {
    model.begin({row});
    REQUIRE(
        ((*model.plan).*operation)(nullptr, model.slotInputs({row})).message ==
        "");
    CHECK_THAT(commit(model.step), Catch::Contains("it is void"));
    model.pool->clearErrors();
  }
  // A begin that is refused leaves the one before.
  model.begin({row});
  StepInputs bad = model.inputs({row});
  bad.keys = 0;
  CHECK_FALSE(model.plan->begin(nullptr, model.step + 1, bad).isOk());
  CHECK(commit(model.step) == "");
}

TEST_CASE("a graph commits the step that it began", "[state]") {
  StateModel model;
  const std::vector<ModelRow> rows = {{0, 1, 0, 3}, {1, 2, 1, 4}};
  REQUIRE(model.plan->setStep(nullptr, 7, 2).message == "");
  REQUIRE(model.plan->beginCaptured(nullptr, model.inputs(rows)).message == "");
  REQUIRE(model.plan->setStep(nullptr, 8, 2).message == "");
  REQUIRE(model.plan->commitCaptured(nullptr).message == "");
  CHECK(model.cursor(0) == 0);
  const ErrorWord word = model.pool->pollErrors();
  CHECK(ErrorKind(word.kind) == ErrorKind::StepMismatch);
  CHECK(word.count == 2);
  CHECK(word.value == 7);
  CHECK_THAT(describe(word), Catch::Contains("step 7 began for it and another "
                                             "was committed"));
  // Without a graph, too, what it began can be committed.
  REQUIRE(model.plan->setStep(nullptr, 7, 2).message == "");
  REQUIRE(model.plan->commit(nullptr, 7).message == "");
  CHECK(model.cursor(0) == 1);
}

TEST_CASE("a circular ring is given away as it stands", "[state]") {
  StateModel model(/*ringDepth=*/4, /*isCircular=*/true);
  ModelRow row{0, 1, 0};
  for (int end : {3, 5, 9}) { // before and after it wraps
    feed(model, row, row.token, end);
    row.token = end;
    REQUIRE(model.plan->materialize(nullptr, model.slotInputs({row}, {6}))
                .message == "");
    CHECK(model.stateError(6, range(0, end)) < 1e-5);
  }
  REQUIRE(model.plan->prepareExtend(nullptr, model.slotInputs({row})).message ==
          "");
  CHECK(model.stateError(row.slot, range(0, 9)) < 1e-5);
  CHECK(model.cursor(0) == 0);
}

TEST_CASE("a captured step takes its number and rows from setStep", "[state]") {
  StateModel model;
  const std::vector<ModelRow> rows = {{0, 1, 0, 3}, {1, 2, 1, 4}};
  const StepInputs inputs = model.inputs(rows);
  auto replay = [&] {
    REQUIRE(model.plan->beginCaptured(nullptr, inputs).message == "");
    model.launch(rows, 0, 2);
    REQUIRE(model.plan->commitCaptured(nullptr).message == "");
  };
  replay(); // warm-up
  CHECK(model.cursor(0) == 0);
  CHECK(model.cursor(1) == 0);
  REQUIRE(model.plan->setStep(nullptr, 0x100000001, 1).message == "");
  replay();
  CHECK(model.cursor(0) == 1);
  CHECK(model.cursor(1) == 0);
  CHECK(model.outError(0, {3}) < bound);
}

TEST_CASE("without a ring every step writes the state", "[state]") {
  StateModel model(/*ringDepth=*/1);
  const ModelRow row{0, 1, 0};
  feed(model, row, 0, 4);
  CHECK(model.cursor(0) == 0);
  CHECK(model.stateError(row.slot, range(0, 4)) < bound);
  REQUIRE(model.plan->copy(nullptr, model.slotInputs({row}, {6})).message ==
          "");
  feed(model, row, 4, 6);
  CHECK(model.stateError(6, range(0, 4)) < bound);
  CHECK(model.stateError(row.slot, range(0, 6)) < bound);
  CHECK(kindOf(model) == ErrorKind::None);
}
