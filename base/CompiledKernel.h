//===- CompiledKernel.h - What the compiler hands out -----------*- C++ -*-===//
//
// Plain values only: they cross into the runtime and into kernel.json.
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_BASE_COMPILEDKERNEL_H
#define REPLAYJIT_BASE_COMPILEDKERNEL_H

#include "base/Target.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace replayjit::internal {

namespace host {
class HostProgram; // compiler/Host/HostProgram.h
}

/// One kernel parameter. Parameters lie at their natural alignment, in order,
/// so a C struct with the same fields is the parameter buffer.
struct KernelParam {
  /// Bytes: of any other type; only kernels made elsewhere have such.
  enum class Kind { Pointer, I64, I32, F32, Bytes };
  std::string name;
  Kind kind = Kind::Pointer;
  uint32_t offset = 0; ///< Bytes from the start of the parameter buffer.
  uint32_t size = 0;   ///< Of Kind::Bytes; the others' follows from the kind.

  uint32_t bytes() const {
    switch (kind) {
    case Kind::Pointer:
    case Kind::I64:
      return 8;
    case Kind::I32:
    case Kind::F32:
      return 4;
    case Kind::Bytes:
      break;
    }
    return size;
  }
};

/// Argument order and types.
struct KernelSignature {
  std::vector<KernelParam> params;
  uint32_t bytes = 0; ///< Size of the parameter buffer, padding included.
};

/// The blocks of a launch. A number alone is a grid of one dimension.
struct Grid {
  uint32_t x = 0, y = 1, z = 1;
  constexpr Grid(uint32_t x = 0, uint32_t y = 1, uint32_t z = 1)
      : x(x), y(y), z(z) {}
  bool isEmpty() const { return x == 0 || y == 0 || z == 0; }
  bool operator==(const Grid &) const = default;
};

/// How a kernel is launched: `rows` times blocksPerRow blocks, `rows` being the
/// batch (times the layers of a materialize launch). What the grid looks like
/// is a matter of the ABI (runtime/DecodeLaunch.h).
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

} // namespace replayjit::internal

#endif
