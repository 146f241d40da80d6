//===- ReplayOps.cpp - Builders, assembly and folders ---------------------===//

#include "dialect/ReplayDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"
#include "mlir/Interfaces/FunctionImplementation.h"

using namespace mlir;
using namespace replayjit::internal::replay;

#include "dialect/ReplayInterfaces.cpp.inc"

#define GET_OP_CLASSES
#include "dialect/ReplayOps.cpp.inc"

//===----------------------------------------------------------------------===//
// KernelOp
//===----------------------------------------------------------------------===//

void KernelOp::build(OpBuilder &builder, OperationState &state, StringRef name,
                     FunctionType type, int numWarps, int blocksPerRow,
                     ArrayRef<DictionaryAttr> argAttrs) {
  state.addAttribute(getSymNameAttrName(state.name),
                     builder.getStringAttr(name));
  state.addAttribute(getFunctionTypeAttrName(state.name), TypeAttr::get(type));
  state.addAttribute(getNumWarpsAttrName(state.name),
                     builder.getI32IntegerAttr(numWarps));
  state.addAttribute(getBlocksPerRowAttrName(state.name),
                     builder.getI32IntegerAttr(blocksPerRow));
  state.addRegion();
  if (!argAttrs.empty())
    call_interface_impl::addArgAndResultAttrs(
        builder, state, argAttrs, /*resultAttrs=*/{},
        getArgAttrsAttrName(state.name), getResAttrsAttrName(state.name));
}

static ParseResult parseCount(OpAsmParser &parser, StringRef keyword,
                              StringAttr name, NamedAttrList &attributes) {
  int32_t value = 0;
  if (parser.parseKeyword(keyword) || parser.parseLParen() ||
      parser.parseInteger(value) || parser.parseRParen())
    return failure();
  attributes.append(name, parser.getBuilder().getI32IntegerAttr(value));
  return success();
}

ParseResult KernelOp::parse(OpAsmParser &parser, OperationState &result) {
  Builder &builder = parser.getBuilder();
  StringAttr name;
  SmallVector<OpAsmParser::Argument> arguments;
  SmallVector<DictionaryAttr> resultAttrs;
  SmallVector<Type> resultTypes;
  bool isVariadic = false;
  if (parser.parseSymbolName(name, getSymNameAttrName(result.name),
                             result.attributes) ||
      function_interface_impl::parseFunctionSignatureWithArguments(
          parser, /*allowVariadic=*/false, arguments, isVariadic, resultTypes,
          resultAttrs) ||
      parseCount(parser, "num_warps", getNumWarpsAttrName(result.name),
                 result.attributes) ||
      parseCount(parser, "blocks_per_row", getBlocksPerRowAttrName(result.name),
                 result.attributes) ||
      parser.parseOptionalAttrDictWithKeyword(result.attributes))
    return failure();
  SmallVector<Type> types;
  for (const OpAsmParser::Argument &argument : arguments)
    types.push_back(argument.type);
  result.addAttribute(
      getFunctionTypeAttrName(result.name),
      TypeAttr::get(builder.getFunctionType(types, resultTypes)));
  call_interface_impl::addArgAndResultAttrs(
      builder, result, arguments, resultAttrs, getArgAttrsAttrName(result.name),
      getResAttrsAttrName(result.name));
  return parser.parseRegion(*result.addRegion(), arguments);
}

void KernelOp::print(OpAsmPrinter &printer) {
  printer << ' ';
  printer.printSymbolName(getSymName());
  call_interface_impl::printFunctionSignature(
      printer, getArgumentTypes(), getArgAttrsAttr(), /*isVariadic=*/false,
      getResultTypes(), getResAttrsAttr(), &getBody(),
      /*printEmptyResult=*/false);
  printer << " num_warps(" << getNumWarps() << ") blocks_per_row("
          << getBlocksPerRow() << ")";
  printer.printOptionalAttrDictWithKeyword(
      (*this)->getAttrs(), {getSymNameAttrName(), getFunctionTypeAttrName(),
                            getNumWarpsAttrName(), getBlocksPerRowAttrName(),
                            getArgAttrsAttrName(), getResAttrsAttrName()});
  printer << ' ';
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

//===----------------------------------------------------------------------===//
// AwaitPredecessorOp
//===----------------------------------------------------------------------===//

void AwaitPredecessorOp::getEffects(
    SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  // By this it stays, whatever the arguments are.
  effects.emplace_back(MemoryEffects::Write::get(), KernelOrderResource::get());
  auto kernel = (*this)->getParentOfType<KernelOp>();
  if (!kernel)
    return;
  for (BlockArgument argument : kernel.getBody().getArguments())
    if (kernel.getArgAttr(argument.getArgNumber(), kArgDependent))
      effects.emplace_back(MemoryEffects::Write::get(), argument);
  kernel->walk([&](PointerOp made) {
    effects.emplace_back(MemoryEffects::Write::get(),
                         cast<OpResult>(made.getResult()));
  });
}

//===----------------------------------------------------------------------===//
// Accesses
//===----------------------------------------------------------------------===//

Type LoadOp::getAccessedType() { return getType(); }
Type StoreOp::getAccessedType() { return getValue().getType(); }

//===----------------------------------------------------------------------===//
// Folders
//===----------------------------------------------------------------------===//

OpFoldResult SplatOp::fold(FoldAdaptor adaptor) {
  if (Attribute value = adaptor.getValue())
    return DenseElementsAttr::get(cast<ShapedType>(getType()), value);
  return {};
}

OpFoldResult BroadcastOp::fold(FoldAdaptor adaptor) {
  if (getValue().getType() == getType())
    return getValue();
  if (auto splat = dyn_cast_if_present<SplatElementsAttr>(adaptor.getValue()))
    return splat.resizeSplat(cast<ShapedType>(getType()));
  return {};
}

OpFoldResult SliceOp::fold(FoldAdaptor adaptor) {
  return getValue().getType() == getType() ? getValue() : OpFoldResult();
}

OpFoldResult ConvertLayoutOp::fold(FoldAdaptor adaptor) {
  if (getValue().getType() == getType())
    return getValue();
  if (auto splat = dyn_cast_if_present<SplatElementsAttr>(adaptor.getValue()))
    return DenseElementsAttr::get(cast<ShapedType>(getType()),
                                  splat.getSplatValue<Attribute>());
  return {};
}

/// Tile constants that folding makes are arith constants.
Operation *ReplayDialect::materializeConstant(OpBuilder &builder,
                                              Attribute value, Type type,
                                              Location loc) {
  return arith::ConstantOp::materialize(builder, value, type, loc);
}
