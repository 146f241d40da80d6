//===- LaunchArgs.h - The arguments of any launch ---------------*- C++ -*-===//
#ifndef REPLAYJIT_KERNELS_LAUNCHARGS_H
#define REPLAYJIT_KERNELS_LAUNCHARGS_H

#include "kernels/Arguments.h"

namespace replayjit::internal {

/// A struct of arguments, as who does not know it sees it.
struct ArgsStruct {
  const char *name; ///< "DecodeArgs"
  size_t bytes;
  /// How many rows are launched, each by LaunchConfig::blocksPerRow blocks.
  int64_t (*rows)(const void *args);
  /// What a kernel of `spec` asks of its launches.
  LaunchRules (*rules)(const DecodeSpec &spec);
  Status (*validate)(const LaunchRules &rules, const void *args);
  std::vector<NamedAddress> (*addresses)(const LaunchRules &rules,
                                         const void *args);
};

/// What is said of `Args`: it has a structName and tables, and overloads of
/// rowsOf, validateArgs and addressesOf stand beside it.
template <typename Args>
inline constexpr ArgsStruct structOf = {
    Args::structName,
    sizeof(Args),
    [](const void *args) { return rowsOf(*static_cast<const Args *>(args)); },
    rulesOf<Args>,
    [](const LaunchRules &rules, const void *args) {
      return validateArgs(rules, *static_cast<const Args *>(args));
    },
    [](const LaunchRules &rules, const void *args) {
      return addressesOf(rules, *static_cast<const Args *>(args));
    }};

/// The arguments of one launch in whatever struct holds them, which outlives
/// this.
struct LaunchArgs {
  template <typename Args>
  LaunchArgs(const Args &args) : type(&structOf<Args>), data(&args) {}

  const ArgsStruct *type;
  const void *data;
};

} // namespace replayjit::internal

#endif
