//===- KernelHandle.h - A kernel ready to launch ----------------*- C++ -*-===//
#ifndef REPLAYJIT_RUNTIME_KERNELHANDLE_H
#define REPLAYJIT_RUNTIME_KERNELHANDLE_H

#include "kernels/LaunchArgs.h"
#include "runtime/Device.h"

#include <memory>
#include <string>

namespace replayjit::internal {

/// Where the code of a kernel came from when it was prepared.
enum class KernelOrigin {
  Compiled, ///< This process compiled it.
  Cached,   ///< The disk cache had it, or another process put it there.
};

/// What is known of a prepared kernel.
struct KernelInfo {
  std::string name; ///< The entry point's symbol.
  DecodeSpec spec;
  DecodeTuning tuning;
  Target target;
  LaunchConfig launch;
  /// As the device reports them; spills as the assembler did. -1: not known.
  ResourceUsage resources;
  std::string assembler; ///< Empty under emulation.
  KernelOrigin origin = KernelOrigin::Compiled;
};

/// Whether a launch looks at its arguments first.
enum class ArgsCheck : uint8_t {
  None = 0, ///< The caller knows that they are legal.
  Full = 1, ///< validateArgs; some hundred nanoseconds.
  /// Full, and of every pointer in the arguments that the device may use its
  /// memory (Device::checkAddress). It allocates, and costs some driver calls a
  /// pointer, some microseconds in all: for debugging.
  Memory = 3,
  /// Full, and that no two live rows meet in a slot that one of them writes
  /// (see RowCheck.h). It waits for the stream, which is not under capture: for
  /// debugging. Emulation does it at every launch but those of None.
  Rows = 5,
};
constexpr ArgsCheck operator|(ArgsCheck x, ArgsCheck y) {
  return ArgsCheck(uint8_t(x) | uint8_t(y));
}
constexpr bool includes(ArgsCheck check, ArgsCheck part) {
  return (uint8_t(check) & uint8_t(part)) == uint8_t(part);
}

/// Stands for a loaded kernel; copies are cheap and equal. The last copy
/// unloads it, so one is kept as long as a captured graph has a launch of it.
/// Copies may outlive the Jit they came from, and keep its device if that was
/// shared (see Jit::create). They may also be dropped after the context of the
/// device. Any thread may launch, as far as the device allows (see Device).
class KernelHandle {
public:
  const KernelInfo &info() const { return kernel->info; }

  /// Launches the rows of `args`, the struct that the family of the kernel
  /// takes (FamilyDescriptor::args), on the device's own stream. No rows are a
  /// no-op. Nothing is locked, allocated, read or written unless it fails, but
  /// see ArgsCheck::Memory.
  Status launch(LaunchArgs args, ArgsCheck check = ArgsCheck::Full) const;

  /// The same on the caller's stream (see Device::launchOn), which may be under
  /// capture. LaunchOrder::Programmatic is InvalidArgument for a kernel whose
  /// spec does not have it.
  Status launchOn(void *stream, LaunchArgs args,
                  ArgsCheck check = ArgsCheck::Full,
                  LaunchOrder order = LaunchOrder::Serial) const;

  /// Whether both stand for the same loaded kernel.
  bool operator==(const KernelHandle &) const = default;

  /// What Jit makes a handle from.
  struct Prepared {
    KernelInfo info;
    LaunchRules rules; ///< Of info.spec.
    std::shared_ptr<Device> device;
    std::unique_ptr<LoadedKernel> loaded; ///< Freed before its device.
  };
  explicit KernelHandle(std::shared_ptr<const Prepared> kernel)
      : kernel(std::move(kernel)) {}

private:
  Status checkMemory(const std::vector<NamedAddress> &pointers) const;
  Status checkArgs(void *stream, LaunchArgs args, ArgsCheck check) const;
  template <typename Launch>
  Status launchWith(void *stream, LaunchArgs args, ArgsCheck check,
                    Launch launch) const;

  std::shared_ptr<const Prepared> kernel;
};

} // namespace replayjit::internal

#endif
