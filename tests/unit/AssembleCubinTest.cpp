//===- AssembleCubinTest.cpp - PTX to cubin -------------------------------===//

#include "compiler/NVPTX/AssembleCubin.h"
#include "compiler/NVPTX/NvJitLink.h"
#include "compiler/NVPTX/ResourceReport.h"
#include "compiler/NVPTX/ToolProcess.h"

#include <catch2/catch.hpp>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <sys/stat.h>
#include <thread>

using namespace replayjit::internal;
using Catch::Matchers::Contains;
using Catch::Matchers::EndsWith;
using Preference = AssembleOptions::Preference;

namespace {

/// Two entries: one with 128 bytes of shared memory, one that does nothing.
const char *const goodPtx = R"(.version 8.0
.target sm_90a
.address_size 64
.visible .entry axpy(.param .u64 p)
{
  .reg .b64 %rd<4>; .reg .b32 %r<3>; .reg .f32 %f<3>;
  .shared .align 4 .b8 tile[128];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, tile;
  st.shared.u32 [%r2], %r1;
  bar.sync 0;
  ld.param.u64 %rd1, [p];
  cvta.to.global.u64 %rd2, %rd1;
  mul.wide.u32 %rd3, %r1, 4;
  add.s64 %rd2, %rd2, %rd3;
  ld.global.f32 %f1, [%rd2];
  add.f32 %f1, %f1, 0f3F800000;
  st.global.f32 [%rd2], %f1;
  ret;
}
.visible .entry other()
{
  ret;
}
)";

std::string badPtx() {
  std::string text = goodPtx;
  text.replace(text.find("add.f32"), 7, "addd.f32");
  return text;
}

Target hopper() { return *Target::parse("sm_90a"); }

AssembleOptions prefer(Preference preference) {
  AssembleOptions options = AssembleOptions::fromEnvironment();
  options.preference = preference;
  return options;
}

/// No folder: a path below it leads nowhere, whatever a machine has.
const std::string noFolder = "/dev/null";

/// Nothing is found anywhere.
AssembleOptions nowhere(Preference preference) {
  AssembleOptions options;
  options.preference = preference;
  options.toolFolders = {noFolder + "/bin"};
  options.libraryFolders = {noFolder + "/lib"};
  return options;
}

bool hasPtxas() {
  AssembleOptions options = AssembleOptions::fromEnvironment();
  return !options.ptxasPath.empty() ||
         !findExecutable("ptxas", options.toolFolders).empty();
}

bool hasNvJitLink() {
  AssembleOptions options = AssembleOptions::fromEnvironment();
  return NvJitLink::open(options.nvJitLinkPath, options.libraryFolders)
      .status()
      .isOk();
}

/// Checks both outcomes of an assembler that is there, and the sentence that
/// says it is missing where it is not.
void checkAssembler(Preference preference, bool present,
                    const std::string &name) {
  AssembleOptions options = prefer(preference);
  auto good = assembleCubin(goodPtx, hopper(), "axpy", options);
  if (!present) {
    WARN(name << " is absent here: only the message about that is tested");
    CHECK(good.status().code == StatusCode::NotFound);
    CHECK_THAT(good.status().message,
               Contains("axpy") && Contains(name) && Contains("REPLAYJIT_"));
    return;
  }
  INFO(good.status().message);
  REQUIRE(good);
  REQUIRE(good->cubin.size() > 4);
  CHECK(std::string(good->cubin.data() + 1, 3) == "ELF");
  CHECK_THAT(good->assembler, Catch::Matchers::StartsWith(name + " 1"));
  CHECK(good->resources.registers > 4);
  CHECK(good->resources.spillStoreBytes == 0);
  CHECK(good->resources.spillLoadBytes == 0);
  CHECK(good->resources.stackBytes == 0);
  CHECK(good->resources.staticSharedBytes == 128);

  auto bad = assembleCubin(badPtx(), hopper(), "axpy", options);
  CHECK(bad.status().code == StatusCode::AssembleFailed);
  CHECK_THAT(bad.status().message,
             Contains("axpy, AssembleCubin for sm_90a by " + name) &&
                 !Contains("\n"));
  CHECK(bad.status().stage == "assemble");
  CHECK_THAT(bad.status().log, Contains("addd") && Contains("line 17"));
  // The folder that held the input is gone and is not named.
  CHECK_THAT(bad.status().text(), !Contains("replayjit-"));

  auto older = assembleCubin(goodPtx, *Target::parse("sm_80"), "axpy", options);
  CHECK(older.status().code == StatusCode::AssembleFailed);
}

