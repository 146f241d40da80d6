//===- ToyArgs.h - The arguments of a toy -----------------------*- C++ -*-===//
#ifndef REPLAYJIT_TESTS_FAMILY_TOY_TOYARGS_H
#define REPLAYJIT_TESTS_FAMILY_TOY_TOYARGS_H

#include "kernels/Decode/DecodeArgs.h"

namespace replayjit::internal {

/// The state of slot `src` of each row goes to its slot `dst`. A row with a
/// slot that is not there is left out.
struct ToyArgs {
  static constexpr const char *structName = "ToyArgs";
  static std::vector<ArgumentTable> tables();

  uint64_t state = 0;
  int64_t statePitch = 0;
  uint64_t src = 0, dst = 0; ///< [B], i32
  int32_t batch = 0, slots = 0;
};

ArgumentTable toyArguments();
inline std::vector<ArgumentTable> ToyArgs::tables() { return {toyArguments()}; }
Status validateArgs(const LaunchRules &rules, const ToyArgs &args);
std::vector<NamedAddress> addressesOf(const LaunchRules &rules,
                                      const ToyArgs &args);
inline int64_t rowsOf(const ToyArgs &args) { return args.batch; }

} // namespace replayjit::internal

#endif
