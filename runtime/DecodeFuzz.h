//===- DecodeFuzz.h - Decode problems drawn at random -----------*- C++ -*-===//
//
// A property test: any legal spec, tuning and arguments must agree with the
// fp64 recurrence. A failing case is made small before a person sees it.
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_RUNTIME_DECODEFUZZ_H
#define REPLAYJIT_RUNTIME_DECODEFUZZ_H

#include "runtime/DecodeCheck.h"

namespace replayjit {

/// A legal problem that follows from `seed` alone: equal on every machine.
/// Small enough to run under emulation in less than a second.
DecodeProblem randomProblem(uint64_t seed, const Target &target);

/// True if a problem shows the failure that is looked for.
using FailsFn = std::function<bool(const DecodeProblem &)>;

/// Takes away from `problem` whatever it fails without: rows, steps, options,
/// sizes. Calls `fails` at most `tries` times.
DecodeProblem shrinkProblem(DecodeProblem problem, const Target &target,
                            const FailsFn &fails, int tries = 200);

/// One line that names all in which a problem differs from the default one.
std::string describe(const DecodeProblem &problem);

} // namespace replayjit

#endif
