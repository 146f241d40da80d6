//===- EmitPTX.h - LLVM IR to PTX -------------------------------*- C++ -*-===//
#ifndef REPLAYJIT_COMPILER_NVPTX_EMITPTX_H
#define REPLAYJIT_COMPILER_NVPTX_EMITPTX_H

#include "base/Target.h"

#include "llvm/IR/Module.h"
#include "llvm/Target/TargetMachine.h"

namespace replayjit::internal {

/// The NVPTX backend for `target`. Thread-safe.
Result<std::unique_ptr<llvm::TargetMachine>> createTargetMachine(
    const Target &target);

/// Optimizes for `machine` and sets the module's triple and data layout.
void optimizeLLVM(llvm::Module &module, llvm::TargetMachine &machine);

/// PTX text of an optimized module.
Result<std::string> emitPTX(llvm::Module &module, llvm::TargetMachine &machine);

} // namespace replayjit::internal

#endif
