//===- MaterializeArgs.h - The arguments of materialize ---------*- C++ -*-===//
#ifndef REPLAYJIT_KERNELS_MATERIALIZE_MATERIALIZEARGS_H
#define REPLAYJIT_KERNELS_MATERIALIZE_MATERIALIZEARGS_H

#include "kernels/Decode/DecodeArgs.h"

namespace replayjit::internal {

/// The arguments of one launch: for each row and layer,
/// the state of slot dst becomes checkpoint plus ring of slot src. A row whose
/// src or dst is a null slot is skipped. Where src = dst the caller sets the
/// cursor to 0 afterwards. A slot that is the dst of one row and the src of
/// another, or the dst of two, ends undefined.
struct MaterializeArgs {
  static constexpr const char *structName = "MaterializeArgs";
  static std::vector<ArgumentTable> tables();

  uint64_t layers = 0; ///< [numLayers] ReplayLayer
  uint64_t srcIndices = 0, dstIndices = 0, ringIndices = 0;
  uint64_t writePos = 0, ringBase = 0, mask = 0;
  uint64_t errorWord = 0; ///< An ErrorWord, or 0
  int64_t srcIndexStride = 1, dstIndexStride = 1, ringIndexStride = 1;
  int32_t batch = 0, numLayers = 0, slots = 0, ringSlots = 0;
};

/// What each member is; see Arguments.h.
ArgumentTable materializeArguments();
inline std::vector<ArgumentTable> MaterializeArgs::tables() {
  return {materializeArguments()};
}

// As those of DecodeArgs. The addresses in the table of layers, which is in
// device memory, are not looked at.
Status validateArgs(const LaunchRules &rules, const MaterializeArgs &args);
std::vector<NamedAddress> addressesOf(const LaunchRules &rules,
                                      const MaterializeArgs &args);
inline int64_t rowsOf(const MaterializeArgs &args) {
  return int64_t(args.batch) * args.numLayers;
}

} // namespace replayjit::internal

#endif
