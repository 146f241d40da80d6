//===- plan_steps.cpp - Plans on a GPU ------------------------------------===//
//
// Begin and commit of random plans on a GPU and on the host, compared; then
// what both cost in a CUDA graph. Assembled by the driver.
//
// Usage: plan-steps
//
//===----------------------------------------------------------------------===//

#include "runtime/CompileOnMiss.h"
#include "runtime/state/StepPlan.h"
#include "tests/unit/PlanProblem.h"

#include <fmt/format.h>

using namespace replayjit;
using namespace replayjit::test;

static int fail(const std::string &why) {
  fmt::print(stderr, "plan-steps: error: {}\n", why);
  return 1;
}

/// One row a request, all live, in `groups` groups.
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
  Result<double> warmUp = device.time(step, 3); // no step is set
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
  Result<double> time = device.time(step, 20);
  Result<int64_t> after = cursorSum();
  if (!after)
    return after.status();
  if (*after % rows != 0 || numbers.front() != numbers.back())
    return Status::invalid("the cursors of the rows moved unequally");
  if (Status status = device.free(*array); !status)
    return status;
  return time;
}

int main() {
  Result<std::unique_ptr<Device>> device = createCudaDevice(0);
  if (!device)
    return fail(device.status().message);
  JitOptions options;
  options.compile = compileOnMiss(AssembleOptions());
  Result<std::unique_ptr<Jit>> jit = Jit::create(**device, options);
  if (!jit)
    return fail(jit.status().message);
  for (const DecodeSpec &spec : planSpecs()) {
    Result<KernelHandle> begin =
        (*jit)->prepare(planSpec(spec, Family::PlanBegin), 0);
    Result<KernelHandle> commit =
        (*jit)->prepare(planSpec(spec, Family::PlanCommit), 0);
    if (!begin || !commit)
      return fail((begin ? commit : begin).status().message);
    constexpr int rounds = 2000;
    Result<PlanCounts> counts = comparePlans(
        **device, spec,
        [&](const PlanArgs &args) { return begin->launch(args); },
        [&](const PlanArgs &args) { return commit->launch(args); }, rounds);
    if (!counts)
      return fail(counts.status().message);
    if (counts->same != rounds)
      return fail(fmt::format("{}: round {} differs from the host",
                              begin->info().name, counts->same));
    fmt::print("{}: {} plans as on the host, {} with errors\n",
               begin->info().name, rounds, counts->reported);
  }
  for (int rows : {1, 64, 256, 1024}) {
    Result<double> time = timeSteps(**device, **jit, rows);
    if (!time)
      return fail(time.status().message);
    fmt::print("begin and commit of {} rows, 3 groups: {:.2f} us\n", rows,
               1000 * *time);
  }
  return 0;
}
