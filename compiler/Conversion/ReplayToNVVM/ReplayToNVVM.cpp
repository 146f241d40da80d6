//===- ReplayToNVVM.cpp - The pass, and the kernel itself -----------------===//

#include "compiler/Conversion/ReplayToNVVM/ReplayToNVVM.h"
#include "compiler/Conversion/ReplayToNVVM/NVVMOps.h"
#include "compiler/Conversion/ReplayToNVVM/ThreadProgram.h"
#include "compiler/Transforms/Memory.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Transforms/Patterns.h"
#include "mlir/IR/Matchers.h"

namespace replayjit::internal {
#define GEN_PASS_DEF_CONVERTREPLAYTONVVMPASS
#include "compiler/Conversion/ReplayToNVVM/Passes.h.inc"
} // namespace replayjit::internal

using namespace mlir;
using namespace replayjit::internal;
using namespace replayjit::internal::replay;

namespace {

/// Tiles to the scalars of one thread, views to address, sizes and strides.
struct ThreadTypeConverter : TypeConverter {
  ThreadTypeConverter() {
    addConversion([](Type type) { return type; });
    addConversion([](PtrType type) -> Type {
      return LLVM::LLVMPointerType::get(type.getContext(), kGlobalSpace);
    });
    addConversion([](BufferType type) -> Type {
      return LLVM::LLVMPointerType::get(type.getContext(), kSharedSpace);
    });
    addConversion(
        [](RankedTensorType type,
           SmallVectorImpl<Type> &types) -> std::optional<LogicalResult> {
          auto layout = LinearLayout::of(type);
          if (!layout)
            return failure();
          types.assign(layout->numRegisters(), type.getElementType());
          return success();
        });
    addConversion(
        [](ViewType type,
           SmallVectorImpl<Type> &types) -> std::optional<LogicalResult> {
          MLIRContext *context = type.getContext();
          types.push_back(LLVM::LLVMPointerType::get(
              context, type.getShared() ? kSharedSpace : kGlobalSpace));
          types.append(llvm::count_if(type.getShape(), ShapedType::isDynamic),
                       IntegerType::get(context, 32));
          types.append(llvm::count_if(type.getStrides(), ShapedType::isDynamic),
                       IntegerType::get(context, 64));
          return success();
        });
    auto cast = [](OpBuilder &builder, Type type, ValueRange inputs,
                   Location loc) -> Value {
      return UnrealizedConversionCastOp::create(builder, loc, type, inputs)
          .getResult(0);
    };
    addSourceMaterialization(cast);
    addTargetMaterialization(cast);
  }
};

struct KernelPattern : ReplayPattern<KernelOp> {
  using ReplayPattern::ReplayPattern;
  LogicalResult
  matchAndRewrite(KernelOp op, OneToNOpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    TypeConverter::SignatureConversion signature(op.getNumArguments());
    if (failed(getTypeConverter()->convertSignatureArgs(op.getArgumentTypes(),
                                                        signature)))
      return failure();
    MLIRContext *context = op.getContext();
    auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(context),
                                            signature.getConvertedTypes());
    auto function =
        LLVM::LLVMFuncOp::create(rewriter, op.getLoc(), op.getSymName(), type);
    int threads = 32 * (kernel.numWarps + (kernel.hasRoles ? 1 : 0));
    nvvm::markKernel(function, threads, op->getAttr(kMaxRegisters));
    function->setAttr(kThreads, rewriter.getI32IntegerAttr(threads));
    function->setAttr(kBlocksPerRow,
                      rewriter.getI32IntegerAttr(op.getBlocksPerRow()));
    SmallVector<Attribute> names;
    for (unsigned i = 0; i < op.getNumArguments(); ++i) {
      Attribute name = op.getArgAttr(i, kArgName);
      names.push_back(name ? name
                           : rewriter.getStringAttr("arg" + std::to_string(i)));
      if (op.getArgAttr(i, kArgReadOnly)) {
        function.setArgAttr(i, LLVM::LLVMDialect::getNoAliasAttrName(),
                            rewriter.getUnitAttr());
        function.setArgAttr(i, LLVM::LLVMDialect::getReadonlyAttrName(),
                            rewriter.getUnitAttr());
      }
    }
    function->setAttr(kArgNames, rewriter.getArrayAttr(names));
    rewriter.inlineRegionBefore(op.getBody(), function.getBody(),
                                function.end());
    if (failed(rewriter.convertRegionTypes(&function.getBody(),
                                           *getTypeConverter(), &signature)))
      return failure();
    rewriter.eraseOp(op);
    return success();
  }
};

struct ReturnPattern : ReplayPattern<ReturnOp> {
  using ReplayPattern::ReplayPattern;
  LogicalResult
  matchAndRewrite(ReturnOp op, OneToNOpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<LLVM::ReturnOp>(op, ValueRange{});
    return success();
  }
};

