//===- LinearLayout.h - Which thread holds which element --------*- C++ -*-===//
//
// The map (register, lane, warp) -> element of a tile, as one move per bit of
// each number (see #replay.layout), and what follows from it: slices, the
// result of a reduction, the layouts that loads and matrix units want. The
// bit-linear formalism is that of Triton's linear layouts; here every move is
// zero or one power of two in one dimension, so coordinates add without carry.
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_DIALECT_LINEARLAYOUT_H
#define REPLAYJIT_DIALECT_LINEARLAYOUT_H

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/SmallVector.h"

#include <optional>

namespace replayjit::internal {

namespace replay {
class LayoutAttr;
} // namespace replay

/// What one bit does: adds `move` to coordinate `dim`. move = 0 replicates.
struct Basis {
  int dim = 0;
  int32_t move = 0;
  bool operator==(const Basis &other) const {
    return move == other.move && (move == 0 || dim == other.dim);
  }
};

class LinearLayout {
public:
  llvm::SmallVector<int64_t> shape;
  llvm::SmallVector<Basis> registers; ///< Never replicates.
  llvm::SmallVector<Basis> lanes;     ///< Always 5.
  llvm::SmallVector<Basis> warps;

  bool operator==(const LinearLayout &other) const {
    return shape == other.shape && registers == other.registers &&
           lanes == other.lanes && warps == other.warps;
  }
  bool operator!=(const LinearLayout &other) const { return !(*this == other); }

  //===--- Conversions to and from the IR ---------------------------------===//

  /// The layout of a tile type; none if it has no layout yet.
  static std::optional<LinearLayout> of(mlir::Type type);
  replay::LayoutAttr toAttr(mlir::MLIRContext *context) const;
  mlir::RankedTensorType applyTo(mlir::RankedTensorType type) const;

  //===--- Constructors --------------------------------------------------===//

  /// For wide accesses along `contiguousDim`: a thread holds `vector`
  /// neighbours, `lanesPerRow` lanes share a row (fewer if the row is short),
  /// the other lanes take rows, then registers take the rest of the row and the
  /// low row bits, and warps the high ones, or parts of rows where these are
  /// too few. No element is in two threads if there are `vector` for each.
  static LinearLayout coalesced(llvm::ArrayRef<int64_t> shape,
                                int contiguousDim, int vector, int lanesPerRow,
                                int numWarps);
  /// Every thread holds the whole tile in registers.
  static LinearLayout inRegisters(llvm::ArrayRef<int64_t> shape, int numWarps);

  /// Fragments of mma.sync (PTX ISA, "Matrix fragments"): m16n8k8 for tf32,
  /// m16n8k16 for 16-bit operands, repeated over the tile; warps split M first,
  /// then N.
  static LinearLayout mmaResult(int64_t m, int64_t n, int numWarps);
  static LinearLayout mmaOperandA(int64_t m, int64_t k, int64_t n, bool is16Bit,
                                  int numWarps);
  static LinearLayout mmaOperandB(int64_t m, int64_t k, int64_t n, bool is16Bit,
                                  int numWarps);
  /// The same fragments with another order of K and N, which is free as long as
  /// the three agree: what a lane holds of a row of A, and of B, are up to 8
  /// neighbours.
  static LinearLayout wideMmaResult(int64_t m, int64_t n, int numWarps);
  static LinearLayout wideMmaOperandA(int64_t m, int64_t k, int64_t n,
                                      int numWarps);
  static LinearLayout wideMmaOperandB(int64_t m, int64_t k, int64_t n,
                                      int numWarps);

  //===--- Derived layouts -----------------------------------------------===//

  /// The rank-1 layout of a value that does not depend on `dim`, laid out as
  /// this rank-2 tile's other dimension.
  LinearLayout slice(int dim) const;
  /// A rank-1 layout as the layout of the tile expanded at `dim`.
  LinearLayout expand(int dim) const;
  /// The same with dimension `dim` cut to size 1 (the operand of a broadcast).
  LinearLayout squeeze(int dim) const;
  /// A size-1 dimension widened to `size`: spread over the bits that replicate,
  /// lanes first, then warps, then new registers.
  LinearLayout widen(int dim, int64_t size) const;
  /// A size-1 dimension widened to `size` in registers only.
  LinearLayout widenInRegisters(int dim, int64_t size) const;
  /// What a rank-2 sum along `axis` leaves behind: lanes that summed take over
  /// register bits of the other dimension, so that each ends with its own rows.
  LinearLayout reduced(int axis) const;

  //===--- Queries -------------------------------------------------------===//

  int rank() const { return shape.size(); }
  int numRegisters() const { return 1 << registers.size(); }
  /// The part of the coordinate that register number `reg` contributes.
  llvm::SmallVector<int64_t> registerOffset(int reg) const;
  /// How many consecutive registers hold neighbours along `dim`.
  int contiguous(int dim) const;
  /// The register number whose bits move as `offset` says, if there is one.
  int registerAt(llvm::ArrayRef<int64_t> offset) const;
  /// The bits of lane and warp that replicate.
  int replicatedLanes() const;
  int replicatedWarps() const;

  void print(llvm::raw_ostream &os) const;
};

} // namespace replayjit::internal

#endif
