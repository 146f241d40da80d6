//===- HostSymbols.h - What compiled thread programs may call ---*- C++ -*-===//
#ifndef REPLAYJIT_COMPILER_HOST_HOSTSYMBOLS_H
#define REPLAYJIT_COMPILER_HOST_HOSTSYMBOLS_H

#include <span>

namespace replayjit::internal::host {

struct HostSymbol {
  const char *name;
  void *address;
};

/// The emulator's calls and shared memory, and the C and compiler-runtime
/// functions that code generation for the CPU may need. A fixed list: nothing
/// is looked up in the process, whose libraries are not ours.
std::span<const HostSymbol> hostSymbols();

} // namespace replayjit::internal::host

#endif
