//===- CudaKernel.cpp - A module loaded into a context --------------------===//

#include "runtime/cuda/CudaKernel.h"
#include "runtime/cuda/CudaError.h"
#include "runtime/cuda/LinkPtx.h"

#include <fmt/format.h>

namespace replayjit::internal::cuda {

/// A block gets this much shared memory without asking.
static constexpr int defaultSharedBytes = 48 * 1024;

CudaKernel::CudaKernel(CudaContext::Ptr shared, const CompiledKernel &kernel)
    : context(std::move(shared)), api(context->api()), symbol(kernel.name),
      config(kernel.launch), bufferBytes(kernel.signature.bytes) {}

CudaKernel::~CudaKernel() {
  if (!module || !context->isAlive())
    return;
  ContextScope scope(*context);
  RelaxedCaptureScope relaxed(api);
  if (scope.status())
    (void)api.cuModuleUnload(module);
}

Result<std::unique_ptr<CudaKernel>>
CudaKernel::load(CudaContext::Ptr context, const CompiledKernel &kernel,
                 int maxSharedBytes) {
  std::unique_ptr<CudaKernel> loaded(
      new CudaKernel(std::move(context), kernel));
  Status status = loaded->loadModule(kernel);
  if (status)
    status = loaded->readResources();
  if (status)
    status = loaded->checkParameters(kernel.signature);
  if (status)
    status = loaded->prepareBlock(maxSharedBytes);
  if (!status)
    return inContext(std::move(status),
                     fmt::format("load kernel '{}' for {}", kernel.name,
                                 kernel.target.chip));
  return loaded;
}

Status CudaKernel::loadModule(const CompiledKernel &kernel) {
  const char *image = kernel.cubin.data();
  LinkedCubin linked;
  if (kernel.cubin.empty()) {
    if (kernel.ptx.empty())
      return Status::invalid("it has neither a cubin nor PTX; compile it up to "
                             "one of the two");
    Result<LinkedCubin> result = linkPtx(api, kernel.ptx, kernel.name);
    if (!result)
      return result.status();
    linked = std::move(*result);
    image = linked.cubin.data();
  }
  CUresult result = api.cuModuleLoadDataEx(&module, image, 0, nullptr, nullptr);
  if (result == CUDA_ERROR_NO_BINARY_FOR_GPU)
    return Status::error(
        StatusCode::Unsupported,
        fmt::format("{}; its cubin is for {}, and this GPU runs no such code: "
                    "prepare it for the target of the device",
                    toStatus(api, result, "cuModuleLoadDataEx").message,
                    kernel.target.chip));
  if (Status status = toStatus(api, result, "cuModuleLoadDataEx"); !status)
    return status;
  REPLAYJIT_CU_RETURN(api, cuModuleGetFunction, &handle, module,
                      symbol.c_str());
  return Status::ok();
}

Status CudaKernel::readResources() {
  REPLAYJIT_CU_RETURN(api, cuFuncGetAttribute, &usage.registers,
                      CU_FUNC_ATTRIBUTE_NUM_REGS, handle);
  REPLAYJIT_CU_RETURN(api, cuFuncGetAttribute, &usage.stackBytes,
                      CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, handle);
  REPLAYJIT_CU_RETURN(api, cuFuncGetAttribute, &usage.staticSharedBytes,
                      CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, handle);
  return Status::ok();
}

/// Finds the end of the last parameter, and refuses a kernel whose parameters
/// are not where the signature says: its arguments would be garbage.
Status CudaKernel::checkParameters(const KernelSignature &signature) {
  const std::vector<KernelParam> &params = signature.params;
  if (!params.empty())
    usedBytes = params.back().offset + params.back().bytes();
  if (usedBytes > bufferBytes)
    return Status::invalid(fmt::format(
        "its signature has parameters up to byte {} in a buffer of {} bytes",
        usedBytes, bufferBytes));
  if (!api.cuFuncGetParamInfo)
    return Status::ok(); // A driver before 12.4 cannot tell.

  struct Place {
    size_t offset, size;
  };
  std::vector<Place> code;
  for (Place place;; code.push_back(place)) {
    CUresult result =
        api.cuFuncGetParamInfo(handle, code.size(), &place.offset, &place.size);
    if (result == CUDA_ERROR_INVALID_VALUE) // There is no such parameter.
      break;
    if (Status status = toStatus(api, result, "cuFuncGetParamInfo"); !status)
      return status;
  }
  // The whole signature may also be one by-value struct, padding included.
  if (code.size() == 1 && params.size() > 1 && code[0].size == bufferBytes) {
    usedBytes = bufferBytes;
    return Status::ok();
  }
  if (code.size() != params.size())
    return Status::invalid(
        fmt::format("its signature has {} parameters, its code has {}",
                    params.size(), code.size()));
  for (size_t i = 0; i < code.size(); ++i)
    if (code[i].offset != params[i].offset || code[i].size != params[i].bytes())
      return Status::invalid(fmt::format(
          "parameter {} ('{}') is {} bytes at byte {} in its signature and {} "
          "bytes at byte {} in its code",
          i, params[i].name, params[i].bytes(), params[i].offset, code[i].size,
          code[i].offset));
  return Status::ok();
}

/// Checks the block against the device and raises the shared memory limit.
Status CudaKernel::prepareBlock(int maxSharedBytes) {
  int maxThreads = 0;
  REPLAYJIT_CU_RETURN(api, cuFuncGetAttribute, &maxThreads,
                      CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, handle);
  if (config.threads == 0 || config.threads > static_cast<unsigned>(maxThreads))
    return Status::invalid(
        fmt::format("it asks for {} threads per block; with {} registers per "
                    "thread and its bounds it can have 1 to {}",
                    config.threads, usage.registers, maxThreads));

  int64_t shared =
      static_cast<int64_t>(config.sharedBytes) + usage.staticSharedBytes;
  if (shared > maxSharedBytes)
    return Status::error(
        StatusCode::Unsupported,
        fmt::format("a block needs {} bytes of shared memory ({} dynamic, {} "
                    "static); the device has {}",
                    shared, config.sharedBytes, usage.staticSharedBytes,
                    maxSharedBytes));
  if (shared > defaultSharedBytes)
    REPLAYJIT_CU_RETURN(api, cuFuncSetAttribute, handle,
                        CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                        static_cast<int>(config.sharedBytes));
  return Status::ok();
}

} // namespace replayjit::internal::cuda
