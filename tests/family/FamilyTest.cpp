//===- FamilyTest.cpp - A family is a folder and a line -------------------===//
//
// Toy/ and Families.def are all that CONTRIBUTING asks for; nothing else in the
// project knows of it.
//
//===----------------------------------------------------------------------===//

#include "kernels/Families.h"
#include "runtime/CompileOnMiss.h"
#include "runtime/cache/CacheKey.h"
#include "tests/family/Toy/ToyReference.h"

#include <catch2/catch.hpp>

#include <set>

using namespace replayjit::internal;

namespace {

constexpr Family toy = Family(6); ///< The value after those of Families.def.

DecodeSpec toySpec(DataType stateType = DataType::F32) {
  DecodeSpec spec;
  spec.family = toy;
  spec.numKeyHeads = 1;
  spec.numValueHeads = 2;
  spec.headDimK = 20;
  spec.headDimV = 36;
  spec.ringDepth = 1;
  spec.alignment = 0;
  spec.stateType = stateType;
  return spec;
}

Status check(const DecodeSpec &spec) {
  return validate(spec, chooseTuning(spec, 1, Target()), Target());
}

} // namespace

TEST_CASE("a family is known by its line", "[family]") {
  CHECK(wordOf(toy) == "toy");
  CHECK(allFamilies().size() == size_t(toy) + 1);
  CHECK(wordOf(Family(int(toy) + 1)).empty());
  CHECK(decodeFacts()[0].allowed.text() ==
        "replay, packed, materialize, planBegin, planCommit, verify, toy");

  const DecodeSpec spec = toySpec();
  CHECK_THAT(kernelName(spec, chooseTuning(spec, 1, Target())),
             Catch::StartsWith("gdn_toy_h1_hv2_k20_v36_l1_"));
  CHECK(parametersOf(spec).size() == toyArguments().size());
  std::set<std::string> digests;
  for (size_t i = 0; i < allFamilies().size(); ++i) {
    DecodeSpec other = spec;
    other.family = Family(i);
    digests.insert(CacheKey::of(other, {}, Target()).digest);
  }
  CHECK(digests.size() == allFamilies().size());
}

TEST_CASE("a family has the facts of its traits, and rules of its own",
          "[family]") {
  DecodeSpec spec = toySpec();
  CHECK(check(spec).message == "");
  for (const Fact<DecodeSpec> &fact : decodeFacts())
    CHECK(fact.isIn(spec) ==
          (std::set<std::string_view>{"family",        "isKda",
                                      "numKeyHeads",   "numValueHeads",
                                      "headDimK",      "headDimV",
                                      "ringDepth",     "stateType",
                                      "indexType",     "ringFormat",
                                      "isCircular",    "hasRingIndices",
                                      "hasDstIndices", "hasTrackIndices",
                                      "trapOnError",   "programmaticLaunch",
                                      "nullSlot",      "readout",
                                      "alignment",     "abi"})
              .contains(fact.name));
  spec.ringDepth = 4;
  CHECK(check(spec).message ==
        "ringDepth: 4 is not allowed for a toy; it must be 1");
  spec = toySpec();
  spec.headDimK = 0;
  CHECK(check(spec).message ==
        "headDimK: 0 is not allowed; it must be 1 to 256");
  spec = toySpec();
  spec.abi = LaunchAbi::Triton;
  CHECK(check(spec).message == "abi: triton is not allowed with family toy; "
                               "its signature is that of the replay kernel");
}

TEST_CASE("a family compiles, launches and does what its reference does",
          "[family]") {
  auto device = createEmulationDevice(*Target::parse("sm_90a"));
  JitOptions options;
  options.compile = compileOnMiss(AssembleOptions());
  auto jit = Jit::create(*device, std::move(options));
  REQUIRE(jit.status().message == "");
  for (DataType type : {DataType::F32, DataType::BF16}) {
    const DecodeSpec spec = toySpec(type);
    auto kernel = (*jit)->prepare(spec, 1);
    REQUIRE(kernel.status().message == "");

    constexpr int slots = 5;
    const int64_t size = 2 * 36 * 20;
    auto make = [&](const char *name, DataType type, int64_t count) {
      auto address = device->allocate(count * byteSize(type), name);
      REQUIRE(address);
      for (int64_t i = 0; i < count; ++i) // small integers, exact in any type
        storeElement(type, reinterpret_cast<void *>(*address), i, i % 251);
      return *address;
    };
    auto makeArgs = [&] {
      ToyArgs args;
      args.statePitch = size;
      args.batch = 4;
      args.slots = slots;
      args.state = make("state", type, slots * size);
      args.src = make("src", DataType::I32, args.batch);
      args.dst = make("dst", DataType::I32, args.batch);
      const int src[] = {0, 1, -1, 2}, dst[] = {3, 1, 2, slots};
      for (int row = 0; row < args.batch; ++row) {
        HostTensor{DataType::I32, args.src, 1}.set(row, 0, src[row]);
        HostTensor{DataType::I32, args.dst, 1}.set(row, 0, dst[row]);
      }
      return args;
    };
    const ToyArgs ours = makeArgs(), theirs = makeArgs();
    REQUIRE(kernel->launch(ours).message == "");
    toyLaunch(spec, theirs);
    const HostTensor have{type, ours.state, size},
        want{type, theirs.state, size};
    int copied = 0;
    for (int slot = 0; slot < slots; ++slot)
      for (int64_t i = 0; i < size; ++i) {
        REQUIRE(have.get(slot, i) == want.get(slot, i));
        copied += slot == 3 && have.get(3, i) != (3 * size + i) % 251;
      }
    CHECK(copied > size / 2); // The slots had different states.

    ToyArgs wrong = ours;
    wrong.dst = 0;
    CHECK_THAT(kernel->launch(wrong).message,
               Catch::EndsWith("dst: 0 is not allowed; it must be a device "
                               "address"));
    CHECK_THAT(kernel->launch(DecodeArgs()).message,
               Catch::EndsWith("a kernel of family toy takes ToyArgs"));
  }
}
