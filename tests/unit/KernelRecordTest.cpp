//===- KernelRecordTest.cpp - A kernel as JSON ----------------------------===//

#include "runtime/cache/KernelRecord.h"
#include "tests/unit/CacheTestSupport.h"

using namespace replayjit::internal;
using namespace replayjit::internal::test;
using Catch::Matchers::Contains;

namespace {

std::string replaced(std::string text, const std::string &from,
                     const std::string &to) {
  const size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

std::string goodJson() {
  const CacheKey key = keyOf(0);
  return toJson(kernelOf(key), key.spec, key.tuning);
}

} // namespace

TEST_CASE("a record read is the kernel written") {
  DecodeSpec spec;
  spec.family = Family::Materialize;
  spec.isKda = true;
  spec.gate = Gate::LowerBound;
  spec.ringFormat = RingFormat::Predecayed;
  spec.nullSlot = NullSlot::NonPositive;
  spec.indexType = DataType::I64;
  spec.ringType = DataType::BF16;
  spec.hasMask = false;
  DecodeTuning tuning;
  tuning.blockV = 64;
  tuning.maxRegisters = 168;
  const CacheKey key = CacheKey::of(spec, tuning, *Target::parse("sm_100a"));
  CompiledKernel kernel = kernelOf(key);
  kernel.launch.sharedBytes = UINT32_MAX;
  kernel.resources = ResourceUsage();
  for (const std::string &json :
       {toJson(kernel, key.spec, tuning), toEntryJson(kernel, key)}) {
    Result<KernelRecord> record = readRecord(json);
    REQUIRE(record.status().message == "");
    CHECK(record->spec == key.spec);
    CHECK(record->tuning == tuning);
    CHECK(record->kernel.target.capability == 100);
    CHECK(record->ptxBytes == kernel.ptx.size());
    CHECK(record->cubinBytes == kernel.cubin.size());
    record->kernel.ptx = kernel.ptx;
    record->kernel.cubin = kernel.cubin;
    CHECK(isSame(record->kernel, kernel));
  }
  Result<KernelRecord> byHand = readRecord(toJson(kernel));
  REQUIRE(byHand);
  CHECK_FALSE(byHand->spec);
  CHECK_FALSE(byHand->tuning);
}

TEST_CASE("an entry's record names its key and its files") {
  const CacheKey key = keyOf(0);
  const CompiledKernel kernel = kernelOf(key);
  Result<EntryRecord> entry = readEntryRecord(toEntryJson(kernel, key));
  REQUIRE(entry);
  CHECK(entry->name == kernel.name);
  CHECK(entry->keyText == key.text);
  CHECK(entry->ptxBytes == kernel.ptx.size());
  CHECK(entry->ptxDigest != entry->cubinDigest);
  CHECK_THAT(readEntryRecord(goodJson()).status().message,
             Contains("its checksum is missing"));
}

TEST_CASE("a string that is no UTF-8 makes a record all the same") {
  CompiledKernel kernel = kernelOf(keyOf(0));
  kernel.assembler = "\xff\xfe";
  CHECK(readRecord(toJson(kernel)));
}

TEST_CASE("every malformed member is one sentence") {
  struct Case {
    const char *from, *to, *message;
  };
  const Case cases[] = {
      {"{", "[", "it is no JSON object"},
      {"\"name\"", "\"nome\"", "name: it is missing"},
      {"\"sm_90a\"", "\"sm_1\"", "target: 'sm_1' is unknown"},
      {"\"sm_90a\"", "90", "target: it must be a string"},
      {"\"family\": \"replay\"", "\"family\": \"decode\"",
       "spec.family: 'decode' is not allowed; allowed are replay, packed, "
       "materialize"},
      {"\"isKda\": false", "\"isKda\": 0",
       "spec.isKda: it must be true or "
       "false"},
      {"\"ringDepth\": 2", "\"ringDepth\": 2.5",
       "spec.ringDepth: it must be an integer from -2147483648"},
      {"\"ringDepth\": 2", "\"ringDepth\": 4294967296",
       "spec.ringDepth: it must be an integer"},
      {"\"ringDepth\": 2", "\"ringDepht\": 2", "spec.ringDepth: it is missing"},
      {"\"ringDepth\": 2", "\"ringDepth\": 2, \"more\": 1",
       "spec.more: a member of this name is unknown"},
      {"\"stateType\": \"fp32\"", "\"stateType\": \"fp8\"",
       "spec.stateType: 'fp8' is not allowed"},
      {"\"tuning\"", "\"tuned\"", "tuning: it is missing"},
      {"\"threads\": 128", "\"threads\": -1",
       "launch.threads: it must be an integer from 0 to 4294967295"},
      {"\"threads\": 128", "\"threads\": 0",
       "launch.threads: 0 is not allowed; it must be 1 to 1024"},
      {"\"blocksPerRow\": 64", "\"blocksPerRow\": 0",
       "launch.blocksPerRow: 0 is not allowed"},
      {"\"launch\": {", "\"launch\": 1, \"lunch\": {",
       "launch: it must be an object"},
      {"\"kind\": \"i64\"", "\"kind\": \"i65\"",
       "params[3].kind: 'i65' is not allowed; allowed are pointer, i64, i32, "
       "f32"},
      {"\"offset\": 16", "\"offset\": 20", "params[3].offset: 20 is not"},
      {"\"offset\": 12", "\"offset\": 8", "params[2].offset: 8 is not"},
      {"\"paramBytes\": 24", "\"paramBytes\": 16", "params[3].offset: 16"},
      {"\"params\": [", "\"params\": {}, \"x\": [",
       "params: it must be a "
       "list"},
      {"\"registers\": 64", "\"registers\": null",
       "resources.registers: it must be an integer"},
      {"\"assembler\"", "\"more\": {}, \"assembler\"",
       "more: a member of this name is unknown"},
      {"\"ptxBytes\": ", "\"ptxBytes\": -",
       "ptxBytes: it must be an integer from 0"},
  };
  for (const Case &c : cases) {
    CAPTURE(c.from, c.to);
    Result<KernelRecord> record =
        readRecord(replaced(goodJson(), c.from, c.to));
    CHECK(record.status().code == StatusCode::InvalidArgument);
    CHECK_THAT(record.status().message,
               Catch::Matchers::StartsWith("kernel.json: ") &&
                   Contains(c.message));
    CHECK_THAT(record.status().message, !Contains("\n"));
  }
}

TEST_CASE("no text ends the process") {
  for (std::string text :
       {"", "{", "null", "[]", "{}", "\"", "{\"name\":1}", "\xff"}) {
    CHECK_FALSE(readRecord(text));
    CHECK_FALSE(readEntryRecord(text));
  }
  CHECK_FALSE(readRecord(std::string(100'000, '[')));
  // Every beginning of a good one, and each with its end cut out.
  const std::string good = goodJson();
  for (size_t length = 0; length + 2 < good.size(); length += 7) {
    CHECK_FALSE(readRecord(good.substr(0, length)));
    (void)readRecord(good.substr(0, length) + good.substr(length + 1));
  }
}
