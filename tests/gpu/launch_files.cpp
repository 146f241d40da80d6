//===- launch_files.cpp - Any kernel, with tensors out of files -----------===//
//
// launch-files PATH/NAME X,Y,Z ARGUMENT...: loads the kernel of NAME.json and
// NAME.cubin and launches X by Y by Z blocks. An argument for each parameter:
//   @FILE   a pointer to the file's bytes in device memory; after the launch
//   the
//           file holds what is there then. The same name is the same memory.
//   null    a null pointer
//   NUMBER  of the parameter's type
// Needs nothing but a driver.
//
//===----------------------------------------------------------------------===//

#include "runtime/Device.h"
#include "runtime/aot/KernelFiles.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

using namespace replayjit::internal;

namespace {

class Launch {
public:
  explicit Launch(Device &device) : device(device) {}
  Status run(const std::string &base, const char *gridText,
             const std::vector<std::string> &arguments);

private:
  Status set(const KernelParam &param, const std::string &argument);
  Result<uint64_t> upload(const std::string &path);

  Device &device;
  struct Tensor {
    uint64_t address = 0;
    size_t bytes = 0;
  };
  std::map<std::string, Tensor> tensors; ///< By path.
  std::vector<char> params;
};

} // namespace

Result<uint64_t> Launch::upload(const std::string &path) {
  auto [place, isNew] = tensors.try_emplace(path);
  if (!isNew)
    return place->second.address;
  Result<std::string> bytes = readBytes(path, UINT64_MAX);
  if (!bytes)
    return bytes.status();
  Result<uint64_t> address = device.allocate(bytes->size(), path);
  if (!address)
    return address;
  place->second = {*address, bytes->size()};
  if (Status status =
          device.copyToDevice(*address, bytes->data(), bytes->size());
      !status)
    return status;
  return *address;
}

Status Launch::set(const KernelParam &param, const std::string &argument) {
  using Kind = KernelParam::Kind;
  auto write = [&](auto value) {
    std::memcpy(params.data() + param.offset, &value, sizeof value);
    return Status::ok();
  };
  switch (param.kind) {
  case Kind::Pointer: {
    if (argument == "null")
      return write(uint64_t(0));
    if (!argument.starts_with("@"))
      break;
    Result<uint64_t> address = upload(argument.substr(1));
    return address ? write(*address) : address.status();
  }
  case Kind::I64:
    return write(int64_t(std::atoll(argument.c_str())));
  case Kind::I32:
    return write(int32_t(std::atoi(argument.c_str())));
  case Kind::F32:
    return write(std::strtof(argument.c_str(), nullptr));
  case Kind::Bytes:
    if (param.size == sizeof(double))
      return write(std::strtod(argument.c_str(), nullptr));
    break;
  }
  return Status::invalid(param.name + ": '" + argument +
                         "' is not allowed; see the head of launch_files.cpp");
}

Status Launch::run(const std::string &base, const char *gridText,
                   const std::vector<std::string> &arguments) {
  Result<CompiledKernel> kernel = readKernelFiles(base);
  if (!kernel)
    return kernel.status();
  const auto &parameters = kernel->signature.params;
  if (parameters.size() != arguments.size())
    return Status::invalid("the kernel has " +
                           std::to_string(parameters.size()) + " parameters");
  Grid grid;
  if (std::sscanf(gridText, "%u,%u,%u", &grid.x, &grid.y, &grid.z) != 3)
    return Status::invalid("grid: it must be X,Y,Z");
  auto loaded = device.load(*kernel);
  if (!loaded)
    return loaded.status();
  params.resize(kernel->signature.bytes);
  for (size_t i = 0; i < parameters.size(); ++i)
    if (Status status = set(parameters[i], arguments[i]); !status)
      return status;
  Status status = device.launch(**loaded, grid, params.data(), params.size());
  if (status)
    status = device.synchronize();
  if (!status)
    return status;
  for (const auto &[path, tensor] : tensors) {
    std::string bytes(tensor.bytes, 0);
    if (status =
            device.copyFromDevice(bytes.data(), tensor.address, bytes.size());
        !status)
      return status;
    if (status = writeBytes(path, bytes); !status)
      return status;
  }
  return Status::ok();
}

int main(int argc, char **argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: launch-files PATH/NAME X,Y,Z ARGUMENT...\n");
    return 2;
  }
  auto device = createCudaDevice(0);
  Status status = device.status();
  if (device)
    status = Launch(**device).run(argv[1], argv[2], {argv + 3, argv + argc});
  if (!status)
    std::fprintf(stderr, "error: %s\n", status.message.c_str());
  return status ? 0 : 1;
}