/// A folder with an executable script `name`.
std::string scriptFolder(const ScratchFolder &scratch, const std::string &name,
                         const std::string &body) {
  std::string path = scratch.file(name);
  REQUIRE(writeFile(path, "#!/bin/sh\n" + body).isOk());
  REQUIRE(chmod(path.c_str(), 0700) == 0);
  return path.substr(0, path.rfind('/'));
}

/// Gone, or waiting to be buried.
bool isDead(pid_t process) {
  Result<std::string> stat =
      readFile("/proc/" + std::to_string(process) + "/stat");
  return !stat || stat->find(") Z") != std::string::npos;
}

size_t entries(const std::string &folder) {
  std::filesystem::directory_iterator begin(folder), end;
  return std::distance(begin, end);
}

} // namespace

TEST_CASE("nvJitLink assembles") {
  checkAssembler(Preference::NvJitLink, hasNvJitLink(), "nvJitLink");
}

TEST_CASE("ptxas assembles") {
  checkAssembler(Preference::Ptxas, hasPtxas(), "ptxas");
}

TEST_CASE("threads assemble at the same time") {
  bool present = hasNvJitLink() || hasPtxas();
  if (!present)
    WARN("no assembler here: only failures are tested from several threads");
  AssembleOptions options =
      present ? prefer(Preference::Any) : nowhere(Preference::Ptxas);
  std::vector<Status> outcomes(8);
  std::vector<std::thread> threads;
  for (Status &outcome : outcomes)
    threads.emplace_back([&] {
      for (int i = 0; i < 4 && outcome; ++i)
        outcome = assembleCubin(goodPtx, hopper(), "axpy", options).status();
    });
  for (std::thread &thread : threads)
    thread.join();
  for (const Status &outcome : outcomes)
    CHECK(outcome.isOk() == present);
}

TEST_CASE("a path that the caller gives is used, or is an error") {
  AssembleOptions options = nowhere(Preference::Any);
  SECTION("no such ptxas") {
    options.ptxasPath = noFolder + "/ptxas";
    auto result = assembleCubin(goodPtx, hopper(), "axpy", options);
    CHECK(result.status().code == StatusCode::NotFound);
    CHECK_THAT(result.status().message,
               Contains("cannot run '/dev/null/ptxas': Not a directory"));
  }
  SECTION("a ptxas that is something else") {
    options.ptxasPath = "/bin/true";
    auto result = assembleCubin(goodPtx, hopper(), "axpy", options);
    CHECK(result.status().code == StatusCode::NotFound);
    CHECK_THAT(result.status().message, Contains("'/bin/true' is not ptxas"));
  }
  SECTION("no such nvJitLink") {
    options.preference = Preference::NvJitLink;
    options.nvJitLinkPath = noFolder + "/libnvJitLink.so";
    auto result = assembleCubin(goodPtx, hopper(), "axpy", options);
    CHECK(result.status().code == StatusCode::NotFound);
    CHECK_THAT(result.status().message,
               Contains("cannot open '/dev/null/libnvJitLink.so'"));
  }
  SECTION("an nvJitLink that is something else") {
    options.preference = Preference::NvJitLink;
    options.nvJitLinkPath = "libm.so.6";
    auto result = assembleCubin(goodPtx, hopper(), "axpy", options);
    CHECK(result.status().code == StatusCode::NotFound);
    CHECK_THAT(result.status().message,
               Contains("'libm.so.6' lacks the entry points"));
  }
}

TEST_CASE("before sm_90 ptxas comes first, later nvJitLink") {
  auto scratch = ScratchFolder::create("/tmp");
  REQUIRE(scratch);
  AssembleOptions options = AssembleOptions::fromEnvironment();
  if (!options.nvJitLinkPath.empty())
    options.libraryFolders = {
        std::filesystem::path(options.nvJitLinkPath).parent_path()};
  options.preference = Preference::Any;
  options.nvJitLinkPath.clear();
  options.ptxasPath.clear();
  options.toolFolders = {scriptFolder(*scratch, "ptxas", "echo none")};

  const std::string notPtxas = scratch->file("ptxas") + "' is not ptxas";
  for (const char *chip : {"sm_80", "sm_89"})
    CHECK_THAT(assembleCubin(goodPtx, *Target::parse(chip), "axpy", options)
                   .status()
                   .message,
               Contains(notPtxas));
  Status hopperStatus =
      assembleCubin(goodPtx, hopper(), "axpy", options).status();
  if (NvJitLink::open({}, options.libraryFolders))
    CHECK(hopperStatus.message == "");
  else
    CHECK_THAT(hopperStatus.message, Contains(notPtxas));
}

