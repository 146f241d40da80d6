//===- SpecErrorsTest.cpp - The sentences for illegal specs ---------------===//
//
// One case per field: the sentence names the field, the value found and what
// is allowed.
//
//===----------------------------------------------------------------------===//

#include "kernels/Decode/DecodeSpec.h"

#include <catch2/catch.hpp>
#include <functional>
#include <string>
#include <vector>

using namespace replayjit::internal;

namespace {
struct Case {
  std::function<void(DecodeSpec &, DecodeTuning &)> change;
  std::vector<std::string> parts; ///< Field first, then value and allowed.
};
} // namespace

#define CHANGE [](DecodeSpec & spec, [[maybe_unused]] DecodeTuning & tuning)

static void check(const std::vector<Case> &cases) {
  for (const Case &entry : cases) {
    DecodeSpec spec;
    DecodeTuning tuning;
    entry.change(spec, tuning);
    Status status = validate(spec, tuning, Target{});
    INFO("expected a sentence on " << entry.parts[0] << ", got: '"
                                   << status.message << "'");
    CHECK(status.code == StatusCode::InvalidArgument);
    CHECK(status.message.rfind(entry.parts[0] + ": ", 0) == 0);
    for (const std::string &part : entry.parts)
      CHECK(status.message.find(part) != std::string::npos);
    CHECK(status.message.find('\n') == std::string::npos);
  }
}

TEST_CASE("sizes", "[error]") {
  check({
      {CHANGE{spec.numKeyHeads = 0;
}
, { "numKeyHeads", "0", "1 to 1024" }
}
, {CHANGE{spec.numValueHeads = -2;
}
, { "numValueHeads", "-2", "1 to 1024" }
}
, {CHANGE{spec.numValueHeads = 24;
}
, { "numValueHeads", "24", "a multiple of numKeyHeads = 16" }
}
, {CHANGE{spec.numValueHeads = 8;
}
, { "numValueHeads", "8", "a multiple of numKeyHeads = 16" }
}
, {CHANGE{spec.headDimK = 0;
}
, { "headDimK", "0", "1 to 256" }
}
, {CHANGE{spec.headDimK = 257;
}
, { "headDimK", "257", "1 to 256" }
}
, {CHANGE{spec.headDimV = 0;
}
, { "headDimV", "0", "1 to 256" }
}
, {CHANGE{spec.headDimV = 300;
}
, { "headDimV", "300", "1 to 256" }
}
, {CHANGE{spec.ringDepth = 0;
}
, { "ringDepth", "0", "1 to 64" }
}
, {CHANGE{spec.ringDepth = 65;
}
, { "ringDepth", "65", "1 to 64" }
}
, {CHANGE{spec.alignment = 4;
}
, { "alignment", "4", "0, 16" }
}
, {CHANGE{spec.readout = Readout::Rebuild;
spec.headDimK = 8;
}
, { "headDimK", "8", "9 or more" }
}
,
});
}

TEST_CASE("element types", "[error]") {
  const std::string floats = "fp32, bf16, fp16";
  check({
      {CHANGE{spec.actType = DataType::I32;
}
, { "actType", "int32", floats }
}
, {CHANGE{spec.gateType = DataType::I32;
}
, { "gateType", "int32", floats }
}
, {CHANGE{spec.betaType = DataType::I64;
}
, { "betaType", "int64", floats }
}
, {CHANGE{spec.paramType = DataType::I32;
}
, { "paramType", "int32", floats }
}
, {CHANGE{spec.biasType = DataType::I32;
}
, { "biasType", "int32", floats }
}
, {CHANGE{spec.outType = DataType::I64;
}
, { "outType", "int64", floats }
}
, {CHANGE{spec.stateType = DataType::I32;
}
, { "stateType", "int32", floats }
}
, {CHANGE{spec.ringType = DataType::I32;
}
, { "ringType", "int32", floats }
}
, {CHANGE{spec.indexType = DataType::F32;
}
, { "indexType", "fp32", "int32, int64" }
}
,
});
}

