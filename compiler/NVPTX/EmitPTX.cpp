//===- EmitPTX.cpp - LLVM IR to PTX ---------------------------------------===//

#include "compiler/NVPTX/EmitPTX.h"

#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/OptBisect.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"

#include <fmt/format.h>

#include <mutex>

using namespace replayjit::internal;

Result<std::unique_ptr<llvm::TargetMachine>>
replayjit::internal::createTargetMachine(const Target &target) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
  });
  llvm::Triple triple("nvptx64-nvidia-cuda");
  std::string error;
  const llvm::Target *backend =
      llvm::TargetRegistry::lookupTarget(triple, error);
  if (!backend)
    return Status::error(StatusCode::Unsupported,
                         "this build has no NVPTX backend: " + error);
  std::unique_ptr<llvm::TargetMachine> machine(backend->createTargetMachine(
      triple, target.chip, fmt::format("+ptx{}", target.ptxVersion),
      llvm::TargetOptions(), std::nullopt, std::nullopt,
      llvm::CodeGenOptLevel::Default));
  return machine;
}

namespace {
/// Leaves out what costs a third of the backend's time and changes nothing in a
/// thread program: its addresses are one base plus constants already.
struct BackendPassFilter : llvm::OptPassGate {
  bool shouldRunPass(llvm::StringRef pass, llvm::StringRef) const override {
    return pass != "slsr" && pass != "nary-reassociate" &&
           pass != "early-cse";
  }
  bool isEnabled() const override { return true; }
};
} // namespace

Result<std::string> replayjit::internal::emitPTX(llvm::Module &module,
                                                 llvm::TargetMachine &machine) {
  llvm::SmallString<0> text;
  llvm::raw_svector_ostream stream(text);
  llvm::legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, stream, nullptr,
                                  llvm::CodeGenFileType::AssemblyFile))
    return Status::error(StatusCode::CompileFailed,
                         "the NVPTX backend cannot emit assembly");
  static BackendPassFilter filter;
  module.getContext().setOptPassGate(filter);
  passes.run(module);
  return std::string(text);
}