struct AwaitPredecessorPattern : ReplayPattern<AwaitPredecessorOp> {
  using ReplayPattern::ReplayPattern;
  LogicalResult
  matchAndRewrite(AwaitPredecessorOp op, OneToNOpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    nvvm::awaitPredecessor(rewriter, op.getLoc());
    if (op.getThenLaunch())
      nvvm::launchDependents(rewriter, op.getLoc());
    rewriter.eraseOp(op);
    return success();
  }
};

struct LaunchDependentsPattern : ReplayPattern<LaunchDependentsOp> {
  using ReplayPattern::ReplayPattern;
  LogicalResult
  matchAndRewrite(LaunchDependentsOp op, OneToNOpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    nvvm::launchDependents(rewriter, op.getLoc());
    rewriter.eraseOp(op);
    return success();
  }
};

/// Marks what reads through arguments that nothing writes while the kernel
/// runs, which may move; and what reads memory that a wait stands for.
void markReads(KernelOp kernel) {
  llvm::SmallPtrSet<Value, 8> dependent;
  kernel->walk([&](AwaitPredecessorOp wait) {
    forEachWrite(wait, [&](Value pointer) { dependent.insert(pointer); });
  });
  kernel->walk([&](Operation *op) {
    if (!isa<LoadOp, AsyncCopyOp>(op))
      return;
    Value pointer = pointerOf(op->getOperand(0));
    auto mark = [&](StringRef name) {
      op->setAttr(name, UnitAttr::get(op->getContext()));
    };
    auto argument = dyn_cast_if_present<BlockArgument>(pointer);
    if (argument && argument.getOwner() == &kernel.getBody().front() &&
        kernel.getArgAttr(argument.getArgNumber(), kArgReadOnly))
      mark(kArgReadOnly);
    if (dependent.contains(pointer))
      mark(kArgDependent);
  });
}

/// True if the dot's tiles are the fragments that its instruction takes; one
/// without fragments takes tiles of any layout.
bool hasFragments(DotOp dot, int numWarps) {
  if (dot.getPrecision() == Precision::Ieee)
    return true;
  auto a = cast<RankedTensorType>(dot.getA().getType());
  int64_t m = a.getDimSize(0), k = a.getDimSize(1);
  int64_t n = cast<RankedTensorType>(dot.getType()).getDimSize(1);
  bool half = dot.getPrecision() == Precision::Bf16 ||
              dot.getPrecision() == Precision::F16;
  auto are = [&](const LinearLayout &left, const LinearLayout &right,
                 const LinearLayout &result) {
    return LinearLayout::of(a) == left &&
           LinearLayout::of(dot.getB().getType()) == right &&
           LinearLayout::of(dot.getC().getType()) == result &&
           LinearLayout::of(dot.getType()) == result;
  };
  if (dot.getWide())
    return are(LinearLayout::wideMmaOperandA(m, k, n, numWarps),
               LinearLayout::wideMmaOperandB(m, k, n, numWarps),
               LinearLayout::wideMmaResult(m, n, numWarps));
  return are(LinearLayout::mmaOperandA(m, k, n, half, numWarps),
             LinearLayout::mmaOperandB(m, k, n, half, numWarps),
             LinearLayout::mmaResult(m, n, numWarps));
}

