//===- HostJitTest.cpp - Textual IR, compiled and emulated ----------------===//

#include "compiler/Host/HostJit.h"
#include "compiler/Host/Float16.h"
#include "tests/unit/EmulatorTestSupport.h"

#include "llvm/AsmParser/Parser.h"
#include "llvm/ExecutionEngine/Orc/JITTargetMachineBuilder.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"

#include <catch2/catch.hpp>

#include <cmath>

using namespace replayjit::internal;
using namespace replayjit::internal::host;
using namespace replayjit::internal::host::test;

static const char *const declarations = R"(
target triple = "nvptx64-nvidia-cuda"
@global_smem = external dso_local addrspace(3) global [0 x i8], align 16
declare i32 @replayjit_emu_sreg(i32)
declare void @replayjit_emu_load(ptr, ptr, i32, i32, i32)
declare void @replayjit_emu_store(ptr, ptr, i32, i32, i32)
declare void @replayjit_emu_barrier(i32, i32, i32)
)";

static llvm::Expected<std::shared_ptr<HostProgram>>
jit(const std::string &body, std::vector<std::string> sites = {}) {
  auto context = std::make_unique<llvm::LLVMContext>();
  llvm::SMDiagnostic diagnostic;
  auto module =
      llvm::parseAssemblyString(declarations + body, diagnostic, *context);
  INFO(diagnostic.getMessage().str());
  REQUIRE(module);
  return jitHostProgram(std::move(module), std::move(context), "scale",
                        std::move(sites));
}

static std::string errorOf(const std::string &body) {
  auto program = jit(body);
  REQUIRE_FALSE(bool(program));
  return llvm::toString(program.takeError());
}

// out[i] = bf16(exp2(in[i])) widened, reversed within a block of 32 through
// shared memory.
static const char *const scale = R"(
declare float @llvm.exp2.f32(float)
define ptx_kernel void @scale(ptr %params) #0 {
  %in = load ptr, ptr %params
  %out.at = getelementptr i8, ptr %params, i64 8
  %out = load ptr, ptr %out.at
  %slot = alloca float, align 16
  %tid = call i32 @replayjit_emu_sreg(i32 0)
  %block = call i32 @replayjit_emu_sreg(i32 2)
  %base = mul i32 %block, 32
  %i = add i32 %base, %tid
  %from = getelementptr float, ptr %in, i32 %i
  call void @replayjit_emu_load(ptr %slot, ptr %from, i32 4, i32 0, i32 0)
  %x = load float, ptr %slot
  %y = call float @llvm.exp2.f32(float %x)
  %narrow = fptrunc float %y to bfloat
  %wide = fpext bfloat %narrow to float
  store float %wide, ptr %slot
  %smem = addrspacecast ptr addrspace(3) @global_smem to ptr
  %mine = getelementptr float, ptr %smem, i32 %tid
  call void @replayjit_emu_store(ptr %mine, ptr %slot, i32 4, i32 1, i32 1)
  call void @replayjit_emu_barrier(i32 0, i32 -1, i32 2)
  %other = sub i32 31, %tid
  %theirs = getelementptr float, ptr %smem, i32 %other
  call void @replayjit_emu_load(ptr %slot, ptr %theirs, i32 4, i32 1, i32 1)
  %to = getelementptr float, ptr %out, i32 %i
  call void @replayjit_emu_store(ptr %to, ptr %slot, i32 4, i32 0, i32 3)
  ret void
}
attributes #0 = { "target-cpu"="sm_90a" "target-features"="+ptx80" }
)";

TEST_CASE("textual IR runs on a grid", "[hostjit]") {
  auto program = jit(scale, {"load of in", "exchange", "sync", "store of out"});
  if (!program)
    FAIL(llvm::toString(program.takeError()));
  struct Params {
    const float *in;
    float *out;
  };
  std::vector<float> in(128), out(128);
  for (int i = 0; i < 128; ++i)
    in[i] = i / 16.0f - 3;
  Params params{in.data(), out.data()};
  MemoryMap memory;
  memory.add("in", in.data(), 512);
  memory.add("out", out.data(), 512);
  GridLaunch launch;
  launch.entry = (*program)->entry;
  launch.sites = &(*program)->sites;
  launch.blocks = 4;
  launch.threads = 32;
  launch.sharedBytes = 128;
  launch.params = &params;
  for (LaneOrder order : everyOrder()) {
    launch.order = order;
    Status status = runGrid(launch, memory);
    REQUIRE(status.message == "");
    for (int i = 0; i < 128; ++i) {
      float expected = std::exp2(in[i / 32 * 32 + 31 - i % 32]);
      CHECK(out[i] == bf16ToFloat(floatToBf16(expected)));
    }
  }
  launch.blocks = 5;
  launch.order = {};
  CHECK_THAT(
      runGrid(launch, memory).message,
      Catch::Contains("global load in block 4, lane 0, at 'load of in'"));
}

