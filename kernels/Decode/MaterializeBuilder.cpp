//===- MaterializeBuilder.cpp - Checkpoint plus ring to a slot ------------===//
//
// One launch serves all layers of one shape: the grid is (layer, row, value
// head, V tile), and a table in device memory says where a layer's pool is.
//
//===----------------------------------------------------------------------===//

#include "kernels/Decode/DecodeBuilder.h"
#include "kernels/Decode/PoolProgram.h"

#include <cstddef>

using namespace mlir;
using namespace replayjit::internal;
using namespace replayjit::internal::replay;

namespace {

/// The arguments in the order of MaterializeArgs.
std::vector<ArgumentSpec> argumentsOf(const DecodeSpec &spec) {
  std::vector<ArgumentSpec> arguments;
  auto pointer = [&](const char *name, DataType type) {
    arguments.push_back({name, type});
  };
  pointer("layers", DataType::I64);
  pointer("srcIndices", spec.indexType);
  pointer("dstIndices", spec.indexType);
  pointer("ringIndices", spec.indexType);
  pointer("writePos", DataType::I32);
  pointer("ringBase", DataType::I32);
  pointer("mask", DataType::I32);
  pointer("errorWord", DataType::I32);
  for (const char *name :
       {"srcIndexStride", "dstIndexStride", "ringIndexStride"})
    arguments.push_back({name, DataType::I64, /*isPointer=*/false});
  for (const char *name : {"batch", "numLayers", "slots", "ringSlots"})
    arguments.push_back({name, DataType::I32, /*isPointer=*/false});
  return arguments;
}

class MaterializeProgram : PoolProgram {
public:
  MaterializeProgram(MLIRContext &context, const DecodeSpec &spec,
                     const DecodeTuning &tuning)
      : PoolProgram(context, spec, tuning, argumentsOf(spec)) {}

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
    at.slot = loadIndex("srcIndices", "srcIndexStride");
    at.dst = loadIndex("dstIndices", "dstIndexStride");
    check(isSlot(at.slot), ErrorKind::StateSlot, at.slot);
    check(isSlot(at.dst), ErrorKind::DstSlot, at.dst);
    readRingPlace();
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
      FlushOp::create(b, state, Value(), Value(), Value(), flushView(at.dst));
    });
  }

  /// Looks the layer up in the table of ReplayLayer.
  void readPool(Value layer) {
    b.describe("layers");
    constexpr int words = sizeof(ReplayLayer) / sizeof(int64_t);
    Value entry = b.mulI(b.toI64(layer), b.i64(words));
    auto field = [&](size_t offset) {
      Value index = b.addI(entry, b.i64(offset / sizeof(int64_t)));
      return b.loadScalar(b.argument("layers"), index);
    };
    auto pointer = [&](size_t offset, DataType type) -> Value {
      auto ptr = PtrType::get(b.getContext(), b.elementType(type));
      return PointerOp::create(b, ptr, field(offset));
    };
    pool.state = pointer(offsetof(ReplayLayer, state), spec.stateType);
    pool.dRing = pointer(offsetof(ReplayLayer, dRing), spec.ringType);
    pool.kRing = pointer(offsetof(ReplayLayer, kRing), spec.ringType);
    pool.gRing = pointer(offsetof(ReplayLayer, gRing), DataType::F32);
    pool.statePitch = field(offsetof(ReplayLayer, statePitch));
    pool.dPitch = field(offsetof(ReplayLayer, dPitch));
    pool.kPitch = field(offsetof(ReplayLayer, kPitch));
    pool.gPitch = field(offsetof(ReplayLayer, gPitch));
  }
};

} // namespace

OwningOpRef<ModuleOp> replayjit::internal::buildMaterialize(
    MLIRContext &context, const DecodeSpec &spec, const DecodeTuning &tuning) {
  return MaterializeProgram(context, spec, tuning).build();
}
