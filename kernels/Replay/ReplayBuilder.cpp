//===- ReplayBuilder.cpp - A token that goes to a ring --------------------===//

#include "kernels/Decode/TokenProgram.h"
#include "kernels/FamilyBuilder.h"

using namespace mlir;
using namespace replayjit::internal;
using namespace replayjit::internal::replay;

namespace {

class ReplayProgram : public TokenProgram {
public:
  using TokenProgram::TokenProgram;

private:
  void readRing() override { readRingPlace(/*mayBeUnused=*/false); }

  /// Flushes or appends, as the cursor, force_flush and track_indices say.
  void leave(Value state, const Token &token, Value total) override {
    if (!hasRing())
      return TokenProgram::leave(state, token, total);
    Value isFull = b.isEqual(at.cursor, b.i32(spec.ringDepth - 1));
    Value isForced;
    if (spec.hasForceFlush)
      isForced = negated(b.isEqual(loadRowInt("forceFlush"), b.i32(0)));
    // Of a circular ring that is full only the history is folded.
    Value folds = spec.isCircular ? isForced : isFull;
    if (!spec.isCircular && isForced)
      folds = b.anyOf(isFull, isForced);
    auto keep = [&] {
      if (spec.isCircular)
        b.when(isFull, [&] { storeHistory(state); });
      append(token, total, isFull);
    };
    if (!spec.hasTrackIndices) {
      if (!folds)
        return keep();
      b.branch(
          folds, [&] { store(state, token, {}); }, keep);
      return;
    }
    b.when(folds ? b.anyOf(folds, isTracked) : isTracked,
           [&] { store(state, token, folds ? folds : negated(trueValue())); });
    if (!folds)
      return keep();
    b.when(negated(folds), keep);
  }

  /// Stores the state before the token.
  void storeHistory(Value state) {
    b.describe("flush");
    flush(state, flushView(at.dst));
  }

  /// Writes d, k and the gate to the first free ring row, in its format. Each
  /// is written by one block of those that share it.
  void append(const Token &token, Value total, Value isFull) {
    int64_t kSize = spec.headDimK, v = spec.headDimV;
    Value row = physicalRow(at.cursor);
    Value dOffset =
        b.addI(ringRow(pool.dPitch, at.head, row, v), b.toI64(at.firstV));
    b.storeTile(token.d, vectorView(pool.dRing, "dRing", spec.ringType, dOffset,
                                    at.vDim, v));
    Value isFirstTile = b.isEqual(at.tile, b.i32(0));
    int32_t ratio = spec.numValueHeads / spec.numKeyHeads;
    Value isFirstHead = b.isEqual(b.remI(at.head, ratio), b.i32(0));
    auto storeK = [&](Value k) {
      b.storeTile(k, vectorView(pool.kRing, "kRing", spec.ringType,
                                ringRow(pool.kPitch, at.keyHead, row, kSize),
                                Dim{kSize, 1}, kSize));
    };
    if (spec.ringFormat != RingFormat::Predecayed)
      b.when(b.allOf(isFirstTile, isFirstHead), [&] { storeK(token.k); });
    b.when(isFirstTile, [&] {
      Value g = token.gate.g;
      if (total) {
        // After a natural flush the sum starts anew.
        if (spec.isCircular)
          total = b.select(isFull, b.constant(0, total), total);
        g = b.add(total, g);
      }
      if (spec.ringFormat == RingFormat::Predecayed)
        storeK(b.mul(token.k, b.exp(b.neg(g))));
      storeGate(g, row);
    });
  }

  void storeGate(Value g, Value row) {
    int64_t gates = gatesPerRow();
    Value offset = ringRow(pool.gPitch, at.head, row, gates);
    if (spec.isKda) {
      b.storeTile(g, vectorView(pool.gRing, "gRing", DataType::F32, offset,
                                Dim{gates, 1}, gates));
      return;
    }
    b.describe("gRing");
    Value one = b.view(pool.gRing, offset, {Dim{1, 1}});
    StoreOp::create(b, g, one, ValueRange{b.i32(0)});
  }
};

} // namespace

OwningOpRef<ModuleOp>
replayjit::internal::buildReplay(MLIRContext &context, const DecodeSpec &spec,
                                 const DecodeTuning &tuning) {
  return ReplayProgram(context, spec, tuning).build();
}
