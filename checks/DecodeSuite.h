//===- DecodeSuite.h - Lists of decode kernels to check ---------*- C++ -*-===//
#ifndef REPLAYJIT_CHECKS_DECODESUITE_H
#define REPLAYJIT_CHECKS_DECODESUITE_H

#include "checks/DecodeCheck.h"
#include "checks/MaterializeCheck.h"

#include <optional>
#include <string>
#include <vector>

namespace replayjit::internal {

/// A kernel and the run that checks it.
struct DecodeCase {
  /// Unique in a suite: the readout or list, then what is special.
  std::string name;
  DecodeProblem problem;
  /// Of Family::Materialize; then `problem` repeats its spec, tuning and batch,
  /// and has one step.
  std::optional<MaterializeProblem> materialize;
};

/// A case of `problem`, with the rest as above.
DecodeCase materializeCase(std::string name, MaterializeProblem problem);

/// The list named `suite`, tuned for `target`:
///   small      a few cases of `emulation`, with few steps: seconds
///   emulation  every choice a spec offers, both readouts, on small shapes
///   real       the shapes of shipped models at batch sizes 1 to 256
///   gpu        all of them
///   kda        what emulation is for GDN, for KDA
///   kda-real   shapes of shipped KDA models at batch sizes 1 to 64
///   packed     the packed decode kernels
///   formats    prefix, predecayed and circular rings
///   indices    index arguments, error word, separate q, k and v
///   materialize  the materialize kernels
///   verify     the verify kernels
///   triton     the launch ABI triton
///   long       2,000 steps of tiny heads
/// `emulation` has all of the lists but the real ones.
Result<std::vector<DecodeCase>> decodeSuite(const std::string &suite,
                                            const Target &target);

/// Runs the check that a case asks for with a kernel made for it.
Result<CheckReport> checkCase(Device &device, LoadedKernel &kernel,
                              const LaunchConfig &launch,
                              const DecodeCase &entry,
                              const ProgressFn &progress = {});

} // namespace replayjit::internal

#endif
