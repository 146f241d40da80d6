//===- ToyBuilder.cpp - The program of a toy ------------------------------===//

#include "kernels/Decode/PoolProgram.h"
#include "kernels/FamilyBuilder.h"

using namespace mlir;
using namespace replayjit::internal;
using namespace replayjit::internal::replay;

namespace {

class ToyProgram : PoolProgram {
public:
  using PoolProgram::PoolProgram;

  OwningOpRef<ModuleOp> build() {
    setRow(locateHead(ProgramIdOp::create(b, Axis::X)));
    pool.state = b.argument("state");
    pool.statePitch = b.argument("statePitch");
    b.when(b.isLess(at.row, b.argument("batch")), [&] {
      at.slot = b.toI64(loadRowInt("src"));
      at.dst = b.toI64(loadRowInt("dst"));
      b.when(b.allOf(isSlot(at.slot), isSlot(at.dst)),
             [&] { flush(readState(/*total=*/{}), flushView(at.dst)); });
    });
    return b.take();
  }

private:
  Value isSlot(Value slot) {
    return b.allOf(b.isLess(b.i64(-1), slot),
                   b.isLess(slot, b.toI64(b.argument("slots"))));
  }
};

} // namespace

namespace replayjit::internal {

OwningOpRef<ModuleOp> buildToy(MLIRContext &context, const DecodeSpec &spec,
                               const DecodeTuning &tuning) {
  return ToyProgram(context, spec, tuning).build();
}

} // namespace replayjit::internal
