//===- DeviceApi.cpp - Devices of the C API -------------------------------===//

#include "runtime/capi/Handles.h"
#include "runtime/capi/Structs.h"

using namespace replayjit::internal;
using namespace replayjit::internal::capi;

static replayjit_error_t *handOut(Result<std::unique_ptr<Device>> created,
                                  replayjit_device_t **device) {
  if (!created)
    return toError(created.status());
  auto handle = std::make_unique<replayjit_device_t>();
  handle->device = std::move(*created);
  handle->description = handle->device->description();
  handle->chip = handle->device->target().chip;
  *device = handle.release();
  return nullptr;
}

replayjit_error_t *
replayjit_device_create_cuda(int32_t ordinal, replayjit_device_t **device) try {
  if (Status status = need(device, "device"); !status)
    return toError(status);
  return handOut(createCudaDevice(ordinal), device);
} catch (...) {
  return caught();
}

replayjit_error_t *
replayjit_device_create_cuda_current(replayjit_device_t **device) try {
  if (Status status = need(device, "device"); !status)
    return toError(status);
  return handOut(createCudaDeviceForCurrentContext(), device);
} catch (...) {
  return caught();
}

replayjit_error_t *
replayjit_device_create_emulation(const char *chip,
                                  replayjit_device_t **device) try {
  if (Status status = need(device, "device"); !status)
    return toError(status);
  if (Status status = need(chip, "chip"); !status)
    return toError(status);
  Result<Target> target = Target::parse(chip);
  if (!target)
    return toError(target.status());
  return handOut(createEmulationDevice(std::move(*target)), device);
} catch (...) {
  return caught();
}

void replayjit_device_retain(replayjit_device_t *device) { retain(device); }
void replayjit_device_release(replayjit_device_t *device) { release(device); }

void replayjit_device_info_init(replayjit_device_info_t *info,
                                size_t struct_size) {
  writeStruct(info, struct_size, replayjit_device_info_t{});
}

replayjit_error_t *replayjit_device_info(const replayjit_device_t *device,
                                         replayjit_device_info_t *info) try {
  if (Status status = need(device, "device"); !status)
    return toError(status);
  replayjit_device_info_t whole = {};
  whole.is_emulation = device->device->isEmulation();
  whole.multiprocessors = device->device->multiprocessors();
  whole.capability = device->device->target().capability;
  whole.description = device->description.c_str();
  whole.chip = device->chip.c_str();
  return toError(fillIn(info, whole, "info"));
} catch (...) {
  return caught();
}

replayjit_error_t *replayjit_device_allocate(replayjit_device_t *device,
                                             size_t bytes, const char *name,
                                             uint64_t *address) try {
  for (auto [pointer, what] :
       {std::pair<const void *, const char *>(device, "device"),
        {name, "name"},
        {address, "address"}})
    if (Status status = need(pointer, what); !status)
      return toError(status);
  Result<uint64_t> allocated = device->device->allocate(bytes, name);
  if (!allocated)
    return toError(allocated.status());
  *address = *allocated;
  return nullptr;
} catch (...) {
  return caught();
}

replayjit_error_t *replayjit_device_free(replayjit_device_t *device,
                                         uint64_t address) try {
  if (Status status = need(device, "device"); !status)
    return toError(status);
  return toError(device->device->free(address));
} catch (...) {
  return caught();
}

replayjit_error_t *replayjit_device_copy_to(replayjit_device_t *device,
                                            uint64_t dst, const void *src,
                                            size_t bytes) try {
  if (Status status = need(device, "device"); !status)
    return toError(status);
  if (Status status = need(src, "src"); bytes && !status)
    return toError(status);
  return toError(device->device->copyToDevice(dst, src, bytes));
} catch (...) {
  return caught();
}

replayjit_error_t *replayjit_device_copy_from(replayjit_device_t *device,
                                              void *dst, uint64_t src,
                                              size_t bytes) try {
  if (Status status = need(device, "device"); !status)
    return toError(status);
  if (Status status = need(dst, "dst"); bytes && !status)
    return toError(status);
  return toError(device->device->copyFromDevice(dst, src, bytes));
} catch (...) {
  return caught();
}

replayjit_error_t *replayjit_device_allocate_mapped(replayjit_device_t *device,
                                                    size_t bytes,
                                                    const char *name,
                                                    void **host,
                                                    uint64_t *address) try {
  for (auto [pointer, what] :
       {std::pair<const void *, const char *>(device, "device"),
        {name, "name"},
        {host, "host"},
        {address, "address"}})
    if (Status status = need(pointer, what); !status)
      return toError(status);
  Result<MappedMemory> memory = device->device->allocateMapped(bytes, name);
  if (!memory)
    return toError(memory.status());
  *host = memory->host;
  *address = memory->device;
  return nullptr;
} catch (...) {
  return caught();
}

replayjit_error_t *replayjit_device_free_mapped(replayjit_device_t *device,
                                                void *host,
                                                uint64_t address) try {
  if (Status status = need(device, "device"); !status)
    return toError(status);
  return toError(device->device->freeMapped({host, address}));
} catch (...) {
  return caught();
}

void *replayjit_device_stream(const replayjit_device_t *device) {
  return device ? device->device->stream() : nullptr;
}

replayjit_error_t *
replayjit_device_is_capturing(const replayjit_device_t *device, void *stream,
                              int32_t *is_capturing) try {
  for (auto [pointer, name] :
       {std::pair<const void *, const char *>(device, "device"),
        {is_capturing, "is_capturing"}})
    if (Status status = need(pointer, name); !status)
      return toError(status);
  Result<bool> answer = device->device->isCapturing(stream);
  if (!answer)
    return toError(answer.status());
  *is_capturing = *answer;
  return nullptr;
} catch (...) {
  return caught();
}

replayjit_error_t *replayjit_device_synchronize(replayjit_device_t *device,
                                                void *stream) try {
  if (Status status = need(device, "device"); !status)
    return toError(status);
  return toError(device->device->synchronizeOn(stream));
} catch (...) {
  return caught();
}
