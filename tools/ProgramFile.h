//===- ProgramFile.h - A kernel written by hand -----------------*- C++ -*-===//
#ifndef REPLAYJIT_TOOLS_PROGRAMFILE_H
#define REPLAYJIT_TOOLS_PROGRAMFILE_H

#include "base/Status.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <string>

namespace replayjit::internal {

struct ProgramFile {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::string kernelName; ///< Of its one replay.kernel.
};

/// The most brackets within each other. Parsing and printing go down with them,
/// and have no end of their own but that of the stack.
inline constexpr int mostNesting = 256;

/// MLIR, a text or bytecode, out of a file of at most mostFileBytes; as deep as
/// mostNesting, if it is a text.
Result<std::string> readProgramText(const std::string &path);

/// Reads the MLIR text in `path`. An error names file, line and column.
Result<ProgramFile> parseProgramFile(mlir::MLIRContext &context,
                                     const std::string &path);

} // namespace replayjit::internal

#endif
