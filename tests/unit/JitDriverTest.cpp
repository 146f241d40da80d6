//===- JitDriverTest.cpp - Threads, caches and lifetimes ------------------===//

#include "tests/unit/JitFixture.h"

#include <optional>

using namespace replayjit;
using namespace replayjit::cuda;
using namespace replayjit::test;
using namespace std::chrono_literals;
using Catch::Matchers::Contains;

TEST_CASE_METHOD(JitFixture,
                 "sixteen threads compile and load four kernels once",
                 "[jit]") {
  delay = 20ms;
  auto jit = makeJit(*device, options());
  std::vector<std::optional<KernelHandle>> got(16);
  std::vector<std::thread> threads;
  for (int i = 0; i < 16; ++i)
    threads.emplace_back([&, i] {
      auto kernel = jit->prepare(specOf(i % 4), 0);
      if (kernel)
        got[i] = *kernel;
    });
  for (std::thread &thread : threads)
    thread.join();
  CHECK(compiles == 4);
  CHECK(count("cuModuleLoadDataEx") == 4);
  for (int i = 0; i < 16; ++i) {
    REQUIRE(got[i]);
    CHECK(*got[i] == *got[i % 4]);
    CHECK(got[i]->info().spec == specOf(i % 4));
  }
  CHECK(jit->counters().compiles == 4);
  CHECK(heard->empty());
}

TEST_CASE_METHOD(JitFixture, "a new Jit finds on disk what another compiled",
                 "[jit]") {
  auto first = makeJit(*device, options())->prepare(specOf(0), 0);
  REQUIRE(first.status().message == "");
  CHECK(first->info().origin == KernelOrigin::Compiled);
  JitOptions bare = options();
  SECTION("with a compiler") {}
  SECTION("without one") { bare.compile = nullptr; }
  auto jit = makeJit(*device, bare);
  auto second = jit->prepare(specOf(0), 0);
  REQUIRE(second.status().message == "");
  CHECK(compiles == 1);
  CHECK(second->info().origin == KernelOrigin::Cached);
  CHECK(second->info().name == first->info().name);
  CHECK(second->info().assembler == "ptxas 13.0.88");
  // What the device reports, and the assembler's spills.
  CHECK(second->info().resources.registers == 40);
  CHECK(second->info().resources.spillStoreBytes == 0);
  CHECK(jit->counters().hits == 1);
  if (!bare.compile)
    CHECK_THAT(jit->prepare(specOf(1), 0).status().message,
               Contains("is not cached, and this program has no compiler") &&
                   Contains("spec.ringDepth: 3 is asked for; the entry has 2"));
}

TEST_CASE_METHOD(JitFixture, "mustHit names the key and the nearest entry",
                 "[jit]") {
  REQUIRE(makeJit(*device, options())->prepare(specOf(0), 0));
  JitOptions strict = options();
  strict.once.mustHit = true;
  auto jit = makeJit(*device, strict);
  CHECK(jit->prepare(specOf(0), 0));
  Status status = jit->prepare(specOf(1), 0).status();
  CHECK(status.code == StatusCode::NotFound);
  CHECK_THAT(status.message,
             Contains("gdn_decode_h16_hv32_k128_v128_l3_") &&
                 Contains("the nearest entry is") &&
                 Contains("spec.ringDepth: 3 is asked for; the entry has 2"));
  CHECK(compiles == 1);
}

TEST_CASE_METHOD(JitFixture, "a failure is not remembered", "[jit]") {
  auto jit = makeJit(*device, options());
  fails = true;
  CHECK(jit->prepare(specOf(0), 0).status().message == "as told");
  fails = false;
  fake->failures["cuModuleLoadDataEx"] = 2;
  CHECK_THAT(jit->prepare(specOf(0), 0).status().message,
             Contains("CUDA_ERROR_OUT_OF_MEMORY (2)"));
  fake->failures.clear();
  CHECK(jit->prepare(specOf(0), 0).status().message == "");
  CHECK(compiles == 2); // The second came from disk.
}

TEST_CASE_METHOD(JitFixture,
                 "handles outlive the Jit, and the device the handles",
                 "[jit]") {
  auto jit = makeJit(*device, options());
  auto kernel = jit->prepare(specOf(0), 0);
  REQUIRE(kernel.status().message == "");
  std::optional<KernelHandle> handle = *kernel;
  kernel = Status();
  jit.reset();
  CHECK(count("cuModuleUnload") == 0);

  DecodeArgs args = argsOf(specOf(0));
  CHECK(handle->launch(args).message == "");
  const CUstream own = fake->lastLaunch.hStream;
  CHECK(own);
  CHECK(fake->lastLaunch.gridDimX == handle->info().launch.blocksPerRow);
  CHECK(fake->lastParams ==
        std::string(reinterpret_cast<const char *>(&args), sizeof(args)));
  int stream = 0;
  CHECK(handle->launchOn(&stream, args).message == "");
  CHECK(fake->lastLaunch.hStream == static_cast<void *>(&stream));
  CHECK(handle->launchOn(nullptr, args).message == "");
  CHECK(fake->lastLaunch.hStream == nullptr);
  CHECK(count("cuLaunchKernelEx") == 3);
  args.batch = 0;
  CHECK(handle->launch(args).isOk());
  CHECK(count("cuLaunchKernelEx") == 3);

  handle.reset();
  CHECK(count("cuModuleUnload") == 1);
  device.reset();
  CHECK(fake->liveObjects == 0);
}

TEST_CASE_METHOD(JitFixture, "nothing is loaded while launches are captured",
                 "[jit]") {
  auto jit = makeJit(*device, options());
  auto there = jit->prepare(specOf(0), 0);
  REQUIRE(there);
  Status late;
  auto timed = device->time(
      [&] {
        late = jit->prepare(specOf(1), 0).status();
        return there->launch(argsOf(specOf(0)));
      },
      1);
  CHECK(timed.status().message == "");
  CHECK_THAT(late.message,
             Contains("not possible while launches are captured"));
}

TEST_CASE_METHOD(JitFixture, "a kernel with other parameters is refused",
                 "[jit]") {
  JitOptions other = options();
  other.compile = [make = other.compile](const CompileRequest &request) {
    auto kernel = make(request);
    kernel->signature.bytes = 24;
    return kernel;
  };
  CHECK_THAT(makeJit(*device, other)->prepare(specOf(0), 0).status().message,
             Contains("takes 24 bytes of parameters"));
}

TEST_CASE_METHOD(JitFixture, "prepareAll tells of each kernel once", "[jit]") {
  JitOptions some = options();
  some.workers = GENERATE(0, 1, 3);
  delay = 2ms;
  auto jit = makeJit(*device, some);
  std::vector<KernelRequest> requests;
  for (int i = 0; i < 6; ++i)
    requests.push_back({specOf(i), 0});
  requests[4].spec.ringDepth = 65;
  std::vector<size_t> told;
  int failed = 0;
  auto outcomes =
      jit->prepareAll(requests, [&](size_t done, size_t total,
                                    const Result<KernelHandle> &outcome) {
        CHECK(total == 6);
        told.push_back(done);
        failed += !outcome;
      });
  CHECK(told == std::vector<size_t>{1, 2, 3, 4, 5, 6});
  CHECK(failed == 1);
  REQUIRE(outcomes.size() == 6);
  for (int i = 0; i < 6; ++i)
    if (i == 4)
      CHECK_THAT(outcomes[i].status().message, Contains("ringDepth: 65"));
    else
      CHECK(outcomes[i]->info().spec == specOf(i));
  CHECK(compiles == 5);
  CHECK(jit->prepareAll({}).empty());
}
