//===- ReplayDialect.cpp - Registration -----------------------------------===//

#include "dialect/ReplayDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMTypes.h"

using namespace mlir;
using namespace replayjit::internal::replay;

#include "dialect/ReplayDialect.cpp.inc"
#include "dialect/ReplayEnums.cpp.inc"

void ReplayDialect::initialize() {
  registerAttributes();
  registerTypes();
  addOperations<
#define GET_OP_LIST
#include "dialect/ReplayOps.cpp.inc"
      >();
}

bool replayjit::internal::replay::isTileType(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || tensor.getRank() < 1 || tensor.getRank() > 2)
    return false;
  return llvm::all_of(tensor.getShape(), [](int64_t size) {
    return size > 0 && llvm::isPowerOf2_64(size);
  });
}

bool replayjit::internal::replay::isThreadPointer(Type type) {
  return isa<LLVM::LLVMPointerType>(type);
}

int64_t replayjit::internal::replay::elementBytes(Type type) {
  return llvm::divideCeil(type.getIntOrFloatBitWidth(), 8);
}
