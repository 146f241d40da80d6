//===- Pipeline.cpp - The way from a tile program to LLVM -----------------===//
//
// Read it top to bottom. A comment stands where a pass's position matters.
//
//===----------------------------------------------------------------------===//

#include "compiler/Pipeline.h"

#include "compiler/Conversion/ReplayToNVVM/ReplayToNVVM.h"
#include "compiler/Host/HostLowering.h"
#include "compiler/Transforms/Passes.h"

#include "mlir/Conversion/ConvertToLLVM/ToLLVMPass.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace replayjit::internal;
using replay::KernelOp;

void replayjit::internal::buildTilePipeline(OpPassManager &pm) {
  pm.addNestedPass<KernelOp>(createExpandStatePass());
  // Slices of vectors need constant offsets from here on.
  pm.addNestedPass<KernelOp>(createUnrollTilesPass());
  pm.addPass(createCanonicalizerPass());
  // After unrolling, so that the flush's tile has the readout's offsets; and
  // after CSE, so that equal offsets are one value.
  pm.addPass(createCSEPass());
  // Before all that moves loads to the starts of blocks: only branches that
  // need the wait have one then.
  pm.addNestedPass<KernelOp>(createDelayWaitPass());
  // Before reuse, which keeps in registers what shared memory can give again.
  pm.addNestedPass<KernelOp>(createStageLoadsPass());
  pm.addNestedPass<KernelOp>(createReuseLoadsPass());
  pm.addPass(createCanonicalizerPass());
  // After reuse, which leaves one load of a tile where there were two.
  pm.addNestedPass<KernelOp>(createHoistLoadsPass());
  // Last: from here on types carry layouts.
  pm.addNestedPass<KernelOp>(createAssignLayoutsPass());
}

void replayjit::internal::buildThreadPipeline(OpPassManager &pm) {
  pm.addPass(createConvertReplayToNVVMPass());
  pm.addPass(createMergeBarriersPass());
  pm.addPass(createExpandMathPass());
  // Every pattern asks for lane and warp anew; one of each remains.
  pm.addPass(createCSEPass());
  pm.addPass(createCanonicalizerPass());
}

/// What GPU and host share below the thread program.
static void addToLLVM(OpPassManager &pm) {
  pm.addPass(createSCFToControlFlowPass());
  // All dialects in one conversion. Some NVVM operations become inline PTX
  // here, the mbarrier waits among them.
  pm.addPass(createConvertToLLVMPass());
  pm.addPass(createReconcileUnrealizedCastsPass());
}

void replayjit::internal::buildGPUPipeline(OpPassManager &pm) {
  pm.addPass(createLowerMathForGPUPass());
  pm.addPass(createLowerMemoryForGPUPass());
  addToLLVM(pm);
}

void replayjit::internal::buildHostPipeline(OpPassManager &pm) {
  pm.addPass(createHostLoweringPass());
  addToLLVM(pm);
}

void replayjit::internal::registerPipelines() {
  static PassPipelineRegistration<> tile("replay-tile-pipeline",
                                         "Replay level to tiles with layouts",
                                         buildTilePipeline);
  static PassPipelineRegistration<> thread(
      "replay-thread-pipeline", "Tiles with layouts to a thread program",
      buildThreadPipeline);
  static PassPipelineRegistration<> gpu(
      "replay-gpu-pipeline", "A thread program to LLVM and NVVM",
      buildGPUPipeline);
  static PassPipelineRegistration<> host(
      "replay-host-pipeline", "A thread program to LLVM for the host",
      buildHostPipeline);
}
