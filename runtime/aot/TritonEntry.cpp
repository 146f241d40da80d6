//===- TritonEntry.cpp - Entries of Triton's cache ------------------------===//

#include "runtime/aot/TritonEntry.h"

#include "runtime/aot/KernelFiles.h"
#include "runtime/aot/PtxEntry.h"
#include "runtime/cache/JsonReader.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>
#include <unistd.h>

namespace replayjit::internal {

namespace fs = std::filesystem;

constexpr std::string_view groupIntro = "__grp__";

//===----------------------------------------------------------------------===//
// Export
//===----------------------------------------------------------------------===//

/// RFC 4648 without padding, as Triton names its folders; empty if `hash` is
/// not 64 hexadecimal digits.
static std::string base32(std::string_view hash) {
  constexpr char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
  constexpr std::string_view digits = "0123456789abcdef";
  if (hash.size() != 64)
    return {};
  std::string text;
  uint32_t bits = 0;
  int count = 0;
  for (char c : hash) {
    const size_t digit = digits.find(c);
    if (digit == digits.npos)
      return {};
    bits = bits << 4 | uint32_t(digit);
    for (count += 4; count >= 5; count -= 5)
      text += letters[bits >> (count - 5) & 31];
  }
  text += letters[bits << (5 - count) & 31];
  return text;
}

/// FILE.json: every member that Triton 3.6 writes, since its loader and its
/// hooks read them as attributes.
static Json metadataOf(const CompiledKernel &kernel, const std::string &hash) {
  const Target &target = kernel.target;
  return {
      {"hash", hash},
      {"target",
       {{"backend", "cuda"}, {"arch", target.capability}, {"warp_size", 32}}},
      {"num_warps", kernel.launch.threads / 32},
      {"num_ctas", 1},
      {"num_stages", 1},
      {"warp_size", 32},
      {"maxnreg", nullptr},
      {"ptx_version", nullptr},
      {"ptx_options", nullptr},
      {"ir_override", nullptr},
      {"enable_fp_fusion", true},
      {"enable_reflect_ftz", true},
      {"launch_cooperative_grid", false},
      {"launch_pdl", false},
      {"supported_fp8_dtypes", Json::array()},
      {"deprecated_fp8_dot_operand_dtypes", Json::array()},
      {"default_dot_input_precision", "ieee"},
      {"allowed_dot_input_precisions", Json::array({"ieee"})},
      {"max_num_imprecise_acc_default", 0},
      {"extern_libs", Json::array()},
      {"debug", false},
      {"backend_name", "cuda"},
      {"sanitize_overflow", false},
      {"arch", fmt::format("sm{}", target.capability)},
      {"instrumentation_mode", ""},
      {"triton_version", "3.6.0"},
      {"tensordesc_meta", Json::array()},
      {"shared", kernel.launch.sharedBytes},
      {"tmem_size", 0},
      {"global_scratch_size", 0},
      {"global_scratch_align", 1},
      {"profile_scratch_size", 0},
      {"profile_scratch_align", 1},
      {"name", kernel.name},
  };
}

static bool hasTritonAbi(const KernelSignature &signature) {
  const size_t count = signature.params.size();
  return count >= 2 && signature.params[count - 2].name == "globalScratch" &&
         signature.params[count - 1].name == "profileScratch";
}

Result<std::string> exportToTriton(const CompiledKernel &kernel,
                                   const TritonExport &options) {
  if (!hasTritonAbi(kernel.signature))
    return Status::invalid(fmt::format("kernel '{}' cannot be exported to "
                                       "Triton; it must have abi triton",
                                       kernel.name));
  const std::string entry = base32(options.hash);
  if (entry.empty())
    return Status::invalid(fmt::format("hash: '{}' is not allowed; it must be "
                                       "64 hexadecimal digits",
                                       options.hash));
  const std::string file =
      options.file.empty() ? kernel.name.substr(0, 150) : options.file;
  if (Status status = checkFileName("file", file); !status)
    return status;
  std::error_code code;
  const fs::path cache = fs::absolute(options.cacheFolder, code);
  const fs::path folder = cache / entry;
  const fs::path draft =
      cache / fmt::format(".replayjit-{}-{}", ::getpid(), entry);
  if (Status status = makeFolders(draft.string()); !status)
    return status;

  const std::string metadata = metadataOf(kernel, options.hash).dump();
  Json paths = Json::object();
  auto write = [&](std::string_view suffix, std::string_view bytes) {
    const std::string name = file + std::string(suffix);
    paths[name] = (folder / name).string();
    return writeBytes((draft / name).string(), bytes);
  };
  Status status = write(".ptx", kernel.ptx);
  if (status)
    status = write(".cubin", bytesOf(kernel.cubin));
  if (status)
    status = write(".json", metadata);
  if (status)
    status = writeBytes(
        (draft / fmt::format("{}{}.json", groupIntro, file)).string(),
        Json{{"child_paths", paths}}.dump());
  if (status) {
    fs::rename(draft, folder, code); // which an empty folder does not prevent
    if (code)
      status = Status::error(StatusCode::StorageFailed,
                             fmt::format("export: cannot make '{}' ({})",
                                         folder.string(), code.message()));
  }
  if (!status) {
    fs::remove_all(draft, code);
    return status;
  }
  return folder.string();
}

//===----------------------------------------------------------------------===//
// Import
//===----------------------------------------------------------------------===//

/// The FILE of the one FILE.json in a folder.
static Result<std::string> fileOf(const std::string &folder) {
  std::string found;
  std::error_code code;
  for (fs::directory_iterator at(folder, code), end; !code && at != end;
       at.increment(code)) {
    const fs::path path = at->path();
    if (path.extension() != ".json" ||
        path.filename().string().starts_with(groupIntro))
      continue;
    if (!found.empty())
      return Status::invalid(
          fmt::format("'{}' holds several entries of Triton; only one is "
                      "allowed",
                      folder));
    found = path.stem().string();
  }
  if (code)
    return Status::error(
        StatusCode::NotFound,
        fmt::format("cannot read '{}' ({})", folder, code.message()));
  if (found.empty())
    return Status::error(
        StatusCode::NotFound,
        fmt::format("'{}' holds no FILE.json of Triton", folder));
  return found;
}

namespace {

/// What a launch has to know.
struct TritonMetadata {
  std::string name, version;
  uint32_t warps = 0, shared = 0;
};

} // namespace

static Result<TritonMetadata> readMetadata(const std::string &text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  Status status;
  ObjectReader reader(status, json);
  TritonMetadata metadata;
  uint32_t blocks = 0, globalScratch = 0, profileScratch = 0;
  bool isCooperative = false;
  reader.read("name", metadata.name);
  reader.read("triton_version", metadata.version);
  reader.read("num_warps", metadata.warps);
  reader.read("shared", metadata.shared);
  reader.read("num_ctas", blocks);
  reader.read("global_scratch_size", globalScratch);
  reader.read("profile_scratch_size", profileScratch);
  reader.read("launch_cooperative_grid", isCooperative);
  const Json *descriptors = reader.array("tensordesc_meta");
  if (!status)
    return status;
  auto unsupported = [&](std::string_view what) {
    return Status::error(
        StatusCode::Unsupported,
        fmt::format("kernel '{}' needs {}, which is not supported",
                    metadata.name, what));
  };
  if (blocks != 1)
    return unsupported("clusters of blocks");
  if (globalScratch != 0 || profileScratch != 0)
    return unsupported("scratch memory");
  if (isCooperative)
    return unsupported("a cooperative launch");
  if (!descriptors->empty())
    return unsupported("tensor descriptors made by the host");
  return metadata;
}

Result<CompiledKernel> importFromTriton(const std::string &folder) {
  Result<std::string> file = fileOf(folder);
  if (!file)
    return file.status();
  const std::string base = (fs::path(folder) / *file).string();
  Result<std::string> texts[] = {readBytes(base + ".json"),
                                 readBytes(base + ".ptx"),
                                 readBytes(base + ".cubin")};
  for (const Result<std::string> &text : texts)
    if (!text)
      return text.status();
  auto inFile = [&](const Status &status) {
    return Status::error(status.code,
                         fmt::format("{}: {}", base, status.message));
  };
  Result<TritonMetadata> metadata = readMetadata(*texts[0]);
  if (!metadata)
    return inFile(metadata.status());
  Result<CompiledKernel> kernel = kernelFromPtx(*texts[1], metadata->name);
  if (!kernel)
    return inFile(kernel.status());
  if (kernel->launch.threads != 32 * metadata->warps)
    return inFile(Status::invalid(
        fmt::format("its PTX has {} threads per block, its record {} warps",
                    kernel->launch.threads, metadata->warps)));
  kernel->launch.sharedBytes = metadata->shared;
  kernel->cubin.assign(texts[2]->begin(), texts[2]->end());
  kernel->assembler = "Triton " + metadata->version;
  return kernel;
}

} // namespace replayjit::internal
