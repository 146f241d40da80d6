//===- Compiler.h - A tile program becomes a kernel -------------*- C++ -*-===//
//
// The stages, by name: tile passes, thread program, LLVM dialect, LLVM IR, PTX,
// cubin; or, for emulation, a host program.
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_COMPILER_COMPILER_H
#define REPLAYJIT_COMPILER_COMPILER_H

#include "base/CompiledKernel.h"
#include "compiler/NVPTX/AssembleCubin.h"
#include "compiler/Support/StageDump.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <functional>
#include <memory>

namespace replayjit::internal {

/// How far a compilation goes.
enum class Stage { Tiles, ThreadProgram, LLVMDialect, LLVMIR, PTX, Cubin };

struct CompileOptions {
  AssembleOptions assemble;
  Stage last = Stage::Cubin;
  /// Sees "replay.mlir", "tiles.mlir", "thread.mlir", "nvvm.mlir", "llvm.ll",
  /// "optimized.ll", "ptx" and "log". Null costs nothing.
  StageObserver observer;
};

/// Owns an MLIR context with our dialects; making one takes milliseconds, so
/// keep it. One thread uses a compiler at a time; several may exist.
class Compiler {
public:
  Compiler();
  ~Compiler();

  mlir::MLIRContext &context() { return *context_; }

  /// Compiles the kernel of `build`'s module for `target`. `build` makes the
  /// tile program: a module with one replay.kernel.
  using Builder = std::function<mlir::OwningOpRef<mlir::ModuleOp>(
      mlir::MLIRContext &)>;
  Result<CompiledKernel> compile(const Builder &build, const Target &target,
                                 const CompileOptions &options);

  /// The same thread program for the CPU (CompiledKernel::hostProgram).
  Result<CompiledKernel> compileForHost(const Builder &build,
                                        const Target &target,
                                        const CompileOptions &options);

private:
  std::unique_ptr<mlir::MLIRContext> context_;
};

/// Registers our dialects and all that the pipelines use.
void registerDialects(mlir::DialectRegistry &registry);

} // namespace replayjit::internal

#endif
