//===- EmulatorHazardTest.cpp - What the emulation reports ----------------===//

#include "tests/unit/EmulatorTestSupport.h"

#include <catch2/catch.hpp>

using namespace replayjit::internal;
using namespace replayjit::internal::host;
using namespace replayjit::internal::host::test;
using Catch::Contains;

/// Runs and expects a fault; the sentence.
static std::string fault(const TestGrid &grid, HostProgram::Entry entry,
                         const void *params = nullptr) {
  Status status = grid.run(entry, params);
  CHECK(status.code == StatusCode::ExecutionFault);
  return status.message;
}

TEST_CASE("a global access outside is named", "[emulator]") {
  std::vector<float> values(96);
  TestGrid grid;
  grid.blocks = 4;
  grid.memory.add("state", values.data(), 64 * 4);
  auto loads = [](const void *p) {
    load(static_cast<const float *>(p) + block() * 32 + tid(), Global);
  };
  CHECK_THAT(fault(grid, loads, values.data()),
             Contains("out-of-bounds global load in block 2, lane 0, at 'load "
                      "of x': 4 bytes") &&
                 Contains("offset 256 of 'state', which has 256 bytes"));
  auto stores = [](const void *p) {
    auto *values = static_cast<char *>(const_cast<void *>(p));
    store(reinterpret_cast<double *>(values - 8), 1.0, Global, StoreY);
  };
  CHECK_THAT(fault(grid, stores, values.data()),
             Contains("global store in block 0, lane 0, at 'store of y': 8 "
                      "bytes") &&
                 Contains("offset -8 of 'state'"));
  // The last bytes are outside, and the site has hit the allocation before.
  auto straddles = [](const void *p) {
    auto *values = static_cast<const char *>(p);
    load(reinterpret_cast<const int32_t *>(values), Global);
    int64_t value;
    replayjit_emu_load(&value, values + 252, 8, Global, LoadX);
  };
  CHECK_THAT(fault(grid, straddles, values.data()),
             Contains("8 bytes") && Contains("offset 252 of 'state'"));
  grid.memory = {};
  CHECK_THAT(fault(grid, loads, values.data()),
             Contains("no memory is allocated"));
}

TEST_CASE("a misaligned access is named unless allowed", "[emulator]") {
  alignas(16) static float values[32];
  auto entry = [](const void *p) {
    int64_t value;
    replayjit_emu_load(&value, values + 1, 8, Global, LoadY);
  };
  TestGrid grid;
  grid.memory.add("values", values, sizeof values);
  CHECK_THAT(fault(grid, entry),
             Contains("misaligned global access in block 0, lane 0, at 'load "
                      "of y'") &&
                 Contains("offset 4 of 'values'"));
  GridLaunch launch;
  launch.entry = entry;
  launch.blocks = launch.threads = 1;
  launch.checkAlignment = false;
  CHECK(runGrid(launch, grid.memory).message == "");
}

TEST_CASE("a shared access outside is named", "[emulator]") {
  TestGrid grid;
  grid.sharedBytes = 64;
  auto past = [](const void *) { store(shared<float>() + tid(), 1.0f); };
  CHECK_THAT(fault(grid, past),
             Contains("out-of-bounds shared access in block 0, lane 16, at "
                      "'store of x': the store of 4 bytes at offset 64 of "
                      "shared memory, which has 64 bytes"));
  auto before = [](const void *) { load(shared<float>() - 1); };
  CHECK_THAT(fault(grid, before), Contains("at offset -4 of shared memory"));
}

TEST_CASE("a read that nothing wrote is named", "[emulator]") {
  TestGrid grid;
  grid.blocks = 2;
  // The first block's writes do not count for the second.
  auto entry = [](const void *) {
    if (block() == 0)
      store(shared<int32_t>() + tid(), 1);
    else
      store(shared<int16_t>() + tid() * 2, int16_t(1));
    barrier();
    load(shared<int32_t>() + tid());
  };
  CHECK_THAT(fault(grid, entry),
             Contains("unwritten shared memory in block 1, lane 31, at 'load "
                      "of x': the load reads byte 126 of shared memory"));
}

static const char *const races = "shared-memory race in block 0";

