//===- CompileOnMiss.cpp - The runtime's one door to the compiler ---------===//

#include "runtime/CompileOnMiss.h"

#include "kernels/FamilyBuilder.h"

#include <mutex>
#include <utility>

namespace replayjit::internal {

namespace {

/// Compilers that no thread uses; making one takes milliseconds.
class CompilerPool {
public:
  std::unique_ptr<Compiler> take() {
    {
      std::lock_guard lock(mutex);
      if (!idle.empty()) {
        std::unique_ptr<Compiler> compiler = std::move(idle.back());
        idle.pop_back();
        return compiler;
      }
    }
    return std::make_unique<Compiler>();
  }
  void giveBack(std::unique_ptr<Compiler> compiler) {
    std::lock_guard lock(mutex);
    idle.push_back(std::move(compiler));
  }

private:
  std::mutex mutex;
  std::vector<std::unique_ptr<Compiler>> idle;
};

} // namespace

CompileFn compileOnMiss(AssembleOptions assemble) {
  CompileOptions options;
  if (assemble.preference == AssembleOptions::Preference::Driver)
    options.last = Stage::PTX;
  options.assemble = std::move(assemble);
  auto pool = std::make_shared<CompilerPool>();
  return [pool, options](const CompileRequest &request) {
    std::unique_ptr<Compiler> compiler = pool->take();
    Result<CompiledKernel> kernel =
        compileKernel(*compiler, request.spec, request.tuning, request.target,
                      options, request.forHost);
    pool->giveBack(std::move(compiler));
    return kernel;
  };
}

} // namespace replayjit::internal
