//===- PlanErrorsTest.cpp - The sentences of plans and pools --------------===//

#include "kernels/Plan/PlanArgs.h"

#include <catch2/catch.hpp>
#include <fmt/format.h>
#include <functional>

using namespace replayjit::internal;

namespace {

DecodeSpec specOf(Family family, bool isCircular = false) {
  DecodeSpec spec;
  spec.isCircular = isCircular;
  return planSpec(spec, family);
}

PlanArgs legalArgs() {
  PlanArgs args;
  uint64_t next = 0x10000;
  for (uint64_t *address :
       {&args.keys, &args.cursors, &args.bases, &args.writePos, &args.ringBase,
        &args.forceFlush, &args.rowKeys, &args.pending, &args.errorWord,
        &args.groups[0].state.in, &args.groups[0].state.out})
    *address = next += 0x100;
  args.step = 1;
  args.live = 2;
  args.batch = 4;
  args.numKeys = 3;
  args.numGroups = 1;
  args.groups[0].slots = 5;
  return args;
}

struct Bad {
  std::function<void(PlanArgs &)> change;
  std::string sentence;
};

void checkRefused(const DecodeSpec &spec, const std::vector<Bad> &cases) {
  CHECK(validateArgs(spec, legalArgs()).message == "");
  for (const Bad &bad : cases) {
    PlanArgs args = legalArgs();
    bad.change(args);
    CHECK(validateArgs(spec, args).message == bad.sentence);
  }
}

} // namespace

TEST_CASE("arguments of a begin", "[error]") {
  const std::vector<Bad> cases = {
      {[](PlanArgs &a) { a.step = -1; },
       "step: -1 is not allowed; it must be 0 or more"},
      {[](PlanArgs &a) { a.batch = -1; },
       "batch: -1 is not allowed; it must be 0 or more"},
      {[](PlanArgs &a) { a.live = 5; },
       "live: 5 is not allowed; it must be 0 to 4"},
      {[](PlanArgs &a) { a.numGroups = 9; },
       "numGroups: 9 is not allowed; it must be 0 to 8"},
      {[](PlanArgs &a) { a.keys = 0; },
       "keys: 0 is not allowed; it must be a device address"},
      {[](PlanArgs &a) { a.pending += 4; },
       "pending: 0x10804 is not allowed; the address must be a multiple of 8 "
       "bytes"},
      {[](PlanArgs &a) { a.seqLen = 0x20000; },
       "noFlushPast: 0 is not allowed; it must be a device address"},
      {[](PlanArgs &a) { a.groups[0].state.in = 0; },
       "groups[0].state.in: 0 is not allowed; it must be a device address"},
      {[](PlanArgs &a) { a.groups[0].track.out = 2; },
       "groups[0].track.out: 0x2 is not allowed; it must be 0 or a multiple of "
       "4 bytes"},
      {[](PlanArgs &a) { a.groups[0].ringSlots = -1; },
       "groups[0].ringSlots: -1 is not allowed; it must be 0 or more"}};
  checkRefused(specOf(Family::PlanBegin), cases);
  checkRefused(specOf(Family::PlanBegin, /*isCircular=*/true),
               {{[](PlanArgs &a) { a.ringBase = 0; },
                 "ringBase: 0 is not allowed; it must be a device address"}});

  // Without a row nothing is read; without wrapping there are no bases.
  PlanArgs empty = legalArgs();
  empty.live = 0;
  empty.keys = empty.bases = empty.ringBase = empty.groups[0].state.in = 0;
  CHECK(validateArgs(specOf(Family::PlanBegin), empty).isOk());
}