TEST_CASE("races are named in every order", "[emulator]") {
  TestGrid grid;
  grid.threads = 64;
  auto readAfterWrite = [](const void *) {
    store(shared<int32_t>() + tid(), 1);
    load(shared<int32_t>() + (tid() ^ 32));
  };
  auto writeAfterRead = [](const void *) {
    store(shared<int32_t>() + tid(), 1);
    barrier();
    load(shared<int32_t>() + (tid() ^ 1));
    store(shared<int32_t>() + tid(), 2);
  };
  auto writeAfterWrite = [](const void *) {
    store(shared<int32_t>() + tid() / 2, 1);
  };
  for (LaneOrder order : everyOrder()) {
    grid.order = order;
    // Unwritten, if the reader happens to run first.
    std::string text = fault(grid, readAfterWrite);
    CHECK_THAT(text, Contains(races) || Contains("unwritten shared memory"));
    CHECK_THAT(fault(grid, writeAfterRead), Contains(races));
    CHECK_THAT(fault(grid, writeAfterWrite),
               Contains(races) && Contains("'store of x'"));
  }
}

TEST_CASE("a race names both sides", "[emulator]") {
  TestGrid grid;
  auto wrote = [](const void *) {
    store(shared<int32_t>() + tid(), 1);
    if (tid() == 5)
      load(shared<int32_t>() + 2);
  };
  CHECK_THAT(fault(grid, wrote),
             Contains("race in block 0, lane 5, at 'load of x': the load "
                      "touches byte 8 of shared memory, which lane 2 at 'store "
                      "of x' wrote, with nothing that orders the two"));
  auto read = [](const void *) {
    if (tid() == 0)
      store(shared<int32_t>(), 1);
    barrier();
    load(shared<int32_t>());
    if (tid() == 5)
      store(shared<int32_t>(), 2, Shared, StoreY);
  };
  CHECK_THAT(fault(grid, read),
             Contains("lane 5, at 'store of y': the store touches byte 0 of "
                      "shared memory, which lane 0 at 'load of x' read"));
}

TEST_CASE("a warp's meeting orders no other warp", "[emulator]") {
  TestGrid grid;
  grid.threads = 128;
  auto entry = [](const void *) {
    if (tid() == 0)
      store(shared<int32_t>(), 1);
    barrier();
    // All read; the writer has met its own warp only.
    load(shared<int32_t>());
    replayjit_emu_warp_barrier(-1, Sync);
    if (tid() == 70)
      store(shared<int32_t>(), 2, Shared, StoreY);
  };
  for (LaneOrder order : everyOrder()) {
    grid.order = order;
    CHECK_THAT(fault(grid, entry), Contains(races));
  }
}

TEST_CASE("bytes of one word are told apart", "[emulator]") {
  auto disjoint = [](const void *) {
    store(shared<int16_t>() + tid(), int16_t(1));
    load(shared<int16_t>() + tid());
  };
  CHECK(TestGrid().run(disjoint).message == "");
  auto overlaps = [](const void *) {
    if (tid() == 0)
      store(shared<int32_t>(), 1);
    if (tid() == 1)
      store(shared<int8_t>() + 3, int8_t(1));
  };
  CHECK_THAT(fault(TestGrid(), overlaps), Contains("byte 3 of shared memory"));
}

static const char *const globalRaces = "global-memory race in block 0";

TEST_CASE("races in global memory are named in every order", "[emulator]") {
  static int32_t x[64];
  TestGrid grid;
  grid.threads = 64;
  grid.memory.add("x", x, sizeof x);
  auto readAfterWrite = [](const void *) {
    store(x + tid(), 1, Global);
    load(x + (tid() ^ 32), Global);
  };
  auto writeAfterRead = [](const void *) {
    load(x + (tid() ^ 1), Global);
    store(x + tid(), 2, Global);
  };
  auto writeAfterWrite = [](const void *) { store(x + tid() / 2, 1, Global); };
  for (LaneOrder order : everyOrder()) {
    grid.order = order;
    for (HostProgram::Entry entry : {HostProgram::Entry(readAfterWrite),
                                     HostProgram::Entry(writeAfterRead),
                                     HostProgram::Entry(writeAfterWrite)})
      CHECK_THAT(fault(grid, entry), Contains(globalRaces));
  }
}

