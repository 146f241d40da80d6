//===- TritonEntryTest.cpp - Entries of Triton's cache --------------------===//

#include "CacheTestSupport.h"

#include "runtime/aot/TritonEntry.h"

#include <nlohmann/json.hpp>

using namespace replayjit::internal;
using Catch::Matchers::Contains;
using test::slurp;
using test::spit;
using test::TestFolder;

/// Of `axpy` for sm_90, as Triton 3.6 computed it, with the folder it made.
static const std::string axpyHash = "8119d295f73f6bcbf2801e2111a8654419a6c88be6"
                                    "31b4f2a8324327ef659f6d";
static const std::string axpyFolder =
    "QEM5FFPXH5V4X4UADYQRDKDFIQM2NSEL4YY3J4VIGJBSP33FT5WQ";

static const std::string axpyPtx = R"(.version 8.7
.target sm_90a
.address_size 64
.visible .entry axpy(
	.param .u64 .ptr .global .align 1 axpy_param_0,
	.param .u32 axpy_param_1,
	.param .f64 axpy_param_2,
	.param .u64 .ptr .global .align 1 axpy_param_3,
	.param .u64 .ptr .global .align 1 axpy_param_4
)
.reqntid 128
{ ret; }
)";

/// What Triton 3.6 wrote for it, but for `shared`.
static nlohmann::json axpyMetadata() {
  return {{"hash", axpyHash},
          {"target", {{"backend", "cuda"}, {"arch", 90}, {"warp_size", 32}}},
          {"num_warps", 4},
          {"num_ctas", 1},
          {"num_stages", 3},
          {"maxnreg", nullptr},
          {"enable_fp_fusion", true},
          {"launch_cooperative_grid", false},
          {"launch_pdl", false},
          {"extern_libs", nlohmann::json::array()},
          {"triton_version", "3.6.0"},
          {"tensordesc_meta", nlohmann::json::array()},
          {"shared", 1234},
          {"tmem_size", 0},
          {"global_scratch_size", 0},
          {"profile_scratch_size", 0},
          {"name", "axpy"}};
}

static CompiledKernel tritonKernel() {
  using Kind = KernelParam::Kind;
  CompiledKernel kernel;
  kernel.name = "ours";
  kernel.launch = {6, 64, 4096};
  kernel.signature = {{{"q", Kind::Pointer, 0},
                       {"scale", Kind::F32, 8},
                       {"globalScratch", Kind::Pointer, 16},
                       {"profileScratch", Kind::Pointer, 24}},
                      32};
  kernel.ptx = ".target sm_90a\n.entry ours(.param .u64 .ptr .global a, .param "
               ".f32 b,\n.param .u64 .ptr .global c, .param .u64 .ptr .global "
               "d) .reqntid 64 { }\n";
  kernel.cubin = {'c', 0, 'b'};
  return kernel;
}

TEST_CASE("an entry is where Triton looks for it, and holds what it reads",
          "[triton]") {
  TestFolder root;
  auto folder = exportToTriton(tritonKernel(),
                               {root / "cache", axpyHash, "python_function"});
  INFO(folder.status().message);
  REQUIRE(folder);
  CHECK(*folder == root / "cache/" + axpyFolder);
  CHECK(test::count(root / "cache", "") == 1); // no draft is left
  CHECK(test::count(*folder, "") == 4);
  CHECK(slurp(*folder + "/python_function.cubin") == std::string("c\0b", 3));

  auto group = nlohmann::json::parse(
      slurp(*folder + "/__grp__python_function.json"))["child_paths"];
  CHECK(group.size() == 3);
  for (const char *suffix : {".json", ".ptx", ".cubin"}) {
    const std::string file = std::string("python_function") + suffix;
    CHECK(group[file] == *folder + "/" + file);
  }
  auto metadata =
      nlohmann::json::parse(slurp(*folder + "/python_function.json"));
  CHECK(metadata["name"] == "ours");
  CHECK(metadata["hash"] == axpyHash);
  CHECK(metadata["num_warps"] == 2);
  CHECK(metadata["shared"] == 4096);
  CHECK(metadata["target"]["arch"] == 90);
  const auto written = nlohmann::json::parse(axpyMetadata().dump());
  for (const auto &[name, value] : written.items()) {
    INFO(name);
    CHECK(metadata.contains(name));
    if (!value.is_null() && metadata.contains(name))
      CHECK(metadata[name].type() == value.type());
  }

  SECTION("it comes back as it was") {
    auto back = importFromTriton(*folder);
    INFO(back.status().message);
    REQUIRE(back);
    const CompiledKernel kernel = tritonKernel();
    CHECK(back->name == kernel.name);
    CHECK(back->cubin == kernel.cubin);
    CHECK(back->ptx == kernel.ptx);
    CHECK(back->launch.threads == 64);
    CHECK(back->launch.sharedBytes == 4096);
    REQUIRE(back->signature.params.size() == 4);
    CHECK(back->signature.params[2].offset == 16);
    CHECK(back->signature.bytes == 32);
  }
  SECTION("what is there is not replaced, unless it is an empty folder") {
    auto again = exportToTriton(tritonKernel(), {root / "cache", axpyHash, ""});
    CHECK(again.status().code == StatusCode::StorageFailed);
    CHECK_THAT(again.status().message, Contains(axpyFolder));
    CHECK(test::count(root / "cache", "") == 1);
    const std::string other(64, '0');
    test::fs::create_directory(root / "cache/" + std::string(52, 'A'));
    CHECK(exportToTriton(tritonKernel(), {root / "cache", other, ""}));
  }
}

