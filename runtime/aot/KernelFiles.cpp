//===- KernelFiles.cpp - A kernel as three files --------------------------===//

#include "runtime/aot/KernelFiles.h"

#include "runtime/cache/KernelRecord.h"

#include <fmt/format.h>

#include <filesystem>

namespace replayjit::internal {

std::string_view bytesOf(const std::vector<char> &bytes) {
  return {bytes.data(), bytes.size()};
}

Status writeKernelFiles(const std::string &folder, const CompiledKernel &kernel,
                        const std::string &record) {
  if (Status status = checkFileName("name of the kernel", kernel.name); !status)
    return status;
  if (Status status = makeFolders(folder); !status)
    return status;
  const std::string base =
      (std::filesystem::path(folder) / kernel.name).string();
  for (auto [suffix, bytes] : {std::pair<const char *, std::string_view>{
                                   ".cubin", bytesOf(kernel.cubin)},
                               {".ptx", kernel.ptx},
                               {".json", record}})
    if (Status status = writeBytes(base + suffix, bytes); !status)
      return status;
  return Status::ok();
}

Result<CompiledKernel> readKernelFiles(const std::string &base) {
  Result<std::string> json = readBytes(base + ".json");
  if (!json)
    return json.status();
  Result<KernelRecord> record = readRecord(*json);
  if (!record)
    return Status::invalid(
        fmt::format("{}.json: {}", base, record.status().message));
  CompiledKernel kernel = std::move(record->kernel);
  Result<std::string> cubin = readBytes(base + ".cubin");
  if (!cubin)
    return cubin.status();
  if (cubin->size() != record->cubinBytes)
    return Status::invalid(
        fmt::format("{}.cubin has {} bytes; its record says {}", base,
                    cubin->size(), record->cubinBytes));
  kernel.cubin.assign(cubin->begin(), cubin->end());
  if (Result<std::string> ptx = readBytes(base + ".ptx"))
    kernel.ptx = std::move(*ptx);
  return kernel;
}

} // namespace replayjit::internal