TEST_CASE("a race in global memory names both sides", "[emulator]") {
  alignas(16) static int32_t x[2048]; // more than a page
  TestGrid grid;
  grid.memory.add("x", x, sizeof x);
  auto wrote = [](const void *) {
    store(x + 1500 + tid(), 1, Global);
    if (tid() == 5)
      load(reinterpret_cast<int16_t *>(x + 1502) + 1, Global);
  };
  CHECK_THAT(fault(grid, wrote),
             Contains("global-memory race in block 0, lane 5, at 'load of x': "
                      "the load touches byte 6010 of 'x', which lane 2 at "
                      "'store of x' wrote, with nothing that orders the two"));
  auto read = [](const void *) {
    for (int i = tid() * 64; i < (tid() + 1) * 64; ++i)
      load(x + i, Global);
    if (tid() == 31)
      store(x + 1024, 2, Global, StoreY);
  };
  CHECK_THAT(fault(grid, read),
             Contains("lane 31, at 'store of y': the store touches byte 4096 "
                      "of 'x', which lane 16 at 'load of x' read"));
  // What an asynchronous copy reads counts as well.
  auto copied = [](const void *) {
    if (tid() == 0)
      replayjit_emu_async_copy(shared<float>(), x + 4, 16, LoadY);
    if (tid() == 7)
      store(x + 5, 2, Global, StoreY);
  };
  CHECK_THAT(fault(grid, copied),
             Contains("lane 7, at 'store of y': the store touches byte 20 of "
                      "'x', which lane 0 at 'load of y' read"));
}

TEST_CASE("ordered accesses to global memory are no race", "[emulator]") {
  static int32_t x[64];
  TestGrid grid;
  grid.threads = 64;
  grid.blocks = 3; // which all write the same bytes
  grid.memory.add("x", x, sizeof x);
  auto entry = [](const void *) {
    load(x + 63 - tid(), Global);
    barrier();
    store(x + tid(), 1, Global);
    load(x + tid(), Global); // its own
    replayjit_emu_warp_barrier(-1, Sync);
    store(x + (tid() ^ 1), 2, Global);
    barrier();
    store(reinterpret_cast<int8_t *>(x) + tid(), int8_t(3), Global);
    // Atomics of all lanes on one word.
    load(x + 40, GlobalAtomic);
    store(x + 40, 4, GlobalAtomic);
  };
  for (LaneOrder order : everyOrder()) {
    grid.order = order;
    CHECK(grid.run(entry).message == "");
  }
}

TEST_CASE("barriers that not all lanes reach are named", "[emulator]") {
  TestGrid grid;
  grid.threads = 64;
  auto exits = [](const void *) {
    if (warpId() == 1)
      return;
    barrier();
  };
  CHECK_THAT(fault(grid, exits),
             Contains("incomplete barrier in block 0, lane 0, at 'sync': "
                      "barrier 0 is for 64 lanes and 32 have come, but lane 32 "
                      "has exited"));
  auto elsewhere = [](const void *) {
    replayjit_emu_barrier(warpId(), -1, warpId() ? Other : Sync);
  };
  CHECK_THAT(fault(grid, elsewhere),
             Contains("but lane 32 waits at the barrier 1 of 'other'"));
  auto twoPlaces = [](const void *) { barrier(laneId() < 16 ? Sync : Other); };
  CHECK_THAT(fault(grid, twoPlaces),
             Contains("divergent barrier") &&
                 Contains("lane 0 of its warp waits at the barrier 0 of "
                          "'sync'"));
  auto counts = [](const void *) {
    replayjit_emu_barrier(1, warpId() ? 32 : 64, Sync);
  };
  CHECK_THAT(fault(grid, counts),
             Contains("barrier misuse in block 0, lane 32") &&
                 Contains("32 lanes here and for 64 where lane 0 waits"));
}

