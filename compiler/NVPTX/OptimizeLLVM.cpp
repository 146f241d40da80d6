//===- OptimizeLLVM.cpp - LLVM's own passes -------------------------------===//
//
// A thread program is already straight: loops are unrolled where it pays, and
// there is no memory to promote and nothing to inline. A short list of passes
// reaches the code of O3 in a fraction of its time.
//
//===----------------------------------------------------------------------===//

#include "compiler/NVPTX/EmitPTX.h"

#include "llvm/Passes/PassBuilder.h"
#include "llvm/Transforms/InstCombine/InstCombine.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/SimplifyCFG.h"

using namespace llvm;

void replayjit::internal::optimizeLLVM(Module &module, TargetMachine &machine) {
  module.setTargetTriple(machine.getTargetTriple());
  module.setDataLayout(machine.createDataLayout());

  PassBuilder builder(&machine);
  LoopAnalysisManager loops;
  FunctionAnalysisManager functions;
  CGSCCAnalysisManager sccs;
  ModuleAnalysisManager modules;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(sccs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, sccs, modules);

  FunctionPassManager passes;
  passes.addPass(EarlyCSEPass());
  // Joins the halves of vector accesses and narrows what is left.
  passes.addPass(InstCombinePass());
  passes.addPass(SimplifyCFGPass());
  passes.addPass(EarlyCSEPass());
  ModulePassManager all;
  all.addPass(createModuleToFunctionPassAdaptor(std::move(passes)));
  all.run(module, modules);
}
