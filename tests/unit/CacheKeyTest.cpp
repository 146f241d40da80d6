//===- CacheKeyTest.cpp - What one asks a cache for -----------------------===//

#include "runtime/cache/CacheKey.h"
#include "runtime/cache/Digest.h"

#include <catch2/catch.hpp>

#include <set>

using namespace replayjit::internal;

namespace {

template <typename Struct>
Struct oneChanged(Struct all, const Fact<Struct> &fact) {
  const int next = fact.get(all) + 1;
  fact.set(all, fact.allowed.canHold(next) ? next : 0);
  return all;
}

/// Calls `use` with copies of `original`, one field changed in each.
template <typename Struct, typename Use>
void changeEach(const Struct &original, std::span<const Fact<Struct>> table,
                Use use) {
  for (const Fact<Struct> &fact : table)
    use(oneChanged(original, fact));
}

} // namespace

TEST_CASE("a change of any one fact changes the key") {
  const Target hopper = *Target::parse("sm_90a");
  std::set<std::string> digests, texts;
  size_t keys = 0;
  auto add = [&](const CacheKey &key) {
    digests.insert(key.digest);
    texts.insert(key.text);
    ++keys;
  };
  add(CacheKey::of({}, {}, hopper));
  // Each of a program that has it.
  DecodeSpec replay, verify, predecayed, materialize, overlapping;
  verify.family = Family::Verify;
  predecayed.ringFormat = RingFormat::Predecayed;
  materialize.family = Family::Materialize;
  overlapping.programmaticLaunch = ProgrammaticLaunch::Late;
  for (const Fact<DecodeSpec> &fact : decodeFacts())
    for (const DecodeSpec &base :
         {replay, verify, predecayed, materialize, overlapping})
      if (fact.isIn(base)) {
        add(CacheKey::of(oneChanged(base, fact), {}, hopper));
        break;
      }
  changeEach(DecodeTuning(), tuningFacts(), [&](const DecodeTuning &tuning) {
    add(CacheKey::of({}, tuning, hopper));
  });
  for (int member = 0; member < 5; ++member) {
    Target other = hopper;
    auto &[chip, capability, ptxVersion, shared, bulk] = other;
    member == 0   ? void(chip = "sm_90")
    : member == 1 ? void(++capability)
    : member == 2 ? void(++ptxVersion)
    : member == 3 ? void(++shared)
                  : void(bulk = !bulk);
    add(CacheKey::of({}, {}, other));
  }
  add(CacheKey::of({}, {}, hopper, generatorVersion + 1));
  CHECK(keys ==
        1 + memberCount<DecodeSpec>() + memberCount<DecodeTuning>() + 5 + 1);
  CHECK(digests.size() == keys);
  CHECK(texts.size() == keys);
}

TEST_CASE("a key knows only what its family has") {
  // A name has every such fact, too.
  for (Family family : {Family::Replay, Family::Packed, Family::Materialize,
                        Family::PlanBegin, Family::PlanCommit, Family::Verify})
    for (Readout readout : {Readout::OutputOnly, Readout::Rebuild}) {
      DecodeSpec base;
      base.family = family;
      base.readout = readout;
      changeEach(base, decodeFacts(), [&](const DecodeSpec &spec) {
        INFO(kernelName(spec, {}));
        CHECK((CacheKey::of(spec, {}, {}).digest ==
               CacheKey::of(base, {}, {}).digest) ==
              (kernelName(spec, {}) == kernelName(base, {})));
        CHECK(kernelName(canonical(spec), {}) == kernelName(spec, {}));
      });
    }
}

TEST_CASE("a key's text is one line a fact, and the same in every process") {
  const CacheKey key = CacheKey::of({}, {}, *Target::parse("sm_90a"), 7);
  const auto facts = factsOf(key.text);
  CHECK(facts.size() ==
        1 + 5 + memberCount<DecodeSpec>() + memberCount<DecodeTuning>());
  CHECK(facts[0] == "generator.version = 7");
  CHECK(facts[1] == "target.chip = sm_90a");
  CHECK(facts[6] == "spec.family = replay");
  CHECK(facts.back() == "tuning.splitVectors = false");
  CHECK(isDigest(key.digest));
  CHECK(key.digest == digestOf(key.text));
}

TEST_CASE("digests are XXH3 of 128 bits") {
  // The published value of the empty input.
  CHECK(digestOf("") == "99aa06d3014798d86001c324468d497f");
  CHECK_FALSE(isDigest(""));
  CHECK_FALSE(isDigest("99AA06d3014798d86001c324468d497f"));
  CHECK_FALSE(isDigest("99aa06d3014798d86001c324468d497"));
  CHECK_FALSE(isDigest("../06d3014798d86001c324468d49700"));
}

TEST_CASE("differences name fact, wish and find") {
  CHECK(differences("a = 1\nb = x\n", "a = 1\nb = x\n").empty());
  CHECK(differences("a = 1\nb = x\nc = 3\n", "b = y\na = 1\nd = 4\n") ==
        std::vector<std::string>{
            "b: x is asked for; the entry has y",
            "c: 3 is asked for; the entry knows no such fact",
            "d: the entry has 4; nothing of that name is asked for"});
}