TEST_CASE("divergent warp collectives are named", "[emulator]") {
  TestGrid grid;
  auto exits = [](const void *) {
    if (laneId() != 9)
      replayjit_emu_shuffle(-1, 1, 1, Bfly, Sync);
  };
  CHECK_THAT(fault(grid, exits),
             Contains("divergent shuffle in block 0, lane 0, at 'sync': it "
                      "waits for lanes 0xffffffff of warp 0, but lane 9 has "
                      "exited"));
  auto elsewhere = [](const void *) {
    float a[4] = {}, b[2] = {}, c[4] = {};
    if (laneId() < 31)
      replayjit_emu_mma(MmaTf32, a, b, c, c, Sync);
    else
      barrier(Other);
  };
  CHECK_THAT(fault(grid, elsewhere),
             Contains("divergent MMA") &&
                 Contains("lane 31 waits at the barrier 0 of 'other'"));
  auto outside = [](const void *) {
    if (laneId() < 16)
      replayjit_emu_shuffle(0xffff, 1, 16, Bfly, Sync);
  };
  CHECK_THAT(fault(grid, outside),
             Contains("it reads lane 16 of the warp, which takes no part"));
  auto mask = [](const void *) { replayjit_emu_ballot(0xff, 1, Sync); };
  CHECK_THAT(fault(grid, mask), Contains("wrong mask in block 0, lane 8"));
  grid.threads = 48;
  auto partial = [](const void *) {
    float a[4] = {}, b[2] = {}, c[4] = {};
    replayjit_emu_mma(MmaTf32, a, b, c, c, Sync);
  };
  CHECK_THAT(fault(grid, partial), Contains("the warp has only lanes 0xffff"));
}

TEST_CASE("copies are in flight until their wait", "[emulator]") {
  alignas(16) static float in[64] = {};
  TestGrid grid;
  grid.memory.add("in", in, sizeof in);
  auto noWait = [](const void *) {
    replayjit_emu_async_copy(shared<float>() + tid(), in + tid(), 4, LoadY);
    replayjit_emu_async_commit(None);
    load(shared<float>() + tid());
  };
  CHECK_THAT(fault(grid, noWait),
             Contains("copy in flight in block 0, lane 0, at 'load of x'") &&
                 Contains("the copy 'load of y' has not completed"));
  auto notCommitted = [](const void *) {
    replayjit_emu_async_copy(shared<float>() + tid(), in + tid(), 4, LoadY);
    replayjit_emu_async_wait(0, None);
    load(shared<float>() + tid());
  };
  CHECK_THAT(fault(grid, notCommitted), Contains("copy in flight"));
  auto noBarrier = [](const void *) {
    replayjit_emu_async_copy(shared<float>() + tid(), in + tid(), 4, LoadY);
    replayjit_emu_async_commit(None);
    replayjit_emu_async_wait(0, None);
    load(shared<float>() + (tid() ^ 1));
  };
  for (LaneOrder order : everyOrder()) {
    grid.order = order;
    std::string text = fault(grid, noBarrier);
    CHECK_THAT(text, Contains(races) || Contains("unwritten"));
  }
  auto beyond = [](const void *) {
    replayjit_emu_async_copy(shared<float>(), in + 64, 4, LoadY);
  };
  CHECK_THAT(fault(grid, beyond),
             Contains("out-of-bounds global asynchronous copy"));
}

// Lane 0 starts bulk copies of `in` to shared+64 and shared+192, on the
// mbarriers at shared+0 and shared+8.
static void startBulkCopies(const void *in) {
  auto *mbarriers = shared<uint64_t>();
  if (tid() == 0)
    for (int i = 0; i < 2; ++i)
      replayjit_emu_mbarrier_init(mbarriers + i, 1, StoreY);
  barrier();
  if (tid() == 0)
    for (int i = 0; i < 2; ++i) {
      replayjit_emu_mbarrier_expect(mbarriers + i, 128, Sync);
      replayjit_emu_bulk_copy(shared<float>(64 + 128 * i), in, 128,
                              mbarriers + i, Global, LoadY);
    }
}

TEST_CASE("bulk copies need their mbarrier", "[emulator]") {
  alignas(16) static float in[32] = {};
  TestGrid grid;
  grid.threads = 64;
  grid.memory.add("in", in, sizeof in);
  auto noWait = [](const void *) {
    startBulkCopies(in);
    barrier();
    load(shared<float>(64) + laneId());
  };
  auto handedOn = [](const void *) {
    startBulkCopies(in);
    replayjit_emu_mbarrier_wait(shared<uint64_t>() + warpId(), 0, Sync);
    barrier(); // Hands on what the other warp saw.
    load(shared<float>(64) + laneId());
    load(shared<float>(192) + laneId());
  };
  auto otherMbarrier = [](const void *) {
    startBulkCopies(in);
    replayjit_emu_mbarrier_wait(shared<uint64_t>() + warpId(), 0, Sync);
    load(shared<float>(64) + laneId());
  };
  auto wrongParity = [](const void *) {
    startBulkCopies(in);
    replayjit_emu_mbarrier_wait(shared<uint64_t>(), 1, Sync);
    load(shared<float>(64) + laneId());
  };
  for (LaneOrder order : everyOrder()) {
    grid.order = order;
    CHECK_THAT(fault(grid, noWait), Contains("copy in flight in block 0"));
    CHECK(grid.run(handedOn).message == "");
    CHECK_THAT(fault(grid, otherMbarrier),
               Contains("at 'load of x': the load touches byte") &&
                   Contains("which the copy 'load of y' wrote, with nothing "
                            "that orders the two"));
    CHECK_THAT(fault(grid, wrongParity),
               Contains("copy in flight") || Contains("unwritten"));
  }
  CHECK_THAT(fault(grid, startBulkCopies, in),
             Contains("unfinished bulk copy in block 0, lane 0, at 'load of "
                      "y'"));
}

