//===- RunOptions.h - Flags that say what to run ----------------*- C++ -*-===//
#ifndef REPLAYJIT_TOOLS_RUNOPTIONS_H
#define REPLAYJIT_TOOLS_RUNOPTIONS_H

#include "checks/DecodeFuzz.h"
#include "checks/DecodeSuite.h"
#include "tools/SpecOptions.h"

#include <string>
#include <vector>

namespace replayjit::internal {

/// The flags of replay-run.
struct RunOptions {
  SpecOptions kernel;
  std::string device, laneOrder, suite, filter, shard;
  int ordinal = 0;
  bool list = false, noTiming = false, assemble = false;

  DecodeProblem problem;
  CLI::Option *seedOption = nullptr;
  int slots = 0, paddingRows = 0, forceEvery = 0, random = 0;
  int layers = MaterializeProblem().numLayers;

  void addTo(CLI::App &app);
  /// Of --random: --seed, or the clock's.
  uint64_t firstSeed() const;
  /// The problem of the flags; its spec is legal or will be refused.
  DecodeProblem problemFor(const DecodeSpec &spec) const;
  /// The same of Family::Materialize: in place and to other slots in turn, from
  /// rings that are full, one row less full, ..., empty.
  Result<MaterializeProblem> materializeFor(const DecodeSpec &spec) const;
  /// The suite, or the one case of the flags, tuned for such a GPU.
  Result<std::vector<DecodeCase>> cases(const Target &target,
                                        int multiprocessors) const;

private:
  std::vector<CLI::Option *> ofTokens; ///< Not of materialize.
  CLI::Option *ofMaterialize = nullptr;
};

} // namespace replayjit::internal

#endif
