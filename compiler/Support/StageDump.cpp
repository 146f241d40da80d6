//===- StageDump.cpp - Every stage of a compilation, numbered -------------===//

#include "compiler/Support/StageDump.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <memory>

namespace replayjit::internal {

StageObserver dumpStagesTo(std::string directory, std::string kernel,
                           std::string *error) {
  auto count = std::make_shared<int>(0);
  return [=](const std::string &file, const std::string &text) {
    std::error_code code;
    std::filesystem::create_directories(directory, code);
    std::string path =
        fmt::format("{}/{:02}-{}.{}", directory, (*count)++, kernel, file);
    std::ofstream stream(path, std::ios::binary);
    stream << text;
    stream.close();
    if (!stream && error && error->empty())
      *error = fmt::format("dump-stages: cannot write '{}'", path);
  };
}

} // namespace replayjit::internal