TEST_CASE("16-bit types convert as the emulator does", "[hostjit]") {
  auto program = jit(R"(
define void @scale(ptr %p) {
  %x = load float, ptr %p
  %p1 = getelementptr float, ptr %p, i32 1
  %h = fptrunc float %x to half
  %hw = fpext half %h to float
  store float %hw, ptr %p1
  %p2 = getelementptr float, ptr %p, i32 2
  %b = fptrunc float %x to bfloat
  %bw = fpext bfloat %b to float
  store float %bw, ptr %p2
  %d = fpext float %x to double
  %p3 = getelementptr float, ptr %p, i32 3
  %hd = fptrunc double %d to half
  %hdw = fpext half %hd to float
  store float %hdw, ptr %p3
  ret void
})");
  if (!program)
    FAIL(llvm::toString(program.takeError()));
  // Normal numbers, and subnormal ones of fp16, bf16 and fp32.
  for (float x : {1.0f, 0.1f, -3.14159f, 65504.0f, 1e-6f, 1.00048828125f, 6e-8f,
                  1e-38f, -3e-39f, 9.2e-41f, 1e-45f}) {
    float values[4] = {x};
    (*program)->entry(values);
    CHECK(values[1] == halfToFloat(floatToHalf(x)));
    CHECK(values[2] == bf16ToFloat(floatToBf16(x)));
    CHECK(values[3] == values[1]);
  }
}

/// Assembly for `cpu` of a function that rounds to bf16.
static std::string assemblyOf(const char *cpu, bool keep) {
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  llvm::LLVMContext context;
  llvm::SMDiagnostic diagnostic;
  auto module = llvm::parseAssemblyString(R"(
define bfloat @round(float %x) {
  %y = fptrunc float %x to bfloat
  ret bfloat %y
})",
                                          diagnostic, context);
  REQUIRE(module);
  llvm::orc::JITTargetMachineBuilder builder(
      llvm::Triple("x86_64-unknown-linux-gnu"));
  builder.setCPU(cpu);
  if (keep)
    keepSubnormals(builder);
  auto machine = builder.createTargetMachine();
  REQUIRE(bool(machine));
  module->setTargetTriple((*machine)->getTargetTriple());
  module->setDataLayout((*machine)->createDataLayout());
  llvm::SmallString<0> text;
  llvm::raw_svector_ostream stream(text);
  llvm::legacy::PassManager passes;
  REQUIRE_FALSE((*machine)->addPassesToEmitFile(
      passes, stream, nullptr, llvm::CodeGenFileType::AssemblyFile));
  passes.run(*module);
  return text.str().str();
}

TEST_CASE("no CPU rounds subnormals of bf16 to zero", "[hostjit]") {
  for (const char *cpu : {"cooperlake", "sapphirerapids", "znver5",
                          "sierraforest", "diamondrapids"}) {
    CAPTURE(cpu);
    CHECK_THAT(assemblyOf(cpu, /*keep=*/false),
               Catch::Contains("vcvtneps2bf16"));
    CHECK_THAT(assemblyOf(cpu, /*keep=*/true),
               !Catch::Contains("vcvtneps2bf16"));
  }
}

TEST_CASE("what the host lacks is named", "[hostjit]") {
  CHECK(errorOf(R"(
declare i32 @vprintf(ptr, ptr)
define void @scale(ptr %params) {
  %n = call i32 @vprintf(ptr %params, ptr %params)
  ret void
})") == "scale, HostJit: symbol 'vprintf' is not one the emulation provides");
  CHECK_THAT(errorOf(R"(
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
define void @scale(ptr %params) {
  %n = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  store i32 %n, ptr %params
  ret void
})"),
             Catch::Contains("intrinsic 'llvm.nvvm.read.ptx.sreg.tid.x' has no "
                             "meaning on the host"));
  CHECK_THAT(errorOf(R"(
define void @scale(ptr %params) {
  call void asm sideeffect "bar.sync 0;", ""()
  ret void
})"),
             Catch::Contains("inline assembly 'bar.sync 0;'"));
  CHECK_THAT(errorOf("define void @other(ptr %params) { ret void }"),
             Catch::Contains("no function of this name"));
  // Found only when code has been generated: a call of the compiler runtime.
  CHECK_THAT(errorOf(R"(
define void @scale(ptr %params) {
  %x = load fp128, ptr %params
  %y = fmul fp128 %x, %x
  store fp128 %y, ptr %params
  ret void
})"),
             Catch::Contains("__multf3"));
}
