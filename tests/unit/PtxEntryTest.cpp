//===- PtxEntryTest.cpp - Kernels out of PTX ------------------------------===//

#include "runtime/aot/PtxEntry.h"

#include <catch2/catch.hpp>

using namespace replayjit::internal;

static const char *const head = ".version 8.0\n.target sm_90a\n"
                                ".address_size 64\n";

/// "kind at offset" of each parameter.
static std::vector<std::string> paramsOf(const CompiledKernel &kernel) {
  const char *const kinds[] = {"pointer", "i64", "i32", "f32", "bytes"};
  std::vector<std::string> texts;
  for (const KernelParam &param : kernel.signature.params)
    texts.push_back(std::string(kinds[int(param.kind)]) + " " +
                    std::to_string(param.bytes()) + " at " +
                    std::to_string(param.offset));
  return texts;
}

TEST_CASE("the parameters of an entry lie where the driver puts them",
          "[ptx]") {
  auto kernel = kernelFromPtx(std::string(head) + R"(
.visible .entry mixed(
	.param .u64 .ptr .global .align 16 mixed_param_0, // a comment, )
	.param .u8 flag,
	.param .u32 count, /* .param .u64 not_there, */
	.param .f32 scale,
	.param .s64 stride,
	.param .align 8 .b8 by_value[20],
	.param .b16 half,
	.param .f64 wide
)
.reqntid 128, 1, 1
{ ret; })");
  INFO(kernel.status().message);
  REQUIRE(kernel);
  CHECK(kernel->name == "mixed");
  CHECK(kernel->target.chip == "sm_90a");
  CHECK(kernel->launch.threads == 128);
  CHECK(paramsOf(*kernel) ==
        std::vector<std::string>{
            "pointer 8 at 0", "bytes 1 at 8", "i32 4 at 12", "f32 4 at 16",
            "i64 8 at 24", "bytes 20 at 32", "bytes 2 at 52", "bytes 8 at 56"});
  CHECK(kernel->signature.params[5].name == "by_value");
  CHECK(kernel->signature.bytes == 64);
  CHECK(kernel->cubin.empty());
}

TEST_CASE("an entry among several is named", "[ptx]") {
  const std::string ptx = std::string(head) + R"(
.func (.param .b32 x) helper(.param .b64 y) { ret; }
.visible .entry first()
.maxntid 256
.maxnreg 64
{ // .entry inner(
  ret;
}
.entry second ( .param .u32 n ) { ret; }
)";
  auto first = kernelFromPtx(ptx, "first");
  REQUIRE(first);
  CHECK(first->launch.threads == 256);
  CHECK(first->signature.params.empty());
  auto second = kernelFromPtx(ptx, "second");
  REQUIRE(second);
  CHECK(second->launch.threads == 0);
  CHECK(second->signature.bytes == 4);
  CHECK(kernelFromPtx(ptx).status().message ==
        "PTX: there are several entries; name one of first, second");
  auto none = kernelFromPtx(ptx, "third");
  CHECK(none.status().code == StatusCode::NotFound);
  CHECK(none.status().message ==
        "PTX: there is no entry 'third'; there are first, second");
}

TEST_CASE("PTX that cannot be launched is refused in a sentence", "[ptx]") {
  auto refusal = [](const std::string &text) {
    return kernelFromPtx(text).status().message;
  };
  CHECK(refusal("") == "PTX: there is no .entry");
  CHECK(refusal(std::string(head) + ".entry x(.param .texref t) { }") ==
        "PTX: parameter 0 of entry 'x' is .texref, which is not known");
  CHECK(refusal(std::string(head) + ".entry x(.param .u32) { }") ==
        "PTX: parameter 0 of entry 'x' has no type, name or size");
  CHECK(refusal(std::string(head) + ".entry x(.reg .u32 a) { }") ==
        "PTX: the parameters of entry 'x' cannot be read");
  CHECK(refusal(std::string(head) + ".entry x(.param .u32 a,") ==
        "PTX: the parameters of entry 'x' cannot be read");
  CHECK(refusal(std::string(head) + ".entry x()") ==
        "PTX: entry 'x' has no body");
  CHECK(refusal(std::string(head) + ".entry x() .reqntid 16, 16 { }") ==
        "PTX: the blocks of entry 'x' have several dimensions; only one is "
        "allowed");
  CHECK_THAT(refusal(".target sm_10\n.entry x() { }"),
             Catch::Matchers::StartsWith("PTX: target: "));
}
