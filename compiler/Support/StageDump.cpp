//===- StageDump.cpp - Every stage of a compilation, numbered -------------===//

#include "compiler/Support/StageDump.h"

#include "base/Files.h"

#include <fmt/format.h>

#include <memory>

namespace replayjit::internal {

StageObserver dumpStagesTo(std::string directory, std::string kernel,
                           std::string *error) {
  auto count = std::make_shared<int>(0);
  return [=](const std::string &file, const std::string &text) {
    Status status = checkFileName("name of the kernel", kernel);
    if (status)
      status = makeFolders(directory);
    if (status)
      status = writeBytes(
          fmt::format("{}/{:02}-{}.{}", directory, (*count)++, kernel, file),
          text);
    if (!status && error && error->empty())
      *error = status.message;
  };
}

} // namespace replayjit::internal
