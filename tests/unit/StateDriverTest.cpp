//===- StateDriverTest.cpp - Pools and plans on the fake driver -----------===//
//
// Captures, of which it notices those that are spoiled, and threads.
//
//===----------------------------------------------------------------------===//

#include "runtime/DecodeLaunch.h"
#include "runtime/state/SlotImage.h"
#include "runtime/state/StepPlan.h"
#include "tests/unit/JitFixture.h"

using namespace replayjit::internal;
using namespace replayjit::internal::cuda;
using namespace replayjit::internal::test;

namespace {

struct Fixture : JitFixture {
  std::unique_ptr<Jit> jit;
  std::unique_ptr<StatePool> pool;
  int place = 0;
  CUstream stream = reinterpret_cast<CUstream>(&place);

  Fixture() {
    fake->params.clear(); // Nothing is launched here.
    JitOptions made = options();
    made.compile = [compile = made.compile](const CompileRequest &request) {
      Result<CompiledKernel> kernel = compile(request);
      if (kernel) {
        kernel->signature.params.clear();
        kernel->signature.bytes = paramBytesOf(request.spec);
      }
      return kernel;
    };
    jit = makeJit(device, made);
    auto allocated = StatePool::allocate(*jit, groups(), /*numKeys=*/2);
    REQUIRE(allocated.status().message == "");
    pool = std::move(*allocated);
  }

  static std::vector<PoolGroup> groups() {
    PoolGroup group;
    group.spec = specOf(0);
    group.layers.resize(1);
    group.slots = 2;
    return {group};
  }

  /// That `call` is refused while `stream`, which waits for no other, is under
  /// capture, and that the driver is asked for that and for nothing else.
  template <typename Call> void refuses(const char *what, Call call) {
    INFO(what);
    fake->capturing = fake->nonBlocking = {stream};
    fake->calls.clear();
    const int compiled = compiles;
    const Status status = call();
    CHECK(status.code == StatusCode::InvalidArgument);
    CHECK(status.message ==
          std::string(what) +
              ": not possible while launches are captured; do it before");
    CHECK(count("cuStreamIsCapturing") == 1);
    for (const char *touching :
         {"cuMemAlloc", "cuMemFree", "cuMemHostAlloc", "cuMemcpyHtoDAsync",
          "cuMemcpyDtoHAsync", "cuMemsetD32Async", "cuModuleLoadData",
          "cuStreamSynchronize"})
      CHECK(count(touching) == 0);
    CHECK(compiles == compiled);
    CHECK_FALSE(fake->isCaptureSpoiled);
    fake->capturing.clear();
  }
};

} // namespace

TEST_CASE_METHOD(Fixture, "a slot is not moved under capture", "[state]") {
  const GroupSlot slot = {1, 1}, other = {0, 0};
  auto image = exportSlot(*pool, stream, {&slot, 1}, 1, ImageForm::WithRing);
  REQUIRE(image.status().message == "");
  refuses("export a slot", [&] {
    return exportSlot(*pool, stream, {&slot, 1}, 1, ImageForm::WithRing)
        .status();
  });
  const std::string_view images[] = {*image};
  auto import = [&] {
    return importSlot(*pool, stream, {&other, 1}, 0, images);
  };
  refuses("import a slot", import);
  CHECK(import().message == "");
}

TEST_CASE_METHOD(Fixture, "pools and plans are not made under capture",
                 "[state]") {
  const CursorTable cursors = pool->cursors();
  refuses("adopt a state pool", [&] {
    return StatePool::adopt(*jit, pool->groups(), cursors, {}, stream).status();
  });
  refuses("allocate a state pool", [&] {
    return StatePool::allocate(*jit, groups(), 2, {}, stream).status();
  });
  refuses("make a step plan",
          [&] { return StepPlan::create(*pool, 2, stream).status(); });
  refuses("make a step plan",
          [&] { return StepPlan::adopt(*pool, 2, 0x1000, stream).status(); });

  std::vector<char> memory(*StepPlan::bytesFor(*pool, 2) + 256);
  const uint64_t aligned =
      (reinterpret_cast<uint64_t>(memory.data()) + 255) / 256 * 256;
  CHECK(StepPlan::adopt(*pool, 2, aligned, stream).status().message == "");
}

TEST_CASE_METHOD(Fixture,
                 "a decode kernel that is prepared is had under "
                 "capture, no other",
                 "[state]") {
  refuses(("prepare '" +
           kernelName(specOf(0), chooseTuning(specOf(0), 1, device->target(),
                                              device->multiprocessors())) +
           "'")
              .c_str(),
          [&] { return pool->prepareDecode(0, 1, stream).status(); });
  auto before = pool->prepareDecode(0, 1, stream);
  REQUIRE(before.status().message == "");
  fake->capturing = {stream};
  auto during = pool->prepareDecode(0, 1, stream);
  REQUIRE(during.status().message == "");
  CHECK(*during == *before);
  CHECK_FALSE(fake->isCaptureSpoiled);
  fake->capturing.clear();
}

TEST_CASE_METHOD(
    Fixture, "who polls while errors are cleared sees a whole report or none",
    "[state]") {
  ErrorWord word;
  PoolOptions options;
  options.errorWord = {&word, reinterpret_cast<uint64_t>(&word)};
  auto shared =
      StatePool::adopt(*jit, pool->groups(), pool->cursors(), options);
  REQUIRE(shared.status().message == "");
  constexpr int rounds = 2000;
  std::atomic<int> reported = 0, polled = 0;
  int torn = 0;
  std::thread poller([&] {
    for (int round = 1; round <= rounds; ++round) {
      while (reported < round)
        std::this_thread::yield();
      for (int poll = 0; poll < 4; ++poll) {
        const ErrorWord seen = (*shared)->pollErrors();
        torn += seen.kind != 0 &&
                (seen.row != 4 || seen.layer != 2 || seen.value != round);
      }
      polled = round;
    }
  });
  for (int round = 1; round <= rounds; ++round) {
    word = {1, uint32_t(ErrorKind::CursorKey), 4, 2, round};
    reported = round;
    (*shared)->clearErrors();
    while (polled < round)
      std::this_thread::yield();
  }
  poller.join();
  CHECK(torn == 0);
  CHECK((*shared)->pollErrors().kind == 0);
}
