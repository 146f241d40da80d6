//===- LowerMemoryForGPU.cpp - The thread level for a GPU -----------------===//

#include "compiler/Conversion/ReplayToNVVM/NVVMOps.h"
#include "compiler/Conversion/ReplayToNVVM/ReplayToNVVM.h"
#include "dialect/ReplayDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace replayjit::internal {
#define GEN_PASS_DEF_LOWERMEMORYFORGPUPASS
#include "compiler/Conversion/ReplayToNVVM/Passes.h.inc"
} // namespace replayjit::internal

using namespace mlir;
using namespace replayjit::internal;
using namespace replayjit::internal::replay;

namespace {

/// The PTX spelling of one access: `count` words of `bits` bits.
struct Words {
  int bits, count;
  explicit Words(int64_t bytes)
      : bits(bytes >= 4 ? 32 : 16), count(bytes >= 4 ? bytes / 4 : 1) {}
  std::string suffix() const {
    return (count > 1 ? ".v" + std::to_string(count) : "") + ".b" +
           std::to_string(bits);
  }
  const char *constraint() const { return bits == 32 ? "r" : "h"; }
  /// "{$0, $1}" or "$0".
  std::string operands(int first) const {
    std::string list;
    for (int i = 0; i < count; ++i)
      list += (i ? ", $" : "$") + std::to_string(first + i);
    return count > 1 ? "{" + list + "}" : list;
  }
};

struct AccessBuilder : ImplicitLocOpBuilder {
  using ImplicitLocOpBuilder::ImplicitLocOpBuilder;

