//===- PackedBuilder.cpp - A token that goes into the state ---------------===//

#include "kernels/Decode/TokenProgram.h"
#include "kernels/FamilyBuilder.h"

using namespace mlir;

OwningOpRef<ModuleOp>
replayjit::internal::buildPacked(MLIRContext &context, const DecodeSpec &spec,
                                 const DecodeTuning &tuning) {
  return TokenProgram(context, spec, tuning).build();
}
