//===- MaterializeBuilder.cpp - Checkpoint plus ring to a slot ------------===//
//
// One launch serves all layers of one shape: the grid is (layer, row, value
// head, V tile), and a table in device memory says where a layer's pool is.
//
//===----------------------------------------------------------------------===//

#include "kernels/Decode/PoolProgram.h"
#include "kernels/FamilyBuilder.h"
#include "kernels/Materialize/MaterializeArgs.h"

using namespace mlir;
using namespace replayjit::internal;
using namespace replayjit::internal::replay;

namespace {

class MaterializeProgram : PoolProgram {
public:
  MaterializeProgram(MLIRContext &context, const DecodeSpec &spec,
                     const DecodeTuning &tuning)
      : PoolProgram(context, spec, tuning) {}

  OwningOpRef<ModuleOp> build() {
    Value item = locateHead(ProgramIdOp::create(b, Axis::X));
    Value batch = b.argument("batch");
    // Any grid: blocks past the last layer do nothing, nor do all without rows.
    Value hasRows = b.isLess(b.i32(0), batch);
    Value divisor = b.select(hasRows, batch, b.i32(1));
    Value layer = b.divI(item, divisor);
    setRow(b.remI(item, divisor));
    Value isInside = b.allOf(hasRows, b.isLess(layer, b.argument("numLayers")));
    b.when(isInside, [&] {
      if (!spec.hasMask)
        return row(layer);
      Value isMasked = b.isEqual(loadRowInt("mask"), b.i32(0));
      b.when(negated(isMasked), [&] { row(layer); });
    });
    return b.take();
  }

private:
  Value isSlot(Value slot) {
    return b.isLess(slot, b.toI64(b.argument("slots")));
  }

  void row(Value layer) {
    reportOverflow(layer);
    at.slot = loadIndex("srcIndices", "srcIndexStride");
    at.dst = loadIndex("dstIndices", "dstIndexStride");
    check(isSlot(at.slot), ErrorKind::StateSlot, at.slot);
    check(isSlot(at.dst), ErrorKind::DstSlot, at.dst);
    readRingPlace(/*mayBeUnused=*/true);
    Value isThere = negated(b.anyOf(isNull(at.slot), isNull(at.dst)));
    b.when(isThere, [&] {
      b.branch(
          allLegal(), [&] { copy(layer); }, [&] { reportFailure(layer); });
    });
  }

  void copy(Value layer) {
    readPool(layer);
    // A slot whose ring is empty is its own checkpoint.
    Value isDone =
        b.allOf(b.isEqual(at.slot, at.dst), b.isEqual(at.cursor, b.i32(0)));
    b.when(negated(isDone), [&] {
      Value total;
      if (spec.ringFormat != RingFormat::Raw)
        total = readTotal();
      Value state = readState(total);
      flush(state, flushView(at.dst));
    });
  }

  /// Looks the layer up in the table of ReplayLayer.
  void readPool(Value layer) {
    b.describe("layers");
    constexpr int words = sizeof(ReplayLayer) / sizeof(int64_t);
    Value entry = b.mulI(b.toI64(layer), b.i64(words));
    auto field = [&](const char *name) -> Value {
      const Argument &argument = find(layerArguments(), name);
      Value index = b.addI(entry, b.i64(argument.offset / sizeof(int64_t)));
      Value word = b.loadScalar(b.argument("layers"), index);
      if (argument.kind != Argument::Kind::Pointer)
        return word;
      Type element = b.elementType(argument.type.of(spec));
      return PointerOp::create(b, PtrType::get(b.getContext(), element), word,
                               /*noalias=*/true);
    };
    pool.state = field("state");
    pool.dRing = field("dRing");
    pool.kRing = field("kRing");
    pool.gRing = field("gRing");
    pool.statePitch = field("statePitch");
    pool.dPitch = field("dPitch");
    pool.kPitch = field("kPitch");
    pool.gPitch = field("gPitch");
  }
};

} // namespace

OwningOpRef<ModuleOp> replayjit::internal::buildMaterialize(
    MLIRContext &context, const DecodeSpec &spec, const DecodeTuning &tuning) {
  return MaterializeProgram(context, spec, tuning).build();
}
