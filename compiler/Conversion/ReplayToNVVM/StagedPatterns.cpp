//===- StagedPatterns.cpp - Shared buffers and bulk copies ----------------===//
//
// Behind a buffer stands an mbarrier that expects one arrival and the bytes of
// the copy. The buffer is full when the mbarrier's first phase completes.
//
// Rows lie in the order of memory, the last of them at the buffer's end if they
// descend: row 0 has its place whatever their number is.
//
//===----------------------------------------------------------------------===//

#include "compiler/Conversion/ReplayToNVVM/ThreadProgram.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace replayjit::internal;
using namespace replayjit::internal::replay;

namespace {

int64_t rowBytes(BufferType type) {
  return elementBytes(type.getElementType()) *
         (type.getShape().size() == 2 ? type.getShape()[1] : 1);
}

/// From a buffer's start to its mbarrier.
int64_t barrierOffset(BufferType type) {
  return llvm::alignTo(rowBytes(type) * type.getShape()[0], 16);
}

Value barrierOf(ThreadBuilder &b, BufferType type, Value buffer) {
  return b.addressOf(buffer, barrierOffset(type), b.getI8Type());
}

/// From a buffer's start to row 0 of what is seen as `view`.
int64_t firstRowOffset(ViewType view, BufferType type) {
  return view.getStrides()[0] < 0 ? rowBytes(type) * (type.getShape()[0] - 1)
                                  : 0;
}

/// What follows at `b`'s insertion point runs in one thread.
void beginInThread(ThreadBuilder &b, int thread) {
  auto branch =
      scf::IfOp::create(b, arith::CmpIOp::create(b, arith::CmpIPredicate::eq,
                                                 b.threadId(), b.i32(thread)));
  b.setInsertionPointToStart(branch.thenBlock());
}

struct AllocPattern : ReplayPattern<AllocOp> {
  using ReplayPattern::ReplayPattern;
  LogicalResult
  matchAndRewrite(AllocOp op, OneToNOpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ThreadBuilder b(op.getLoc(), rewriter, kernel);
    BufferType type = op.getType();
    kernel.sharedBytes = llvm::alignTo(kernel.sharedBytes, 128);
    Value buffer =
        b.sharedAddress(kernel.reserveShared(barrierOffset(type) + 8));
    {
      OpBuilder::InsertionGuard guard(b);
      beginInThread(b, 0);
      b.initMbarrier(barrierOf(b, type, buffer));
    }
    // Once for a run of buffers.
    if (!isa_and_present<AllocOp>(op->getNextNode()))
      b.fenceMbarriers();
    rewriter.replaceOp(op, buffer);
    return success();
  }
};

struct AsyncCopyPattern : ReplayPattern<AsyncCopyOp> {
  using ReplayPattern::ReplayPattern;
  LogicalResult
  matchAndRewrite(AsyncCopyOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ThreadBuilder b(op.getLoc(), rewriter, kernel);
    ViewType view = op.getView().getType();
    BufferType type = op.getBuffer().getType();
    // Each copy has its own warp, so that none waits for the start of another.
    beginInThread(b, 32 * (kernel.numCopies++ % kernel.numWarps));
    Value buffer = adaptor.getBuffer()[0];
    Value barrier = barrierOf(b, type, buffer);
    // A view's address is followed by its first size where the type has none.
    const bool isDynamic = ShapedType::isDynamic(view.getShape()[0]);
    Value rows = isDynamic ? adaptor.getView()[1] : b.i32(type.getShape()[0]);
    Value bytes = b.mul(rows, b.i32(rowBytes(type)));
    b.expectBytes(barrier, bytes);
    Type byte = b.getI8Type();
    Value source = adaptor.getView()[0], data = b.clusterAddress(buffer);
    if (isDynamic) {
      auto any = scf::IfOp::create(
          b,
          arith::CmpIOp::create(b, arith::CmpIPredicate::sgt, rows, b.i32(0)));
      b.setInsertionPointToStart(any.thenBlock());
    }
    if (view.getStrides()[0] < 0) { // Memory begins with the last row.
      Value past = b.add(bytes, b.i32(-rowBytes(type)));
      source = b.addressOf(source, b.mul(b.extend(past), b.i64(-1)), byte);
      data = b.addressOf(b.addressOf(data, firstRowOffset(view, type), byte),
                         b.mul(b.extend(past), b.i64(-1)), byte);
    }
    Operation *copy = b.bulkCopy(data, source, bytes, barrier);
    if (Attribute dependent = op->getAttr(kArgDependent))
      copy->setAttr(kArgDependent, dependent);
    rewriter.eraseOp(op);
    return success();
  }
};

struct WaitPattern : ReplayPattern<WaitOp> {
  using ReplayPattern::ReplayPattern;
  LogicalResult
  matchAndRewrite(WaitOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ThreadBuilder b(op.getLoc(), rewriter, kernel);
    b.awaitMbarrier(
        barrierOf(b, op.getBuffer().getType(), adaptor.getBuffer()[0]));
    rewriter.eraseOp(op);
    return success();
  }
};

struct StagePattern : ReplayPattern<StageOp> {
  using ReplayPattern::ReplayPattern;
  LogicalResult
  matchAndRewrite(StageOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ThreadBuilder b(op.getLoc(), rewriter, kernel);
    int64_t offset = firstRowOffset(op.getType(), op.getBuffer().getType());
    SmallVector<Value> values = {
        b.addressOf(adaptor.getBuffer()[0], offset, b.getI8Type())};
    llvm::append_range(values, adaptor.getSize());
    rewriter.replaceOpWithMultiple(op, {values});
    return success();
  }
};

} // namespace

void replayjit::internal::populateStagedPatterns(Patterns &patterns,
                                                 const TypeConverter &converter,
                                                 KernelContext &kernel) {
  patterns.add<AllocPattern, AsyncCopyPattern, WaitPattern, StagePattern>(
      converter, patterns.getContext(), kernel);
}
