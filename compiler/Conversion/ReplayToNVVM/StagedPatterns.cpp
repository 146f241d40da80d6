//===- StagedPatterns.cpp - Shared buffers and roles ----------------------===//
//
// A buffer is its stages one after another, then one mbarrier a stage that says
// "full" (one arrival, and the bytes of its copy) and, where there are roles,
// one that says "empty" (one arrival a consumer thread). Item i uses stage i
// mod stages in round i / stages; a round's parity is what its waits ask for.
//
// Rows lie in the order of memory, the last of them at a stage's end if they
// descend: row 0 has its place whatever their number is.
//
//===----------------------------------------------------------------------===//

#include "compiler/Conversion/ReplayToNVVM/ThreadProgram.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace replayjit::internal;
using namespace replayjit::internal::replay;

namespace {

/// Addresses of one item's stage.
struct Stage {
  Value data, full, empty, parity;

  Stage(ThreadBuilder &b, BufferType type, Value base, Value item) {
    int64_t stages = type.getStages(), bytes = stageBytes(type);
    Value count = b.i32(stages);
    Value index = arith::RemUIOp::create(b, item, count);
    Value round = arith::DivUIOp::create(b, item, count);
    parity = arith::AndIOp::create(b, round, b.i32(1));
    Type byte = b.getI8Type();
    data = b.addressOf(base, b.mul(index, b.i32(bytes)), byte);
    Value barriers = b.addressOf(base, b.mul(index, b.i32(8)), byte);
    full = b.addressOf(barriers, stages * bytes, byte);
    empty = b.addressOf(barriers, stages * bytes + stages * 8, byte);
  }

  static int64_t stageBytes(BufferType type) {
    int64_t bytes = elementBytes(type.getElementType());
    for (int64_t size : type.getShape())
      bytes *= size;
    return llvm::alignTo(bytes, 16);
  }
};

int64_t rowBytes(BufferType type) {
  return elementBytes(type.getElementType()) *
         (type.getShape().size() == 2 ? type.getShape()[1] : 1);
}

/// From a stage's start to row 0 of what is seen as `view`.
int64_t firstRowOffset(ViewType view, BufferType type) {
  return view.getStrides()[0] < 0 ? rowBytes(type) * (type.getShape()[0] - 1)
                                  : 0;
}

Value isNumber(ThreadBuilder &b, Value number, int wanted) {
  return arith::CmpIOp::create(b, arith::CmpIPredicate::eq, number,
                               b.i32(wanted));
}

void waitFor(ThreadBuilder &b, Value mbarrier, Value parity) {
  // The suspend-time hint of the loop that this becomes, in nanoseconds.
  NVVM::MBarrierTryWaitParityOp::create(b, mbarrier, parity, b.i32(0x989680));
}

struct AllocPattern : ReplayPattern<AllocOp> {
  using ReplayPattern::ReplayPattern;
  LogicalResult
  matchAndRewrite(AllocOp op, OneToNOpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ThreadBuilder b(op.getLoc(), rewriter, kernel);
    BufferType type = op.getType();
    int64_t stages = type.getStages(), bytes = Stage::stageBytes(type);
    kernel.sharedBytes = llvm::alignTo(kernel.sharedBytes, 128);
    Value base = b.sharedAddress(kernel.reserveShared(stages * (bytes + 16)));
    auto first = scf::IfOp::create(b, isNumber(b, b.threadId(), 0));
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(first.thenBlock());
      for (int64_t i = 0; i < (kernel.hasRoles ? 2 : 1) * stages; ++i)
        NVVM::MBarrierInitOp::create(
            b, b.addressOf(base, stages * bytes + 8 * i, b.getI8Type()),
            b.i32(i < stages ? 1 : 32 * kernel.numWarps), Value());
    }
    // Once for a run of buffers; both roles.
    if (!isa_and_present<AllocOp>(op->getNextNode())) {
      NVVM::FenceMbarrierInitOp::create(b);
      NVVM::BarrierOp::create(b);
    }
    rewriter.replaceOp(op, base);
    return success();
  }
};

