//===- KernelBuilder.h - A kernel's module and arguments --------*- C++ -*-===//
#ifndef REPLAYJIT_KERNELS_KERNELBUILDER_H
#define REPLAYJIT_KERNELS_KERNELBUILDER_H

#include "base/DataType.h"
#include "dialect/TileBuilder.h"
#include "kernels/Parameters.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/StringMap.h"

#include <string>
#include <vector>

namespace replayjit::internal {

/// A kernel argument: a pointer to `type`, or a scalar of it.
struct ArgumentSpec {
  std::string name;
  DataType type = DataType::F32;
  bool isPointer = true;
  bool isReadOnly = false; ///< Nothing writes it, and nothing else aliases it.
  /// What the kernel has written through another argument it does not read
  /// through this one. So it is of all, though the cursor may stand in for an
  /// absent force_flush, and finalState for state.
  bool isNoAlias = true;
  bool isDependent = false; ///< The kernel before may write it until the wait.
};

/// What a kernel of `spec` declares. Addresses are numbers where most may be 0.
std::vector<ArgumentSpec> declarations(const DecodeSpec &spec,
                                       bool addressesAreNumbers = false);

/// Builds one kernel: its module, its arguments and its tuning; TileBuilder has
/// the words of its program.
class KernelBuilder : public TileBuilder {
public:
  KernelBuilder(mlir::MLIRContext &context, const std::string &name,
                const std::vector<ArgumentSpec> &arguments, int numWarps,
                int blocksPerRow);

  /// The finished module; the builder is empty afterwards.
  mlir::OwningOpRef<mlir::ModuleOp> take();

  /// The argument of this name, or what stands in its place.
  mlir::Value argument(const std::string &name);
  /// Puts a constant in the place of an argument that the kernel lacks.
  void replaceArgument(const std::string &name, mlir::Value value) {
    replacements[name] = value;
  }

  /// What a thread may hold, and which lanes share a row: replay.kernel's
  /// attributes say what each means. The limits were measured on an H200 with
  /// the decode kernels (tests/perf/README.md).
  struct ThreadTuning {
    int maxRegisters = 0; ///< 0: no cap.
    int lanesPerRow = 8;
    int reuseRegisters = 128;
    int hoistRegisters = 176;
    int fenceRegisters = 16; ///< Who loads less waits for one trip either way.
    int stageBytes = 0;      ///< 0: nothing comes through shared memory.
  };
  void tune(const ThreadTuning &tuning);

  /// The kernel waits here for the one before it, and lets the next one start:
  /// before the wait (early) or after it (late). No wait for None.
  void awaitPredecessor(ProgrammaticLaunch launch);
  /// Names the locations of what is built next; reports of the emulation repeat
  /// the name.
  void describe(const std::string &what);

  mlir::Type elementType(DataType type);
  /// A scalar rounded to a type and back.
  mlir::Value roundedTo(mlir::Value a, DataType type);

private:
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::vector<ArgumentSpec> arguments;
  llvm::StringMap<mlir::Value> replacements;
  replay::KernelOp kernel;
};

} // namespace replayjit::internal

#endif
