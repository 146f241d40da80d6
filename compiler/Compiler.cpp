//===- Compiler.cpp - A tile program becomes a kernel ---------------------===//

#include "compiler/Compiler.h"

#include "compiler/Conversion/ReplayToNVVM/ReplayToNVVM.h"
#include "compiler/Host/HostJit.h"
#include "compiler/Host/HostLowering.h"
#include "compiler/NVPTX/EmitPTX.h"
#include "compiler/NVPTX/TranslateToLLVM.h"
#include "compiler/Pipeline.h"
#include "compiler/Support/Diagnostics.h"
#include "dialect/ReplayDialect.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/NVVMToLLVM/NVVMToLLVM.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/LLVMIR/LLVMTypes.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Verifier.h"

#include <fmt/format.h>

using namespace mlir;
using namespace replayjit::internal;

void replayjit::internal::registerDialects(DialectRegistry &registry) {
  registry.insert<replay::ReplayDialect, arith::ArithDialect, math::MathDialect,
                  scf::SCFDialect, cf::ControlFlowDialect>();
  registerTranslations(registry); // With the LLVM and NVVM dialects.
  replay::registerLayoutModels(registry);
  // What the one conversion to LLVM (Pipeline.cpp) asks each dialect for.
  arith::registerConvertArithToLLVMInterface(registry);
  cf::registerConvertControlFlowToLLVMInterface(registry);
  registerConvertMathToLLVMInterface(registry);
  registerConvertNVVMToLLVMInterface(registry);
}

Compiler::Compiler() {
  DialectRegistry registry;
  registerDialects(registry);
  context_ =
      std::make_unique<MLIRContext>(registry, MLIRContext::Threading::DISABLED);
  context_->loadAllAvailableDialects();
}

Compiler::~Compiler() = default;

namespace {

/// One compilation in progress: the module, its clock, and what to observe.
class Compilation {
public:
  Compilation(MLIRContext &context, const Target &target,
              const CompileOptions &options)
      : context(context), options(options), diagnostics(&context) {
    kernel.target = target;
  }

  CompiledKernel kernel;

  Status build(const Compiler::Builder &builder) {
    module = builder(context);
    if (!module || failed(verify(*module)))
      return diagnostics.failure(kernel.name, "build");
    auto kernels = module->getOps<replay::KernelOp>();
    if (kernels.empty() || std::next(kernels.begin()) != kernels.end())
      return Status::invalid("module: holds no kernel or several; exactly one "
                             "replay.kernel is allowed");
    kernel.name = (*kernels.begin()).getSymName().str();
    // Stages, or what is to become some.
    bool needsBulk = (*kernels.begin())->hasAttr(replay::kStageBytes);
    module->walk([&](replay::AllocOp) { needsBulk = true; });
    if (needsBulk && !kernel.target.hasBulkCopy)
      return Status::error(
          StatusCode::Unsupported,
          fmt::format("target: {} has no bulk copies, which the shared buffers "
                      "of {} need; allowed are sm_90 and later",
                      kernel.target.chip, kernel.name));
    clock.mark("build");
    observe("replay.mlir");
    return Status::ok();
  }

  /// Runs one of the pipelines of Pipeline.h.
  template <typename Populate>
  Status run(const char *stage, const char *file, Populate populate) {
    PassManager pm(&context);
    populate(pm);
    // Once a stage instead of after every pass, which costs a quarter of the
    // time of these pipelines.
    pm.enableVerifier(false);
    if (failed(pm.run(*module)) || failed(verify(*module)))
      return diagnostics.failure(kernel.name, stage);
    clock.mark(stage);
    observe(file);
    return Status::ok();
  }

  /// The way that GPU and host share.
  Status toThreadProgram() {
    Status status = run("tiles", "tiles.mlir", buildTilePipeline);
    if (!status || options.last == Stage::Tiles)
      return status;
    status = run("thread program", "thread.mlir", buildThreadPipeline);
    return status ? readLaunch() : status;
  }

  Status checkSharedMemory() {
    if (kernel.launch.sharedBytes <= (uint32_t)kernel.target.maxSharedBytes)
      return Status::ok();
    return Status::invalid(fmt::format(
        "shared memory: {} needs {} bytes a block; {} allows at most {}",
        kernel.name, kernel.launch.sharedBytes, kernel.target.chip,
        kernel.target.maxSharedBytes));
  }

  Result<std::unique_ptr<llvm::Module>> translate(llvm::LLVMContext &llvm) {
    auto result = translateToLLVM(*module, llvm);
    if (!result)
      return diagnostics.failure(kernel.name, "translate");
    clock.mark("translate");
    observe("llvm.ll", *result);
    return result;
  }

  Status emit(llvm::Module &llvm) {
    auto machine = createTargetMachine(kernel.target);
    if (!machine)
      return machine.status();
    optimizeLLVM(llvm, **machine);
    clock.mark("optimize");
    observe("optimized.ll", llvm);
    if (options.last == Stage::LLVMIR)
      return Status::ok();
    auto ptx = emitPTX(llvm, **machine);
    if (!ptx)
      return ptx.status();
    kernel.ptx = std::move(*ptx);
    clock.mark("emit PTX");
    if (options.observer)
      options.observer("ptx", kernel.ptx);
    return Status::ok();
  }

