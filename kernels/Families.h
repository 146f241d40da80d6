//===- Families.h - What is said of a family of kernels ---------*- C++ -*-===//
//
// A family is a folder and a line of Families.def. The folder defines one
// descriptor, from which follows all that others need to know: nobody else asks
// for a family by name, but those that want this very kernel. Plain C++.
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_KERNELS_FAMILIES_H
#define REPLAYJIT_KERNELS_FAMILIES_H

#include "kernels/LaunchArgs.h"
#include "kernels/Parameters.h"

#include <span>
#include <vector>

namespace replayjit::internal {

/// What the kernels of a family work on. The facts and arguments that a spec
/// has follow, and what else callers ask of a family.
struct FamilyTraits {
  bool states = false; ///< Tiles of states, of a pool; else there is no tuning.
  bool tokens = false; ///< Tokens of each row, DecodeArgs; an output.
  bool drafts = false; ///< More than one, that may be rejected later.
  bool rings = false;  ///< Rings beside the states, where cursors say.
  bool forcedFlush = false; ///< Rows that are told to flush.
  bool mask = false;        ///< Rows that are told to be skipped.
  bool triton = false;      ///< LaunchAbi::Triton too.
  bool isPublic = true;     ///< Users may ask for it; else the library does.
};

struct FamilyDescriptor {
  const char *part = ""; ///< Of a kernel's name: "decode".
  FamilyTraits traits = {};
  int draws = 0; ///< How often the fuzzer draws it, beside the others.

  /// The struct of a launch.
  const ArgsStruct *args = nullptr;
  /// The parameters of a kernel, in order.
  std::vector<Parameter> (*parameters)(const DecodeSpec &spec) = nullptr;

  /// What is wrong with facts that are each allowed; see `validate`.
  Status (*validate)(const DecodeSpec &spec, const DecodeTuning &tuning,
                     const Target &target) = nullptr;
  /// As the function of that name. Null: it has no tiles to choose.
  DecodeTuning (*chooseTuning)(const DecodeSpec &spec, int rows,
                               const Target &target,
                               int multiprocessors) = nullptr;
  /// The specs that a bundle has of it. With tokens: to serve `decode`, a
  /// model's facts of whatever family. Without: beside the kernels of `decode`,
  /// on the same pool.
  std::vector<DecodeSpec> (*bundle)(const DecodeSpec &decode) = nullptr;
};

// Each family's own, which its folder defines.
#define REPLAYJIT_FAMILY(Name, word) extern const FamilyDescriptor word##Family;
#include "kernels/Families.def"

/// Of a line of Families.def; an empty one for what is none.
const FamilyDescriptor &familyOf(Family family);
/// All of them, in order.
std::span<const FamilyDescriptor *const> allFamilies();

inline const FamilyTraits &traitsOf(const DecodeSpec &spec) {
  return familyOf(spec.family).traits;
}

/// The same for tables: `has<&FamilyTraits::rings>`.
template <bool FamilyTraits::*trait> bool has(const DecodeSpec &spec) {
  return traitsOf(spec).*trait;
}

} // namespace replayjit::internal

#endif
