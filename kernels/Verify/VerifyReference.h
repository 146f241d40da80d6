//===- VerifyReference.h - Several tokens of a row in fp64 ------*- C++ -*-===//
//
// What a launch of verify does to memory. Its rules beside R1 to R18, which are
// listed in DecodeReference.h; R3, R10 and R16 are those of a single token.
//
//  R19 Row r has the tokens from place r T of the lists on: T of them, or
//      token_counts[r]. Ragged: those from place token_offsets[r] to
//      token_offsets[r + 1]. A row without tokens is padding, as that of a null
//      slot (R1); one with more than T or fewer than none, or with places
//      beyond the list, is a bad one (R2).
//  R20 Token by token R9 gives output and d, the state before the first token
//      being that of R8.
//  R21 Token t of them is appended at ring row m + t (R11 to R13), where m is
//  at
//      most L-T. Nothing says yet how many of them hold: of `a` that do the
//      cursor counts m + a rows, and the next launch writes over the others.
//  R22 If m > 0, and m + 2T > L or the row's force_flush is not zero, the state
//      before the tokens is stored (R14, R15), and they are the first rows of a
//      new ring with base (base + m) mod L: the cursor counts `a` rows.
//  R23 Outputs at the row's places that have no token are zeros, and so are all
//      of a padding or bad row. A ragged row has the places of its tokens, at
//      most T, and none if they are not all within the list.
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_KERNELS_VERIFY_VERIFYREFERENCE_H
#define REPLAYJIT_KERNELS_VERIFY_VERIFYREFERENCE_H

#include "kernels/Decode/DecodeReference.h"

namespace replayjit::internal {

/// Runs a launch on host memory, computing in fp64 and rounding to the storage
/// type what is stored.
void verifyLaunch(const DecodeSpec &spec, const DecodeArgs &args);

} // namespace replayjit::internal

#endif
