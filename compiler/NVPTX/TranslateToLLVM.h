//===- TranslateToLLVM.h - LLVM dialect to LLVM IR --------------*- C++ -*-===//
#ifndef REPLAYJIT_COMPILER_NVPTX_TRANSLATETOLLVM_H
#define REPLAYJIT_COMPILER_NVPTX_TRANSLATETOLLVM_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/IR/Module.h"

namespace replayjit::internal {

/// Registers what `translateToLLVM` needs; once per context.
void registerTranslations(mlir::DialectRegistry &registry);

/// `module` (LLVM and NVVM dialects) as LLVM IR in `context`; null on failure,
/// with the reason reported as MLIR diagnostics.
std::unique_ptr<llvm::Module> translateToLLVM(mlir::ModuleOp module,
                                              llvm::LLVMContext &context);

} // namespace replayjit::internal

#endif
