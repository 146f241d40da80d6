//===- PlanKernelTest.cpp - Begin and commit kernels, emulated ------------===//
//
// The kernels do to memory what the host versions do: random batches, legal
// and not, on both, compared byte for byte.
//
//===----------------------------------------------------------------------===//

#include "kernels/FamilyBuilder.h"
#include "tests/unit/EmulatorTestSupport.h"
#include "tests/unit/PlanProblem.h"

#include <catch2/catch.hpp>

using namespace replayjit::internal;
using namespace replayjit::internal::test;

namespace {

struct PlanKernel {
  PlanKernel(Device &device, const DecodeSpec &pool, Family family)
      : device(device), spec(planSpec(pool, family)) {
    Compiler compiler;
    auto kernel = compileKernel(compiler, spec, {}, device.target(),
                                CompileOptions(), /*forHost=*/true);
    REQUIRE(kernel.status().message == "");
    CHECK(kernel->signature.bytes == sizeof(PlanArgs));
    auto result = device.load(*kernel);
    REQUIRE(result);
    loaded = std::move(*result);
  }
  Status operator()(const PlanArgs &args) const {
    if (Status status = validateArgs(spec, args); !status)
      return status;
    // Blocks past the batch do nothing.
    return device.launch(*loaded, args.batch + 2, &args, sizeof args);
  }

  Device &device;
  const DecodeSpec spec;
  std::unique_ptr<LoadedKernel> loaded;
};

} // namespace

TEST_CASE("plan kernels do what the host does", "[plan][kernel]") {
  std::vector<std::pair<DecodeSpec, host::LaneOrder>> cases;
  for (const DecodeSpec &spec : planSpecs())
    cases.push_back({spec, {}});
  // What lanes hold together does not depend on which comes first.
  for (host::LaneOrder order : host::test::everyOrder())
    cases.push_back({planSpecs()[1], order});
  for (const auto &[spec, order] : cases) {
    auto device = createEmulationDevice(Target(), order);
    const PlanKernel begin(*device, spec, Family::PlanBegin);
    const PlanKernel commit(*device, spec, Family::PlanCommit);
    auto counts = comparePlans(*device, spec, std::cref(begin),
                               std::cref(commit), /*rounds=*/150);
    REQUIRE(counts.status().message == "");
    CHECK(counts->same == 150);
    // The rounds are of some use.
    CHECK(counts->reported > 15);
    CHECK(counts->moved > 40);
  }
}

TEST_CASE("a plan that traps ends the launch", "[plan][kernel]") {
  DecodeSpec spec;
  spec.trapOnError = true;
  auto device = createEmulationDevice(Target());
  const PlanKernel begin(*device, spec, Family::PlanBegin);
  Arena arena;
  std::mt19937 random(1);
  PlanArgs args = PlanProblem(spec, arena, random).args;
  args.numGroups = 0;
  args.dropNewest = args.fresh = args.header = 0;
  args.numKeys = 1; // every key is 1 or more
  args.live = args.batch;
  auto memory = device->allocate(Arena::bytes, "plan");
  REQUIRE(memory);
  REQUIRE(device->copyToDevice(*memory, arena.content().data(), Arena::bytes)
              .isOk());
  const PlanArgs onDevice = moved(args, *memory - arena.base());
  const Status status = begin(onDevice);
  CHECK(status.code == StatusCode::ExecutionFault);
  CHECK_THAT(status.message, Catch::Contains("trap in block 0") &&
                                 Catch::Contains("the kernel ended"));
  ErrorWord word;
  REQUIRE(
      device->copyFromDevice(&word, onDevice.errorWord, sizeof word).isOk());
  CHECK(word.kind == uint32_t(ErrorKind::CursorKey));
}
