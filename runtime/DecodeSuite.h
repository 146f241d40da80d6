//===- DecodeSuite.h - Lists of decode kernels to check ---------*- C++ -*-===//
#ifndef REPLAYJIT_RUNTIME_DECODESUITE_H
#define REPLAYJIT_RUNTIME_DECODESUITE_H

#include "runtime/DecodeCheck.h"

#include <string>
#include <vector>

namespace replayjit {

/// A kernel and the run that checks it.
struct DecodeCase {
  /// Unique in a suite: the readout or "kda", then what is special.
  std::string name;
  DecodeProblem problem;
};

/// The list named `suite`, tuned for `target`:
///   small      a few cases of `emulation`, with few steps: seconds
///   emulation  every choice a spec offers, both readouts, on small shapes
///   real       the shapes of shipped models at batch sizes 1 to 256
///   gpu        emulation and real
///   kda        what emulation is for GDN, for KDA
///   kda-real   shapes of shipped KDA models at batch sizes 1 to 64
Result<std::vector<DecodeCase>> decodeSuite(const std::string &suite,
                                            const Target &target);

} // namespace replayjit

#endif