  Status assemble() {
    auto cubin =
        assembleCubin(kernel.ptx, kernel.target, kernel.name, options.assemble);
    if (!cubin)
      return cubin.status(); // It names the kernel.
    kernel.cubin = std::move(cubin->cubin);
    kernel.assembler = std::move(cubin->assembler);
    kernel.assemblerLog = std::move(cubin->log);
    kernel.resources = cubin->resources;
    clock.mark("assemble");
    if (options.observer)
      options.observer("log", kernel.assemblerLog);
    return Status::ok();
  }

  Status toHostProgram() {
    auto llvm = std::make_unique<llvm::LLVMContext>();
    auto translated = translate(*llvm);
    if (!translated)
      return translated.status();
    std::vector<std::string> sites;
    if (auto names = (*module)->getAttrOfType<ArrayAttr>(kSites))
      for (Attribute name : names)
        sites.push_back(cast<StringAttr>(name).str());
    auto program =
        host::jitHostProgram(std::move(*translated), std::move(llvm),
                             kernel.name + kHostSuffix.str(), std::move(sites));
    if (!program)
      return Status::error(StatusCode::CompileFailed,
                           kernel.name + ", host program: " +
                               llvm::toString(program.takeError()),
                           "host program");
    kernel.hostProgram = std::move(*program);
    clock.mark("host program");
    return Status::ok();
  }

  CompiledKernel finish() {
    kernel.stages = std::move(clock.times);
    return std::move(kernel);
  }

private:
  MLIRContext &context;
  const CompileOptions &options;
  DiagnosticCollector diagnostics;
  OwningOpRef<ModuleOp> module;
  StageClock clock;

  void observe(const char *file) {
    if (!options.observer)
      return;
    std::string text;
    llvm::raw_string_ostream stream(text);
    module->print(stream);
    options.observer(file, text);
  }
  void observe(const char *file, llvm::Module &llvm) {
    if (!options.observer)
      return;
    std::string text;
    llvm::raw_string_ostream stream(text);
    llvm.print(stream, nullptr);
    options.observer(file, text);
  }

  /// Signature and launch configuration, from the thread program.
  Status readLaunch() {
    auto function = module->lookupSymbol<FunctionOpInterface>(kernel.name);
    auto integer = [&](StringRef name) {
      return (uint32_t)function->getAttrOfType<IntegerAttr>(name).getInt();
    };
    kernel.launch = {integer(kBlocksPerRow), integer(kThreads),
                     integer(kSharedBytes)};
    auto names = function->getAttrOfType<ArrayAttr>(kArgNames);
    KernelSignature &signature = kernel.signature;
    uint32_t largest = 1;
    for (auto [type, name] : llvm::zip(function.getArgumentTypes(), names)) {
      using Kind = KernelParam::Kind;
      KernelParam param{cast<StringAttr>(name).str(), Kind::Pointer, 0};
      if (type.isInteger(64))
        param.kind = Kind::I64;
      else if (type.isInteger(32))
        param.kind = Kind::I32;
      else if (type.isF32())
        param.kind = Kind::F32;
      else if (!isa<LLVM::LLVMPointerType>(type))
        return Status::invalid(
            fmt::format("argument: '{}' of {} is {}; allowed are pointers, "
                        "i32, i64 and f32",
                        param.name, kernel.name, typeName(type)));
      uint32_t size =
          param.kind == Kind::I32 || param.kind == Kind::F32 ? 4 : 8;
      param.offset = llvm::alignTo(signature.bytes, size);
      signature.bytes = param.offset + size;
      largest = std::max(largest, size);
      signature.params.push_back(std::move(param));
    }
    signature.bytes = llvm::alignTo(signature.bytes, largest);
    return Status::ok();
  }

  static std::string typeName(Type type) {
    std::string text;
    llvm::raw_string_ostream(text) << type;
    return text;
  }
};

} // namespace

Result<CompiledKernel> Compiler::compile(const Builder &build,
                                         const Target &target,
                                         const CompileOptions &options) {
  Compilation compilation(*context_, target, options);
  llvm::LLVMContext llvm;
  auto stages = [&]() -> Status {
    Status status = compilation.build(build);
    if (status)
      status = compilation.toThreadProgram();
    if (!status || options.last <= Stage::ThreadProgram)
      return status;
    status = compilation.checkSharedMemory();
    if (status)
      status = compilation.run("NVVM", "nvvm.mlir", buildGPUPipeline);
    if (!status || options.last == Stage::LLVMDialect)
      return status;
    auto module = compilation.translate(llvm);
    if (!module)
      return module.status();
    status = compilation.emit(**module);
    if (!status || options.last != Stage::Cubin)
      return status;
    return compilation.assemble();
  };
  if (Status status = stages(); !status)
    return status;
  return compilation.finish();
}

Result<CompiledKernel> Compiler::compileForHost(const Builder &build,
                                                const Target &target,
                                                const CompileOptions &options) {
  Compilation compilation(*context_, target, options);
  Status status = compilation.build(build);
  if (status)
    status = compilation.toThreadProgram();
  if (status)
    status = compilation.checkSharedMemory();
  if (status)
    status = compilation.run("host", "host.mlir", buildHostPipeline);
  if (status)
    status = compilation.toHostProgram();
  if (!status)
    return status;
  return compilation.finish();
}
