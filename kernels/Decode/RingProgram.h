//===- RingProgram.h - Tokens that go to a ring -----------------*- C++ -*-===//
#ifndef REPLAYJIT_KERNELS_DECODE_RINGPROGRAM_H
#define REPLAYJIT_KERNELS_DECODE_RINGPROGRAM_H

#include "kernels/Decode/TokenProgram.h"

namespace replayjit::internal {

/// What kernels share whose tokens become rows of a ring.
class RingProgram : public TokenProgram {
public:
  using TokenProgram::TokenProgram;

protected:
  void readRing() override { readRingPlace(/*mayBeUnused=*/false); }

  /// Stores the state before the tokens.
  void storeHistory(Value state);

  /// Writes d, k and the gate of each token to the first free ring rows, in
  /// their format; of the first `count` tokens alone, if that is given.
  /// `total`: see readState. Where `startsAnew` (null: nowhere) the rows are
  /// the first of a new checkpoint.
  void append(llvm::ArrayRef<Token> tokens, Value total, Value startsAnew,
              Value count = {});

private:
  void storeD(const Token &token, Value row, Value isWanted);
  void storeK(Value k, Value row);
  void storeGate(Value g, Value row);
};

} // namespace replayjit::internal

#endif
