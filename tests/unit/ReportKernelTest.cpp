//===- ReportKernelTest.cpp - replay.report, emulated ---------------------===//

#include "compiler/Compiler.h"
#include "runtime/Device.h"
#include "tests/unit/EmulatorTestSupport.h"

#include "mlir/Parser/Parser.h"

#include <catch2/catch.hpp>

using namespace replayjit::internal;
using namespace replayjit::internal::host::test;

namespace {

/// Each block reports: its number plus `kind`, its number, 7, `value`.
constexpr const char *text = R"(
replay.kernel @reports(%word: !replay.ptr<i32> {replay.name = "word"},
    %value: i64 {replay.name = "value"}, %kind: i32 {replay.name = "kind"})
    num_warps(2) blocks_per_row(1) {
  %layer = arith.constant 7 : i32
  %row = replay.program_id x
  %own = arith.addi %kind, %row : i32
  replay.report %own row %row layer %layer value %value to %word : !replay.ptr<i32>
  replay.return
}
)";

struct Word {
  int32_t count, kind, row, layer;
  int64_t value;
};

struct Params {
  uint64_t word;
  int64_t value;
  int32_t kind;
};

/// The kernel on a device of its own, with `bytes` for the word, all zero.
struct Reports {
  std::unique_ptr<Device> device;
  std::unique_ptr<LoadedKernel> kernel;
  uint64_t word = 0;

  explicit Reports(host::LaneOrder order = {}, uint64_t bytes = sizeof(Word)) {
    Compiler compiler;
    auto compiled = compiler.compileForHost(
        [](mlir::MLIRContext &context) {
          return mlir::parseSourceString<mlir::ModuleOp>(text, &context);
        },
        *Target::parse("sm_90a"), CompileOptions());
    INFO(compiled.status().message);
    REQUIRE(compiled);
    CHECK(compiled->launch.threads == 64);
    device = createEmulationDevice(*Target::parse("sm_90a"), order);
    auto loaded = device->load(*compiled);
    REQUIRE(loaded);
    kernel = std::move(*loaded);
    word = *device->allocate(bytes, "word");
    std::vector<char> zeros(bytes);
    REQUIRE(device->copyToDevice(word, zeros.data(), bytes).isOk());
  }

  Status launch(uint64_t address, int32_t kind, int64_t value,
                uint32_t blocks) {
    Params params = {address, value, kind};
    Status status = device->launch(*kernel, blocks, &params, sizeof params);
    return status ? device->synchronize() : status;
  }

  Word read() {
    Word result;
    REQUIRE(device->copyFromDevice(&result, word, sizeof result).isOk());
    return result;
  }
};

} // namespace

TEST_CASE("one thread of each block reports, and the first error stays") {
  for (host::LaneOrder order : everyOrder()) {
    Reports reports(order);
    REQUIRE(reports.launch(reports.word, 100, -5000000000, 1).message == "");
    Word first = reports.read();
    CHECK(first.count == 1);
    CHECK(first.kind == 100);
    CHECK(first.row == 0);
    CHECK(first.layer == 7);
    CHECK(first.value == -5000000000);

    REQUIRE(reports.launch(reports.word, 200, 1, 3).message == "");
    Word later = reports.read();
    CHECK(later.count == 4);
    CHECK(later.kind == 100);
    CHECK(later.row == 0);
    CHECK(later.layer == 7);
    CHECK(later.value == -5000000000);
  }
}

TEST_CASE("of blocks that report at once, one is written whole") {
  Reports reports;
  REQUIRE(reports.launch(reports.word, 100, 9, 5).message == "");
  Word word = reports.read();
  CHECK(word.count == 5);
  CHECK(word.kind == 100 + word.row);
  CHECK(word.value == 9);
}

TEST_CASE("a null word takes no report") {
  Reports reports;
  CHECK(reports.launch(0, 100, 9, 3).message == "");
  CHECK(reports.read().count == 0);
}

TEST_CASE("a word outside of every allocation is reported") {
  Reports reports;
  // Next to the word, and far from all.
  for (uint64_t address : {reports.word + sizeof(Word), uint64_t(4096)})
    CHECK_THAT(reports.launch(address, 100, 9, 1).message,
               Catch::Contains("reports: out-of-bounds global atomic in block "
                               "0, lane 0"));
  CHECK(reports.read().count == 0);

  // The count and the kind are there, the value is not.
  Reports shorter({}, 16);
  CHECK_THAT(shorter.launch(shorter.word, 100, 9, 1).message,
             Catch::Contains("out-of-bounds global store") &&
                 Catch::Contains("offset 16 of 'word', which has 16 bytes"));
}
