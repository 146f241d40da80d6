//===- NvJitLink.cpp - The nvJitLink library, opened at run time ----------===//

#include "compiler/NVPTX/NvJitLink.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>
#include <dlfcn.h>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <type_traits>

namespace replayjit::internal {

using Handle = struct NvJitLinkOpaque *;
using ResultCode = int;
static constexpr int inputPTX = 2; // NVJITLINK_INPUT_PTX

struct NvJitLink::Functions {
  ResultCode (*create)(Handle *, uint32_t, const char *const *);
  ResultCode (*destroy)(Handle *);
  ResultCode (*addData)(Handle, int, const void *, size_t, const char *);
  ResultCode (*complete)(Handle);
  ResultCode (*cubinSize)(Handle, size_t *);
  ResultCode (*cubin)(Handle, void *);
  ResultCode (*errorLogSize)(Handle, size_t *);
  ResultCode (*errorLog)(Handle, char *);
  ResultCode (*infoLogSize)(Handle, size_t *);
  ResultCode (*infoLog)(Handle, char *);

  /// Fills every entry from names of the form prefix + function + suffix.
  bool resolve(void *library, std::string_view prefix, std::string_view suffix);
};

/// The library's names for its result codes, in their order.
static std::string resultName(ResultCode code) {
  static constexpr const char *names[] = {
      "SUCCESS",         "UNRECOGNIZED_OPTION", "MISSING_ARCH",
      "INVALID_INPUT",   "PTX_COMPILE",         "NVVM_COMPILE",
      "INTERNAL",        "THREADPOOL",          "UNRECOGNIZED_INPUT",
      "FINALIZE",        "NULL_INPUT",          "INCOMPATIBLE_OPTIONS",
      "INCORRECT_INPUT", "ARCH_MISMATCH",       "OUTDATED_LIBRARY",
      "MISSING_FATBIN",  "UNRECOGNIZED_ARCH",   "UNSUPPORTED_ARCH",
      "LTO_NOT_ENABLED"};
  if (code < 0 || code >= static_cast<int>(std::size(names)))
    return fmt::format("error {}", code);
  return fmt::format("{} ({})", names[code], code);
}

bool NvJitLink::Functions::resolve(void *library, std::string_view prefix,
                                   std::string_view suffix) {
  auto find = [&](auto &pointer, std::string_view function) {
    std::string symbol = fmt::format("{}{}{}", prefix, function, suffix);
    pointer = reinterpret_cast<std::remove_reference_t<decltype(pointer)>>(
        dlsym(library, symbol.c_str()));
    return pointer != nullptr;
  };
  return find(create, "nvJitLinkCreate") && find(destroy, "nvJitLinkDestroy") &&
         find(addData, "nvJitLinkAddData") &&
         find(complete, "nvJitLinkComplete") &&
         find(cubinSize, "nvJitLinkGetLinkedCubinSize") &&
         find(cubin, "nvJitLinkGetLinkedCubin") &&
         find(errorLogSize, "nvJitLinkGetErrorLogSize") &&
         find(errorLog, "nvJitLinkGetErrorLog") &&
         find(infoLogSize, "nvJitLinkGetInfoLogSize") &&
         find(infoLog, "nvJitLinkGetInfoLog");
}

/// Opens the first of `candidates` that loads; `tried` collects the reasons.
static void *openFirst(const std::vector<std::string> &candidates,
                       std::string &openedPath,
                       std::vector<std::string> &tried) {
  for (const std::string &candidate : candidates) {
    if (void *library = dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL)) {
      openedPath = candidate;
      return library;
    }
    const char *reason = dlerror();
    tried.push_back(reason ? reason : candidate);
  }
  return nullptr;
}

