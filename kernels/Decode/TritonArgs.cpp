//===- TritonArgs.cpp - The arguments of a launch, as Triton's ------------===//

#include "kernels/Decode/TritonArgs.h"

namespace replayjit::internal {

DenseStrides denseStrides(const DecodeSpec &spec) {
  auto of = [&](const char *name) {
    return innerElements(spec, find(decodeArguments(), name));
  };
  return {.q = of("q"),
          .a = of("a"),
          .b = of("b"),
          .out = of("out"),
          .state = of("state"),
          .d = of("dRing"),
          .k = of("kRing"),
          .g = of("gRing")};
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
