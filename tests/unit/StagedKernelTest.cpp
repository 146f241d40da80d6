//===- StagedKernelTest.cpp - The hand-written staged kernel, emulated ----===//

#include "compiler/Compiler.h"
#include "tests/kernels/RowProducts.h"

#include "mlir/Parser/Parser.h"

#include <catch2/catch.hpp>

#include <fstream>
#include <sstream>

using namespace replayjit::internal;

static std::string readKernel() {
  std::ifstream file(REPLAYJIT_SOURCE_DIR "/tests/kernels/row_products.mlir");
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

static Result<CompiledKernel> compileKernel(std::string text) {
  Compiler compiler;
  return compiler.compileForHost(
      [&](mlir::MLIRContext &context) {
        return mlir::parseSourceString<mlir::ModuleOp>(text, &context);
      },
      *Target::parse("sm_90a"), CompileOptions());
}

static std::string replaced(std::string text, const std::string &what,
                            const std::string &with) {
  size_t at = text.find(what);
  REQUIRE(at != std::string::npos);
  return text.replace(at, what.size(), with);
}

TEST_CASE("a block reads what its bulk copy brought") {
  auto kernel = compileKernel(readKernel());
  INFO(kernel.status().message);
  REQUIRE(kernel);
  CHECK(kernel->launch.threads == 128);
  CHECK(kernel->launch.sharedBytes >= 64 * 128 * 4);
  for (host::LaneOrder order :
       {host::LaneOrder::forward(), host::LaneOrder::reverse(),
        host::LaneOrder::shuffled(11)}) {
    auto device = createEmulationDevice(*Target::parse("sm_90a"), order);
    for (uint32_t count : {1, 7})
      CHECK(checkRowProducts(*device, *kernel, count) == "");
  }
}

TEST_CASE("reading a stage without waiting for it is caught") {
  auto kernel = compileKernel(
      replaced(readKernel(),
               "replay.wait %buffer : !replay.buffer<64x128xf32>\n", "\n"));
  INFO(kernel.status().message);
  REQUIRE(kernel);
  auto device = createEmulationDevice(*Target::parse("sm_90a"));
  CHECK(checkRowProducts(*device, *kernel, 2) != "");
}

TEST_CASE("a copy of what the kernel before may write comes after the wait") {
  const std::string copy = "replay.async_copy", wait = "replay.wait";
  const std::string text = replaced(readKernel(), "\"tiles\", replay.readonly",
                                    "\"tiles\", replay.dependent");
  for (const std::string &place : {copy, wait}) {
    auto kernel =
        compileKernel(replaced(text, "  " + place + " ",
                               "  replay.await_predecessor\n  " + place + " "));
    INFO(kernel.status().message);
    REQUIRE(kernel);
    auto device = createEmulationDevice(*Target::parse("sm_90a"));
    std::string problem = checkRowProducts(*device, *kernel, 2);
    CAPTURE(place, problem);
    CHECK((problem == "") == (place == copy));
  }
}
