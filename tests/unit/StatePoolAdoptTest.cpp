//===- StatePoolAdoptTest.cpp - Pools over an engine's memory -------------===//
//
// Pages that hold other things beside a state, buffers given by the engine, and
// what is refused.
//
//===----------------------------------------------------------------------===//

#include "tests/unit/StateModel.h"

using namespace replayjit::internal;
using namespace replayjit::internal::test;

namespace {

constexpr int H = 1, HV = 2, K = 16, V = 16, L = 4, pages = 3;

DecodeSpec spec() { return makeSpec(H, HV, K, V, L); }

/// Pages of [64 numbers of something else | state | rings].
struct Pages {
  static constexpr int64_t other = 64, state = HV * V * K, d = HV * L * V,
                           k = H * L * K, g = HV * L;
  static constexpr int64_t pitch = other + state + d + k + g + 8;
  Device &device = sharedJit().device();
  uint64_t memory = *device.allocate(pages * pitch * 4, "pages");
  uint64_t cursors = *device.allocate(pages * 4, "cursors");

  Pages() {
    std::fill_n(at(0, 0), pages * pitch, 3.0f);
    std::fill_n(cursor(), pages, 0);
  }
  ~Pages() {
    CHECK(device.free(memory).isOk());
    CHECK(device.free(cursors).isOk());
  }
  float *at(int page, int64_t offset) const {
    return reinterpret_cast<float *>(memory) + page * pitch + offset;
  }
  int32_t *cursor() const { return reinterpret_cast<int32_t *>(cursors); }

  std::vector<PoolGroup> groups() const {
    ReplayLayer layer;
    layer.state = memory + other * 4;
    layer.dRing = layer.state + state * 4;
    layer.kRing = layer.dRing + d * 4;
    layer.gRing = layer.kRing + k * 4;
    layer.statePitch = layer.dPitch = layer.kPitch = layer.gPitch = pitch;
    PoolGroup group;
    group.spec = spec();
    group.layers = {layer};
    group.slots = pages;
    return {group};
  }
  CursorTable table() const { return {cursors, 0, pages}; }
};

} // namespace

TEST_CASE("a pool in pages that hold more than states", "[state]") {
  const Pages engine;
  auto pool = StatePool::adopt(sharedJit(), engine.groups(), engine.table());
  REQUIRE(pool.status().message == "");
  const size_t bytes = *StepPlan::bytesFor(**pool, 2);
  const uint64_t buffers = *engine.device.allocate(bytes, "buffers");
  {
    auto plan = StepPlan::adopt(**pool, 2, buffers);
    REQUIRE(plan.status().message == "");
    for (uint64_t array : {(*plan)->buffers().writePos,
                           (*plan)->buffers().groups[0].track.out}) {
      CHECK(array >= buffers);
      CHECK(array + 2 * 4 <= buffers + bytes);
    }

    // One ring row of page 1: d = 2 in its first row, k = 5 in its first
    // column, g = 0. Page 2 becomes S0 + d k^T.
    std::fill_n(engine.at(1, Pages::other), Pages::state, 1.0f);
    std::fill_n(engine.at(1, Pages::other + Pages::state),
                Pages::d + Pages::k + Pages::g, 0.0f);
    *engine.at(1, Pages::other + Pages::state) = 2;
    *engine.at(1, Pages::other + Pages::state + Pages::d) = 5;
    engine.cursor()[0] = 1;
    const std::vector<float> source(engine.at(1, 0), engine.at(2, 0));
    const uint64_t rows = *engine.device.allocate(3 * 4, "rows");
    const int32_t values[] = {0, 1, 2}; // key, src, dst
    REQUIRE(engine.device.copyToDevice(rows, values, sizeof values).isOk());
    GroupIndices indices;
    indices.state = rows + 4;
    indices.dst = rows + 8;
    StepInputs inputs;
    inputs.live = 1;
    inputs.keys = rows;
    inputs.groups = {&indices, 1};
    REQUIRE((*plan)->materialize(nullptr, inputs).message == "");
    for (int64_t i = 0; i < Pages::pitch; ++i) {
      const bool isState = i >= Pages::other && i < Pages::other + Pages::state;
      const float expected = !isState            ? 3.0f
                             : i == Pages::other ? 1.0f + 2 * 5
                                                 : 1.0f;
      if (*engine.at(2, i) != expected || *engine.at(0, i) != 3.0f)
        FAIL("element " << i << " is " << *engine.at(2, i));
    }
    CHECK(std::equal(source.begin(), source.end(), engine.at(1, 0)));
    CHECK(engine.device.free(rows).isOk());
  }
  CHECK(engine.device.free(buffers).isOk());
}

