//===- HostProgram.h - A thread program compiled for the CPU ----*- C++ -*-===//
#ifndef REPLAYJIT_COMPILER_HOST_HOSTPROGRAM_H
#define REPLAYJIT_COMPILER_HOST_HOSTPROGRAM_H

#include <cstdint>
#include <string>
#include <vector>

namespace replayjit::internal::host {

/// One thread's program as a CPU function. It runs inside `runGrid`
/// (Emulator.h), which gives it its lane and block through the emulator calls.
class HostProgram {
public:
  virtual ~HostProgram() = default;

  using Entry = void (*)(const void *params);
  Entry entry = nullptr; ///< Runs one thread; `params` is the parameter buffer.

  /// What an emulator call's `site` number stands for, e.g. "store of state".
  std::vector<std::string> sites;
};

} // namespace replayjit::internal::host

#endif
