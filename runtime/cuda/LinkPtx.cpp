//===- LinkPtx.cpp - The driver's own assembler ---------------------------===//

#include "runtime/cuda/LinkPtx.h"
#include "runtime/cuda/CudaError.h"

#include <fmt/format.h>

#include <cstdint>
#include <cstring>
#include <iterator>

namespace replayjit::internal::cuda {

/// "8.8" of PTX that says ".version 8.8".
static std::string ptxVersion(const std::string &ptx) {
  const std::string key = ".version ";
  size_t at = ptx.find(key);
  if (at == std::string::npos)
    return "unknown";
  at += key.size();
  return ptx.substr(at, ptx.find_first_not_of("0123456789.", at) - at);
}

/// What can be done about `outcome`, if we know.
static std::string remedyFor(const DriverApi &api, CUresult outcome,
                             const std::string &ptx) {
  const char *others = "assemble with ptxas or nvJitLink instead "
                       "(REPLAYJIT_PTXAS, REPLAYJIT_NVJITLINK)";
  if (outcome == CUDA_ERROR_UNSUPPORTED_PTX_VERSION)
    return fmt::format("; this driver, of CUDA {}, is too old for PTX {}: "
                       "install a newer one, or {}",
                       api.version(), ptxVersion(ptx), others);
  if (outcome == CUDA_ERROR_JIT_COMPILER_NOT_FOUND)
    return fmt::format("; the driver's libnvidia-ptxjitcompiler.so is not "
                       "installed: install it, or {}",
                       others);
  return "";
}

Result<LinkedCubin> linkPtx(const DriverApi &api, const std::string &ptx,
                            const std::string &name) {
  // The buffers are zeroed, and their last byte is not given away: the text in
  // them always ends.
  std::vector<char> info(16384), errors(16384);
  auto asValue = [](uintptr_t value) {
    return reinterpret_cast<void *>(value);
  };
  CUjit_option options[] = {
      CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
      CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
      CU_JIT_LOG_VERBOSE};
  void *values[] = {info.data(), asValue(info.size() - 1), errors.data(),
                    asValue(errors.size() - 1), asValue(1)};

  struct Link {
    const DriverApi &api;
    CUlinkState state = nullptr;
    ~Link() {
      if (state)
        (void)api.cuLinkDestroy(state);
    }
  } link{api};
  void *cubin = nullptr;
  size_t cubinBytes = 0;
  const char *call = "cuLinkCreate";
  // The driver keeps the option arrays until cuLinkDestroy.
  CUresult outcome =
      api.cuLinkCreate(std::size(options), options, values, &link.state);
  if (outcome == CUDA_SUCCESS) {
    call = "cuLinkAddData";
    outcome = api.cuLinkAddData(link.state, CU_JIT_INPUT_PTX,
                                const_cast<char *>(ptx.c_str()), ptx.size() + 1,
                                name.c_str(), 0, nullptr, nullptr);
  }
  if (outcome == CUDA_SUCCESS) {
    call = "cuLinkComplete";
    outcome = api.cuLinkComplete(link.state, &cubin, &cubinBytes);
  }

  LinkedCubin result;
  if (outcome == CUDA_SUCCESS) {
    // The driver owns the cubin; it goes with the link.
    auto *bytes = static_cast<const char *>(cubin);
    result.cubin.assign(bytes, bytes + cubinBytes);
  }
  result.assembler = "cuLink driver " + api.version();
  result.log = fmt::format("{}{}", errors.data(), info.data());
  if (outcome != CUDA_SUCCESS)
    return Status::error(StatusCode::AssembleFailed,
                         fmt::format("{} by {}: {}{}", name, result.assembler,
                                     toStatus(api, outcome, call).message,
                                     remedyFor(api, outcome, ptx)),
                         "assemble", std::move(result.log));
  return result;
}

} // namespace replayjit::internal::cuda
