//===- HostLowering.cpp - Thread programs for emulation -------------------===//

#include "compiler/Host/HostLowering.h"
#include "compiler/Host/EmulatorCalls.h"
#include "dialect/ReplayDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/TypeSwitch.h"

namespace replayjit::internal {
#define GEN_PASS_DEF_HOSTLOWERINGPASS
#include "compiler/Host/HostLowering.h.inc"
} // namespace replayjit::internal

using namespace mlir;
using namespace replayjit::internal;
using namespace replayjit::internal::replay;

namespace {

bool isWaitForPredecessor(Operation *op) {
  auto control = dyn_cast<NVVM::GriddepcontrolOp>(op);
  return control && control.getKind() == NVVM::GridDepActionKind::wait;
}

/// Lowers one kernel. Values pass to the emulator through a scratch area on the
/// lane's stack, because its functions take any width by address.
class KernelLowering {
public:
  KernelLowering(LLVM::LLVMFuncOp function, llvm::StringMap<int32_t> &sites)
      : function(function), sites(sites),
        b(ImplicitLocOpBuilder::atBlockBegin(function.getLoc(),
                                             &function.getBody().front())) {
    Value bytes = LLVM::ConstantOp::create(b, b.getI32IntegerAttr(kScratch));
    scratch =
        LLVM::AllocaOp::create(b, pointerType(), b.getI8Type(), bytes, 16);
  }

  LogicalResult run() {
    SmallVector<Operation *> ops;
    function->walk([&](Operation *op) { ops.push_back(op); });
    if (llvm::any_of(ops, isWaitForPredecessor))
      call("replayjit_emu_start_early", {}, {site("start")});
    for (Operation *op : ops)
      if (failed(lower(op)))
        return failure();
    return success();
  }

private:
  static constexpr int kScratch = 64;

  LLVM::LLVMFuncOp function;
  llvm::StringMap<int32_t> &sites;
  ImplicitLocOpBuilder b;
  Value scratch;

  LLVM::LLVMPointerType pointerType() {
    return LLVM::LLVMPointerType::get(b.getContext());
  }
  Value i32(int32_t value) {
    return LLVM::ConstantOp::create(b, b.getI32IntegerAttr(value));
  }
  /// The generic address that the emulator wants; shared memory is host memory.
  Value generic(Value address) {
    if (address.getType() == pointerType())
      return address;
    return LLVM::AddrSpaceCastOp::create(b, pointerType(), address);
  }
  Value scratchAt(int bytes) {
    return LLVM::GEPOp::create(b, pointerType(), b.getI8Type(), scratch,
                               ArrayRef<LLVM::GEPArg>{bytes});
  }

  Value call(StringRef name, Type result, ValueRange arguments) {
    auto module = function->getParentOfType<ModuleOp>();
    auto callee = module.lookupSymbol<LLVM::LLVMFuncOp>(name);
    if (!callee) {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(module.getBody());
      callee = LLVM::LLVMFuncOp::create(
          b, name,
          LLVM::LLVMFunctionType::get(
              result ? result : LLVM::LLVMVoidType::get(b.getContext()),
              llvm::to_vector(arguments.getTypes())));
    }
    auto op = LLVM::CallOp::create(b, callee, arguments);
    return result ? op.getResult() : Value();
  }

  /// The number of what an operation does: its kind and its location's name.
  Value site(StringRef kind) {
    std::string text = kind.str();
    Location loc = b.getLoc();
    if (auto name = dyn_cast<NameLoc>(loc)) {
      text += " of " + name.getName().str();
    } else if (auto file = dyn_cast<FileLineColLoc>(loc)) {
      text += " at " + file.getFilename().str() + ":" +
              std::to_string(file.getLine());
    }
    int32_t next = sites.size();
    return i32(sites.try_emplace(text, next).first->second);
  }

