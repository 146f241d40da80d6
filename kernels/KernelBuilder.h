//===- KernelBuilder.h - Typed helpers to write tile programs ---*- C++ -*-===//
#ifndef REPLAYJIT_KERNELS_KERNELBUILDER_H
#define REPLAYJIT_KERNELS_KERNELBUILDER_H

#include "base/DataType.h"
#include "kernels/Parameters.h"

#include "dialect/ReplayDialect.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/StringMap.h"

#include <string>
#include <vector>

namespace replayjit::internal {

/// A kernel argument: a pointer to `type`, or a scalar of it.
struct ArgumentSpec {
  std::string name;
  DataType type = DataType::F32;
  bool isPointer = true;
  bool isReadOnly = false; ///< Nothing writes it, and nothing else aliases it.
};

/// What a kernel of `spec` declares. Addresses are numbers where most may be 0.
std::vector<ArgumentSpec> declarations(const DecodeSpec &spec,
                                       bool addressesAreNumbers = false);

/// One dimension of a view: its size (a constant, or an i32 value) and its
/// stride in elements (a constant, or an i64 value).
struct Dim {
  int64_t size = 0;
  int64_t stride = 1;
  mlir::Value dynamicSize = {};
  mlir::Value dynamicStride = {};
};

/// Builds one kernel. Scalars are i32 unless a name says otherwise; arithmetic
/// is f32. Values are named by `name`, which reports of the emulation repeat.
class KernelBuilder : public mlir::ImplicitLocOpBuilder {
public:
  KernelBuilder(mlir::MLIRContext &context, const std::string &name,
                const std::vector<ArgumentSpec> &arguments, int numWarps,
                int blocksPerRow);

  /// The finished module; the builder is empty afterwards.
  mlir::OwningOpRef<mlir::ModuleOp> take();

  /// The argument of this name, or what stands in its place.
  mlir::Value argument(const std::string &name);
  /// Puts a constant in the place of an argument that the kernel lacks.
  void replaceArgument(const std::string &name, mlir::Value value) {
    replacements[name] = value;
  }
  /// Caps the registers of a thread.
  void limitRegisters(int count);
  /// The kernel waits for its predecessor, and lets its successor start.
  void allowProgrammaticLaunch();
  /// Names the locations of what is built next.
  void describe(const std::string &what);

  mlir::Type elementType(DataType type);
  mlir::RankedTensorType tileType(llvm::ArrayRef<int64_t> shape,
                                  mlir::Type element = {});

  //===--- Scalars -----------------------------------------------------------//
  mlir::Value i32(int32_t value);
  mlir::Value i64(int64_t value);
  mlir::Value f32(double value);
  mlir::Value toI64(mlir::Value value);
  mlir::Value addI(mlir::Value a, mlir::Value b);
  mlir::Value subI(mlir::Value a, mlir::Value b);
  mlir::Value mulI(mlir::Value a, mlir::Value b);
  mlir::Value divI(mlir::Value a, int32_t b);     ///< Unsigned.
  mlir::Value remI(mlir::Value a, int32_t b);     ///< Unsigned.
  mlir::Value divI(mlir::Value a, mlir::Value b); ///< Unsigned.
  mlir::Value remI(mlir::Value a, mlir::Value b); ///< Unsigned.
  mlir::Value minI(mlir::Value a, mlir::Value b);
  mlir::Value select(mlir::Value condition, mlir::Value a, mlir::Value b);
  mlir::Value isLess(mlir::Value a, mlir::Value b); ///< Signed.
  mlir::Value isEqual(mlir::Value a, mlir::Value b);
  mlir::Value allOf(mlir::Value a, mlir::Value b);
  mlir::Value anyOf(mlir::Value a, mlir::Value b);

  //===--- Floats, scalar or tile --------------------------------------------//
  mlir::Value add(mlir::Value a, mlir::Value b);
  mlir::Value sub(mlir::Value a, mlir::Value b);
  mlir::Value mul(mlir::Value a, mlir::Value b);
  mlir::Value fma(mlir::Value a, mlir::Value b, mlir::Value c);
  mlir::Value neg(mlir::Value a);
  mlir::Value abs(mlir::Value a);
  mlir::Value max(mlir::Value a, mlir::Value b);
  mlir::Value min(mlir::Value a, mlir::Value b);
  mlir::Value exp(mlir::Value a);
  mlir::Value log1p(mlir::Value a);
  mlir::Value rsqrt(mlir::Value a);    ///< 1 / sqrt(a), nearly.
  mlir::Value sigmoid(mlir::Value a);  ///< 1 / (1 + exp(-a))
  mlir::Value softplus(mlir::Value a); ///< log(1 + exp(a)), for any a
  /// A scalar rounded to a type and back.
  mlir::Value roundedTo(mlir::Value a, DataType type);
  /// A number, or a scalar, as a tile like `like`; itself if `like` is none.
  mlir::Value constant(double value, mlir::Value like);
  mlir::Value splat(mlir::Value scalar, mlir::Value like);
  mlir::Value sum(mlir::Value tile); ///< Of a rank-1 tile.

  //===--- Memory -----------------------------------------------------------//
  /// A view `offset` (i64) elements after `pointer`. `alignment` is 0 (that of
  /// the element) or what divides address and strides, in bytes.
  mlir::Value view(mlir::Value pointer, mlir::Value offset,
                   llvm::ArrayRef<Dim> dims, int64_t alignment = 0);
  /// The element `offset` (i64) after `pointer`.
  mlir::Value loadScalar(mlir::Value pointer, mlir::Value offset);
  /// The same where `isWanted`; else zero, and the pointer may be anything.
  mlir::Value loadScalarIf(mlir::Value isWanted, mlir::Value pointer,
                           mlir::Value offset);
  /// Writes the element `offset` (i64) after `pointer` where `isWanted`.
  void storeScalarIf(mlir::Value isWanted, mlir::Value value,
                     mlir::Value pointer, mlir::Value offset);
  /// Elements from the start of a view, as f32 if they are floats.
  mlir::Value loadTile(mlir::Value view, llvm::ArrayRef<int64_t> shape);
  /// Rounds to the view's element type and stores at its start.
  void storeTile(mlir::Value tile, mlir::Value view);
  /// A float of any type as f32.
  mlir::Value widen(mlir::Value value);

  /// `then` and `otherwise` build the branches.
  template <typename Then> void when(mlir::Value condition, Then then) {
    branch(condition, then, nullptr);
  }
  void branch(mlir::Value condition, llvm::function_ref<void()> then,
              llvm::function_ref<void()> otherwise);

private:
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::vector<ArgumentSpec> arguments;
  llvm::StringMap<mlir::Value> replacements;
  replay::KernelOp kernel;
};

} // namespace replayjit::internal

#endif