TEST_CASE("rows of a plan have indices of their own", "[error]") {
  const DecodeSpec spec = specOf(Family::PlanBegin);
  auto said = [&](const std::function<void(PlanArgs &)> &change) {
    PlanArgs args = legalArgs();
    for (PlanIndices PlanGroup::*kind :
         {&PlanGroup::ring, &PlanGroup::dst, &PlanGroup::track})
      (args.groups[0].*kind).in = 0x20000;
    change(args);
    return validateArgs(spec, args).message;
  };
  auto sentence = [](const std::string &name, int rows = 2) {
    return fmt::format("{}: 0 is not allowed with {} rows; it gives all of "
                       "them one index, of what they would write at once",
                       name, rows);
  };
  CHECK(said([](PlanArgs &) {}) == "");
  CHECK(said([](PlanArgs &a) { a.keyStride = 0; }) == sentence("keyStride"));
  for (auto [kind, name] : {std::pair(&PlanGroup::ring, "ring"),
                            {&PlanGroup::dst, "dst"},
                            {&PlanGroup::track, "track"}}) {
    auto stride = [kind = kind](PlanArgs &a) -> int64_t & {
      return (a.groups[0].*kind).stride;
    };
    const std::string where = fmt::format("groups[0].{}.stride", name);
    CHECK(said([&](PlanArgs &a) { stride(a) = 0; }) == sentence(where));
    // A graph's rows are known to the device alone.
    CHECK(said([&](PlanArgs &a) {
            stride(a) = 0;
            a.header = 0x30000;
            a.live = 0;
          }) == sentence(where, 4));
    CHECK(said([&](PlanArgs &a) {
            stride(a) = 0;
            a.live = 1;
          }) == "");
    // No array, no stride.
    CHECK(said([&](PlanArgs &a) { a.groups[0].*kind = {0, 0, 0}; }) == "");
  }
  // One state may be read by all, if they write others.
  CHECK(said([](PlanArgs &a) { a.groups[0].state.stride = 0; }) == "");
  for (PlanIndices PlanGroup::*kind : {&PlanGroup::ring, &PlanGroup::dst})
    CHECK(said([&](PlanArgs &a) {
            a.groups[0].state.stride = 0;
            (a.groups[0].*kind).in = 0;
          }) == sentence("groups[0].state.stride"));
  // Between steps only destinations are written.
  CHECK(said([](PlanArgs &a) {
          a.step = 0;
          a.keyStride = a.groups[0].state.stride = a.groups[0].ring.stride = 0;
        }) == "");
  CHECK(said([](PlanArgs &a) {
          a.step = 0;
          a.groups[0].dst.stride = 0;
        }) == sentence("groups[0].dst.stride"));
}

TEST_CASE("arguments of a commit", "[error]") {
  checkRefused(
      specOf(Family::PlanCommit),
      {{[](PlanArgs &a) { a.cursors = 0; },
        "cursors: 0 is not allowed; it must be a device address"},
       {[](PlanArgs &a) { a.advanceBy = 1; },
        "advanceBy: 0x1 is not allowed; it must be 0 or a multiple of 4 "
        "bytes"}});
  PlanArgs args = legalArgs();
  args.keys = args.groups[0].state.in = 0; // not its concern
  CHECK(validateArgs(specOf(Family::PlanCommit), args).isOk());
}

TEST_CASE("specs of plans", "[error]") {
  DecodeSpec spec = specOf(Family::PlanBegin, /*isCircular=*/true);
  CHECK(validate(spec, {}, Target()).isOk());
  spec.ringDepth = 1;
  CHECK(validate(spec, {}, Target()).message ==
        "ringDepth: 1 is not allowed with isCircular; it must be 2 to 64");
  spec.ringDepth = 65;
  CHECK(validate(spec, {}, Target()).message ==
        "ringDepth: 65 is not allowed; it must be 1 to 64");
  spec = specOf(Family::PlanCommit);
  spec.indexType = DataType::F32;
  CHECK(validate(spec, {}, Target()).message ==
        "indexType: fp32 is not allowed; allowed are int32, int64");
}

TEST_CASE("the pointers that a plan follows have names", "[args]") {
  const PlanArgs args = legalArgs();
  auto namesOf = [](Family family, const PlanArgs &of) {
    std::string names;
    for (const NamedAddress &pointer :
         addressesOf(rulesOf<PlanArgs>(specOf(family)), of))
      names += pointer.name + " ";
    return names;
  };
  // No bases: the ring of this spec does not wrap.
  CHECK(namesOf(Family::PlanBegin, args) ==
        "keys cursors writePos forceFlush rowKeys pending errorWord "
        "groups[0].state.in groups[0].state.out ");
  CHECK(namesOf(Family::PlanCommit, args) ==
        "cursors writePos forceFlush rowKeys pending errorWord ");
  PlanArgs other = args;
  other.live = 0;
  other.advanceBy = 8;
  CHECK(namesOf(Family::PlanBegin, other) ==
        "cursors writePos forceFlush rowKeys pending errorWord ");
  CHECK(namesOf(Family::PlanCommit, other) ==
        "cursors advanceBy writePos forceFlush rowKeys pending errorWord ");
  other.batch = 0;
  CHECK(namesOf(Family::PlanCommit, other) == "");
}
