//===- FillDevice.h - A GPU that is not there --------------------*- C++
//-*-===//
#ifndef REPLAYJIT_TESTS_ENGINE_FILLDEVICE_H
#define REPLAYJIT_TESTS_ENGINE_FILLDEVICE_H

#include "runtime/Device.h"

namespace replayjit::internal::engine {

/// Host memory, and kernels that are compiled for `target` and do nothing when
/// launched. An engine that is set up on it fills the disk cache with what it
/// will ask for on such a GPU of `multiprocessors` SMs.
std::unique_ptr<Device> createFillDevice(Target target, int multiprocessors);

} // namespace replayjit::internal::engine

#endif
