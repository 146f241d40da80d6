//===- FilesTest.cpp - Whole files that people name -----------------------===//

#include "base/Files.h"
#include "compiler/Support/StageDump.h"
#include "runtime/aot/KernelFiles.h"
#include "tests/unit/CacheTestSupport.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <thread>

using namespace replayjit::internal;
using namespace replayjit::internal::test;
using Catch::Matchers::Contains;

static size_t entries(const std::string &folder) {
  return std::distance(fs::directory_iterator(folder),
                       fs::directory_iterator());
}

TEST_CASE("a file is written as a whole and read back") {
  TestFolder folder;
  const std::string path = folder / "file";
  for (size_t bytes : {0, 1, 65536, 65537, 1'000'000}) {
    const std::string text(bytes, 'x');
    REQUIRE(writeBytes(path, text).isOk());
    Result<std::string> back = readBytes(path);
    REQUIRE(back);
    CHECK(*back == text);
    CHECK(entries(folder.path) == 1);
    CHECK(readBytes(path, bytes)); // exactly as much as is allowed
    if (bytes > 0)
      CHECK(readBytes(path, bytes - 1).status().message ==
            "input: '" + path + "' has more than " + std::to_string(bytes - 1) +
                " bytes, which is the most that is read");
  }
}

TEST_CASE("what is replaced keeps its mode, and a link its place") {
  TestFolder folder;
  REQUIRE(writeBytes(folder / "file", "old").isOk());
  REQUIRE(chmod((folder / "file").c_str(), 0604) == 0);
  fs::create_symlink("file", folder / "link");
  fs::create_symlink("none", folder / "dangling");
  REQUIRE(writeBytes(folder / "link", "new").isOk());
  CHECK(fs::is_symlink(folder / "link"));
  CHECK(slurp(folder / "file") == "new");
  struct stat info;
  REQUIRE(stat((folder / "file").c_str(), &info) == 0);
  CHECK((info.st_mode & 07777) == 0604);
  REQUIRE(writeBytes(folder / "dangling", "new").isOk());
  CHECK(slurp(folder / "dangling") == "new");
}

TEST_CASE("a pipe is written where it is") {
  TestFolder folder;
  const std::string path = folder / "pipe";
  REQUIRE(mkfifo(path.c_str(), 0600) == 0);
  const std::string text(200'000, 'x'); // more than a pipe holds
  Status written;
  std::thread writer([&] { written = writeBytes(path, text); });
  Result<std::string> seen = readBytes(path);
  writer.join();
  CHECK(written.isOk());
  REQUIRE(seen);
  CHECK(*seen == text);
  CHECK(fs::is_fifo(path));
}

TEST_CASE("what cannot be written or read says why, and leaves nothing") {
  TestFolder folder;
  const auto writing = [](const std::string &path) {
    Status status = writeBytes(path, "text");
    CHECK(status.code == StatusCode::StorageFailed);
    return status.message;
  };
  CHECK(writing("") == "output: cannot write '': No such file or directory");
  CHECK(writing("/dev/full") ==
        "output: cannot write '/dev/full': No space left on device");
  CHECK(writing(folder.path) ==
        "output: cannot write '" + folder.path + "': Is a directory");
  CHECK_THAT(writing(folder / "no/file"), Contains("No such file"));
  CHECK_THAT(writing(folder / std::string(300, 'x')), Contains("too long"));
  CHECK_THAT(readBytes(folder.path).status().message,
             Contains("Is a directory"));
  CHECK_THAT(readBytes(folder / "none").status().message,
             Contains("No such file"));
  CHECK(readBytes("/dev/zero").status().code == StatusCode::InvalidArgument);
  CHECK(entries(folder.path) == 0);
}

TEST_CASE("a name from outside stays in its folder") {
  for (const char *name : {"x", ".x", "...", "a b", "x.y"})
    CHECK(checkFileName("file", name).isOk());
  for (std::string name : {"", ".", "..", "/", "/x", "x/", "../x", "a/b"})
    CHECK(checkFileName("file", name).message ==
          "file: '" + name +
              "' is not allowed; it must be the name of a file, without a '/'");
  CHECK_FALSE(checkFileName("file", std::string("a\0b", 3)).isOk());

  TestFolder folder;
  CompiledKernel kernel = kernelOf(keyOf(0));
  kernel.name = "../x";
  CHECK_THAT(writeKernelFiles(folder / "out", kernel, "{}").message,
             Contains("name of the kernel: '../x' is not allowed"));
  std::string error;
  dumpStagesTo(folder / "out", "../x", &error)("nvvm.mlir", "text");
  CHECK_THAT(error, Contains("name of the kernel: '../x' is not allowed"));
  CHECK(entries(folder.path) == 0);
}
