//===- ProgramFile.cpp - A kernel written by hand -------------------------===//

#include "tools/ProgramFile.h"

#include "dialect/ReplayDialect.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/MemoryBuffer.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

using namespace mlir;
using namespace replayjit::internal;

/// "FILE:LINE:COLUMN: what is wrong", on one line.
static std::string sentence(const Diagnostic &diagnostic,
                            const std::string &path) {
  std::string text = path;
  if (auto place = dyn_cast<FileLineColLoc>(diagnostic.getLocation()))
    text += fmt::format(":{}:{}", place.getLine(), place.getColumn());
  text += ": " + diagnostic.str();
  std::replace(text.begin(), text.end(), '\n', ' ');
  return llvm::StringRef(text).rtrim().str();
}

Result<ProgramFile>
replayjit::internal::parseProgramFile(MLIRContext &context,
                                      const std::string &path) {
  auto text = llvm::MemoryBuffer::getFile(path, /*IsText=*/true);
  if (!text)
    return Status::error(StatusCode::NotFound,
                         fmt::format("mlir: cannot read '{}' ({})", path,
                                     text.getError().message()));

  // The first error: those after it are mostly its consequences.
  std::string first;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() == DiagnosticSeverity::Error && first.empty())
      first = sentence(diagnostic, path);
    return success();
  });
  ProgramFile result;
  result.module =
      parseSourceString<ModuleOp>((*text)->getBuffer(), &context, path);
  if (!result.module)
    return Status::invalid("mlir: " + first);

  auto kernels = result.module->getOps<replay::KernelOp>();
  const auto count = std::distance(kernels.begin(), kernels.end());
  if (count != 1)
    return Status::invalid(fmt::format(
        "mlir: '{}' holds {} kernels; it must hold one replay.kernel", path,
        count));
  result.kernelName = (*kernels.begin()).getSymName().str();
  return result;
}
