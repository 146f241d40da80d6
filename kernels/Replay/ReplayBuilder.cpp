//===- ReplayBuilder.cpp - A token that goes to a ring --------------------===//

#include "kernels/Decode/RingProgram.h"
#include "kernels/FamilyBuilder.h"

using namespace mlir;
using namespace replayjit::internal;
using namespace replayjit::internal::replay;

namespace {

class ReplayProgram : public RingProgram {
public:
  using RingProgram::RingProgram;

private:
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
      append(token, total, spec.isCircular ? isFull : Value());
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
};

} // namespace

OwningOpRef<ModuleOp>
replayjit::internal::buildReplay(MLIRContext &context, const DecodeSpec &spec,
                                 const DecodeTuning &tuning) {
  return ReplayProgram(context, spec, tuning).build();
}
