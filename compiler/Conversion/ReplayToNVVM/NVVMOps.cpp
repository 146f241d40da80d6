//===- NVVMOps.cpp - The hardware's operations ----------------------------===//

#include "compiler/Conversion/ReplayToNVVM/NVVMOps.h"
#include "compiler/Conversion/ReplayToNVVM/ThreadProgram.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace replayjit::internal;
using replay::Axis;

void nvvm::addDialect(DialectRegistry &registry) {
  registry.insert<NVVM::NVVMDialect>();
}

bool nvvm::isBarrier(Operation *op) {
  return isa<NVVM::BarrierOp, NVVM::SyncWarpOp>(op);
}

bool nvvm::isShuffle(Operation *op) { return isa<NVVM::ShflOp>(op); }

bool nvvm::isMbarrierArrival(Operation *op) {
  return isa<NVVM::MBarrierArriveOp>(op);
}

Value nvvm::approximateReciprocal(OpBuilder &b, Location loc, Value value) {
  return NVVM::RcpApproxFtzF32Op::create(b, loc, b.getF32Type(), value);
}

void nvvm::markKernel(Operation *function, int threads,
                      Attribute maxRegisters) {
  Builder b(function->getContext());
  function->setAttr(NVVM::NVVMDialect::getKernelFuncAttrName(),
                    b.getUnitAttr());
  function->setAttr(NVVM::NVVMDialect::getReqntidAttrName(),
                    b.getDenseI32ArrayAttr({threads}));
  if (maxRegisters)
    function->setAttr(NVVM::NVVMDialect::getMaxnregAttrName(), maxRegisters);
}

void nvvm::awaitPredecessor(OpBuilder &b, Location loc) {
  NVVM::GriddepcontrolOp::create(b, loc, NVVM::GridDepActionKind::wait);
}

void nvvm::launchDependents(OpBuilder &b, Location loc) {
  NVVM::GriddepcontrolOp::create(b, loc,
                                 NVVM::GridDepActionKind::launch_dependents);
}

/// PTX has no order of loads alone. But the assembler moves nothing across the
/// trigger of a performance counter, which costs one instruction and counts
/// only where a profiler asks for it.
void nvvm::fenceLoads(OpBuilder &b, Location loc) {
  NVVM::PMEventOp::create(b, loc, /*maskedEventId=*/nullptr,
                          /*eventId=*/b.getI32IntegerAttr(0));
}

//===----------------------------------------------------------------------===//
// ThreadBuilder
//===----------------------------------------------------------------------===//

Value ThreadBuilder::threadId() {
  return NVVM::ThreadIdXOp::create(*this, getI32Type());
}

Value ThreadBuilder::programId(Axis axis) {
  switch (axis) {
  case Axis::X:
    return NVVM::BlockIdXOp::create(*this, getI32Type());
  case Axis::Y:
    return NVVM::BlockIdYOp::create(*this, getI32Type());
  case Axis::Z:
    return NVVM::BlockIdZOp::create(*this, getI32Type());
  }
  llvm_unreachable("an axis of a grid");
}

Value ThreadBuilder::numPrograms(Axis axis) {
  switch (axis) {
  case Axis::X:
    return NVVM::GridDimXOp::create(*this, getI32Type());
  case Axis::Y:
    return NVVM::GridDimYOp::create(*this, getI32Type());
  case Axis::Z:
    return NVVM::GridDimZOp::create(*this, getI32Type());
  }
  llvm_unreachable("an axis of a grid");
}

Value ThreadBuilder::shuffleXor(Value value, int mask) {
  return NVVM::ShflOp::create(*this, value.getType(), i32(-1), value, i32(mask),
                              i32(31), NVVM::ShflKind::bfly, UnitAttr());
}

Value ThreadBuilder::anyLane(Value condition) {
  return NVVM::VoteSyncOp::create(*this, getI1Type(), i32(-1), condition,
                                  NVVM::VoteSyncKind::any);
}

Value ThreadBuilder::lanesWhere(Value condition) {
  return NVVM::VoteSyncOp::create(*this, getI32Type(), i32(-1), condition,
                                  NVVM::VoteSyncKind::ballot);
}

void ThreadBuilder::barrier() {
  if (kernel.hasRoles)
    NVVM::BarrierOp::create(*this, TypeRange{}, i32(1),
                            i32(32 * kernel.numWarps),
                            NVVM::BarrierReductionAttr(), Value());
  else if (kernel.numWarps == 1)
    NVVM::SyncWarpOp::create(*this, i32(-1));
  else
    NVVM::BarrierOp::create(*this);
}

SmallVector<Value> ThreadBuilder::mma(ArrayRef<Value> a, ArrayRef<Value> b,
                                      ArrayRef<Value> c, Type element) {
  NVVM::MMATypes type = element.isF32()    ? NVVM::MMATypes::tf32
                        : element.isBF16() ? NVVM::MMATypes::bf16
                                           : NVVM::MMATypes::f16;
  const int64_t k = element.isF32() ? 8 : 16;
  auto result = LLVM::LLVMStructType::getLiteral(
      getContext(), SmallVector<Type>(4, getF32Type()));
  std::optional<std::array<NVVM::MMATypes, 2>> types{{type, type}};
  Value out = NVVM::MmaOp::create(
      *this, result, a, b, c, {16, 8, k}, /*b1Op=*/std::nullopt,
      /*intOverflow=*/std::nullopt, types,
      std::array{NVVM::MMALayout::row, NVVM::MMALayout::col});
  SmallVector<Value> values;
  for (int64_t i = 0; i < 4; ++i)
    values.push_back(LLVM::ExtractValueOp::create(*this, out, i));
  return values;
}