/// What the patterns rely on. Checked before any of them runs, because the
/// conversion cannot be undone.
LogicalResult checkPreconditions(KernelOp kernel) {
  auto result = kernel->walk([&](Operation *op) -> WalkResult {
    for (Value value : op->getResults())
      if (isa<RankedTensorType>(value.getType()) &&
          !LinearLayout::of(value.getType()))
        return op->emitOpError("has a tile without a layout; run "
                               "replay-assign-layouts first");
    if (isa<math::MathDialect>(op->getDialect()) &&
        !isa<math::ExpOp, math::Log1pOp, math::FmaOp, math::SqrtOp,
             math::RsqrtOp, math::AbsFOp>(op))
      return op->emitOpError(
          "has no lowering; exp, log1p, fma, sqrt, rsqrt and "
          "absf have one");
    if (isa<math::ExpOp, math::Log1pOp>(op) &&
        !getElementTypeOrSelf(op->getResult(0)).isF32())
      return op->emitOpError("is lowered for f32 only");
    if (auto slice = dyn_cast<SliceOp>(op))
      if (!matchPattern(slice.getOffset(), m_Constant()))
        return op->emitOpError("needs a constant offset to be lowered; unroll "
                               "its loop with replay-unroll-tiles first");
    if (auto copy = dyn_cast<AsyncCopyOp>(op))
      if (llvm::any_of(copy.getView().getType().getStrides(),
                       ShapedType::isDynamic))
        return op->emitOpError("needs static strides to be lowered");
    if (auto constant = dyn_cast<arith::ConstantOp>(op))
      if (isa<RankedTensorType>(constant.getType()) &&
          !isa<SplatElementsAttr>(constant.getValue()))
        return op->emitOpError("must be a splat to be lowered");
    if (auto stack = dyn_cast<StackOp>(op)) {
      LinearLayout layout = *LinearLayout::of(stack.getType());
      if (layout.squeeze(0)
                  .widenInRegisters(0, layout.shape[0])
                  .replicatedLanes() != layout.replicatedLanes() ||
          layout.squeeze(0).replicatedWarps() != layout.replicatedWarps())
        return op->emitOpError("needs its rows in registers to be lowered");
    }
    if (auto reduce = dyn_cast<ReduceOp>(op)) {
      auto layout = *LinearLayout::of(reduce.getValue().getType());
      if (layout.rank() == 2 && LinearLayout::of(reduce.getType()) !=
                                    layout.reduced(reduce.getAxis()))
        return op->emitOpError("has a result layout other than its "
                               "reduction's");
    }
    if (auto dot = dyn_cast<DotOp>(op))
      if (!hasFragments(dot, kernel.getNumWarps()))
        return op->emitOpError("has tiles in other layouts than the matrix "
                               "unit's fragments");
    if (auto scan = dyn_cast<CumsumOp>(op)) {
      auto layout = *LinearLayout::of(scan.getType());
      for (auto *bases : {&layout.lanes, &layout.warps})
        for (const Basis &basis : *bases)
          if (basis.move && basis.dim == (int)scan.getAxis())
            return op->emitOpError("needs its axis in registers to be lowered");
    }
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

struct ConvertReplayToNVVMPass
    : replayjit::internal::impl::ConvertReplayToNVVMPassBase<
          ConvertReplayToNVVMPass> {
  void getDependentDialects(DialectRegistry &registry) const override {
    ConvertReplayToNVVMPassBase::getDependentDialects(registry);
    nvvm::addDialect(registry);
  }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    declareSharedMemory(module);
    SmallVector<KernelOp> kernels(module.getOps<KernelOp>());
    for (KernelOp kernel : kernels)
      if (failed(lower(kernel)))
        return signalPassFailure();
  }

  void declareSharedMemory(ModuleOp module) {
    OpBuilder builder = OpBuilder::atBlockBegin(module.getBody());
    auto type = LLVM::LLVMArrayType::get(builder.getI8Type(), 0);
    LLVM::GlobalOp::create(builder, module.getLoc(), type,
                           /*isConstant=*/false, LLVM::Linkage::External,
                           kSharedSymbol, Attribute(), /*alignment=*/128,
                           kSharedSpace);
  }

  LogicalResult lower(KernelOp kernel) {
    if (failed(checkPreconditions(kernel)))
      return failure();
    markReads(kernel);
    KernelContext context;
    context.numWarps = kernel.getNumWarps();
    context.hasRoles = !kernel.getBody().getOps<RolesOp>().empty();
    std::string name = kernel.getSymName().str();
    ModuleOp module = getOperation();

    ThreadTypeConverter converter;
    RewritePatternSet patterns(&getContext());
    ConversionTarget target(getContext());
    patterns.add<KernelPattern, ReturnPattern, AwaitPredecessorPattern,
                 LaunchDependentsPattern>(converter, &getContext(), context);
    populateElementwisePatterns(patterns, converter, context);
    populateMemoryPatterns(patterns, converter, context);
    populateNarrowPatterns(patterns, converter, context);
    populateReducePatterns(patterns, converter, context);
    populateMmaPatterns(patterns, converter, context);
    populateStagedPatterns(patterns, converter, context);
    scf::populateSCFStructuralTypeConversionsAndLegality(converter, patterns,
                                                         target);
    target.addLegalDialect<LLVM::LLVMDialect>();
    target.addLegalDialect("nvvm");
    target.addIllegalDialect<ReplayDialect>();
    target.addLegalOp<LdOp, StOp, LoadFenceOp>();
    target.addDynamicallyLegalDialect<arith::ArithDialect, math::MathDialect>(
        [](Operation *op) {
          return llvm::none_of(op->getResultTypes(), [](Type type) {
            return isa<RankedTensorType>(type);
          });
        });
    ConversionConfig config;
    config.allowPatternRollback = false;
    if (failed(applyPartialConversion(kernel, target, std::move(patterns),
                                      config)))
      return failure();
    auto function = module.lookupSymbol<LLVM::LLVMFuncOp>(name);
    if (context.sharedBytes > std::numeric_limits<int32_t>::max())
      return function.emitError() << "needs " << context.sharedBytes
                                  << " bytes of shared memory a block, more "
                                     "than any target has";
    function->setAttr(
        kSharedBytes,
        OpBuilder(&getContext()).getI32IntegerAttr(context.sharedBytes));
    return success();
  }
};

} // namespace
