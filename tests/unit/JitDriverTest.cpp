//===- JitDriverTest.cpp - Threads, caches and lifetimes ------------------===//

#include "tests/unit/JitFixture.h"

#include <optional>

using namespace replayjit::internal;
using namespace replayjit::internal::cuda;
using namespace replayjit::internal::test;
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
  if (!bare.compile) {
    CHECK_THAT(jit->prepare(specOf(1), 0).status().message,
               Contains("is not cached, and this program has no compiler") &&
                   Contains("spec.ringDepth: 3 is asked for; the entry has 2"));
    CHECK(jit->counters().misses == 1);
    CHECK(jit->counters().compiles == 0);
  }
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

TEST_CASE_METHOD(JitFixture, "a launch is one call of the driver", "[jit]") {
  auto jit = makeJit(*device, options());
  auto kernel = jit->prepare(specOf(0), 0);
  REQUIRE(kernel);
  const DecodeArgs args = argsOf(specOf(0));
  int stream = 0;
  fake->calls.clear();
  REQUIRE(kernel->launchOn(&stream, args).message == "");
  CHECK(fake->calls == std::vector<std::string>{"cuLaunchKernelEx"});
}

TEST_CASE_METHOD(JitFixture, "each pointer can be checked for its device",
                 "[jit]") {
  auto jit = makeJit(*device, options());
  DecodeSpec spec = specOf(0);
  auto kernel = jit->prepare(spec, 0);
  REQUIRE(kernel);
  auto launch = [&](const DecodeArgs &args, ArgsCheck check) {
    return kernel->launch(args, check).message;
  };
  const std::string name = "launch '" + kernel->info().name + "': ";
  DecodeArgs args = argsOf(spec);
  args.errorWord = 0x10000;
  fake->memory[0x10000] = {0x100, 0};
  fake->memory[0x20000] = {0x100, 1};
  CHECK(launch(args, ArgsCheck::Memory) == "");
  CHECK(count("cuPointerGetAttribute") == 14);
  CHECK(count("cuLaunchKernelEx") == 1);
  // Each of them, at the end of what is known, and at another GPU's.
  const std::pair<const char *, uint64_t DecodeArgs::*> pointers[] = {
      {"stateIndices", &DecodeArgs::stateIndices},
      {"writePos", &DecodeArgs::writePos},
      {"state", &DecodeArgs::state},
      {"q", &DecodeArgs::q},
      {"a", &DecodeArgs::a},
      {"b", &DecodeArgs::b},
      {"aLog", &DecodeArgs::aLog},
      {"dtBias", &DecodeArgs::dtBias},
      {"out", &DecodeArgs::out},
      {"dRing", &DecodeArgs::dRing},
      {"kRing", &DecodeArgs::kRing},
      {"gRing", &DecodeArgs::gRing},
      {"forceFlush", &DecodeArgs::forceFlush},
      {"errorWord", &DecodeArgs::errorWord}};
  for (auto [field, pointer] : pointers) {
    DecodeArgs bad = args;
    bad.*pointer = 0x10100;
    CHECK(launch(bad, ArgsCheck::Memory) ==
          name + field +
              ": 0x10100 is not allowed; it must be memory that kernels on "
              "Fake GPU, device 0, may use, and the driver knows no such "
              "memory");
    CHECK(launch(bad, ArgsCheck::Full) == "");
    bad.*pointer = 0x20000;
    CHECK(launch(bad, ArgsCheck::Memory) ==
          name + field +
              ": 0x20000 is not allowed; it must be memory that kernels on "
              "Fake GPU, device 0, may use, and it is memory of device 1");
  }
  // What the kernel does not have is not looked at, nor anything of no rows.
  args.k = args.ringBase = args.dstIndices = 8;
  CHECK(launch(args, ArgsCheck::Memory) == "");
  args.state = 0x30000;
  args.batch = 0;
  CHECK(launch(args, ArgsCheck::Memory) == "");
  fake->failures["cuPointerGetAttribute"] = 700;
  args.batch = 1;
  CHECK_THAT(launch(args, ArgsCheck::Memory),
             Contains("cuPointerGetAttribute: CUDA_ERROR_ILLEGAL_ADDRESS"));
  fake->failures.clear();
  // All else of Full.
  args.batch = -1;
  CHECK_THAT(launch(args, ArgsCheck::Memory), Contains("batch: -1"));
}

