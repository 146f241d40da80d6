//===- OptimizeLLVM.cpp - LLVM's own passes -------------------------------===//

#include "compiler/NVPTX/EmitPTX.h"

#include "llvm/Passes/PassBuilder.h"

void replayjit::optimizeLLVM(llvm::Module &module,
                             llvm::TargetMachine &machine) {
  module.setTargetTriple(machine.getTargetTriple());
  module.setDataLayout(machine.createDataLayout());

  llvm::PipelineTuningOptions tuning;
  tuning.LoopUnrolling = false; // Tile loops are unrolled where it pays.
  tuning.LoopVectorization = false;
  tuning.SLPVectorization = false;
  llvm::PassBuilder builder(&machine, tuning);
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager sccs;
  llvm::ModuleAnalysisManager modules;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(sccs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, sccs, modules);
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O3)
      .run(module, modules);
}
