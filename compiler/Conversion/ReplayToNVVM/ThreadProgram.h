//===- ThreadProgram.h - What the lowering patterns share -------*- C++ -*-===//
#ifndef REPLAYJIT_COMPILER_CONVERSION_THREADPROGRAM_H
#define REPLAYJIT_COMPILER_CONVERSION_THREADPROGRAM_H

#include "dialect/LinearLayout.h"
#include "dialect/ReplayDialect.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/Transforms/DialectConversion.h"

#include <optional>

namespace replayjit::internal {

/// Address spaces of the NVPTX target.
inline constexpr unsigned kGlobalSpace = 1, kSharedSpace = 3, kClusterSpace = 7;

/// Facts of the kernel being lowered, and its shared memory so far.
struct KernelContext {
  int numWarps = 1;      ///< Warps that hold tiles.
  bool hasRoles = false; ///< One more warp produces.
  int numCopies = 0;     ///< Asynchronous copies so far.
  int64_t sharedBytes = 0;

  /// The operands of the kernel's replay.on_overflow, converted.
  struct OnOverflow {
    mlir::Value kind, row, layer, word;
    bool trap = false;
  };
  std::optional<OnOverflow> onOverflow;

  /// Reserves bytes, 16-byte aligned, never shared with another use, so that no
  /// barrier is needed between uses outside of loops. Returns the offset.
  int64_t reserveShared(int64_t bytes) {
    int64_t offset = llvm::alignTo(sharedBytes, 16);
    sharedBytes = offset + bytes;
    return offset;
  }
};

/// Scalar code of one thread at one insertion point.
class ThreadBuilder : public mlir::ImplicitLocOpBuilder {
public:
  ThreadBuilder(mlir::Location loc, mlir::OpBuilder &builder,
                KernelContext &context)
      : ImplicitLocOpBuilder(loc, builder), kernel(context) {}

  KernelContext &kernel;

  mlir::Value i32(int32_t value);
  mlir::Value i64(int64_t value);
  mlir::Value f32(float value);
  mlir::Value add(mlir::Value a, mlir::Value b); ///< Integers; folds constants.
  mlir::Value mul(mlir::Value a, mlir::Value b);
  mlir::Value extend(mlir::Value i32Value);       ///< To i64, signed.
  mlir::Value both(mlir::Value a, mlir::Value b); ///< a && b; null is true.

  /// The thread's number in its warp, and its warp's number in the block.
  mlir::Value lane();
  mlir::Value warp();
  mlir::Value threadId();
  /// The block's place in the grid, and the grid's size.
  mlir::Value programId(replay::Axis axis);
  mlir::Value numPrograms(replay::Axis axis);
  /// True in the one thread that holds the unreplicated copy of each element of
  /// `layout`; null if every thread does.
  mlir::Value isOwner(const LinearLayout &layout);

  /// The part of coordinate `dim` that lane and warp contribute; null if none.
  mlir::Value threadCoordinate(const LinearLayout &layout, int dim);

  /// Fused into a*b + sum if `term` is a product with no other meaning here.
  mlir::Value accumulate(mlir::Value sum, mlir::Value term);

  mlir::Value shuffleXor(mlir::Value value, int mask);
  /// Whether `condition` holds in any lane of the warp, and a bit for each lane
  /// in which it does. All lanes come here.
  mlir::Value anyLane(mlir::Value condition);
  mlir::Value lanesWhere(mlir::Value condition);
  /// The four accumulators of mma.sync m16n8k8 (f32 operands, which are tf32 to
  /// it) or m16n8k16 (bf16, f16).
  llvm::SmallVector<mlir::Value> mma(llvm::ArrayRef<mlir::Value> a,
                                     llvm::ArrayRef<mlir::Value> b,
                                     llvm::ArrayRef<mlir::Value> c,
                                     mlir::Type element);
  /// All warps that hold tiles meet; shared memory written before is seen
  /// after.
  void barrier();
  /// A barrier if `op` stands in a loop: what it is about to overwrite may
  /// still be read by the previous iteration.
  void barrierInLoop(mlir::Operation *op);

  /// Address `bytes` into the block's shared memory.
  mlir::Value sharedAddress(int64_t bytes);
  mlir::Value addressOf(mlir::Value base, mlir::Value elements,
                        mlir::Type elementType);
  mlir::Value addressOf(mlir::Value base, int64_t elements,
                        mlir::Type elementType);
  /// `count` elements; marked and cached as `whole` is, whose part they are.
  llvm::SmallVector<mlir::Value> load(mlir::Value address, mlir::Type type,
                                      int count, mlir::Value predicate = {},
                                      replay::LoadOp whole = {});
  void store(mlir::ValueRange values, mlir::Value address,
             mlir::Value predicate = {});

  /// Writes the error word as replay.report says, in the thread where
  /// `isReporter` (null: the block's first); continues behind it.
  void report(mlir::Value isReporter, mlir::Value kind, mlir::Value row,
              mlir::Value layer, mlir::Value value, mlir::Value word,
              bool trap);

  /// Writes a tile to shared memory at byte `offset`, row-major, once.
  void storeShared(llvm::ArrayRef<mlir::Value> registers,
                   const LinearLayout &layout, mlir::Type elementType,
                   mlir::Value base);
  /// Reads a row-major tile of shared memory.
  llvm::SmallVector<mlir::Value> loadShared(const LinearLayout &layout,
                                            mlir::Type elementType,
                                            mlir::Value base);

private:
  /// The element offset of this thread in a row-major tile; null if 0.
  mlir::Value rowMajorOffset(const LinearLayout &layout);
};

using Patterns = mlir::RewritePatternSet;
void populateElementwisePatterns(Patterns &, const mlir::TypeConverter &,
                                 KernelContext &);
void populateMemoryPatterns(Patterns &, const mlir::TypeConverter &,
                            KernelContext &);
void populateNarrowPatterns(Patterns &, const mlir::TypeConverter &,
                            KernelContext &);
void populateReducePatterns(Patterns &, const mlir::TypeConverter &,
                            KernelContext &);
void populateMmaPatterns(Patterns &, const mlir::TypeConverter &,
                         KernelContext &);
void populateStagedPatterns(Patterns &, const mlir::TypeConverter &,
                            KernelContext &);

/// A pattern that knows the kernel.
template <typename Op> struct ReplayPattern : mlir::OpConversionPattern<Op> {
  KernelContext &kernel;
  ReplayPattern(const mlir::TypeConverter &converter,
                mlir::MLIRContext *context, KernelContext &kernel)
      : mlir::OpConversionPattern<Op>(converter, context), kernel(kernel) {}
};

} // namespace replayjit::internal

#endif
