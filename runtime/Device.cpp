//===- Device.cpp - What a device need not have ---------------------------===//

#include "runtime/Device.h"

#include <fmt/format.h>

namespace replayjit::internal {

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

Status Device::checkNoCapture(void *stream, std::string_view what) const {
  Result<bool> isUnderCapture = isCapturing(stream);
  if (!isUnderCapture)
    return isUnderCapture.status();
  return *isUnderCapture ? underCapture(what) : Status::ok();
}

Status Device::underCapture(std::string_view what) {
  return Status::invalid(fmt::format(
      "{}: not possible while launches are captured; do it before", what));
}

Status Device::checkAddress(uint64_t) const {
  return lacks("knowledge of what memory it may use");
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

} // namespace replayjit::internal