  LogicalResult lower(Operation *op) {
    b.setInsertionPoint(op);
    b.setLoc(op->getLoc());
    return llvm::TypeSwitch<Operation *, LogicalResult>(op)
        .Case([&](LdOp ld) { return lowerLoad(ld); })
        .Case([&](StOp st) { return lowerStore(st); })
        .Case([&](NVVM::ThreadIdXOp) { return sreg(op, host::TidX); })
        .Case([&](NVVM::BlockIdXOp) { return sreg(op, host::CtaIdX); })
        .Case([&](NVVM::BlockIdYOp) { return sreg(op, host::CtaIdY); })
        .Case([&](NVVM::BlockIdZOp) { return sreg(op, host::CtaIdZ); })
        .Case([&](NVVM::GridDimXOp) { return sreg(op, host::NCtaIdX); })
        .Case([&](NVVM::ShflOp shuffle) { return lowerShuffle(shuffle); })
        .Case([&](NVVM::VoteSyncOp vote) { return lowerVote(vote); })
        .Case([&](NVVM::MmaOp mma) { return lowerMma(mma); })
        .Case([&](NVVM::SyncWarpOp sync) {
          call("replayjit_emu_warp_barrier", {},
               {sync.getMask(), site("warp barrier")});
          return erase(op);
        })
        .Case([&](NVVM::BarrierOp barrier) {
          Value id = barrier.getBarrierId(), n = barrier.getNumberOfThreads();
          call("replayjit_emu_barrier", {},
               {id ? id : i32(0), n ? n : i32(-1), site("barrier")});
          return erase(op);
        })
        .Case([&](LLVM::AtomicRMWOp atomic) { return lowerAtomic(atomic); })
        // Loads run when they come, and no kernel starts before its turn.
        .Case<NVVM::FenceMbarrierInitOp, LoadFenceOp>(
            [&](Operation *) { return erase(op); })
        .Case([&](NVVM::GriddepcontrolOp) {
          if (isWaitForPredecessor(op))
            call("replayjit_emu_await_predecessor", {}, {site("wait")});
          return erase(op);
        })
        .Case([&](NVVM::MBarrierInitOp init) {
          call("replayjit_emu_mbarrier_init", {},
               {generic(init.getAddr()), init.getCount(),
                site("mbarrier init")});
          return erase(op);
        })
        .Case([&](NVVM::MBarrierArriveOp arrive) {
          call("replayjit_emu_mbarrier_arrive", {},
               {generic(arrive.getAddr()), site("mbarrier arrival")});
          return erase(op);
        })
        .Case([&](NVVM::MBarrierArriveExpectTxOp expect) {
          call("replayjit_emu_mbarrier_expect", {},
               {generic(expect.getAddr()), expect.getTxcount(),
                site("mbarrier arrival")});
          return erase(op);
        })
        .Case([&](NVVM::MBarrierTryWaitParityOp wait) {
          call("replayjit_emu_mbarrier_wait", {},
               {generic(wait.getAddr()), wait.getPhase(),
                site("mbarrier wait")});
          return erase(op);
        })
        .Case([&](NVVM::CpAsyncBulkGlobalToSharedClusterOp copy) {
          call("replayjit_emu_bulk_copy", {},
               {generic(copy.getDstMem()), generic(copy.getSrcMem()),
                copy.getSize(), generic(copy.getMbar()),
                i32(globalSpace(copy->hasAttr(kArgDependent))),
                site("bulk copy")});
          return erase(op);
        })
        .Case([&](LLVM::Trap) {
          call("replayjit_emu_trap", {}, {site("trap")});
          return erase(op);
        })
        .Default([&](Operation *) -> LogicalResult {
          if (isa<NVVM::NVVMDialect>(op->getDialect()))
            return op->emitError() << op->getName() << " has no emulation";
          return success();
        });
  }

  LogicalResult erase(Operation *op) {
    op->erase();
    return success();
  }
  LogicalResult replace(Operation *op, ValueRange values) {
    op->replaceAllUsesWith(values);
    return erase(op);
  }

  LogicalResult sreg(Operation *op, host::Sreg number) {
    return replace(op,
                   call("replayjit_emu_sreg", b.getI32Type(), {i32(number)}));
  }

  static host::Space globalSpace(bool isDependent) {
    return isDependent ? host::GlobalDependent : host::Global;
  }
  Value space(Value address, host::Space global = host::Global) {
    auto type = cast<LLVM::LLVMPointerType>(address.getType());
    return i32(type.getAddressSpace() == 3 ? host::Shared : global);
  }

  /// Emits `body` under the predicate, if there is one.
  template <typename Body> void guarded(Value predicate, Body body) {
    if (!predicate)
      return body();
    auto branch = scf::IfOp::create(b, predicate);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    body();
  }

