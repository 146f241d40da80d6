//===- Device.cpp - What a device need not have ---------------------------===//

#include "runtime/Device.h"

#include <fmt/format.h>

namespace replayjit {

Status Device::lacks(std::string_view what) const {
  return Status::error(StatusCode::Unsupported,
                       fmt::format("{}: there is no {}", description(), what));
}

Result<MappedMemory> Device::allocateMapped(size_t, std::string) {
  return lacks("mapped memory");
}

Status Device::freeMapped(const MappedMemory &) {
  return lacks("mapped memory");
}

Status Device::assemble(CompiledKernel &) const { return lacks("assembler"); }

Status Device::launchOn(void *, LoadedKernel &, Grid, const void *, size_t,
                        LaunchOrder) {
  return lacks("stream");
}

Status Device::fill32On(void *, uint64_t, uint32_t, size_t) {
  return lacks("stream");
}

Status Device::copyOn(void *, uint64_t, uint64_t, size_t) {
  return lacks("stream");
}

Status Device::copyToDeviceOn(void *, uint64_t, const void *, size_t) {
  return lacks("stream");
}

Status Device::copyFromDeviceOn(void *, void *, uint64_t, size_t) {
  return lacks("stream");
}

Status Device::synchronizeOn(void *) { return lacks("stream"); }

} // namespace replayjit
