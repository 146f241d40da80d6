//===- CompiledKernel.h - What the compiler hands out -----------*- C++ -*-===//
//
// Plain values only: they cross into the runtime and into kernel.json.
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_COMPILER_COMPILEDKERNEL_H
#define REPLAYJIT_COMPILER_COMPILEDKERNEL_H

#include "compiler/Target.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace replayjit {

namespace host {
class HostProgram; // compiler/Host/HostProgram.h
}

/// One kernel parameter. Parameters lie at their natural alignment, in order,
/// so a C struct with the same fields is the parameter buffer.
struct KernelParam {
  enum class Kind { Pointer, I64, I32, F32 };
  std::string name;
  Kind kind = Kind::Pointer;
  uint32_t offset = 0; ///< Bytes from the start of the parameter buffer.
};

/// Argument order and types.
struct KernelSignature {
  std::vector<KernelParam> params;
  uint32_t bytes = 0; ///< Size of the parameter buffer, padding included.
};

/// How a kernel is launched: a one-dimensional grid of
/// rows * blocksPerRow blocks, `rows` being the batch (times the layers of a
/// materialize launch).
struct LaunchConfig {
  uint32_t blocksPerRow = 1;
  uint32_t threads = 32;
  uint32_t sharedBytes = 0; ///< Dynamic shared memory per block.
};

/// What the assembler reports; -1 where it said nothing.
struct ResourceUsage {
  int registers = -1;
  int spillStoreBytes = -1;
  int spillLoadBytes = -1;
  int stackBytes = -1;
  int staticSharedBytes = -1;
};

/// The time one stage took, in the order the stages ran.
struct StageTime {
  std::string stage;
  double milliseconds = 0;
};

/// A kernel ready to be loaded.
struct CompiledKernel {
  std::string name; ///< The entry point's symbol.
  Target target;
  KernelSignature signature;
  LaunchConfig launch;
  std::string ptx;
  std::vector<char> cubin;  ///< Empty if only PTX was asked for.
  std::string assembler;    ///< Which tool made the cubin, with its version.
  std::string assemblerLog; ///< What it printed.
  ResourceUsage resources;
  /// The same thread program for the CPU; null unless compiled for emulation.
  std::shared_ptr<host::HostProgram> hostProgram;
  std::vector<StageTime> stages;
};

} // namespace replayjit

#endif