struct RolesPattern : ReplayPattern<RolesOp> {
  using ReplayPattern::ReplayPattern;
  LogicalResult
  matchAndRewrite(RolesOp op, OneToNOpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ThreadBuilder b(op.getLoc(), rewriter, kernel);
    Value isProducer = arith::CmpIOp::create(b, arith::CmpIPredicate::eq,
                                             b.warp(), b.i32(kernel.numWarps));
    auto branch = scf::IfOp::create(b, isProducer, /*withElseRegion=*/true);
    rewriter.inlineBlockBefore(&op.getProducer().front(),
                               branch.thenBlock()->getTerminator());
    rewriter.inlineBlockBefore(&op.getConsumer().front(),
                               branch.elseBlock()->getTerminator());
    rewriter.eraseOp(op);
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
    // One thread of the producer; without roles each copy has its own warp, so
    // that none waits for the start of another.
    int thread = 32 * (kernel.numCopies++ % kernel.numWarps);
    auto first = scf::IfOp::create(b, kernel.hasRoles
                                          ? isNumber(b, b.lane(), 0)
                                          : isNumber(b, b.threadId(), thread));
    b.setInsertionPointToStart(first.thenBlock());
    Stage stage(b, type, adaptor.getBuffer()[0], adaptor.getItem()[0]);
    // Round r may start once round r - 1 was released: a fresh barrier counts
    // as having completed the round before the first.
    if (kernel.hasRoles)
      waitFor(b, stage.empty, arith::XOrIOp::create(b, stage.parity, b.i32(1)));
    // A view's address is followed by its first size where the type has none.
    const bool isDynamic = ShapedType::isDynamic(view.getShape()[0]);
    Value rows = isDynamic ? adaptor.getView()[1] : b.i32(type.getShape()[0]);
    Value bytes = b.mul(rows, b.i32(rowBytes(type)));
    NVVM::MBarrierArriveExpectTxOp::create(b, TypeRange{}, stage.full, bytes,
                                           NVVM::MemScopeKind::CTA,
                                           /*relaxed=*/false, Value());
    // The form of the copy that every PTX version with bulk copies has names
    // its destination in the cluster's shared memory, of which ours is a part.
    Value data = LLVM::AddrSpaceCastOp::create(
        b, LLVM::LLVMPointerType::get(b.getContext(), kClusterSpace),
        stage.data);
    Type byte = b.getI8Type();
    auto copy = [&](Value to, Value from, Value length) {
      auto part = NVVM::CpAsyncBulkGlobalToSharedClusterOp::create(
          b, to, from, stage.full, length, Value(), Value());
      if (Attribute dependent = op->getAttr(kArgDependent))
        part->setAttr(kArgDependent, dependent);
    };
    Value source = adaptor.getView()[0];
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
      copy(data, source, bytes);
    } else if (view.getRank() == 1 || isDynamic ||
               view.getStrides()[0] == view.getShape()[1]) {
      copy(data, source, bytes);
    } else {
      for (int64_t row = 0; row < type.getShape()[0]; ++row)
        copy(b.addressOf(data, row * rowBytes(type), byte),
             b.addressOf(source, row * view.getStrides()[0],
                         view.getElementType()),
             b.i32(rowBytes(type)));
    }
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
    Stage stage(b, op.getBuffer().getType(), adaptor.getBuffer()[0],
                adaptor.getItem()[0]);
    waitFor(b, stage.full, stage.parity);
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
    BufferType type = op.getBuffer().getType();
    Stage stage(b, type, adaptor.getBuffer()[0], adaptor.getItem()[0]);
    SmallVector<Value> values = {b.addressOf(
        stage.data, firstRowOffset(op.getType(), type), b.getI8Type())};
    llvm::append_range(values, adaptor.getSize());
    rewriter.replaceOpWithMultiple(op, {values});
    return success();
  }
};

struct ReleasePattern : ReplayPattern<ReleaseOp> {
  using ReplayPattern::ReplayPattern;
  LogicalResult
  matchAndRewrite(ReleaseOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ThreadBuilder b(op.getLoc(), rewriter, kernel);
    Stage stage(b, op.getBuffer().getType(), adaptor.getBuffer()[0],
                adaptor.getItem()[0]);
    // Each thread for itself, so that its own reads are ordered before.
    NVVM::MBarrierArriveOp::create(b, b.getI64Type(), stage.empty);
    rewriter.eraseOp(op);
    return success();
  }
};

} // namespace

void replayjit::internal::populateStagedPatterns(Patterns &patterns,
                                                 const TypeConverter &converter,
                                                 KernelContext &kernel) {
  patterns.add<AllocPattern, RolesPattern, AsyncCopyPattern, WaitPattern,
               StagePattern, ReleasePattern>(converter, patterns.getContext(),
                                             kernel);
}