TEST_CASE("who saw a bulk copy complete may write what it read", "[emulator]") {
  alignas(16) static float in[32] = {};
  TestGrid grid;
  grid.threads = 64;
  grid.memory.add("in", in, sizeof in);
  auto after = [](int copies) {
    startBulkCopies(in); // two, of the same
    for (int i = 0; i < (warpId() == 0 ? 2 : copies); ++i)
      replayjit_emu_mbarrier_wait(shared<uint64_t>() + i, 0, Sync);
    if (warpId() == 1)
      store(in + laneId(), 1.0f, Global);
  };
  static const auto write = after;
  for (LaneOrder order : everyOrder()) {
    grid.order = order;
    CHECK(grid.run([](const void *) { write(2); }).message == "");
    CHECK_THAT(fault(grid, [](const void *) { write(1); }),
               Contains("global-memory race"));
    CHECK_THAT(fault(grid, [](const void *) { write(0); }),
               Contains("global-memory race"));
  }
}

TEST_CASE("mbarriers are used as PTX says", "[emulator]") {
  TestGrid grid;
  auto endless = [](const void *) {
    auto *mbarrier = shared<uint64_t>(8);
    if (tid() == 0)
      replayjit_emu_mbarrier_init(mbarrier, 40, StoreY);
    replayjit_emu_warp_barrier(-1, Sync);
    if (tid() == 0)
      replayjit_emu_mbarrier_expect(mbarrier, 16, Sync);
    else
      replayjit_emu_mbarrier_arrive(mbarrier, Sync);
    replayjit_emu_mbarrier_wait(mbarrier, 0, Other);
  };
  CHECK_THAT(fault(grid, endless),
             Contains("endless mbarrier wait in block 0, lane 0, at 'other': "
                      "phase 0 (parity 0) of the mbarrier at shared+8 lacks 8 "
                      "arrivals and 16 bytes"));
  auto tooMany = [](const void *) {
    auto *mbarrier = shared<uint64_t>();
    if (tid() != 0)
      return;
    replayjit_emu_mbarrier_init(mbarrier, 1, StoreY);
    replayjit_emu_mbarrier_expect(mbarrier, 16, Sync);
    replayjit_emu_mbarrier_arrive(mbarrier, Sync);
  };
  CHECK_THAT(fault(grid, tooMany), Contains("has had all its 1 arrivals"));
  auto notInitialized = [](const void *) {
    replayjit_emu_mbarrier_arrive(shared<uint64_t>(), Sync);
  };
  CHECK_THAT(fault(grid, notInitialized), Contains("unwritten shared memory"));
  auto noMbarrier = [](const void *) {
    store(shared<int64_t>() + tid(), int64_t(0));
    replayjit_emu_mbarrier_arrive(shared<uint64_t>() + tid(), Sync);
  };
  CHECK_THAT(fault(grid, noMbarrier), Contains("no mbarrier at shared+0"));
  auto racesWithInit = [](const void *) {
    auto *mbarrier = shared<uint64_t>();
    if (tid() == 0)
      replayjit_emu_mbarrier_init(mbarrier, 32, StoreY);
    replayjit_emu_mbarrier_arrive(mbarrier, Sync);
  };
  CHECK_THAT(fault(grid, racesWithInit), Contains("race in block 0, lane 1"));
}

