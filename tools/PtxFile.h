//===- PtxFile.h - A kernel out of a PTX file -------------------*- C++ -*-===//
#ifndef REPLAYJIT_TOOLS_PTXFILE_H
#define REPLAYJIT_TOOLS_PTXFILE_H

#include "compiler/NVPTX/AssembleCubin.h"
#include "tools/CommandLine.h"

#include <optional>
#include <string>

namespace replayjit::internal {

/// --from-ptx, and what PTX does not say.
class PtxOptions {
public:
  void addTo(CLI::App &app);

  bool isGiven() const { return !path.empty(); }
  /// A flag that needs --from-ptx was given without it; null if not.
  const CLI::Option *stray() const;

  /// The kernel, with the cubin that the assembler makes of it if
  /// `makesCubin`. `target` stands in for that of the PTX.
  Result<CompiledKernel> kernel(const std::optional<Target> &target,
                                const AssembleOptions &assemble,
                                bool makesCubin) const;

private:
  std::string path, entry;
  std::optional<uint32_t> threads, sharedBytes;
  std::vector<CLI::Option *> details;
};

} // namespace replayjit::internal

#endif
