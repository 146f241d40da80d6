//===- TuningTableTest.cpp - Measured tunings, found and refused ----------===//

#include "runtime/cache/TuningTable.h"
#include "base/Files.h"
#include "runtime/CompileOnMiss.h"
#include "runtime/Jit.h"
#include "tests/unit/CacheTestSupport.h"
#include "tests/unit/DecodeLaunch.h"

using namespace replayjit::internal;
using namespace replayjit::internal::test;
using Catch::Matchers::Contains;

namespace {

const Target hopper = *Target::parse("sm_90a");
constexpr int hopperCount = 132;

/// Legal for makeSpec(1, 2, 16, 16, 4), and nothing that is chosen for it.
DecodeTuning odd(int numWarps) {
  DecodeTuning tuning;
  tuning.blockV = 8;
  tuning.blockK = 16;
  tuning.numWarps = numWarps;
  tuning.flushRows = 1;
  return tuning;
}

TuningTable tableOf(const DecodeSpec &spec) {
  TuningTable table = {hopper.chip, hopperCount, "a \"made-up\" GPU", {}};
  table.add(spec).add({16, 20, 21, odd(2)});
  table.add(spec).add({4, 5, 5.5, odd(1)});
  return table;
}

DecodeSpec smallSpec() { return makeSpec(1, 2, 16, 16, 4); }

/// The text of a table with one place of it replaced.
std::string textWith(std::string_view was, std::string_view is) {
  std::string text = tableOf(smallSpec()).json();
  const size_t place = text.find(was);
  REQUIRE(place != std::string::npos);
  return text.replace(place, was.size(), is);
}

std::string whyNot(std::string_view text) {
  return TuningTable::parse(text, "t.json").status().message;
}

} // namespace

TEST_CASE("a table is found by what counts, and by rows", "[tuning]") {
  DecodeSpec spec = smallSpec();
  const TuningTable table = tableOf(spec);
  auto warps = [&](int rows, const Target &target = hopper,
                   int count = hopperCount) {
    const DecodeTuning tuning = chooseTuning(spec, rows, target, count, &table);
    return tuning == odd(tuning.numWarps) ? tuning.numWarps : 0;
  };
  for (int rows : {1, 3, 4})
    CHECK(warps(rows) == 1);
  for (int rows : {5, 16, 17, 1000, 0}) // 0 is a large batch
    CHECK(warps(rows) == 2);
  // Another GPU, another spec, no table: what is chosen without one.
  CHECK(warps(4, hopper, 78) == 0);
  CHECK(warps(4, *Target::parse("sm_80")) == 0);
  CHECK(chooseTuning(spec, 4, hopper, hopperCount, nullptr) ==
        chooseTuning(spec, 4, hopper, hopperCount));
  spec.nullSlot = NullSlot::NonPositive;
  spec.hasMask = false;
  CHECK(warps(4) == 1); // minor facts
  spec.stateType = DataType::BF16;
  CHECK(warps(4) == 0);
}

TEST_CASE("a tuning that is not legal for the spec is not taken", "[tuning]") {
  const DecodeSpec spec = smallSpec();
  TuningTable table = tableOf(spec);
  DecodeTuning bad = odd(1);
  bad.blockK = 128; // does not divide K
  table.add(spec).add({4, 1, 2, bad});
  CHECK(chooseTuning(spec, 4, hopper, hopperCount, &table) ==
        chooseTuning(spec, 4, hopper, hopperCount));
}

TEST_CASE("a table is read as it was written", "[tuning]") {
  DecodeSpec kda = smallSpec();
  kda.isKda = true;
  kda.numKeyHeads = 2;
  kda.stateType = DataType::F16;
  TuningTable table = tableOf(smallSpec());
  table.add(kda).add({1, 0.125, 0, odd(4)});
  const Result<TuningTable> read = TuningTable::parse(table.json(), "t.json");
  REQUIRE(read.status().message == "");
  CHECK(read->json() == table.json());
  CHECK(read->device == table.device);
  CHECK(read->isFor(hopper, hopperCount));
  REQUIRE(read->find(kda));
  CHECK(read->find(kda)->forRows(1).tuning == odd(4));
  CHECK(read->find(smallSpec())->rows.size() == 2);
}

