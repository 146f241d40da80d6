//===- PlanStepsTest.cpp - Plans on a GPU ---------------------------------===//
//
// Begin and commit of random plans on a GPU and on the host, compared; then
// what both cost in a CUDA graph. Assembled by the driver.
//
//===----------------------------------------------------------------------===//

#include "runtime/CompileOnMiss.h"
#include "runtime/state/StepPlan.h"
#include "tests/unit/PlanProblem.h"
#include "tests/unit/TestDevice.h"

#include <catch2/catch.hpp>

#include <cstdio>

using namespace replayjit::internal;
using namespace replayjit::internal::test;

static std::unique_ptr<Jit> createJit() {
  AssembleOptions assemble;
  assemble.preference = AssembleOptions::Preference::Driver;
  JitOptions options;
  options.compile = compileOnMiss(assemble);
  Result<std::unique_ptr<Jit>> jit = Jit::create(testDevice(), options);
  REQUIRE(jit.status().message == "");
  return std::move(*jit);
}

/// Milliseconds of a step whose rows are all live, one a request, in 3 groups.
/// Capture and warm-up must move no cursor.
static Result<double> timeSteps(Device &device, Jit &jit, int rows) {
  std::vector<PoolGroup> groups(3);
  for (PoolGroup &group : groups) {
    group.spec.numKeyHeads = group.spec.numValueHeads = 1;
    group.layers.resize(1);
    group.slots = rows;
  }
  auto pool = StatePool::allocate(jit, groups, rows);
  if (!pool)
    return pool.status();
  auto plan = StepPlan::create(**pool, rows);
  if (!plan)
    return plan.status();
  std::vector<int32_t> numbers(rows);
  for (int i = 0; i < rows; ++i)
    numbers[i] = i;
  Result<uint64_t> array = device.allocate(rows * 4, "rows");
  if (!array)
    return array.status();
  if (Status status = device.copyToDevice(*array, numbers.data(), rows * 4);
      !status)
    return status;
  GroupIndices indices;
  indices.state = *array;
  const std::vector<GroupIndices> all(groups.size(), indices);
  StepInputs inputs;
  inputs.live = rows;
  inputs.keys = *array;
  inputs.groups = all;
  void *stream = device.stream();
  auto step = [&] {
    Status status = (*plan)->beginCaptured(stream, inputs);
    return status ? (*plan)->commitCaptured(stream) : status;
  };
  Result<Times> warmUp = device.time(step, 3); // no step is set
  if (!warmUp)
    return warmUp.status();
  auto cursorSum = [&]() -> Result<int64_t> {
    if (Status status = device.copyFromDevice(
            numbers.data(), (*pool)->cursors().writePos, rows * 4);
        !status)
      return status;
    int64_t sum = 0;
    for (int32_t cursor : numbers)
      sum += cursor;
    return sum;
  };
  Result<int64_t> before = cursorSum();
  if (!before)
    return before.status();
  if (*before != 0)
    return Status::invalid("capture and warm-up moved cursors");
  if (Status status = (*plan)->setStep(stream, 1, rows); !status)
    return status;
  if (Status status = device.synchronize(); !status)
    return status;
  Result<Times> times = device.time(step, 20);
  Result<int64_t> after = cursorSum();
  if (!after)
    return after.status();
  if (*after % rows != 0 || numbers.front() != numbers.back())
    return Status::invalid("the cursors of the rows moved unequally");
  if (Status status = device.free(*array); !status)
    return status;
  if (!times)
    return times.status();
  return medianOf(*times);
}

TEST_CASE("plans on a GPU do what the host does", "[plan][device]") {
  const std::unique_ptr<Jit> jit = createJit();
  for (const DecodeSpec &spec : planSpecs()) {
    auto begin = jit->prepare(planSpec(spec, Family::PlanBegin), 0);
    auto commit = jit->prepare(planSpec(spec, Family::PlanCommit), 0);
    REQUIRE(begin.status().message == "");
    REQUIRE(commit.status().message == "");
    INFO(begin->info().name);
    constexpr int rounds = 2000;
    // Random rows share slots, which the emulation would refuse.
    Result<PlanCounts> counts = comparePlans(
        testDevice(), spec,
        [&](const PlanArgs &args) {
          return begin->launch(args, ArgsCheck::None);
        },
        [&](const PlanArgs &args) { return commit->launch(args); }, rounds);
    REQUIRE(counts.status().message == "");
    CHECK(counts->same == rounds);
    // The rounds are of some use.
    CHECK(counts->reported > rounds / 10);
    CHECK(counts->moved > rounds / 4);
  }
}

TEST_CASE("begin and commit in a graph", "[plan][device]") {
  const std::unique_ptr<Jit> jit = createJit();
  for (int rows : {1, 64, 256, 1024}) {
    Result<double> time = timeSteps(testDevice(), *jit, rows);
    REQUIRE(time.status().message == "");
    std::printf("begin and commit of %d rows, 3 groups: %.2f us\n", rows,
                1000 * *time);
  }
}
