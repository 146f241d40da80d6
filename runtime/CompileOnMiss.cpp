//===- CompileOnMiss.cpp - The runtime's one door to the compiler ---------===//

#include "runtime/CompileOnMiss.h"

#include "kernels/FamilyBuilder.h"

#include <fmt/format.h>

#include <atomic>
#include <mutex>
#include <sys/mman.h>
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

/// LLVM cannot be unwound: where memory ends in the midst of it, the process
/// does. So a compilation begins only if the address space has room for all
/// that run; what the kernel hands out and cannot keep no one sees before.
class Room {
public:
  Room() : count(++running) {}
  Room(const Room &) = delete;
  ~Room() { --running; }

  Status check() const {
    void *memory = mmap(nullptr, count * mostOfOne, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, /*fd=*/-1, /*offset=*/0);
    if (memory == MAP_FAILED)
      return Status::error(
          StatusCode::OutOfMemory,
          fmt::format("compile: there are no {} MiB of memory for {} at once",
                      count * (mostOfOne >> 20), count));
    (void)munmap(memory, count * mostOfOne);
    return Status::ok();
  }

private:
  /// A kernel of real size takes about 20 MiB.
  static constexpr size_t mostOfOne = size_t(64) << 20;
  static inline std::atomic<size_t> running = 0;
  const size_t count;
};

} // namespace

static Result<CompiledKernel>
compileWithLLVM(Compiler &compiler, const CompileRequest &request,
                const CompileOptions &options) noexcept {
  return compileKernel(compiler, request.spec, request.tuning, request.target,
                       options, request.forHost);
}

CompileFn compileOnMiss(AssembleOptions assemble) {
  CompileOptions options;
  if (assemble.preference == AssembleOptions::Preference::Driver)
    options.last = Stage::PTX;
  options.assemble = std::move(assemble);
  auto pool = std::make_shared<CompilerPool>();
  return [pool, options](const CompileRequest &request) {
    const Room room;
    if (Status status = room.check(); !status)
      return Result<CompiledKernel>(status);
    std::unique_ptr<Compiler> compiler = pool->take();
    Result<CompiledKernel> kernel =
        compileWithLLVM(*compiler, request, options);
    pool->giveBack(std::move(compiler));
    return kernel;
  };
}

} // namespace replayjit::internal