Result<const NvJitLink *>
NvJitLink::open(const std::string &path,
                const std::vector<std::string> &folders) {
  // Never freed: the library cannot be unloaded while a thread may link.
  static std::mutex mutex;
  static auto &opened = *new std::map<std::string, NvJitLink>();
  std::lock_guard<std::mutex> lock(mutex);
  if (auto found = opened.find(path); found != opened.end())
    return &found->second;

  std::vector<std::string> candidates;
  if (!path.empty()) {
    candidates.push_back(path);
  } else {
    static constexpr const char *names[] = {
        "libnvJitLink.so.13", "libnvJitLink.so.12", "libnvJitLink.so"};
    candidates.assign(std::begin(names), std::end(names));
    for (const std::string &folder : folders)
      for (const char *name : names)
        candidates.push_back(fmt::format("{}/{}", folder, name));
  }
  std::string openedPath;
  std::vector<std::string> tried;
  void *library = openFirst(candidates, openedPath, tried);
  if (!library)
    return Status::error(
        StatusCode::NotFound,
        path.empty()
            ? fmt::format("nvJitLink: none of {} could be opened",
                          fmt::join(candidates, ", "))
            : fmt::format("nvJitLink: cannot open '{}': {}", path, tried[0]));

  // The C header binds each function to a name that carries the version the
  // header belongs to; newer libraries keep the older names of their major.
  auto functions = std::make_unique<Functions>();
  bool resolved = false;
  for (int major = 13; major >= 12 && !resolved; --major)
    for (int minor = 9; minor >= 0 && !resolved; --minor)
      resolved = functions->resolve(library, "__",
                                    fmt::format("_{}_{}", major, minor));
  if (!resolved && !functions->resolve(library, "", "")) {
    dlclose(library);
    return Status::error(StatusCode::NotFound,
                         fmt::format("nvJitLink: '{}' lacks the entry points "
                                     "of nvJitLink 12 or 13",
                                     openedPath));
  }

  NvJitLink result;
  result.functions = functions.release();
  result.versionText = "nvJitLink";
  if (auto version = reinterpret_cast<ResultCode (*)(unsigned *, unsigned *)>(
          dlsym(library, "nvJitLinkVersion"))) {
    unsigned major = 0, minor = 0;
    if (version(&major, &minor) == 0)
      result.versionText = fmt::format("nvJitLink {}.{}", major, minor);
  }
  return &opened.emplace(path, std::move(result)).first->second;
}

/// One log of the library: its size, then its text up to the first NUL.
template <typename SizeFunction, typename TextFunction>
static std::string fetchLog(Handle handle, SizeFunction size,
                            TextFunction text) {
  size_t bytes = 0;
  if (size(handle, &bytes) != 0 || bytes == 0)
    return {};
  std::string log(bytes + 1, '\0');
  if (text(handle, log.data()) != 0)
    return {};
  log.resize(log.find('\0'));
  return log;
}

Result<NvJitLink::Output> NvJitLink::link(std::string_view ptx,
                                          const std::string &chip,
                                          const std::string &name) const {
  std::string arch = "-arch=" + chip;
  const char *options[] = {arch.c_str(), "-verbose"};
  Handle handle = nullptr;
  Output output;

  const char *step = "nvJitLinkCreate";
  ResultCode code = functions->create(&handle, std::size(options), options);
  if (code == 0) {
    step = "nvJitLinkAddData";
    // The compiler inside expects text that ends in a NUL.
    std::string text(ptx);
    code = functions->addData(handle, inputPTX, text.c_str(), text.size() + 1,
                              name.c_str());
  }
  if (code == 0) {
    step = "nvJitLinkComplete";
    code = functions->complete(handle);
  }
  if (handle)
    output.log =
        fetchLog(handle, functions->errorLogSize, functions->errorLog) +
        fetchLog(handle, functions->infoLogSize, functions->infoLog);
  size_t bytes = 0;
  if (code == 0) {
    step = "nvJitLinkGetLinkedCubinSize";
    code = functions->cubinSize(handle, &bytes);
  }
  if (code == 0) {
    step = "nvJitLinkGetLinkedCubin";
    output.cubin.resize(bytes);
    code = functions->cubin(handle, output.cubin.data());
  }
  if (handle)
    functions->destroy(&handle);
  if (code != 0)
    return Status::error(StatusCode::AssembleFailed,
                         fmt::format("{}: {}", step, resultName(code)),
                         "assemble", std::move(output.log));
  return output;
}

} // namespace replayjit::internal