  Value index(int64_t i) {
    return LLVM::ConstantOp::create(*this, getI32IntegerAttr(i));
  }
  /// Scalars as one value: themselves if one, else a vector.
  Value join(ValueRange values) {
    if (values.size() == 1)
      return values[0];
    Value vector = LLVM::PoisonOp::create(
        *this, VectorType::get({(int64_t)values.size()}, values[0].getType()));
    for (auto [i, value] : llvm::enumerate(values))
      vector = LLVM::InsertElementOp::create(*this, vector, value, index(i));
    return vector;
  }
  SmallVector<Value> split(Value value, int64_t count) {
    if (count == 1)
      return {value};
    SmallVector<Value> values;
    for (int64_t i = 0; i < count; ++i)
      values.push_back(LLVM::ExtractElementOp::create(*this, value, index(i)));
    return values;
  }
  Type joined(Type element, int64_t count) {
    return count == 1 ? element : VectorType::get({count}, element);
  }
  Value cast(Value value, Type type) {
    return value.getType() == type
               ? value
               : Value(LLVM::BitcastOp::create(*this, type, value));
  }
};

StringRef spaceName(Value address) {
  auto type = cast<LLVM::LLVMPointerType>(address.getType());
  return type.getAddressSpace() == 3 ? "shared" : "global";
}

/// The elements of `loaded`, a vector of `op`'s, take the place of its results.
void replaceResults(AccessBuilder &b, LdOp op, Value loaded) {
  int64_t count = op.getNumResults();
  // Two bf16 in a word are widened where they stand, an instruction for each;
  // taken apart first, the upper one costs two.
  if (count > 1 && op.getResult(0).getType().isBF16()) {
    Type word = b.getI32Type();
    SmallVector<Value> words =
        b.split(b.cast(loaded, b.joined(word, count / 2)), count / 2);
    for (OpResult result : op.getResults())
      for (Operation *user : llvm::make_early_inc_range(result.getUsers())) {
        auto widening = dyn_cast<arith::ExtFOp>(user);
        if (!widening || !widening.getType().isF32())
          continue;
        int64_t i = result.getResultNumber();
        Value bits =
            i % 2 == 0
                ? Value(LLVM::ShlOp::create(b, words[i / 2], b.index(16)))
                : Value(LLVM::AndOp::create(b, words[i / 2],
                                            b.index(0xffff0000)));
        widening.replaceAllUsesWith(b.cast(bits, b.getF32Type()));
        widening.erase();
      }
  }
  op.replaceAllUsesWith(b.split(loaded, count));
  op.erase();
}

void lowerLoad(LdOp op) {
  AccessBuilder b(op.getLoc(), op);
  Type element = op.getResult(0).getType();
  int64_t count = op.getNumResults(), bytes = count * elementBytes(element);
  Type type = b.joined(element, count);
  bool streaming = op.getCache() == CachePolicy::Streaming;
  if (!op.getPredicate() && !streaming) {
    auto load = LLVM::LoadOp::create(b, type, op.getAddress(), bytes);
    load.setInvariant(op.getReadonly());
    replaceResults(b, op, load);
    return;
  }
  // Results are zeroed first, so that a false predicate reads as zero.
  Words words(bytes);
  std::string text, constraints;
  Type word = b.getIntegerType(words.bits);
  for (int i = 0; i < words.count; ++i) {
    constraints += std::string(i ? "," : "") + "=&" + words.constraint();
    if (op.getPredicate())
      text += "mov.b" + std::to_string(words.bits) + " $" + std::to_string(i) +
              ", 0; ";
  }
  constraints += ",l";
  SmallVector<Value> operands = {op.getAddress()};
  if (op.getPredicate()) {
    text += "@$" + std::to_string(words.count + 1) + " ";
    constraints += ",b";
    operands.push_back(op.getPredicate());
  }
  text += "ld." + spaceName(op.getAddress()).str();
  if (op.getReadonly())
    text += ".nc";
  if (streaming)
    text += ".L1::no_allocate";
  text += words.suffix() + " " + words.operands(0) + ", [$" +
          std::to_string(words.count) + "];";
  Type result = word;
  if (words.count > 1)
    result = LLVM::LLVMStructType::getLiteral(
        b.getContext(), SmallVector<Type>(words.count, word));
  // Reads of memory that the kernel writes keep their place; others may move.
  auto assembly = LLVM::InlineAsmOp::create(
      b, TypeRange{result}, operands, text, constraints,
      /*has_side_effects=*/!op.getReadonly(), /*is_align_stack=*/false,
      LLVM::TailCallKind::None, LLVM::AsmDialectAttr(), ArrayAttr());
  Value loaded = assembly.getResult(0);
  if (words.count > 1) {
    SmallVector<Value> parts;
    for (int64_t i = 0; i < words.count; ++i)
      parts.push_back(LLVM::ExtractValueOp::create(b, loaded, i));
    loaded = b.join(parts);
  }
  replaceResults(b, op, b.cast(loaded, type));
}

void lowerStore(StOp op) {
  AccessBuilder b(op.getLoc(), op);
  Type element = op.getValues().front().getType();
  int64_t count = op.getValues().size(), bytes = count * elementBytes(element);
  Value joined = b.join(op.getValues());
  if (!op.getPredicate()) {
    LLVM::StoreOp::create(b, joined, op.getAddress(), bytes);
    op.erase();
    return;
  }
  Words words(bytes);
  Type word = b.getIntegerType(words.bits);
  SmallVector<Value> operands = {op.getAddress(), op.getPredicate()};
  llvm::append_range(
      operands,
      b.split(b.cast(joined, b.joined(word, words.count)), words.count));
  std::string constraints = "l,b";
  for (int i = 0; i < words.count; ++i)
    constraints += std::string(",") + words.constraint();
  std::string text = "@$1 st." + spaceName(op.getAddress()).str() +
                     words.suffix() + " [$0], " + words.operands(2) + ";";
  LLVM::InlineAsmOp::create(
      b, TypeRange{LLVM::LLVMVoidType::get(b.getContext())}, operands, text,
      constraints,
      /*has_side_effects=*/true, /*is_align_stack=*/false,
      LLVM::TailCallKind::None, LLVM::AsmDialectAttr(), ArrayAttr());
  op.erase();
}

void lowerFence(Operation *op) {
  OpBuilder b(op);
  nvvm::fenceLoads(b, op->getLoc());
  op->erase();
}

/// Atomics reach other devices and the host. LLVM's own stay within the GPU.
LogicalResult lowerAtomic(LLVM::AtomicRMWOp op) {
  bool isAdd = op.getBinOp() == LLVM::AtomicBinOp::add;
  bool isRelease = op.getOrdering() == LLVM::AtomicOrdering::release;
  if ((!isAdd && op.getBinOp() != LLVM::AtomicBinOp::xchg) ||
      (!isRelease && op.getOrdering() != LLVM::AtomicOrdering::monotonic) ||
      !op.getVal().getType().isInteger(32))
    return op.emitError("only relaxed and release atomic add and xchg of i32 "
                        "are lowered");
  AccessBuilder b(op.getLoc(), op);
  std::string text = std::string("atom.") +
                     (isRelease ? "release" : "relaxed") + ".sys." +
                     spaceName(op.getPtr()).str() +
                     (isAdd ? ".add.u32" : ".exch.b32") + " $0, [$1], $2;";
  auto assembly = LLVM::InlineAsmOp::create(
      b, TypeRange{op.getVal().getType()}, {op.getPtr(), op.getVal()}, text,
      "=r,l,r,~{memory}", /*has_side_effects=*/true, /*is_align_stack=*/false,
      LLVM::TailCallKind::None, LLVM::AsmDialectAttr(), ArrayAttr());
  op.replaceAllUsesWith(assembly.getResult(0));
  op.erase();
  return success();
}

struct LowerMemoryForGPUPass
    : replayjit::internal::impl::LowerMemoryForGPUPassBase<
          LowerMemoryForGPUPass> {
  void getDependentDialects(DialectRegistry &registry) const override {
    LowerMemoryForGPUPassBase::getDependentDialects(registry);
    nvvm::addDialect(registry);
  }

  void runOnOperation() override {
    // Lowering a load erases operations after it.
    SmallVector<Operation *> ops;
    getOperation()->walk([&](Operation *op) {
      if (isa<LdOp, StOp, LoadFenceOp, LLVM::AtomicRMWOp>(op))
        ops.push_back(op);
    });
    for (Operation *op : ops) {
      if (auto load = dyn_cast<LdOp>(op))
        lowerLoad(load);
      else if (auto store = dyn_cast<StOp>(op))
        lowerStore(store);
      else if (isa<LoadFenceOp>(op))
        lowerFence(op);
      else if (failed(lowerAtomic(cast<LLVM::AtomicRMWOp>(op))))
        return signalPassFailure();
    }
  }
};

} // namespace
