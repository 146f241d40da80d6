//===- TritonArgs.cpp - The arguments of a launch, as Triton's ------------===//

#include "kernels/Decode/TritonArgs.h"

namespace replayjit::internal {

DenseStrides denseStrides(const DecodeSpec &spec) {
  const int64_t H = spec.numKeyHeads, HV = spec.numValueHeads;
  const int64_t K = spec.headDimK, V = spec.headDimV, L = spec.ringDepth;
  const int64_t gates = HV * gateWidth(spec);
  return {.q = 2 * H * K + HV * V,
          .a = gates,
          .b = HV,
          .out = HV * V,
          .state = HV * V * K,
          .d = HV * L * V,
          .k = H * L * K,
          .g = L * gates};
}

TritonArgs toTritonArgs(const DecodeArgs &args) {
  return {.q = args.q,
          .a = args.a,
          .b = args.b,
          .aLog = args.aLog,
          .dtBias = args.dtBias,
          .out = args.out,
          .state = args.state,
          .finalState = args.state,
          .dRing = args.dRing,
          .kRing = args.kRing,
          .gRing = args.gRing,
          .stateIndices = args.stateIndices,
          .writePos = args.writePos,
          .forceFlush = args.forceFlush ? args.forceFlush : args.writePos,
          .scale = args.scale};
}

} // namespace replayjit::internal
