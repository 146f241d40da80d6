//===- ReplayOpt.cpp - mlir-opt with our dialect and passes ---------------===//

#include "tools/Tools.h"

#include "compiler/Compiler.h"
#include "compiler/Conversion/ReplayToNVVM/ReplayToNVVM.h"
#include "compiler/Host/HostLowering.h"
#include "compiler/Transforms/Passes.h"

#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"

int replayjit::internal::replayOpt(int argc, char **argv) {
  mlir::DialectRegistry registry;
  registerDialects(registry);
  registerReplayTransformsPasses();
  registerReplayConversionPasses();
  registerReplayHostPasses();
  registerPipelines();
  mlir::registerCanonicalizerPass();
  mlir::registerCSEPass();
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, "replayjit optimizer driver\n", registry));
}
