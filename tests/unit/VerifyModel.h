//===- VerifyModel.h - Requests whose drafts may be rejected ----*- C++ -*-===//
//
// The tests of verify draw cursors, counts and acceptance from here.
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_TESTS_UNIT_VERIFYMODEL_H
#define REPLAYJIT_TESTS_UNIT_VERIFYMODEL_H

#include "tests/unit/DecodeLaunch.h"

namespace replayjit::internal {

/// A spec of verify with every tensor in fp32.
inline DecodeSpec makeVerifySpec(int H, int HV, int K, int V, int L, int T) {
  DecodeSpec spec = makeSpec(H, HV, K, V, L);
  spec.family = Family::Verify;
  spec.isCircular = true;
  spec.numTokens = T;
  return spec;
}

/// The same with gates and rings of Kimi Delta Attention.
inline DecodeSpec kdaOf(DecodeSpec spec, RingFormat format) {
  spec.isKda = true;
  spec.ringFormat = format;
  if (format != RingFormat::Raw)
    spec.gate = Gate::LowerBound;
  return spec;
}

/// The rows of a launch as an engine steps them: each brings some tokens, of
/// which the first few hold.
class Speculation {
public:
  explicit Speculation(Launch &launch)
      : launch(launch), cursors(launch.args.batch) {
    // Sums of gates of a predecayed ring stay small.
    launch.args.lowerBound = -40.0f / launch.spec.ringDepth;
  }

  RingCursor cursor(int row) const { return cursors[row]; }

  /// New tokens, and how many each row has; row 1 is forced now and then.
  void draw() {
    launch.freshInputs();
    const DecodeTensors t = launch.tensors();
    const int T = tokensPerRow(launch.spec);
    int next = 0;
    for (int row = 0; row < launch.args.batch; ++row) {
      int count = T;
      if (tokenRowsOf(launch.spec) != TokenRows::Full)
        count = below(T + 1);
      t.tokenCounts.set(row, 0, count);
      t.tokenOffsets.set(row, 0, next);
      next += count;
      t.forceFlush.set(row, 0, row == 1 && below(4) == 0);
    }
    t.tokenOffsets.set(launch.args.batch, 0, next);
  }

  /// Draws how many of the tokens hold that a launch has appended, moves the
  /// cursor, and spoils all ring rows that it does not count.
  int accept(int row) {
    const DecodeRow did = readRow(launch.spec, launch.args, row);
    if (!did.isLive)
      return 0;
    const int accepted = below(int(did.numTokens) + 1);
    cursors[row] =
        acceptedCursor(launch.spec, cursors[row], did.forced, accepted);
    const DecodeTensors t = launch.tensors();
    t.writePos.set(row, 0, cursors[row].writePos);
    t.ringBase.set(row, 0, cursors[row].base);
    launch.forgetRing(did.ringSlot, cursors[row]);
    return accepted;
  }

private:
  int below(int end) { return int(launch.random() % unsigned(end)); }

  Launch &launch;
  std::vector<RingCursor> cursors;
};

} // namespace replayjit::internal

#endif