TEST_CASE_METHOD(JitFixture, "rows can be checked for slots that they share",
                 "[jit]") {
  auto jit = makeJit(*device, options());
  const DecodeSpec spec = specOf(2); // L = 4
  auto kernel = jit->prepare(spec, 0);
  REQUIRE(kernel);
  const std::string name = "launch '" + kernel->info().name + "': ";
  // The fake driver's memory is the host's. Every second index counts.
  const std::vector<int32_t> slots = {2, 9, 1, 9, 2}, cursors = {0, 3, 1},
                             forced = {0, 0, 0};
  DecodeArgs args = argsOf(spec);
  args.slots = 3;
  args.outStride = spec.numValueHeads * spec.headDimV;
  args.stateIndices = reinterpret_cast<uint64_t>(slots.data());
  args.stateIndexStride = 2;
  args.writePos = reinterpret_cast<uint64_t>(cursors.data());
  args.forceFlush = reinterpret_cast<uint64_t>(forced.data());
  int stream = 0;
  auto launch = [&](int32_t rows, ArgsCheck check) {
    args.batch = rows;
    fake->calls.clear();
    return kernel->launchOn(&stream, args, check).message;
  };
  CHECK(launch(2, ArgsCheck::Rows) == "");
  CHECK(count("cuMemcpyDtoHAsync") == 3);
  CHECK(count("cuStreamSynchronize") == 1);
  CHECK(count("cuLaunchKernelEx") == 1);
  CHECK_THAT(launch(3, ArgsCheck::Rows),
             Catch::StartsWith(name + "rows 0 and 2 share ring slot 2, which "
                                      "row 0 writes"));
  CHECK(count("cuLaunchKernelEx") == 0);
  // From the last index to the first.
  args.stateIndices += 4 * sizeof(int32_t);
  args.stateIndexStride = -2;
  CHECK_THAT(launch(3, ArgsCheck::Rows), Contains("rows 0 and 2 share"));
  // Nobody looks unless asked, and under capture nobody can.
  CHECK(launch(3, ArgsCheck::Full) == "");
  CHECK(fake->calls == std::vector<std::string>{"cuLaunchKernelEx"});
  fake->capturing.insert(reinterpret_cast<cuda::CUstream>(&stream));
  CHECK_THAT(launch(2, ArgsCheck::Rows),
             Contains("check the rows of a launch"));
  CHECK(count("cuMemcpyDtoHAsync") == 0);
}

TEST_CASE_METHOD(JitFixture, "every prepare sees the capture of its stream",
                 "[jit]") {
  auto jit = makeJit(*device, options());
  int place = 0;
  const auto stream = reinterpret_cast<CUstream>(&place);
  fake->capturing = fake->nonBlocking = {stream};
  for (const auto &outcome :
       {jit->prepare(specOf(0), 0, stream),
        jit->prepare(specOf(0), DecodeTuning(), stream),
        jit->prepareAll({{specOf(0), 0}}, nullptr, stream).front()})
    CHECK_THAT(outcome.status().message,
               Contains("not possible while launches are captured"));
  CHECK(compiles == 0);
  CHECK_FALSE(fake->isCaptureSpoiled);
  // Unnamed it is not seen, and not spoiled.
  CHECK(jit->prepareAll({{specOf(0), 0}}).front());
  CHECK_FALSE(fake->isCaptureSpoiled);
  CHECK(jit->prepareAll({{specOf(0), 0}}, nullptr, stream).front());
  fake->capturing.clear();
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
