//===- Mma.h - The product that a warp computes together --------*- C++ -*-===//
#ifndef REPLAYJIT_COMPILER_HOST_MMA_H
#define REPLAYJIT_COMPILER_HOST_MMA_H

#include "compiler/Host/EmulatorCalls.h"

namespace replayjit::internal::host {

/// One lane's fragments, laid out as EmulatorCalls.h says for the kind.
struct MmaFragments {
  const void *a = nullptr;
  const void *b = nullptr;
  const void *c = nullptr;
  void *d = nullptr; ///< May be the memory of c.
};

/// D = A * B + C over the 32 lanes of a warp. A tf32 operand's low 13 bits of
/// mantissa are ignored. The products are exact and are summed with C in double
/// precision in ascending k; the sum is rounded to float once. A tensor core
/// keeps fewer bits and sums in an order of its own, so compare with it under
/// a tolerance.
void multiplyFragments(MmaKind kind, const MmaFragments (&lanes)[32]);

} // namespace replayjit::internal::host

#endif
