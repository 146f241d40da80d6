//===- Diagnostics.h - MLIR diagnostics become a Status ---------*- C++ -*-===//
#ifndef REPLAYJIT_COMPILER_SUPPORT_DIAGNOSTICS_H
#define REPLAYJIT_COMPILER_SUPPORT_DIAGNOSTICS_H

#include "base/Status.h"

#include "mlir/IR/Diagnostics.h"

namespace replayjit::internal {

/// Collects the errors that MLIR reports in its scope, instead of printing.
class DiagnosticCollector {
public:
  explicit DiagnosticCollector(mlir::MLIRContext *context)
      : handler(context, [this](mlir::Diagnostic &diagnostic) {
          if (diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error)
            text += (text.empty() ? "" : "; ") + diagnostic.str();
          return mlir::success();
        }) {}

  /// "`kernel`, `stage`: what was reported".
  Status failure(const std::string &kernel, const std::string &stage) const {
    return Status::error(
        StatusCode::CompileFailed,
        kernel + ", " + stage + ": " +
            (text.empty() ? "failed without a message" : text),
        stage);
  }

private:
  std::string text;
  mlir::ScopedDiagnosticHandler handler;
};

} // namespace replayjit::internal

#endif
