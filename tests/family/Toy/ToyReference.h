//===- ToyReference.h - A toy on host memory --------------------*- C++ -*-===//
#ifndef REPLAYJIT_TESTS_FAMILY_TOY_TOYREFERENCE_H
#define REPLAYJIT_TESTS_FAMILY_TOY_TOYREFERENCE_H

#include "kernels/Decode/DecodeReference.h"
#include "tests/family/Toy/ToyArgs.h"

namespace replayjit::internal {

inline void toyLaunch(const DecodeSpec &spec, const ToyArgs &args) {
  const HostTensor state{spec.stateType, args.state, args.statePitch};
  const HostTensor src{DataType::I32, args.src, 1};
  const HostTensor dst{DataType::I32, args.dst, 1};
  auto isSlot = [&](double slot) { return slot >= 0 && slot < args.slots; };
  for (int row = 0; row < args.batch; ++row) {
    const double from = src.get(row, 0), to = dst.get(row, 0);
    if (!isSlot(from) || !isSlot(to))
      continue;
    const int64_t size = int64_t(spec.numValueHeads) * spec.headDimV;
    for (int64_t i = 0; i < size * spec.headDimK; ++i)
      state.set(int64_t(to), i, state.get(int64_t(from), i));
  }
}

} // namespace replayjit::internal

#endif