TEST_CASE("where nothing is found the message says what was looked for") {
  auto result =
      assembleCubin(goodPtx, hopper(), "axpy", nowhere(Preference::Ptxas));
  CHECK(result.status().code == StatusCode::NotFound);
  CHECK(result.status().message ==
        "axpy, AssembleCubin for sm_90a: no assembler was found: no ptxas in "
        "/dev/null/bin; set REPLAYJIT_PTXAS or REPLAYJIT_NVJITLINK to one, "
        "or REPLAYJIT_ASSEMBLER=driver to let the GPU's driver do it");
}

TEST_CASE("a ptxas that dies, and its folder, leave nothing behind") {
  auto scratch = ScratchFolder::create("/tmp");
  REQUIRE(scratch);
  std::string folder = scriptFolder(
      *scratch, "ptxas",
      "[ \"$1\" = --version ] && { echo 'release 13.0, V13.0.88'; exit 0; }\n"
      "echo \"in $5\"\nkill -11 $$\n");
  std::string temporary = scratch->file("tmp");
  REQUIRE(mkdir(temporary.c_str(), 0700) == 0);
  AssembleOptions options = nowhere(Preference::Ptxas);
  options.toolFolders = {noFolder + "/bin", folder};
  options.temporaryFolder = temporary;
  auto result = assembleCubin(goodPtx, hopper(), "axpy", options);
  CHECK(result.status().code == StatusCode::AssembleFailed);
  CHECK_THAT(result.status().message,
             EndsWith("by ptxas 13.0.88: it ended with signal 11"));
  CHECK(result.status().log == "in kernel.ptx\n");
  CHECK(result.status().text() ==
        result.status().message + "\n" + result.status().log);
  CHECK(entries(temporary) == 0);

  options.temporaryFolder = noFolder;
  result = assembleCubin(goodPtx, hopper(), "axpy", options);
  CHECK(result.status().code == StatusCode::NotFound);
  CHECK_THAT(result.status().message, Contains("TMPDIR"));
}

TEST_CASE("a ptxas that never ends is killed, with what it started") {
  auto scratch = ScratchFolder::create("/tmp");
  REQUIRE(scratch);
  // It and its child write their numbers; neither ends by itself.
  std::string folder = scriptFolder(
      *scratch, "ptxas",
      "cd " + scratch->file("") +
          "\nsleep 100000 & echo $! > child; echo $$ > parent; wait\n");
  std::string temporary = scratch->file("tmp");
  REQUIRE(mkdir(temporary.c_str(), 0700) == 0);
  AssembleOptions options = nowhere(Preference::Ptxas);
  options.toolFolders = {folder};
  options.temporaryFolder = temporary;
  // So long that both are there, also on a busy machine.
  Status status;
  for (options.timeLimit = std::chrono::milliseconds(100);
       !std::filesystem::exists(scratch->file("parent"));
       options.timeLimit *= 2)
    status = assembleCubin(goodPtx, hopper(), "axpy", options).status();
  CHECK(status.code == StatusCode::AssembleFailed);
  CHECK_THAT(status.message,
             Contains("ptxas' has not ended after ") &&
                 EndsWith("ms and was killed; REPLAYJIT_ASSEMBLER_SECONDS says "
                          "how long it may take"));
  CHECK(entries(temporary) == 0);
  for (const char *name : {"parent", "child"}) {
    Result<std::string> number = readFile(scratch->file(name));
    REQUIRE(number);
    const pid_t process = std::stoi(*number);
    // Its new parent may take a moment to bury it.
    while (kill(process, 0) == 0 && !isDead(process))
      std::this_thread::yield();
  }
}

TEST_CASE("the time limit out of the environment") {
  for (const char *wrong : {"x", "0", "-1", "1.5", "86401", "5 "}) {
    setenv("REPLAYJIT_ASSEMBLER_SECONDS", wrong, 1);
    const AssembleOptions options = AssembleOptions::fromEnvironment();
    for (const Status &status :
         {assembleCubin(goodPtx, hopper(), "axpy", options).status(),
          disassemble({'c'}, options).status()})
      CHECK(status.message == "REPLAYJIT_ASSEMBLER_SECONDS: '" +
                                  std::string(wrong) +
                                  "' is not allowed; it must be 1 to 86400");
  }
  setenv("REPLAYJIT_ASSEMBLER_SECONDS", "7", 1);
  CHECK(AssembleOptions::fromEnvironment().timeLimit ==
        std::chrono::seconds(7));
  unsetenv("REPLAYJIT_ASSEMBLER_SECONDS");
  CHECK(AssembleOptions::fromEnvironment().timeLimit ==
        std::chrono::minutes(10));
}