TEST_CASE("an error word of the engine's serves several pools", "[state]") {
  const Pages engine;
  auto word = engine.device.allocateMapped(sizeof(ErrorWord), "word");
  REQUIRE(word);
  auto *host = static_cast<ErrorWord *>(word->host);
  *host = {1, uint32_t(ErrorKind::CursorKey), 4, -1, 9};
  PoolOptions options;
  options.errorWord = {host, word->device};
  {
    auto one =
        StatePool::adopt(sharedJit(), engine.groups(), engine.table(), options);
    auto two =
        StatePool::adopt(sharedJit(), engine.groups(), engine.table(), options);
    REQUIRE(one);
    REQUIRE(two);
    CHECK((*one)->errorWord() == word->device);
    CHECK((*two)->pollErrors().value == 9); // not cleared: it is not theirs
    (*one)->clearErrors();
    CHECK(describe((*two)->pollErrors()) == "");
  }
  CHECK(engine.device.freeMapped(*word).isOk());
}

TEST_CASE("half an error word is none", "[state][error]") {
  const Pages engine;
  ErrorWord word;
  for (SharedErrorWord half :
       {SharedErrorWord{&word, 0}, {nullptr, engine.cursors}}) {
    PoolOptions options;
    options.errorWord = half;
    const std::string sentence =
        half.host ? "errorWord: a host address without a device address is not "
                    "allowed; both must be given, or neither"
                  : "errorWord: a device address without a host address is not "
                    "allowed; both must be given, or neither";
    CHECK(
        StatePool::adopt(sharedJit(), engine.groups(), engine.table(), options)
            .status()
            .message == sentence);
    CHECK(StatePool::allocate(sharedJit(), engine.groups(), pages, options)
              .status()
              .message == sentence);
  }
}

TEST_CASE("pools and plans that cannot be", "[state][error]") {
  const Pages engine;
  using Groups = std::vector<PoolGroup>;
  auto refuses = [&](void (*change)(Groups &, CursorTable &),
                     const char *sentence) {
    Groups groups = engine.groups();
    CursorTable cursors = engine.table();
    change(groups, cursors);
    auto pool = StatePool::adopt(sharedJit(), groups, cursors);
    CHECK(pool.status().message == sentence);
  };
  refuses([](Groups &g, CursorTable &) { g.clear(); },
          "groups: 0 are not allowed; there must be 1 to 8");
  refuses([](Groups &g, CursorTable &) { g[0].layers.clear(); },
          "groups[0]: layers: 0 are not allowed; there must be 1 to 4096");
  refuses([](Groups &g, CursorTable &) { g[0].layers.resize(4097); },
          "groups[0]: layers: 4097 are not allowed; there must be 1 to 4096");
  refuses([](Groups &g, CursorTable &) { g[0].slots = 0; },
          "groups[0]: slots: 0 is not allowed; it must be 1 or more");
  refuses([](Groups &g, CursorTable &) { g[0].spec.numKeyHeads = 0; },
          "groups[0]: numKeyHeads: 0 is not allowed; it must be 1 to 1024");
  refuses(
      [](Groups &g, CursorTable &) { g[0].spec.family = Family::Materialize; },
      "groups[0]: family materialize is not allowed; it must be replay or "
      "packed");
  refuses([](Groups &g, CursorTable &) { g[0].ringSlots = 7; },
          "groups[0]: ringSlots: 7 is not allowed without hasRingIndices; it "
          "must be slots, 3");
  refuses([](Groups &g, CursorTable &) { g[0].keyHeadBegin = 1; },
          "groups[0]: keyHeadBegin: 1 is not allowed; 1 of 1 key heads must "
          "start at 0 to 0");
  // One rank's heads and those of all ranks, in value heads, within 31 bits.
  refuses([](Groups &g, CursorTable &) { g[0].keyHeadTotal = INT32_MAX; },
          "groups[0]: keyHeadTotal: 2147483647 is not allowed; it must be 0 to "
          "1073741823");
  refuses([](Groups &g, CursorTable &) { g[0].keyHeadTotal = -1; },
          "groups[0]: keyHeadTotal: -1 is not allowed; it must be 0 to "
          "1073741823");
  refuses([](Groups &g, CursorTable &) { g[0].layers[0].statePitch = 8; },
          "groups[0]: statePitch: 8 is not allowed; it must be 512 or more");
  // 2^62 elements from slot to slot are none in 64 bits of bytes.
  refuses(
      [](Groups &g, CursorTable &) {
        g[0].layers[0].statePitch = int64_t(1) << 62;
      },
      "groups[0]: statePitch: 4611686018427387904 is not allowed; it must be "
      "512 to 1073741824 (2^32 bytes)");
  refuses([](Groups &g, CursorTable &) { g[0].spec.abi = LaunchAbi::Triton; },
          "groups[0]: abi: triton is not allowed; it must be native, whose "
          "launches take what a pool gives");
  refuses(
      [](Groups &g, CursorTable &) {
        g.push_back(g[0]);
        g[1].spec.ringDepth = 2;
      },
      "groups[1]: ringDepth: 2 is not allowed; all groups of a pool agree in "
      "it, and groups[0] has 4");
  refuses(
      [](Groups &g, CursorTable &) {
        g.push_back(g[0]);
        g[1].spec.trapOnError = true;
      },
      "groups[1]: trapOnError: true is not allowed; all groups of a pool agree "
      "in it, and groups[0] has false");
  refuses([](Groups &, CursorTable &c) { c.numKeys = 0; },
          "numKeys: 0 is not allowed; it must be 1 or more");
  refuses([](Groups &, CursorTable &c) { c.writePos = 2; },
          "cursors.writePos: 0x2 is not allowed; it must be a device address "
          "and a multiple of 4 bytes");

  auto pool = StatePool::adopt(sharedJit(), engine.groups(), engine.table());
  REQUIRE(pool);
  CHECK(StepPlan::create(**pool, 0).status().message ==
        "maxRows: 0 is not allowed; it must be 1 or more");
  CHECK(StepPlan::bytesFor(**pool, -5).status().message ==
        "maxRows: -5 is not allowed; it must be 1 or more");
  CHECK(StepPlan::adopt(**pool, 1, 128).status().message ==
        "memory: 0x80 is not allowed; it must be a device address and a "
        "multiple of 256 bytes");
  auto plan = StepPlan::create(**pool, 2);
  REQUIRE(plan);
  GroupIndices indices;
  indices.state = engine.cursors;
  StepInputs inputs;
  inputs.live = 1;
  inputs.keys = engine.cursors;
  inputs.groups = {&indices, 1};
  CHECK((*plan)->begin(nullptr, 0, inputs).message ==
        "step: 0 is not allowed; it must be 1 or more");
  indices.track = engine.cursors;
  CHECK((*plan)->begin(nullptr, 1, inputs).message ==
        "track: not allowed, since the spec of groups[0] has no "
        "hasTrackIndices");
  indices.track = 0;
  indices.ring = engine.cursors;
  CHECK((*plan)->begin(nullptr, 1, inputs).message ==
        "groups[0].ring: not allowed, since the spec of the group's kernels "
        "has no hasRingIndices");
  indices.ring = 0;
  inputs.dropNewest = engine.cursors;
  CHECK((*plan)->begin(nullptr, 1, inputs).message ==
        "dropNewest: not allowed in a step; it is of materialize");
  inputs.dropNewest = 0;
  inputs.live = 3;
  CHECK_THAT((*plan)->begin(nullptr, 1, inputs).message,
             Catch::Contains("live: 3 is not allowed; it must be 0 to 2"));
  inputs.groups = {};
  CHECK((*plan)->begin(nullptr, 1, inputs).message ==
        "groups: 0 are given; the pool has 1");
}

