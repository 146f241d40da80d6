//===- PtxFile.cpp - A kernel out of a PTX file ---------------------------===//

#include "tools/PtxFile.h"

#include "runtime/aot/KernelFiles.h"
#include "runtime/aot/PtxEntry.h"

#include <fmt/format.h>

using namespace replayjit::internal;

void PtxOptions::addTo(CLI::App &app) {
  const char *const group = "PTX of another compiler";
  app.add_option("--from-ptx", path,
                 "Assemble this file instead of compiling a kernel")
      ->group(group);
  details = {app.add_option("--entry", entry,
                            "Which entry of the file; default: the only one"),
             app.add_option("--threads", threads,
                            "Threads per block, if the PTX does not say")
                 ->check(within(1, 1024)),
             app.add_option("--shared-bytes", sharedBytes,
                            "Dynamic shared memory per block; default: 0")
                 ->check(within(0, 1 << 20))};
  for (CLI::Option *option : details)
    option->group(group);
}

const CLI::Option *PtxOptions::stray() const {
  for (const CLI::Option *option : details)
    if (option->count() && !isGiven())
      return option;
  return nullptr;
}

Result<CompiledKernel> PtxOptions::kernel(const std::optional<Target> &target,
                                          const AssembleOptions &assemble,
                                          bool makesCubin) const {
  Result<std::string> ptx = readBytes(path);
  if (!ptx)
    return ptx.status();
  Result<CompiledKernel> kernel = kernelFromPtx(*ptx, entry);
  if (!kernel)
    return kernel;
  uint32_t &blockThreads = kernel->launch.threads;
  if (threads && blockThreads && *threads > blockThreads)
    return Status::invalid(
        fmt::format("threads: {} is not allowed; the PTX of '{}' says {}",
                    *threads, kernel->name, blockThreads));
  blockThreads = threads.value_or(blockThreads);
  if (blockThreads == 0)
    return Status::invalid(
        fmt::format("threads: the PTX of '{}' has neither .reqntid nor "
                    ".maxntid; give their number by --threads",
                    kernel->name));
  kernel->launch.sharedBytes = sharedBytes.value_or(0);
  kernel->target = target.value_or(kernel->target);
  if (!makesCubin)
    return kernel;
  Result<AssembledCubin> made =
      assembleCubin(kernel->ptx, kernel->target, kernel->name, assemble);
  if (!made)
    return made.status();
  kernel->cubin = std::move(made->cubin);
  kernel->assembler = std::move(made->assembler);
  kernel->assemblerLog = std::move(made->log);
  kernel->resources = made->resources;
  return kernel;
}