TEST_CASE("only what Triton could launch is exported", "[triton]") {
  TestFolder root;
  CompiledKernel kernel = tritonKernel();
  CHECK(exportToTriton(kernel, {root.path, "12", ""}).status().message ==
        "hash: '12' is not allowed; it must be 64 hexadecimal digits");
  kernel.signature.params.pop_back();
  CHECK(exportToTriton(kernel, {root.path, axpyHash, ""}).status().message ==
        "kernel 'ours' cannot be exported to Triton; it must have abi triton");
  CHECK(test::count(root.path, "") == 0);
}

TEST_CASE("a kernel of Triton's is read with all that a launch needs",
          "[triton]") {
  TestFolder root;
  auto write = [&](const nlohmann::json &metadata) {
    spit(root / "axpy.json", metadata.dump());
    spit(root / "__grp__axpy.json", "{}");
    spit(root / "axpy.ptx", axpyPtx);
    spit(root / "axpy.cubin", "code");
  };
  auto refusal = [&](const char *field, const nlohmann::json &value) {
    nlohmann::json metadata = axpyMetadata();
    metadata[field] = value;
    write(metadata);
    return importFromTriton(root.path).status().message;
  };
  CHECK_THAT(importFromTriton(root.path).status().message,
             Contains("holds no FILE.json of Triton"));
  write(axpyMetadata());
  auto kernel = importFromTriton(root.path);
  INFO(kernel.status().message);
  REQUIRE(kernel);
  CHECK(kernel->name == "axpy");
  CHECK(kernel->target.chip == "sm_90a");
  CHECK(kernel->assembler == "Triton 3.6.0");
  CHECK(kernel->launch.threads == 128);
  CHECK(kernel->launch.sharedBytes == 1234);
  CHECK(kernel->signature.params.size() == 5);
  CHECK(kernel->signature.bytes == 40);

  CHECK_THAT(refusal("num_ctas", 2), Contains("needs clusters of blocks"));
  CHECK_THAT(refusal("global_scratch_size", 8), Contains("scratch memory"));
  CHECK_THAT(refusal("profile_scratch_size", 8), Contains("scratch memory"));
  CHECK_THAT(refusal("launch_cooperative_grid", true),
             Contains("a cooperative launch"));
  CHECK_THAT(refusal("tensordesc_meta", {1}), Contains("tensor descriptors"));
  CHECK_THAT(refusal("num_warps", 8),
             Contains("its PTX has 128 threads per block, its record 8 warps"));
  CHECK_THAT(refusal("shared", "many"), Contains("shared: it must be an"));
  CHECK_THAT(refusal("name", "other"), Contains("no entry 'other'"));
  write(axpyMetadata());
  spit(root / "second.json", "{}");
  CHECK_THAT(importFromTriton(root.path).status().message,
             Contains("several entries"));
  test::fs::remove(root / "second.json");
  test::fs::remove(root / "axpy.cubin");
  CHECK_THAT(importFromTriton(root.path).status().message,
             Contains("axpy.cubin'"));
}