TEST_CASE("an operation refuses what it does not use", "[state][error]") {
  const Pages engine;
  auto pool = StatePool::adopt(sharedJit(), engine.groups(), engine.table());
  REQUIRE(pool);
  auto plan = StepPlan::create(**pool, 2);
  REQUIRE(plan);
  struct Operation {
    const char *name;
    Status (StepPlan::*run)(void *, const StepInputs &);
    bool takesDst, takesDrop;
  };
  for (const Operation &operation :
       {Operation{"materialize", &StepPlan::materialize, true, true},
        {"copy", &StepPlan::copy, true, false},
        {"prepareExtend", &StepPlan::prepareExtend, false, false},
        {"requireFlushed", &StepPlan::requireFlushed, false, false}}) {
    GroupIndices indices;
    indices.state = engine.cursors;
    StepInputs inputs;
    inputs.groups = {&indices, 1};
    auto run = [&](uint64_t &field) {
      field = engine.cursors;
      const Status status = ((**plan).*operation.run)(nullptr, inputs);
      field = 0;
      return status.message;
    };
    const std::string in =
        std::string(": not allowed in ") + operation.name + "; ";
    CHECK(run(inputs.keys) == "");
    CHECK(run(inputs.fresh) == "");
    CHECK(run(inputs.flushMask) == "flushMask" + in + "it is of a step");
    CHECK(run(inputs.seqLen) == "seqLen" + in + "it is of a step");
    CHECK(run(inputs.noFlushPast) == "noFlushPast" + in + "it is of a step");
    CHECK(run(indices.track) == "groups[0].track" + in + "it is of a step");
    CHECK(run(inputs.dropNewest) ==
          (operation.takesDrop ? ""
                               : "dropNewest" + in + "it is of materialize"));
    CHECK(run(indices.dst) ==
          (operation.takesDst
               ? ""
               : "groups[0].dst" + in + "it writes to no other slot"));
  }
}
