//===- AwaitKernelTest.cpp - replay.await_predecessor, emulated -----------===//

#include "compiler/Compiler.h"
#include "runtime/Device.h"

#include "mlir/Parser/Parser.h"

#include <catch2/catch.hpp>
#include <fmt/format.h>

using namespace replayjit::internal;
using Catch::Contains;

/// out[i] = state[i] + token[i], with the wait between `first` and `second`.
static std::string program(const char *first, const char *second) {
  return fmt::format(R"(
!row = !replay.view<32xf32, strides [1]>
replay.kernel @adds(%state: !replay.ptr<f32> {{replay.readonly}},
    %token: !replay.ptr<f32> {{replay.noalias, replay.dependent}},
    %out: !replay.ptr<f32> {{replay.noalias}}) num_warps(1) blocks_per_row(1) {{
  %i = arith.constant 0 : i32
  %n = arith.constant 0 : i64
  %s = replay.view %state offset %n : !replay.ptr<f32> -> !row
  %t = replay.view %token offset %n : !replay.ptr<f32> -> !row
  %o = replay.view %out offset %n : !replay.ptr<f32> -> !row
  %x = replay.load %s[%i] : !row -> tensor<32xf32>
  {}
  %y = replay.load %t[%i] : !row -> tensor<32xf32>
  %z = arith.addf %x, %y : tensor<32xf32>
  {}
  replay.store %z, %o[%i] : tensor<32xf32>, !row
  replay.return
}}
)",
                     first, second);
}

/// Runs it; the fault, or what is wrong with the sums.
static std::string run(const std::string &text) {
  Compiler compiler;
  const Target target = *Target::parse("sm_90a");
  auto compiled = compiler.compileForHost(
      [&](mlir::MLIRContext &context) {
        return mlir::parseSourceString<mlir::ModuleOp>(text, &context);
      },
      target, CompileOptions());
  INFO(compiled.status().message);
  REQUIRE(compiled);
  auto device = createEmulationDevice(target);
  std::vector<float> state(32, 1.5f), token(32, 2.0f), out(32);
  struct {
    uint64_t state, token, out;
  } params = {*device->allocate(128, "state"), *device->allocate(128, "token"),
              *device->allocate(128, "out")};
  (void)device->copyToDevice(params.state, state.data(), 128);
  (void)device->copyToDevice(params.token, token.data(), 128);
  auto kernel = device->load(*compiled);
  REQUIRE(kernel);
  if (Status status = device->launch(**kernel, 1, &params, sizeof params);
      !status)
    return status.message;
  (void)device->copyFromDevice(out.data(), params.out, 128);
  return out == std::vector<float>(32, 3.5f) ? "" : "the sums are wrong";
}

static const char *const waits = "replay.await_predecessor";

TEST_CASE("a kernel that waits in time is right") {
  CHECK(run(program(waits, "")) == "");
}

// The passes keep the wait in front of what it stands for; so the programs
// below are wrong from the start.
TEST_CASE("a token that is read before the wait is caught") {
  CHECK_THAT(run(program("", waits)),
             Contains("access before the wait") && Contains("of 'token'"));
}

TEST_CASE("a store before the wait is caught") {
  const std::string stores = "replay.store %x, %o[%i] : tensor<32xf32>, !row";
  CHECK_THAT(run(program((stores + " " + waits).c_str(), "")),
             Contains("access before the wait") &&
                 Contains("the store writes offset") && Contains("of 'out'"));
}

TEST_CASE("a path without a wait is caught") {
  const std::string branch =
      "%b = replay.program_id x\n %c = arith.cmpi slt, %i, %b : i32\n"
      " scf.if %c { " +
      std::string(waits) + " }";
  CHECK_THAT(run(program(branch.c_str(), "")),
             Contains("access before the wait") && Contains("of 'token'"));
}
