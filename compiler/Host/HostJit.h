//===- HostJit.h - LLVM IR of a thread program to CPU code ------*- C++ -*-===//
#ifndef REPLAYJIT_COMPILER_HOST_HOSTJIT_H
#define REPLAYJIT_COMPILER_HOST_HOSTJIT_H

#include "compiler/Host/HostProgram.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <memory>
#include <string>
#include <vector>

namespace llvm {
class LLVMContext;
class Module;
namespace orc {
class JITTargetMachineBuilder;
} // namespace orc
} // namespace llvm

namespace replayjit::internal::host {

/// Compiles `module` for this CPU. Its function `entryName` runs one thread and
/// has the type of HostProgram::Entry. The module may use the functions of
/// EmulatorCalls.h, `global_smem` for the block's shared memory, and the C
/// functions on float and double that math operations lower to; anything
/// else it leaves undefined (an nvvm intrinsic, say) is an error that names
/// it, as is inline assembly. The module's triple and layout are replaced.
///
/// The program owns the code: it must outlive every run of its entry. May be
/// called from several threads.
llvm::Expected<std::shared_ptr<HostProgram>>
jitHostProgram(std::unique_ptr<llvm::Module> module,
               std::unique_ptr<llvm::LLVMContext> context,
               llvm::StringRef entryName, std::vector<std::string> sites);

/// Keeps code generation from the bf16 instructions of x86, which store
/// subnormals as zero whatever the mode; a GPU keeps them.
void keepSubnormals(llvm::orc::JITTargetMachineBuilder &builder);

} // namespace replayjit::internal::host

#endif
