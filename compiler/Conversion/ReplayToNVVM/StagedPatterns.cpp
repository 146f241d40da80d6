//===- StagedPatterns.cpp - Shared buffers and roles ----------------------===//
//
// A buffer is its stages one after another, then one mbarrier a stage that says
// "full" (one arrival, and the bytes of its copy) and one that says "empty"
// (one arrival a consumer thread). Item i uses stage i mod stages in round i /
// stages; a round's parity is what its waits ask for.
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

Value isFirst(ThreadBuilder &b, Value number) {
  return arith::CmpIOp::create(b, arith::CmpIPredicate::eq, number, b.i32(0));
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
    auto first = scf::IfOp::create(b, isFirst(b, b.threadId()));
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(first.thenBlock());
      for (int64_t i = 0; i < 2 * stages; ++i)
        NVVM::MBarrierInitOp::create(
            b, b.addressOf(base, stages * bytes + 8 * i, b.getI8Type()),
            b.i32(i < stages ? 1 : 32 * kernel.numWarps), Value());
    }
    NVVM::FenceMbarrierInitOp::create(b);
    NVVM::BarrierOp::create(b); // Both roles.
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
    auto first = scf::IfOp::create(b, isFirst(b, b.lane()));
    b.setInsertionPointToStart(first.thenBlock());
    Stage stage(b, type, adaptor.getBuffer()[0], adaptor.getItem()[0]);
    // Round r may start once round r - 1 was released: a fresh barrier counts
    // as having completed the round before the first.
    waitFor(b, stage.empty, arith::XOrIOp::create(b, stage.parity, b.i32(1)));
    int64_t columns = type.getShape().back();
    int64_t rows = type.getShape().size() == 2 ? type.getShape()[0] : 1;
    int64_t rowBytes = columns * elementBytes(type.getElementType());
    NVVM::MBarrierArriveExpectTxOp::create(b, TypeRange{}, stage.full,
                                           b.i32(rows * rowBytes),
                                           NVVM::MemScopeKind::CTA,
                                           /*relaxed=*/false, Value());
    Value source = adaptor.getView()[0];
    for (auto [offset, stride] :
         llvm::zip(adaptor.getOffsets(), view.getStrides()))
      source = b.addressOf(source, b.mul(b.extend(offset[0]), b.i64(stride)),
                           view.getElementType());
    // One copy if the rows are adjacent, else one a row.
    if (rows == 1 || view.getStrides()[0] == columns) {
      rowBytes *= rows;
      rows = 1;
    }
    // The form of the copy that every PTX version with bulk copies has names
    // its destination in the cluster's shared memory, of which ours is a part.
    Value data = LLVM::AddrSpaceCastOp::create(
        b, LLVM::LLVMPointerType::get(b.getContext(), kClusterSpace),
        stage.data);
    for (int64_t row = 0; row < rows; ++row)
      NVVM::CpAsyncBulkGlobalToSharedClusterOp::create(
          b, b.addressOf(data, row * rowBytes, b.getI8Type()),
          b.addressOf(source, rows == 1 ? 0 : row * view.getStrides()[0],
                      view.getElementType()),
          stage.full, b.i32(rowBytes), Value(), Value());
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

struct ReadPattern : ReplayPattern<ReadOp> {
  using ReplayPattern::ReplayPattern;
  LogicalResult
  matchAndRewrite(ReadOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ThreadBuilder b(op.getLoc(), rewriter, kernel);
    BufferType type = op.getBuffer().getType();
    Stage stage(b, type, adaptor.getBuffer()[0], adaptor.getItem()[0]);
    SmallVector<Value> registers = b.loadShared(
        *LinearLayout::of(op.getType()), type.getElementType(), stage.data);
    rewriter.replaceOpWithMultiple(op, {registers});
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
               ReadPattern, ReleasePattern>(converter, patterns.getContext(),
                                            kernel);
}
