//===- KernelHandle.h - A kernel ready to launch ----------------*- C++ -*-===//
#ifndef REPLAYJIT_RUNTIME_KERNELHANDLE_H
#define REPLAYJIT_RUNTIME_KERNELHANDLE_H

#include "kernels/Plan/PlanArgs.h"
#include "runtime/Device.h"

#include <memory>
#include <string>

namespace replayjit {

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
enum class ArgsCheck {
  Full, ///< validateArgs; some tens of nanoseconds.
  None, ///< The caller knows that they are legal.
};

/// Stands for a loaded kernel; copies are cheap and equal. The last copy
/// unloads it. Copies may outlive the Jit they came from, but not its device.
/// Any thread may launch, as far as the device allows (see Device).
class KernelHandle {
public:
  const KernelInfo &info() const { return kernel->info; }

  /// Launches args.batch rows (times the layers of a materialize launch) on
  /// the device's own stream. A batch of 0 is a no-op. Nothing is locked,
  /// allocated, read or written unless it fails.
  Status launch(const DecodeArgs &args,
                ArgsCheck check = ArgsCheck::Full) const;
  Status launch(const MaterializeArgs &args,
                ArgsCheck check = ArgsCheck::Full) const;
  Status launch(const PlanArgs &args, ArgsCheck check = ArgsCheck::Full) const;

  /// The same on the caller's stream (see Device::launchOn), which may be under
  /// capture.
  Status launchOn(void *stream, const DecodeArgs &args,
                  ArgsCheck check = ArgsCheck::Full) const;
  Status launchOn(void *stream, const MaterializeArgs &args,
                  ArgsCheck check = ArgsCheck::Full) const;
  Status launchOn(void *stream, const PlanArgs &args,
                  ArgsCheck check = ArgsCheck::Full) const;

  /// Whether both stand for the same loaded kernel.
  bool operator==(const KernelHandle &) const = default;

  /// What Jit makes a handle from.
  struct Prepared {
    KernelInfo info;
    Device *device = nullptr;
    std::unique_ptr<LoadedKernel> loaded;
  };
  explicit KernelHandle(std::shared_ptr<const Prepared> kernel)
      : kernel(std::move(kernel)) {}

private:
  template <typename Args, typename Launch>
  Status launchWith(const Args &args, ArgsCheck check, Launch launch) const;

  std::shared_ptr<const Prepared> kernel;
};

} // namespace replayjit

#endif
