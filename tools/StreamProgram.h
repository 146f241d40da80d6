//===- StreamProgram.h - Kernels that only move bytes -----------*- C++ -*-===//
//
// What memory gives at most: tile programs that read, add up so that nothing
// read is left out, and write.
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_TOOLS_STREAMPROGRAM_H
#define REPLAYJIT_TOOLS_STREAMPROGRAM_H

#include "kernels/Decode/DecodeSpec.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <cstdint>
#include <optional>

namespace replayjit::internal {

/// The parameter buffer of buildRead and buildCopy.
struct StreamArgs {
  uint64_t src = 0; ///< fp32, a tile for each block.
  uint64_t dst = 0; ///< buildRead: a number for each row; buildCopy: as src.
};

/// Columns of a block's tile; its rows are a choice.
inline constexpr int streamColumns = 128;

/// Block i adds up the rows of tile i.
mlir::OwningOpRef<mlir::ModuleOp> buildRead(mlir::MLIRContext &context,
                                            int rows, int numWarps);
/// Block i copies tile i.
mlir::OwningOpRef<mlir::ModuleOp> buildCopy(mlir::MLIRContext &context,
                                            int rows, int numWarps);

/// Moves what a kernel of `spec`, of family packed or replay, moves of states,
/// rings and outputs, by the same arguments: it reads the slot, the cursor, the
/// state and the ring rows in use; writes a row of the output; and either
/// writes the state back with its signs changed (at the last ring row, and
/// without a ring) or appends ring rows. Rows and indices must be legal.
/// Outputs and appended rows are sums of what was read. Of a circular ring the
/// first rows count.
mlir::OwningOpRef<mlir::ModuleOp> buildOwnStream(mlir::MLIRContext &context,
                                                 const DecodeSpec &spec,
                                                 const DecodeTuning &tuning);

/// Bytes that it moves in a launch, the mean over all ring phases or at
/// `cursor`: states read and written back, ring rows read and appended,
/// outputs.
double bytesMoved(const DecodeSpec &spec, int batch,
                  std::optional<int> cursor = {});

} // namespace replayjit::internal

#endif
