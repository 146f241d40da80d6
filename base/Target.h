//===- Target.h - The GPU a kernel is made for ------------------*- C++ -*-===//
//
// A plain value: what the generator and the assembler need to know of a GPU.
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_BASE_TARGET_H
#define REPLAYJIT_BASE_TARGET_H

#include "base/Status.h"

#include <string>
#include <string_view>
#include <vector>

namespace replayjit::internal {

/// One GPU architecture. Obtain it with `parse`; fields are facts, not knobs.
struct Target {
  std::string chip = "sm_90a"; ///< As LLVM and ptxas spell it.
  int capability = 90;         ///< Compute capability times ten.
  int ptxVersion = 80;         ///< PTX ISA version times ten.
  int maxSharedBytes = 232448; ///< Dynamic shared memory a block may ask for.
  bool hasBulkCopy = true;     ///< cp.async.bulk and mbarrier transactions.

  /// The target named `chip`, or an error that lists the names allowed.
  static Result<Target> parse(std::string_view chip);

  /// Every name that `parse` accepts, in ascending order.
  static const std::vector<std::string> &names();
};

} // namespace replayjit::internal

#endif
