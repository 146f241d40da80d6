//===- ModelKernelsTest.cpp - All kernels that serve a model --------------===//

#include "runtime/aot/ModelKernels.h"
#include "kernels/Families.h"
#include "kernels/Plan/PlanArgs.h"

#include <catch2/catch.hpp>

#include <set>

using namespace replayjit::internal;

TEST_CASE("whatever is chosen while a model is served was asked for", "[aot]") {
  const std::vector<int> sms = {78, 132, 148};
  for (const char *model : {"qwen3-next", "kimi-linear", "kimi-k3"})
    for (const char *chip : {"sm_80", "sm_90a", "sm_100a"}) {
      INFO(model << " " << chip);
      const Target target = *Target::parse(chip);
      const DecodeSpec preset = *modelPreset(model, 4);
      std::set<std::string> digests;
      for (const CompileRequest &kernel :
           kernelsOfModel(preset, 300, target, sms)) {
        CHECK(validate(kernel.spec, kernel.tuning, target).message == "");
        CHECK_FALSE(kernel.forHost);
        CHECK(kernel.target.chip == chip);
        const bool isNew =
            digests
                .insert(CacheKey::of(kernel.spec, kernel.tuning, target).digest)
                .second;
        CHECK(isNew);
      }

      // As an engine asks, with whatever it leaves in facts that do not count.
      std::vector<DecodeSpec> asked(6, preset);
      asked[1].hasForceFlush = false;
      asked[2].family = asked[3].family = Family::Packed;
      asked[2].ringDepth = asked[3].ringDepth = 1;
      asked[3].hasForceFlush = false;
      asked[3].ringType = DataType::BF16;
      asked[4].family = asked[5].family = Family::Materialize;
      asked[5].hasMask = false;
      for (size_t i = 0; i < 6; ++i) {
        asked.push_back(asked[i]);
        asked.back().alignment = 0;
      }
      for (Family plan : {Family::PlanBegin, Family::PlanCommit})
        asked.push_back(planSpec(preset, plan));
      size_t missing = 0, chosen = 0;
      for (const DecodeSpec &spec : asked)
        for (int count : sms)
          for (int rows = 0; rows <= 300; ++rows, ++chosen) {
            const DecodeTuning tuning = chooseTuning(spec, rows, target, count);
            missing +=
                !digests.contains(CacheKey::of(spec, tuning, target).digest);
          }
      CHECK(missing == 0);
      CHECK(chosen == 14 * 3 * 301);
    }
}

TEST_CASE("kernels for unaligned pointers are as many more", "[aot]") {
  auto count = [](const DecodeSpec &model, Pointers pointers, int alignment) {
    int found = 0;
    for (const CompileRequest &kernel :
         kernelsOfModel(model, 64, Target(), {132}, pointers))
      found +=
          traitsOf(kernel.spec).states && kernel.spec.alignment == alignment;
    return found;
  };
  DecodeSpec model = *modelPreset("qwen3-next", 4);
  CHECK(count(model, Pointers::Aligned, 16) > 0);
  CHECK(count(model, Pointers::Aligned, 0) == 0);
  CHECK(count(model, Pointers::Any, 0) > 0);
  CHECK(count(model, Pointers::Any, 16) == count(model, Pointers::Aligned, 16));
  model.abi = LaunchAbi::Triton;
  CHECK(count(model, Pointers::Any, 0) == 0);
}

TEST_CASE("each request picks a kernel that no smaller one does", "[aot]") {
  const Target target;
  const DecodeSpec model = *modelPreset("qwen3-next", 1);
  std::set<std::string> names;
  const auto requests = requestsOfModel(model, 256, target, 132);
  for (const KernelRequest &request : requests) {
    const DecodeTuning tuning =
        chooseTuning(request.spec, request.rows, target, 132);
    CHECK(names.insert(kernelName(request.spec, tuning)).second);
    for (int rows = 1; rows < request.rows; ++rows)
      CHECK(chooseTuning(request.spec, rows, target, 132) != tuning);
  }
  // Few rows, a medium and a large batch, with and without force_flush.
  CHECK(requests.size() > 6);
}

TEST_CASE("a model's families depend on what its spec has", "[aot]") {
  auto familiesOf = [](const DecodeSpec &model) {
    std::vector<Family> families;
    for (const DecodeSpec &spec : specsOfModel(model))
      families.push_back(spec.family);
    return families;
  };
  using enum Family;
  DecodeSpec model = *modelPreset("ling-flash", 1);
  // A pool of packed states and one with rings.
  CHECK(familiesOf(model) ==
        std::vector<Family>{Replay, Replay, Packed, Materialize, Materialize,
                            PlanBegin, PlanCommit, Materialize, Materialize,
                            PlanBegin, PlanCommit});
  model.ringFormat = RingFormat::Predecayed;
  model.isCircular = model.hasRingIndices = model.hasDstIndices = true;
  for (const DecodeSpec &spec : specsOfModel(model)) {
    INFO(kernelName(spec, {}));
    CHECK(validate(spec, chooseTuning(spec, 1, Target()), Target()).message ==
          "");
  }
  model = DecodeSpec();
  model.ringDepth = 1;
  CHECK(familiesOf(model) == std::vector<Family>{Replay, Replay, Packed,
                                                 Materialize, Materialize,
                                                 PlanBegin, PlanCommit});
  model.abi = LaunchAbi::Triton;
  CHECK(familiesOf(model) == std::vector<Family>{Replay, Replay});
}