TEST_CASE("what is missing has its default", "[tuning]") {
  const Result<TuningTable> read = TuningTable::parse(
      R"({"chip": "sm_90a", "multiprocessors": 132, "device": "",
          "specs": [{"spec": {}, "rows": [
            {"rows": 1, "us": 1, "usualUs": 2, "tuning": {"blockV": 64}}]}]})",
      "t.json");
  REQUIRE(read.status().message == "");
  const TunedSpec *found = read->find(DecodeSpec());
  REQUIRE(found);
  DecodeTuning expected;
  expected.blockV = 64;
  CHECK(found->rows.front().tuning == expected);
}

TEST_CASE("a bad table is refused in one sentence", "[tuning][error]") {
  CHECK(whyNot("") == "t.json: it is no JSON object");
  CHECK(whyNot("[1]") == "t.json: it is no JSON object");
  CHECK(whyNot(textWith("\"chip\"", "\"chop\"")) ==
        "t.json: chip: it is missing");
  CHECK(whyNot(textWith("\"us\": 5.0", "\"us\": \"fast\"")) ==
        "t.json: specs[0].rows[0].us: it must be a number");
  CHECK(
      whyNot(textWith("\"rows\": 4", "\"rows\": 0")) ==
      "t.json: specs[0].rows[0].rows: 0 is not allowed; it must be 1 or more");
  CHECK(whyNot(textWith("\"blockV\": 8", "\"blockV\": 9")) ==
        "t.json: specs[0].rows[0].tuning.blockV: 9 is not allowed; it must be "
        "8, 16, 32, 64, 128, 256");
  CHECK(whyNot(textWith("\"blockV\"", "\"blockW\"")) ==
        "t.json: specs[0].rows[0].tuning.blockW: a member of this name is "
        "unknown");
  CHECK_THAT(
      whyNot(textWith("\"stateType\": \"fp32\"", "\"stateType\": \"fp31\"")),
      Contains("t.json: specs[0].spec.stateType: 'fp31' is not allowed"));
  CHECK(whyNot(R"({"chip": "", "multiprocessors": 1, "device": "",
                   "specs": [{"spec": {}, "rows": []}]})") ==
        "t.json: specs[0].rows: it is empty");
}

TEST_CASE("a table lies where it is named, or in a cache's root", "[tuning]") {
  TestFolder folder;
  std::vector<std::string> heard;
  auto hear = [&](const std::string &sentence) { heard.push_back(sentence); };
  const std::vector<std::string> roots = {folder / "one", folder / "two"};
  for (const std::string &root : roots)
    REQUIRE(makeFolders(root));
  auto open = [&](const std::string &file) {
    return openTuningTable(file, roots, hear);
  };
  CHECK(*open("") == nullptr);
  const std::string text = tableOf(smallSpec()).json();
  REQUIRE(writeBytes(roots[1] + "/tuning.json", text));
  REQUIRE(*open(""));
  CHECK((*open(""))->json() == text);
  CHECK(heard.empty());

  // One that cannot be read is told, and the next one taken.
  REQUIRE(writeBytes(roots[0] + "/tuning.json", "{"));
  REQUIRE(*open(""));
  CHECK(heard == std::vector<std::string>{
                     roots[0] + "/tuning.json: it is no JSON object; this "
                                "table is not used"});
  // One that is named must be there.
  CHECK_THAT(open(folder / "none").status().message,
             Contains("tuning: ") && Contains("No such file"));
  CHECK(open(roots[0] + "/tuning.json").status().message ==
        "tuning: " + roots[0] + "/tuning.json: it is no JSON object");
  // It is no entry of the cache.
  CHECK(openAt(roots[1]).list().empty());
}

TEST_CASE("a Jit takes the tunings of its table", "[tuning][jit]") {
  TestFolder folder;
  const DecodeSpec spec = smallSpec();
  std::shared_ptr<Device> device = createEmulationDevice(hopper);
  TuningTable table = tableOf(spec);
  table.multiprocessors = device->multiprocessors();
  const std::string file = folder / "tuning.json";
  REQUIRE(writeBytes(file, table.json()));
  JitOptions options;
  options.compile = compileOnMiss(AssembleOptions());
  options.tuningFile = file;
  auto jit = Jit::create(device, options);
  REQUIRE(jit.status().message == "");
  CHECK((*jit)->choose(spec, 3) == odd(1));
  auto kernel = (*jit)->prepare(spec, 16);
  REQUIRE(kernel.status().message == "");
  CHECK(kernel->info().tuning == odd(2));

  options.tuningFile = folder / "none.json";
  CHECK_THAT(Jit::create(device, options).status().message,
             Contains("none.json"));
}
