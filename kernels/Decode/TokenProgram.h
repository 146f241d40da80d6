//===- TokenProgram.h - Tokens of each row ----------------------*- C++ -*-===//
//
// What kernels that have tokens share: a block reads its part of the state and
// a token, stores the output and leaves the new state behind.
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_KERNELS_DECODE_TOKENPROGRAM_H
#define REPLAYJIT_KERNELS_DECODE_TOKENPROGRAM_H

#include "kernels/Decode/PoolProgram.h"

namespace replayjit::internal {

/// By itself: each token is stored in the state, and there is no ring.
class TokenProgram : protected PoolProgram {
public:
  TokenProgram(mlir::MLIRContext &context, const DecodeSpec &spec,
               const DecodeTuning &tuning);
  virtual ~TokenProgram() = default;

  mlir::OwningOpRef<mlir::ModuleOp> build();

protected:
  /// g and alpha are numbers for GDN, vectors over K for KDA. beta is null
  /// where it is 1.
  struct GateValues {
    Value g, alpha, beta;
  };

  /// What a token brings: q scaled, k normalized and unscaled, k . q, D and
  /// silu(z), which are null where the spec has none.
  struct Token {
    GateValues gate;
    Value q, k, v, kq;
    Value skip = {}, outGate = {};
    Value d = {}; ///< Once it is known.
  };

  /// Its place in the lists of tokens, i64; at first that of the row.
  Value tokenPlace;

  /// Reads the place of the row's ring, and checks it.
  virtual void readRing() {}
  /// False for rows that are padding, whatever else they say.
  virtual Value isThere() { return negated(isNull(at.slot)); }
  /// What a block does for such a row, and for one that is not legal.
  virtual void nullRow();
  virtual void liveRow();
  /// Stores what the token makes of `state`. `total`: see readState.
  virtual void leave(Value state, const Token &token, Value total);

  /// False if d does not depend on the state: then nobody needs S k.
  bool needsState() const { return spec.rule == Rule::Delta; }
  /// d of a token, before which the state says `predicted` of v: S diag(alpha)
  /// k; null unless needsState().
  Value update(const Token &token, Value predicted);
  /// The output of a token, of what the state after it says.
  Value output(const Token &token, Value read);

  /// Stores the state after the token: to the row's slot if `isWanted` (or not
  /// given), to the tracking slot if there is one.
  void store(Value state, const Token &token, Value isWanted);

  /// `dim` of elements at `offset`, of a head of `headSize`.
  Value vectorView(Value pointer, const char *name, DataType type, Value offset,
                   Dim dim, int64_t headSize);

  /// The token at tokenPlace. Not before its row is known to be live, though
  /// every row has inputs: a norm waits for q and k, and the state's loads
  /// would wait behind it.
  Token readToken();
  /// The output of the token at tokenPlace, if `isWanted` (or not given).
  Value outView(Value isWanted = {});
  Value zeroOutput();

  const bool isNative;        ///< Else LaunchAbi::Triton.
  Value trackSlot, isTracked; ///< If the spec has track_indices.

private:
  void fixStrides();
  void row();
  Value isSlot(Value slot);
  void readPlaces();

  /// tokenPlace * stride + head-dependent column.
  Value ofToken(const char *stride, Value column);
  Value argumentView(const char *name, DataType type, Value offset, Dim dim,
                     int64_t headSize);

  /// g and beta as DecodeSpec's gate and beta say, alpha = exp(g).
  GateValues readGate();
  /// q (part 0) or k (1) of the key head, normalized over K if the spec says
  /// so, and times `scale` if given.
  Value readKey(int part, Value scale = {});
  Value readValue();
  /// Elements of the block's rows of V, in a tensor [HV, V] of each row.
  Value valueColumn();
  Value readSkip(), readOutGate();
};

} // namespace replayjit::internal

#endif
