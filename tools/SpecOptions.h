//===- SpecOptions.h - Flags that say which kernel --------------*- C++ -*-===//
#ifndef REPLAYJIT_TOOLS_SPECOPTIONS_H
#define REPLAYJIT_TOOLS_SPECOPTIONS_H

#include "kernels/Decode/DecodeSpec.h"
#include "tools/CommandLine.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace replayjit::internal {

/// The flags of a DecodeSpec, a DecodeTuning and a Target. Lives as long as the
/// application that it was added to.
class SpecOptions {
public:
  /// Whether a family, as a spec has it, is among those of the flag.
  using OffersFn = bool (*)(const DecodeSpec &spec);

  /// Without `offers` all families are.
  void addTo(CLI::App &app, OffersFn offers = nullptr);
  /// Only the flags of the DecodeSpec.
  void addFactsTo(CLI::App &app, OffersFn offers = nullptr);

  /// The flags that say what is computed, --readout excepted.
  const std::vector<CLI::Option *> &facts() const { return factOptions; }

  /// The model's preset, or the default spec, with what the flags change. It is
  /// not validated: compiling it says what is wrong with it.
  Result<DecodeSpec> spec() const;

  /// chooseTuning for --rows, else for `rows`, by the table that
  /// REPLAYJIT_TUNING names, with what the flags change. An error if that is no
  /// table.
  Result<DecodeTuning> tuning(const DecodeSpec &spec, int rows,
                              const Target &target,
                              int multiprocessors = 132) const;

  /// --target, or nothing if it was not given.
  Result<std::optional<Target>> target() const;

  /// By the names of facts, what flags say.
  using Given = std::map<std::string, std::optional<int>>;

private:
  std::vector<CLI::Option *> factOptions;
  std::string model, chip;
  int tensorParallel = 1;
  std::optional<int> rows;
  Given specGiven, tuningGiven;
};

} // namespace replayjit::internal

#endif