TEST_CASE("tuning", "[error]") {
  const std::string tiles = "8, 16, 32, 64, 128, 256";
  check({
      {CHANGE{tuning.blockV = 4;
}
, { "blockV", "4", tiles }
}
, {CHANGE{tuning.blockV = 48;
}
, { "blockV", "48", tiles }
}
, {CHANGE{tuning.blockV = 512;
}
, { "blockV", "512", tiles }
}
, {CHANGE{tuning.blockK = 48;
}
, { "blockK", "48", "16, 32, 64, 128, 256" }
}
, {CHANGE{tuning.blockK = 8;
}
, { "blockK", "8", "headDimK = 128", "16 to 128" }
}
, {CHANGE{spec.headDimK = 60;
tuning.blockK = 128;
}
, { "blockK", "128", "headDimK = 60", "16 to 64" }
}
, {CHANGE{spec.headDimK = 8;
tuning.blockK = 16;
}
, { "blockK", "16", "headDimK = 8", "8 to 8" }
}
, {CHANGE{tuning.numWarps = 3;
}
, { "numWarps", "3", "1, 2, 4, 8" }
}
, {CHANGE{tuning.numWarps = 16;
}
, { "numWarps", "16", "1, 2, 4, 8" }
}
, {CHANGE{spec.headDimK = tuning.blockK = 4;
tuning.blockV = 16;
}
, { "numWarps", "4", "blockV = 16", "blockK = 4", "at most 2" }
}
, {CHANGE{spec.readout = Readout::Rebuild;
tuning.blockV = tuning.blockK = 16;
}
, { "numWarps", "4", "blockV = 16", "blockK = 16", "fragment", "at most 2" }
}
, {CHANGE{tuning.blockV = 256;
tuning.numWarps = 1;
}
, { "numWarps", "1", "blockV = 256", "blockK = 128", "at least 4" }
}
, {CHANGE{tuning.flushRows = 3;
}
, { "flushRows", "3", "0, 1, 2, 4, 8" }
}
,
});
}

TEST_CASE("inputs have types of their own, and gates any form", "[error]") {
  using enum DataType;
  for (bool isKda : {false, true})
    for (DataType type : {F32, BF16, F16})
      for (DataType DecodeSpec::*member :
           {&DecodeSpec::actType, &DecodeSpec::gateType, &DecodeSpec::betaType,
            &DecodeSpec::paramType, &DecodeSpec::biasType})
        for (Gate gate : {Gate::Softplus, Gate::LowerBound, Gate::LogDecay}) {
          DecodeSpec spec;
          spec.isKda = isKda;
          spec.*member = type;
          spec.gate = gate;
          CHECK(validate(spec, {}, Target{}).message == "");
        }
}

TEST_CASE("tensor cores need their target", "[error]") {
  Target old;
  old.chip = "sm_75";
  old.capability = 75;
  DecodeSpec spec;
  CHECK(validate(spec, {}, old).isOk());
  spec.readout = Readout::Rebuild;
  Status status = validate(spec, {}, old);
  CHECK(status.code == StatusCode::Unsupported);
  CHECK(status.message.find("target: sm_75") == 0);
  CHECK(status.message.find("sm_80 and later") != std::string::npos);
}

TEST_CASE("presets", "[error]") {
  Result<DecodeSpec> unknown = modelPreset("gpt-2", 1);
  REQUIRE(!unknown);
  CHECK(unknown.status().message ==
        "model: 'gpt-2' is unknown; allowed are qwen3-next, qwen3.5-27b, "
        "qwen3.5-397b, kimi-linear, kimi-k3, ling-flash, nemotron-h-8b, "
        "nemotron-3-super, nemotron-nano-9b-v2, granite-4-h-small, bamba-9b, "
        "falcon-h1-1.5b, falcon-h1-7b, minimax-01");
  for (int ranks : {0, -1, 3, 32}) {
    Result<DecodeSpec> split = modelPreset("qwen3.5-27b", ranks);
    REQUIRE(!split);
    CHECK(split.status().message ==
          "tensorParallel: " + std::to_string(ranks) +
              " does not divide the 16 key and 48 value heads of qwen3.5-27b; "
              "allowed are 1, 2, 4, 8, 16");
  }
  Result<DecodeSpec> split = modelPreset("kimi-k3", 64);
  REQUIRE(!split);
  CHECK(split.status().message ==
        "tensorParallel: 64 does not divide the 96 key and 96 value heads of "
        "kimi-k3; allowed are 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 96");
}