  /// One lane runs at a time, so that checking its two halves is enough.
  LogicalResult lowerAtomic(LLVM::AtomicRMWOp op) {
    Value address = generic(op.getPtr());
    Value bytes = i32(op.getVal().getType().getIntOrFloatBitWidth() / 8);
    Value where = space(op.getPtr(), host::GlobalAtomic);
    call("replayjit_emu_load", {},
         {scratch, address, bytes, where, site("atomic")});
    Value before = LLVM::LoadOp::create(b, op.getVal().getType(), scratch);
    Value after = op.getVal();
    if (op.getBinOp() == LLVM::AtomicBinOp::add)
      after = LLVM::AddOp::create(b, before, after);
    else if (op.getBinOp() != LLVM::AtomicBinOp::xchg)
      return op.emitError("only atomic add and xchg have an emulation");
    LLVM::StoreOp::create(b, after, scratch);
    call("replayjit_emu_store", {},
         {address, scratch, bytes, where, site("atomic")});
    return replace(op, before);
  }

  LogicalResult lowerLoad(LdOp op) {
    Type element = op.getResult(0).getType();
    int64_t size = elementBytes(element), bytes = size * op.getNumResults();
    if (op.getPredicate()) {
      Type type = b.getIntegerType(8 * bytes);
      Value zero = LLVM::ConstantOp::create(b, b.getIntegerAttr(type, 0));
      LLVM::StoreOp::create(b, zero, scratch, 2);
    }
    guarded(op.getPredicate(), [&] {
      call("replayjit_emu_load", {},
           {scratch, generic(op.getAddress()), i32(bytes),
            space(op.getAddress(), globalSpace(op.getDependent())),
            site("load")});
    });
    SmallVector<Value> values;
    for (unsigned i = 0; i < op.getNumResults(); ++i)
      values.push_back(LLVM::LoadOp::create(b, element, scratchAt(i * size)));
    return replace(op, values);
  }

  LogicalResult lowerStore(StOp op) {
    int64_t size = elementBytes(op.getValues()[0].getType());
    guarded(op.getPredicate(), [&] {
      spill(op.getValues(), 0);
      call("replayjit_emu_store", {},
           {generic(op.getAddress()), scratch,
            i32(size * op.getValues().size()), space(op.getAddress()),
            site("store")});
    });
    return erase(op);
  }

  /// Writes values one after another from byte `offset` of the scratch area.
  void spill(ValueRange values, int offset) {
    for (Value value : values) {
      LLVM::StoreOp::create(b, value, scratchAt(offset));
      auto vector = dyn_cast<VectorType>(value.getType());
      offset += vector ? 4 : elementBytes(value.getType());
    }
  }

  LogicalResult lowerShuffle(NVVM::ShflOp op) {
    APInt clamp;
    if (!matchPattern(op.getMaskAndClamp(), m_ConstantInt(&clamp)) ||
        clamp != 31)
      return op.emitError("a shuffle within part of a warp has no emulation");
    host::ShuffleKind kind = host::Bfly;
    switch (op.getKind()) {
    case NVVM::ShflKind::bfly:
      kind = host::Bfly;
      break;
    case NVVM::ShflKind::idx:
      kind = host::Idx;
      break;
    case NVVM::ShflKind::up:
      kind = host::Up;
      break;
    case NVVM::ShflKind::down:
      kind = host::Down;
      break;
    }
    Value bits = op.getVal();
    if (!bits.getType().isInteger(32))
      bits = LLVM::BitcastOp::create(b, b.getI32Type(), bits);
    Value result = call(
        "replayjit_emu_shuffle", b.getI32Type(),
        {op.getThreadMask(), bits, op.getOffset(), i32(kind), site("shuffle")});
    if (result.getType() != op.getType())
      result = LLVM::BitcastOp::create(b, op.getType(), result);
    return replace(op, result);
  }

