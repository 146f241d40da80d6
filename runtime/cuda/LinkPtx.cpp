//===- LinkPtx.cpp - The driver's own assembler ---------------------------===//

#include "runtime/cuda/LinkPtx.h"
#include "runtime/cuda/CudaError.h"

#include <fmt/format.h>

#include <cstdint>
#include <cstring>
#include <iterator>

namespace replayjit::cuda {

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

  CUlinkState state = nullptr;
  void *cubin = nullptr;
  size_t cubinBytes = 0;
  // The driver keeps the option arrays until cuLinkDestroy.
  Status status = REPLAYJIT_CU(api, cuLinkCreate, std::size(options), options,
                               values, &state);
  if (status)
    status = REPLAYJIT_CU(api, cuLinkAddData, state, CU_JIT_INPUT_PTX,
                          const_cast<char *>(ptx.c_str()), ptx.size() + 1,
                          name.c_str(), 0, nullptr, nullptr);
  if (status)
    status = REPLAYJIT_CU(api, cuLinkComplete, state, &cubin, &cubinBytes);

  LinkedCubin result;
  if (status) {
    // The driver owns the cubin; it goes with the link state.
    auto *bytes = static_cast<const char *>(cubin);
    result.cubin.assign(bytes, bytes + cubinBytes);
  }
  if (state)
    (void)api.cuLinkDestroy(state);
  result.assembler = "cuLink driver " + api.version();
  result.log = fmt::format("{}{}", errors.data(), info.data());
  if (!status)
    return Status::error(StatusCode::AssembleFailed,
                         fmt::format("{} by {}: {}", name, result.assembler,
                                     status.message),
                         "assemble", std::move(result.log));
  return result;
}

} // namespace replayjit::cuda