TEST_CASE("resources out of a log of ptxas 13.0") {
  const char *log = R"(ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'other' for 'sm_90a'
ptxas info    : Function properties for other
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 4 registers, used 0 barriers
ptxas info    : Compile time = 1.381 ms
ptxas info    : Compiling entry function 'spiller' for 'sm_90a'
ptxas info    : Function properties for helper
    16 bytes stack frame, 4 bytes spill stores, 4 bytes spill loads
ptxas info    : Function properties for spiller
    408 bytes stack frame, 404 bytes spill stores, 412 bytes spill loads
ptxas info    : Used 24 registers, used 1 barriers, 408 bytes cumulative stack size, 128 bytes smem, 540 bytes cmem[0]
ptxas info    : Compile time = 13.537 ms
)";
  ResourceUsage usage = parseResourceReport(log, "spiller");
  CHECK(usage.registers == 24);
  CHECK(usage.stackBytes == 408);
  CHECK(usage.spillStoreBytes == 404);
  CHECK(usage.spillLoadBytes == 412);
  CHECK(usage.staticSharedBytes == 128);
  usage = parseResourceReport(log, "other");
  CHECK(usage.registers == 4);
  CHECK(usage.stackBytes == 0);
  CHECK(usage.staticSharedBytes == 0);
  usage = parseResourceReport(log, "spill");
  CHECK(usage.registers == -1);
  CHECK(usage.spillStoreBytes == -1);
}

TEST_CASE("resources out of a log of nvJitLink 13.0") {
  std::string compile = R"(ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'spiller' for 'sm_90a'
ptxas info    : Function properties for spiller
ptxas         .     408 bytes stack frame, 404 bytes spill stores, 412 bytes spill loads
ptxas info    : Used 24 registers, used 1 barriers, 128 bytes smem
ptxas info    : Compile time = 9.962 ms
)";
  // After linking: shared memory with the 1024 bytes that the hardware takes.
  std::string link = R"(info    : 0 bytes gmem
info    : Function properties for 'spiller':
info    : used 24 registers, used 1 barriers, 408 stack, 1152 bytes smem, 536 bytes cmem[0], 0 bytes lmem
)";
  ResourceUsage usage = parseResourceReport(compile + link, "spiller");
  CHECK(usage.registers == 24);
  CHECK(usage.stackBytes == 408);
  CHECK(usage.spillStoreBytes == 404);
  CHECK(usage.spillLoadBytes == 412);
  CHECK(usage.staticSharedBytes == 128);

  usage = parseResourceReport(link, "spiller");
  CHECK(usage.registers == 24);
  CHECK(usage.stackBytes == 408);
  CHECK(usage.spillStoreBytes == -1);
  CHECK(usage.staticSharedBytes == -1);
  CHECK(parseResourceReport("", "spiller").registers == -1);
}

TEST_CASE("options come from the environment") {
  setenv("TRITON_PTXAS_PATH", "/triton/ptxas", 1);
  CHECK(AssembleOptions::fromEnvironment().ptxasPath == "/triton/ptxas");
  setenv("REPLAYJIT_PTXAS", "/ours/ptxas", 1);
  CHECK(AssembleOptions::fromEnvironment().ptxasPath == "/ours/ptxas");
  unsetenv("TRITON_PTXAS_PATH");
  unsetenv("REPLAYJIT_PTXAS");
  setenv("CUDA_HOME", "/opt/cuda", 1);
  AssembleOptions options = AssembleOptions::fromEnvironment();
  unsetenv("CUDA_HOME");
  CHECK_THAT(options.toolFolders,
             Catch::VectorContains(std::string("/opt/cuda/bin")));
  CHECK(options.libraryFolders.front() == "/opt/cuda/lib64");
  CHECK(options.toolFolders.back() == "/usr/local/cuda/bin");
}

TEST_CASE("disassembly by whichever tool is found") {
  std::vector<char> cubin = {'c', 'o', 'd', 'e'};
  auto missing = disassemble(cubin, nowhere(Preference::Any));
  CHECK(missing.status().code == StatusCode::NotFound);
  CHECK_THAT(missing.status().message,
             Contains("nvdisasm") && Contains("/dev/null/bin"));

  // Stand-ins for the tools: they show that the cubin gets there.
  auto scratch = ScratchFolder::create("/tmp");
  REQUIRE(scratch);
  AssembleOptions options = nowhere(Preference::Any);
  options.toolFolders = {
      scriptFolder(*scratch, "cuobjdump", "echo \"$1\"; cat \"$2\"\n")};
  auto text = disassemble(cubin, options);
  REQUIRE(text);
  CHECK(*text == "--dump-sass\ncode");
  scriptFolder(*scratch, "nvdisasm", "echo broken; exit 3\n");
  text = disassemble(cubin, options);
  CHECK(text.status().code == StatusCode::AssembleFailed);
  CHECK_THAT(text.status().message, EndsWith("exit code 3"));
  CHECK(text.status().log == "broken\n");
}