  LogicalResult lowerVote(NVVM::VoteSyncOp op) {
    const bool isAny = op.getKind() == NVVM::VoteSyncKind::any;
    if (!isAny && op.getKind() != NVVM::VoteSyncKind::ballot)
      return op.emitError("only votes of kind any and ballot have an "
                          "emulation");
    Value mine = LLVM::ZExtOp::create(b, b.getI32Type(), op.getPred());
    Value votes = call("replayjit_emu_ballot", b.getI32Type(),
                       {op.getMask(), mine, site("vote")});
    if (isAny)
      votes = LLVM::ICmpOp::create(b, LLVM::ICmpPredicate::ne, votes, i32(0));
    return replace(op, votes);
  }

  LogicalResult lowerMma(NVVM::MmaOp op) {
    host::MmaKind kind;
    int64_t k = op.getShape().getK();
    auto type = op.getMultiplicandAPtxType();
    if (type == NVVM::MMATypes::tf32 && k == 8)
      kind = host::MmaTf32;
    else if (type == NVVM::MMATypes::bf16 && k == 16)
      kind = host::MmaBf16;
    else if (type == NVVM::MMATypes::f16 && k == 16)
      kind = host::MmaF16;
    else
      return op.emitError("mma.sync of this shape and type has no emulation");
    spill(op.getOperandA(), 0);
    spill(op.getOperandB(), 16);
    spill(op.getOperandC(), 32);
    call("replayjit_emu_mma", {},
         {i32(kind), scratch, scratchAt(16), scratchAt(32), scratchAt(48),
          site("mma")});
    Value result = LLVM::PoisonOp::create(b, op.getType());
    for (int64_t i = 0; i < 4; ++i) {
      Value value =
          LLVM::LoadOp::create(b, b.getF32Type(), scratchAt(48 + 4 * i));
      result = LLVM::InsertValueOp::create(b, result, value, i);
    }
    return replace(op, result);
  }
};

/// `NAME_host(params)`: loads the arguments from the parameter buffer, where
/// each lies at its natural alignment, and calls the kernel.
void createEntry(LLVM::LLVMFuncOp kernel) {
  ImplicitLocOpBuilder b(kernel.getLoc(), kernel.getContext());
  b.setInsertionPointAfter(kernel);
  auto pointer = LLVM::LLVMPointerType::get(b.getContext());
  auto voidType = LLVM::LLVMVoidType::get(b.getContext());
  auto entry = LLVM::LLVMFuncOp::create(
      b, kernel.getSymName().str() + kHostSuffix.str(),
      LLVM::LLVMFunctionType::get(voidType, {pointer}));
  Block *block = entry.addEntryBlock(b);
  b.setInsertionPointToStart(block);
  SmallVector<Value> arguments;
  int64_t offset = 0;
  for (Type type : kernel.getArgumentTypes()) {
    int64_t size = isa<LLVM::LLVMPointerType>(type) ? 8 : elementBytes(type);
    offset = llvm::alignTo(offset, size);
    Value address =
        LLVM::GEPOp::create(b, pointer, b.getI8Type(), block->getArgument(0),
                            ArrayRef<LLVM::GEPArg>{(int32_t)offset});
    arguments.push_back(LLVM::LoadOp::create(b, type, address));
    offset += size;
  }
  LLVM::CallOp::create(b, kernel, arguments);
  LLVM::ReturnOp::create(b, ValueRange{});
}

struct HostLoweringPass
    : replayjit::internal::impl::HostLoweringPassBase<HostLoweringPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    llvm::StringMap<int32_t> sites;
    SmallVector<LLVM::LLVMFuncOp> kernels;
    for (auto function : module.getOps<LLVM::LLVMFuncOp>())
      if (function->hasAttr(NVVM::NVVMDialect::getKernelFuncAttrName()))
        kernels.push_back(function);
    for (LLVM::LLVMFuncOp kernel : kernels) {
      if (failed(KernelLowering(kernel, sites).run()))
        return signalPassFailure();
      kernel->removeAttr(NVVM::NVVMDialect::getKernelFuncAttrName());
      kernel->removeAttr(NVVM::NVVMDialect::getReqntidAttrName());
      kernel->removeAttr(NVVM::NVVMDialect::getMaxnregAttrName());
      createEntry(kernel);
    }
    Builder builder(module);
    SmallVector<StringRef> names(sites.size());
    for (auto &entry : sites)
      names[entry.second] = entry.first();
    module->setAttr(kSites, builder.getStrArrayAttr(names));
  }
};

} // namespace
