//===- ProgramFile.cpp - A kernel written by hand -------------------------===//

#include "tools/ProgramFile.h"

#include "base/Files.h"
#include "dialect/ReplayDialect.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

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

/// How deep brackets of any kind lie in each other at most, and the line of the
/// first that does. Words are not told apart: a `>` that closes nothing counts
/// for nothing.
static std::pair<int, int> deepestNesting(llvm::StringRef text) {
  int depth = 0, deepest = 0, line = 1, lineOfDeepest = 1;
  for (size_t i = 0; i < text.size(); ++i) {
    switch (text[i]) {
    case '\n':
      ++line;
      break;
    case '"':
      for (++i; i < text.size() && text[i] != '"' && text[i] != '\n'; ++i)
        i += text[i] == '\\';
      line += i < text.size() && text[i] == '\n';
      break;
    case '/':
      if (text.substr(i).starts_with("//"))
        i = std::min(text.find('\n', i), text.size()) - 1;
      break;
    case '(':
    case '[':
    case '{':
    case '<':
      if (++depth > deepest) {
        deepest = depth;
        lineOfDeepest = line;
      }
      break;
    case '>':
      if (i > 0 && text[i - 1] == '-') // an arrow
        break;
      [[fallthrough]];
    case ')':
    case ']':
    case '}':
      depth = std::max(0, depth - 1);
      break;
    }
  }
  return {deepest, lineOfDeepest};
}

Result<std::string>
replayjit::internal::readProgramText(const std::string &path) {
  Result<std::string> text = readBytes(path);
  if (!text || llvm::StringRef(*text).starts_with("ML\xefR")) // bytecode
    return text;
  const auto [depth, line] = deepestNesting(*text);
  if (depth > mostNesting)
    return Status::invalid(
        fmt::format("mlir: {}:{}: {} brackets within each other are not "
                    "allowed; at most {} are",
                    path, line, depth, mostNesting));
  return text;
}

Result<ProgramFile>
replayjit::internal::parseProgramFile(MLIRContext &context,
                                      const std::string &path) {
  Result<std::string> text = readProgramText(path);
  if (!text)
    return text.status();

  // The first error: those after it are mostly its consequences.
  std::string first;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() == DiagnosticSeverity::Error && first.empty())
      first = sentence(diagnostic, path);
    return success();
  });
  ProgramFile result;
  result.module = parseSourceString<ModuleOp>(*text, &context, path);
  if (!result.module)
    return Status::invalid("mlir: " + first);

  auto kernels = result.module->getOps<replay::KernelOp>();
  const auto count = std::distance(kernels.begin(), kernels.end());
  if (count != 1)
    return Status::invalid(fmt::format(
        "mlir: '{}' holds {} kernels; it must hold one replay.kernel", path,
        count));
  result.kernelName = (*kernels.begin()).getSymName().str();
  // Of PTX, and of the files that are named after the kernel.
  const llvm::StringRef name = result.kernelName;
  if (!llvm::all_of(
          name,
          [](char c) { return llvm::isAlnum(c) || c == '_' || c == '$'; }) ||
      llvm::isDigit(name.front()))
    return Status::invalid(
        fmt::format("mlir: kernel '{}' is not allowed; its name must be of "
                    "letters, digits, '_' and '$', and begin with no digit",
                    result.kernelName));
  return result;
}