TEST_CASE("an early arrival does not cover later reads", "[emulator]") {
  TestGrid grid;
  auto entry = [](const void *) {
    auto *mbarrier = shared<uint64_t>();
    if (tid() == 0) {
      replayjit_emu_mbarrier_init(mbarrier, 31, StoreY);
      store(shared<int32_t>(64), 1);
    }
    barrier();
    if (tid() == 0) {
      replayjit_emu_mbarrier_wait(mbarrier, 0, Sync);
      store(shared<int32_t>(64), 2);
      return;
    }
    load(shared<int32_t>(64));
    replayjit_emu_mbarrier_arrive(mbarrier, Sync);
    if (tid() == 20)
      load(shared<int32_t>(64), Shared, LoadY); // Too late.
  };
  for (LaneOrder order : everyOrder()) {
    grid.order = order;
    CHECK_THAT(fault(grid, entry), Contains(races) && Contains("'load of y'"));
  }
}

// What a kernel may not do before it has waited for the one before it.
TEST_CASE("a wait for the kernel before comes first", "[emulator]") {
  alignas(16) static int32_t values[64];
  TestGrid grid;
  grid.threads = 64;
  grid.memory.add("values", values, sizeof values);
  auto early = [](const void *) {
    replayjit_emu_start_early(Other);
    load(values + tid(), Global);
    if (tid() != 40) // Each lane for itself.
      replayjit_emu_await_predecessor(Sync);
    load(values + tid(), GlobalDependent, LoadY);
    replayjit_emu_await_predecessor(Sync);
  };
  auto stores = [](const void *) {
    replayjit_emu_start_early(Other);
    store(values + tid(), 1, Global, StoreY);
    replayjit_emu_await_predecessor(Sync);
  };
  auto adds = [](const void *) {
    replayjit_emu_start_early(Other);
    load(values, GlobalAtomic);
    store(values, 1, GlobalAtomic, StoreY);
    replayjit_emu_await_predecessor(Sync);
  };
  auto copies = [](const void *) {
    replayjit_emu_start_early(Other);
    if (tid() == 0) {
      replayjit_emu_mbarrier_init(shared<uint64_t>(), 1, StoreX);
      replayjit_emu_mbarrier_expect(shared<uint64_t>(), 64, Sync);
      replayjit_emu_bulk_copy(shared<float>(64), values, 64, shared<uint64_t>(),
                              GlobalDependent, LoadY);
    }
    replayjit_emu_await_predecessor(Sync);
  };
  auto never = [](const void *) {
    replayjit_emu_start_early(Other);
    if (tid() != 7)
      replayjit_emu_await_predecessor(Sync);
  };
  auto right = [](const void *) {
    replayjit_emu_start_early(Other);
    store(shared<int32_t>() + tid(), load(values + tid(), Global));
    replayjit_emu_await_predecessor(Sync);
    load(values + tid(), GlobalDependent);
    store(values + tid(), 1, Global);
  };
  for (LaneOrder order : everyOrder()) {
    grid.order = order;
    CHECK_THAT(fault(grid, early),
               Contains("access before the wait in block 0, lane 40, at 'load "
                        "of y': the load reads offset 160 of 'values', which "
                        "the kernel before may still use"));
    CHECK_THAT(fault(grid, stores),
               Contains("access before the wait") &&
                   Contains("at 'store of y': the store writes offset"));
    CHECK_THAT(fault(grid, adds),
               Contains("access before the wait") &&
                   Contains("at 'store of y': the atomic writes offset 0"));
    CHECK_THAT(fault(grid, copies),
               Contains("access before the wait in block 0, lane 0, at 'load "
                        "of y': the bulk copy reads offset 0"));
    CHECK_THAT(fault(grid, never),
               Contains("missing wait in block 0, lane 7, at 'other'"));
    CHECK(grid.run(right).message == "");
  }
}

TEST_CASE("after a fault the next run is right", "[emulator]") {
  TestGrid grid;
  grid.threads = 256;
  grid.blocks = 3;
  auto faulty = [](const void *) {
    store(shared<int32_t>() + tid(), 1);
    replayjit_emu_warp_barrier(-1, Sync);
    if (tid() == 100)
      load(shared<int32_t>() + 4000);
    barrier();
  };
  auto right = [](const void *) {
    store(shared<int32_t>() + tid(), 1);
    barrier();
    load(shared<int32_t>() + 255 - tid());
    replayjit_emu_shuffle(-1, 1, 1, Bfly, Sync);
  };
  for (int i = 0; i < 50; ++i) {
    CHECK_THAT(fault(grid, faulty), Contains("lane 100"));
    REQUIRE(grid.run(right).message == "");
  }
}
