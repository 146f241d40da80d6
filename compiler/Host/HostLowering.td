//===- HostLowering.td - Thread programs for emulation -----*- tablegen -*-===//

#ifndef REPLAY_HOST_LOWERING_TD
#define REPLAY_HOST_LOWERING_TD

include "mlir/Pass/PassBase.td"

def HostLoweringPass : Pass<"replay-lower-for-host", "::mlir::ModuleOp"> {
  let summary = "Replace what a GPU does by calls to the emulator";
  let description = [{
    Memory accesses, special registers, shuffles, `mma.sync`, barriers,
    mbarriers and asynchronous copies become calls of the functions in
    EmulatorCalls.h. Each kernel gains an entry `NAME_host(params)` that unpacks
    the parameter buffer. `replay.sites` on the module lists what each call's
    site number stands for. An NVVM operation without an emulation is an error.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect", "::mlir::scf::SCFDialect"];
}

#endif
