//===- PoolProgram.h - What all kernels on a state pool share ---*- C++ -*-===//
//
// A block works on BV rows of one value head of one row of the batch. The grid
// is (row, value head, V tile), the V tile running fastest. This class finds
// the block's place, checks the row's indices and looks at the pool.
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_KERNELS_DECODE_POOLPROGRAM_H
#define REPLAYJIT_KERNELS_DECODE_POOLPROGRAM_H

#include "kernels/Decode/DecodeArgs.h"
#include "kernels/KernelBuilder.h"

namespace replayjit::internal {

class PoolProgram {
public:
  PoolProgram(mlir::MLIRContext &context, const DecodeSpec &spec,
              const DecodeTuning &tuning);

protected:
  using Value = mlir::Value;

  const DecodeSpec &spec;
  const DecodeTuning &tuning;
  const int64_t keys;  ///< K rounded up to a power of two.
  const int64_t rows;  ///< BV
  const int64_t depth; ///< L rounded up to a power of two.
  const int tiles;     ///< V tiles of a head.
  KernelBuilder b;

  /// Pointers and slot pitches of one layer.
  struct Pool {
    Value state, dRing, kRing, gRing;
    Value flushed; ///< Where states are stored; null: in `state`.
    Value statePitch, dPitch, kPitch, gPitch;
  };
  Pool pool;

  /// What a block works on: batch row, value head, key head, V tile, the tile's
  /// first row and its rows; and where the row's state and ring are.
  struct Place {
    Value row, row64, head, keyHead, tile, firstV;
    Dim vDim;
    Value slot, ringSlot, dst; ///< i64
    Value cursor, base;        ///< i32; null without a ring, unless circular
  };
  Place at;

  /// An index, what it may be, and how a report calls it.
  struct Check {
    Value isLegal;
    ErrorKind kind;
    Value value; ///< i64
  };
  llvm::SmallVector<Check> checks;

  bool hasRing() const { return spec.ringDepth > 1; }
  /// Elements of a gate ring's row.
  int64_t gatesPerRow() const { return gateWidth(spec); }

  /// Sets the block's place from its number; returns what is left of it, the
  /// number of the batch row.
  Value locateHead(Value block);
  void setHead(Value tile, Value head);
  void setRow(Value row);

  //===--- Indices of the row ------------------------------------------------//

  /// Element `row` of an index argument, as i64.
  Value loadIndex(const char *name, const char *stride);
  /// Element `row` of a dense i32 argument.
  Value loadRowInt(const char *name);
  /// slot is below the first legal one: nothing is there.
  Value isNull(Value slot);
  void check(Value isLegal, ErrorKind kind, Value value);
  /// Reads at.cursor, at.base and at.ringSlot, each checked if it counts: with
  /// `mayBeUnused` a ring that is empty need not be there.
  void readRingPlace(bool mayBeUnused);
  Value allLegal();
  /// One block of the row tells the host of the first check that failed.
  void reportFailure(Value layer);
  /// What follows tells the host of numbers that fp16 cannot hold, if anything
  /// is stored in it.
  void reportOverflow(Value layer);

  //===--- Offsets (elements, i64) and views ---------------------------------//

  /// slot * pitch + inner * size.
  Value inSlot(Value slot, Value pitch, Value inner, int64_t size);
  /// Ring row `index` (i32): its offset in a ring of `size` elements a row.
  Value ringRow(Value pitch, Value inner, Value index, int64_t size);
  /// What the spec promises, cut down to what divides `elements` of `type`.
  int64_t alignment(DataType type, int64_t elements);
  /// `dim`; none of it unless `isWanted`, if that is given.
  Dim onlyIf(Value isWanted, Dim dim);
  /// The block's rows of a state to be read, and to be stored; no rows unless
  /// `isWanted`, if it is given.
  Value stateView(Value slot);
  Value flushView(Value slot, Value isWanted = {});
  /// Physical ring row of logical row `index`, which is 0..2L-1.
  Value physicalRow(Value index);
  /// The sum of all gates in the ring, from its newest row; 0 if it is empty.
  Value readTotal();
  /// Checkpoint and ring; `total` as read above, if the format has one.
  Value readState(Value total);

  //===--- Uses of a state ---------------------------------------------------//

  /// Its products with vectors over K, read as the spec and the tuning say.
  replay::ContractOp contract(Value state, mlir::ValueRange vectors);
  /// Stores it, after an update if that is given, formed as they say.
  void flush(Value state, mlir::ValueRange destinations, Value decay = {},
             Value d = {}, Value k = {});

  Value trueValue();
  Value negated(Value condition);

private:
  /// What a dot over the ring's rows rounds its operands to.
  replay::Precision rebuildPrecision() const;
  replay::PrecisionAttr splitFor(DataType type);
  Value stateView(Value pointer, Value slot, Value isWanted);
};

} // namespace replayjit::internal

#endif
