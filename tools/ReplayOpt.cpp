//===- ReplayOpt.cpp - mlir-opt with our dialect and passes ---------------===//

#include "tools/ProgramFile.h"
#include "tools/Tools.h"

#include "compiler/Compiler.h"
#include "compiler/Conversion/ReplayToNVVM/ReplayToNVVM.h"
#include "compiler/Host/HostLowering.h"
#include "compiler/Pipeline.h"
#include "compiler/Transforms/Passes.h"

#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/ToolOutputFile.h"

#include <memory>

int replayjit::internal::replayOpt(int argc, char **argv) {
  mlir::DialectRegistry registry;
  registerDialects(registry);
  registerReplayTransformsPasses();
  registerReplayConversionPasses();
  registerReplayHostPasses();
  registerPipelines();
  mlir::registerCanonicalizerPass();
  mlir::registerCSEPass();
  const auto [input, output] = mlir::registerAndParseCLIOptions(
      argc, argv, "replayjit optimizer driver\n", registry);
  const auto config = mlir::MlirOptMainConfig::createFromCLOptions();
  if (config.shouldShowDialects() || config.shouldListPasses())
    return mlir::asMainReturnCode(
        mlir::MlirOptMain(argc, argv, input, output, registry));

  // Read here, where size and nesting are bounded.
  Result<std::string> text =
      readProgramText(input == "-" ? "/dev/stdin" : input);
  if (!text)
    return fail(text.status().message);
  std::string problem;
  std::unique_ptr<llvm::ToolOutputFile> file =
      mlir::openOutputFile(output, &problem);
  if (!file)
    return fail(problem);
  const mlir::LogicalResult result = mlir::MlirOptMain(
      file->os(), llvm::MemoryBuffer::getMemBuffer(*text, input), registry,
      config);
  if (mlir::succeeded(result))
    file->keep();
  return mlir::asMainReturnCode(result);
}
