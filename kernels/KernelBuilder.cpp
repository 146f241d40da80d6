//===- KernelBuilder.cpp - A kernel's module and arguments ----------------===//

#include "kernels/KernelBuilder.h"

using namespace mlir;
using namespace replayjit::internal;
using namespace replayjit::internal::replay;

std::vector<ArgumentSpec>
replayjit::internal::declarations(const DecodeSpec &spec,
                                  bool addressesAreNumbers) {
  std::vector<ArgumentSpec> all;
  for (const Parameter &parameter : parametersOf(spec)) {
    const Argument &argument = *parameter.argument;
    const bool isAddress = argument.kind == Argument::Kind::Pointer;
    ArgumentSpec declared;
    declared.name = parameter.name;
    declared.isPointer = isAddress && !addressesAreNumbers;
    declared.type = isAddress && addressesAreNumbers ? DataType::I64
                                                     : argument.type.of(spec);
    declared.isDependent = isDependent(spec, argument);
    declared.isReadOnly =
        argument.access == Argument::Access::Input && !declared.isDependent;
    all.push_back(declared);
  }
  return all;
}

KernelBuilder::KernelBuilder(MLIRContext &context, const std::string &name,
                             const std::vector<ArgumentSpec> &arguments,
                             int numWarps, int blocksPerRow)
    : TileBuilder(NameLoc::get(StringAttr::get(&context, name)), &context),
      module(ModuleOp::create(getLoc())), arguments(arguments) {
  SmallVector<Type> types;
  SmallVector<DictionaryAttr> attributes;
  for (const ArgumentSpec &argument : arguments) {
    Type element = elementType(argument.type);
    types.push_back(argument.isPointer ? PtrType::get(&context, element)
                                       : element);
    SmallVector<NamedAttribute> list = {
        getNamedAttr(kArgName, getStringAttr(argument.name))};
    if (argument.isPointer && argument.isReadOnly)
      list.push_back(getNamedAttr(kArgReadOnly, getUnitAttr()));
    else if (argument.isPointer && argument.isNoAlias)
      list.push_back(getNamedAttr(kArgNoAlias, getUnitAttr()));
    if (argument.isPointer && argument.isDependent)
      list.push_back(getNamedAttr(kArgDependent, getUnitAttr()));
    attributes.push_back(getDictionaryAttr(list));
  }
  setInsertionPointToEnd(module->getBody());
  kernel = KernelOp::create(*this, name, getFunctionType(types, {}), numWarps,
                            blocksPerRow, attributes);
  Block *body = &kernel.getBody().emplaceBlock();
  for (Type type : types)
    body->addArgument(type, getLoc());
  setInsertionPointToStart(body);
  tune(ThreadTuning());
}

OwningOpRef<ModuleOp> KernelBuilder::take() {
  ReturnOp::create(*this);
  return std::move(module);
}

Value KernelBuilder::argument(const std::string &name) {
  if (Value value = replacements.lookup(name))
    return value;
  for (auto [i, argument] : llvm::enumerate(arguments))
    if (argument.name == name)
      return kernel.getBody().getArgument(i);
  llvm_unreachable("a builder asked for an argument that it did not declare");
}

void KernelBuilder::tune(const ThreadTuning &tuning) {
  auto set = [&](StringRef name, int value) {
    kernel->setAttr(name, getI32IntegerAttr(value));
  };
  if (tuning.maxRegisters)
    set(kMaxRegisters, tuning.maxRegisters);
  set(kLanesPerRow, tuning.lanesPerRow);
  set(kReuseRegisters, tuning.reuseRegisters);
  set(kHoistRegisters, tuning.hoistRegisters);
  set(kFenceRegisters, tuning.fenceRegisters);
  if (tuning.stageBytes)
    set(kStageBytes, tuning.stageBytes);
}

void KernelBuilder::awaitPredecessor(ProgrammaticLaunch launch) {
  if (launch == ProgrammaticLaunch::None)
    return;
  const bool isEarly = launch == ProgrammaticLaunch::Early;
  if (isEarly)
    LaunchDependentsOp::create(*this);
  AwaitPredecessorOp::create(*this, /*then_launch=*/!isEarly);
}

void KernelBuilder::describe(const std::string &what) {
  setLoc(NameLoc::get(getStringAttr(what)));
}

Type KernelBuilder::elementType(DataType type) {
  switch (type) {
  case DataType::F32:
    return getF32Type();
  case DataType::BF16:
    return getBF16Type();
  case DataType::F16:
    return getF16Type();
  case DataType::I32:
    return getI32Type();
  case DataType::I64:
    return getI64Type();
  }
  llvm_unreachable("all types are handled");
}

Value KernelBuilder::roundedTo(Value a, DataType type) {
  return widen(narrow(a, elementType(type)));
}
