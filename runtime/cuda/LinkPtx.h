//===- LinkPtx.h - The driver's own assembler -------------------*- C++ -*-===//
//
// PTX to cubin with nothing but the driver, for machines without a toolkit.
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_RUNTIME_CUDA_LINKPTX_H
#define REPLAYJIT_RUNTIME_CUDA_LINKPTX_H

#include "runtime/cuda/DriverApi.h"

#include <string>
#include <vector>

namespace replayjit::internal::cuda {

struct LinkedCubin {
  std::vector<char> cubin;
  std::string assembler; ///< "cuLink driver 13.0"
  std::string log;
};

/// Assembles `ptx` for the device of the current context. `name` appears in
/// messages. AssembleFailed, with the driver's log, if it is rejected.
Result<LinkedCubin> linkPtx(const DriverApi &api, const std::string &ptx,
                            const std::string &name);

} // namespace replayjit::internal::cuda

#endif
