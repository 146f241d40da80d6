//===- TranslateToLLVM.cpp - LLVM dialect to LLVM IR ----------------------===//

#include "compiler/NVPTX/TranslateToLLVM.h"

#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"

void replayjit::internal::registerTranslations(
    mlir::DialectRegistry &registry) {
  mlir::registerBuiltinDialectTranslation(registry);
  mlir::registerLLVMDialectTranslation(registry);
  mlir::registerNVVMDialectTranslation(registry);
}

std::unique_ptr<llvm::Module>
replayjit::internal::translateToLLVM(mlir::ModuleOp module,
                                     llvm::LLVMContext &context) {
  return mlir::translateModuleToLLVMIR(module, context, "replayjit");
}
