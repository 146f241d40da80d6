//===- DecodeFuzz.h - Decode problems drawn at random -----------*- C++ -*-===//
//
// A property test: any legal spec, tuning and arguments must agree with the
// fp64 recurrence. A failing case is made small before a person sees it.
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_CHECKS_DECODEFUZZ_H
#define REPLAYJIT_CHECKS_DECODEFUZZ_H

#include "checks/DecodeSuite.h"
#include "compiler/Host/LaneOrder.h"

namespace replayjit::internal {

/// A legal problem of any family that follows from `seed` alone: equal on every
/// machine. Small enough to run under emulation in less than a second.
DecodeCase randomCase(uint64_t seed, const Target &target);

/// The order in which the emulation is to run it.
host::LaneOrder randomLaneOrder(uint64_t seed);

/// True if a case shows the failure that is looked for: the same failure, or
/// the small case explains another one.
using FailsFn = std::function<bool(const DecodeCase &)>;

/// Takes away from `entry` whatever it fails without: rows, steps, options,
/// sizes. What is left is legal and cannot be made smaller in any one respect,
/// unless `fails` was called `tries` times before that. The name stays.
DecodeCase shrinkCase(DecodeCase entry, const Target &target,
                      const FailsFn &fails, int tries = 300);

/// One line that names all in which a case differs from the default one.
std::string describe(const DecodeCase &entry);

// The two kinds of cases. `describe` tells any two different ones apart.
std::string describe(const DecodeProblem &problem);
std::string describe(const MaterializeProblem &problem);

} // namespace replayjit::internal

#endif
