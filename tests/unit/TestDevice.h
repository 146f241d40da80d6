//===- TestDevice.h - The device of the tests tagged [device] ---*- C++ -*-===//
//
// The environment variable REPLAYJIT_TEST_DEVICE names it: `cpu`, or no value,
// is the host emulation of sm_90a; `gpu` is CUDA device 0, for which kernels
// are compiled here and assembled by the driver. Another value, or a GPU that
// is not there, fails the test: no device stands in for another.
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_TESTS_UNIT_TESTDEVICE_H
#define REPLAYJIT_TESTS_UNIT_TESTDEVICE_H

#include "compiler/Compiler.h"
#include "runtime/Device.h"
#include "tests/unit/DecodeLaunch.h"

#include <map>
#include <memory>

namespace replayjit::internal::test {

/// The device, the same one for all tests of the process.
Device &testDevice();

/// A kernel compiled for the test device and loaded there; the test fails if it
/// cannot be.
class TestKernel {
public:
  explicit TestKernel(const Compiler::Builder &build);
  TestKernel(const DecodeSpec &spec, const DecodeTuning &tuning);
  /// With the tuning that is chosen for `rows` rows.
  explicit TestKernel(const DecodeSpec &spec, int rows = 1);

  /// Launches and waits.
  Status launch(uint32_t blocks, const void *params, size_t bytes);
  /// The blocks of all rows.
  Status launch(const DecodeArgs &args);
  /// One step on a copy of the launch's memory, which comes back.
  void step(Launch &launch);

private:
  std::unique_ptr<LoadedKernel> loaded;
  uint32_t blocksPerRow = 0;
};

/// Copies of the tensors of a launch on the test device, and its error word.
class DeviceCopy {
public:
  explicit DeviceCopy(Launch &launch);
  ~DeviceCopy();
  DeviceCopy(const DeviceCopy &) = delete;

  DecodeArgs args; ///< The launch's, with addresses on the device.
  /// Copies all back.
  void fetch();

private:
  Launch &launch;
  std::map<uint64_t, uint64_t> copies; ///< Host address to device address.

  void upload(const void *host, size_t bytes);
  void download(void *host, size_t bytes);
};

/// Checks the first `size` elements of `rows` rows: a finite one of `y` may
/// differ by `bound` of the row's largest, another one not at all.
void checkNear(const HostTensor &x, const HostTensor &y, int rows, int64_t size,
               double bound);

} // namespace replayjit::internal::test

#endif
