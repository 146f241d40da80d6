//===- HostJit.cpp - ORC with a closed list of symbols --------------------===//

#include "compiler/Host/HostJit.h"

#include "compiler/Host/HostSymbols.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ExecutionEngine/Orc/AbsoluteSymbols.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/InstrTypes.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"

#include <mutex>

namespace replayjit::internal::host {

using namespace llvm;

namespace {
/// Keeps the code alive as long as the program.
struct JittedProgram final : HostProgram {
  std::unique_ptr<orc::LLJIT> jit;
};
} // namespace

static Error failure(StringRef entryName, const Twine &what) {
  return createStringError(inconvertibleErrorCode(),
                           entryName + ", HostJit: " + what);
}

// Finds what cannot be linked before code generation does, whose message
// would name neither the kernel nor the reason.
static Error checkSymbols(const Module &module, StringRef entryName) {
  const Function *entry = module.getFunction(entryName);
  if (!entry || entry->isDeclaration())
    return failure(entryName, "the module has no function of this name");
  StringSet<> known;
  for (const HostSymbol &symbol : hostSymbols())
    known.insert(symbol.name);
  for (const GlobalValue &value : module.global_values()) {
    if (!value.isDeclaration() || value.use_empty() ||
        known.contains(value.getName()))
      continue;
    bool isIntrinsic = value.getName().starts_with("llvm.");
    if (!isIntrinsic)
      return failure(entryName, "symbol '" + value.getName() +
                                    "' is not one the emulation provides");
    if (value.getName().starts_with("llvm.nvvm."))
      return failure(entryName, "intrinsic '" + value.getName() +
                                    "' has no meaning on the host; it needs a "
                                    "lowering to an emulator call");
  }
  for (const Function &function : module)
    for (const Instruction &instruction : instructions(function))
      if (const auto *call = dyn_cast<CallBase>(&instruction))
        if (const auto *assembly =
                dyn_cast<InlineAsm>(call->getCalledOperand()))
          return failure(entryName, "inline assembly '" +
                                        assembly->getAsmString() +
                                        "' cannot run on the host");
  return Error::success();
}

// Turns what was written for the GPU into a plain host module.
static void adaptToHost(Module &module, TargetMachine &machine) {
  module.setTargetTriple(machine.getTargetTriple());
  module.setDataLayout(machine.createDataLayout());
  for (GlobalValue &value : module.global_values()) {
    // The table's functions may be out of reach of a direct reference.
    if (value.isDeclaration())
      value.setDSOLocal(false);
    auto *function = dyn_cast<Function>(&value);
    if (!function)
      continue;
    function->setCallingConv(CallingConv::C);
    function->removeFnAttr("target-cpu");
    function->removeFnAttr("target-features");
    for (Instruction &instruction : instructions(*function))
      if (auto *call = dyn_cast<CallBase>(&instruction))
        call->setCallingConv(CallingConv::C);
  }
}

void keepSubnormals(orc::JITTargetMachineBuilder &builder) {
  if (builder.getTargetTriple().isX86())
    builder.addFeatures({"-avx512bf16", "-avxneconvert"});
}

static Error compile(JittedProgram &program, orc::ThreadSafeModule owner,
                     StringRef entryName) {
  static std::once_flag once;
  std::call_once(once, [] {
    InitializeNativeTarget();
    InitializeNativeTargetAsmPrinter();
  });
  auto builder = orc::JITTargetMachineBuilder::detectHost();
  if (!builder)
    return builder.takeError();
  keepSubnormals(*builder);
  // The program spends its time in emulator calls: of 10,000 operations in one
  // block, optimization saves 15 % of a run and takes seven times as long to
  // compile.
  builder->setCodeGenOptLevel(CodeGenOptLevel::None);
  auto machine = builder->createTargetMachine();
  if (!machine)
    return machine.takeError();
  Module &module = *owner.getModuleUnlocked();
  adaptToHost(module, **machine);
  std::string broken;
  raw_string_ostream stream(broken);
  if (verifyModule(module, &stream))
    return createStringError(inconvertibleErrorCode(), broken);

  auto jit = orc::LLJITBuilder()
                 .setJITTargetMachineBuilder(std::move(*builder))
                 .setLinkProcessSymbolsByDefault(false)
                 // A thread program has no constructors to run.
                 .setPlatformSetUp(orc::setUpInactivePlatform)
                 .create();
  if (!jit)
    return jit.takeError();
  program.jit = std::move(*jit);
  // What a session reports would be printed by default.
  std::string reported;
  program.jit->getExecutionSession().setErrorReporter(
      [&](Error error) { reported += toString(std::move(error)) + "; "; });
  scope_exit quiet([&] {
    program.jit->getExecutionSession().setErrorReporter(
        [](Error error) { consumeError(std::move(error)); });
  });
  orc::SymbolMap symbols;
  for (const HostSymbol &symbol : hostSymbols())
    symbols[program.jit->mangleAndIntern(symbol.name)] = {
        orc::ExecutorAddr::fromPtr(symbol.address), JITSymbolFlags::Exported};
  orc::JITDylib &library = program.jit->getMainJITDylib();
  if (Error error = library.define(orc::absoluteSymbols(std::move(symbols))))
    return error;
  if (Error error = program.jit->addIRModule(std::move(owner)))
    return error;
  auto address = program.jit->lookup(entryName);
  if (!address)
    return createStringError(inconvertibleErrorCode(),
                             reported + toString(address.takeError()));
  program.entry = address->toPtr<HostProgram::Entry>();
  return Error::success();
}

Expected<std::shared_ptr<HostProgram>>
jitHostProgram(std::unique_ptr<Module> module,
               std::unique_ptr<LLVMContext> context, StringRef name,
               std::vector<std::string> sites) {
  std::string entryName = name.str(); // It may belong to the module.
  // From here on the module goes before its context, also on an error.
  orc::ThreadSafeModule owner(std::move(module), std::move(context));
  if (Error error = checkSymbols(*owner.getModuleUnlocked(), entryName))
    return error;
  auto program = std::make_shared<JittedProgram>();
  program->sites = std::move(sites);
  if (Error error = compile(*program, std::move(owner), entryName))
    return failure(entryName, toString(std::move(error)));
  return program;
}

} // namespace replayjit::internal::host
