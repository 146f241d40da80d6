//===- AssembleCubin.h - PTX to cubin ---------------------------*- C++ -*-===//
//
// The last stage: hands PTX to an assembler of the CUDA toolkit, of which none
// is needed to build. A failure is an error with the assembler's log; another
// assembler is never tried in its place. The driver's own assembler needs a
// device, so it is the runtime that calls it (Device::assemble).
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_COMPILER_NVPTX_ASSEMBLECUBIN_H
#define REPLAYJIT_COMPILER_NVPTX_ASSEMBLECUBIN_H

#include "base/CompiledKernel.h"

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace replayjit::internal {

/// Which assembler to use and where to look for it.
struct AssembleOptions {
  enum class Preference {
    /// nvJitLink if `nvJitLinkPath` is set, else ptxas if `ptxasPath` is set,
    /// else whichever is found: from sm_90 on nvJitLink (in process, faster)
    /// first, before sm_90 ptxas (fewer registers).
    Any,
    NvJitLink,
    Ptxas,
    Driver, ///< That of the device a kernel is compiled for.
  };
  Preference preference = Preference::Any;
  /// What fromEnvironment could not read, of the preference and of the time
  /// limit; assembling returns it.
  Status fault, limitFault;
  std::string ptxasPath;     ///< Empty: looked for in `toolFolders`.
  std::string nvJitLinkPath; ///< Empty: the loader, then `libraryFolders`.
  /// Where ptxas, nvdisasm and cuobjdump are looked for, in this order.
  std::vector<std::string> toolFolders = {"/usr/local/cuda/bin"};
  std::vector<std::string> libraryFolders = {"/usr/local/cuda/lib64",
                                             "/usr/local/cuda/lib"};
  /// Where ptxas gets a private folder for its files.
  std::string temporaryFolder = "/tmp";
  /// How long a program may run before it is killed. nvJitLink runs in this
  /// process, where nothing can interrupt it.
  std::chrono::milliseconds timeLimit = std::chrono::minutes(10);

  /// The defaults, with REPLAYJIT_ASSEMBLER (nvjitlink, ptxas or driver) as
  /// preference, REPLAYJIT_PTXAS (else TRITON_PTXAS_PATH) and
  /// REPLAYJIT_NVJITLINK as paths, PATH and CUDA_HOME put before the standard
  /// folders, TMPDIR, and REPLAYJIT_ASSEMBLER_SECONDS. The only place where this stage reads the
  /// environment.
  static AssembleOptions fromEnvironment();
};

struct AssembledCubin {
  std::vector<char> cubin;
  std::string assembler; ///< "nvJitLink 13.0", "ptxas 13.0.88"
  std::string log;       ///< Everything it printed.
  ResourceUsage resources;
};

/// Assembles `ptx` for `target` and reads the resources of `kernelName`, one of
/// its entries. Thread-safe. AssembleFailed if the assembler rejects the PTX
/// (its log in Status::log); NotFound if there is no assembler, or none at the
/// path given; Unsupported if the driver is preferred.
Result<AssembledCubin> assembleCubin(std::string_view ptx, const Target &target,
                                     std::string_view kernelName,
                                     const AssembleOptions &options);

/// The machine code of `cubin` as text, by nvdisasm or else cuobjdump; NotFound
/// if neither is there.
Result<std::string> disassemble(
    const std::vector<char> &cubin,
    const AssembleOptions &options = AssembleOptions::fromEnvironment());

} // namespace replayjit::internal

#endif
