//===- AssembleCubin.cpp - PTX to cubin -----------------------------------===//

#include "compiler/NVPTX/AssembleCubin.h"
#include "compiler/NVPTX/NvJitLink.h"
#include "compiler/NVPTX/ResourceReport.h"
#include "compiler/NVPTX/ToolProcess.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <cstdlib>

namespace replayjit::internal {

static std::string environmentValue(const char *name) {
  const char *value = getenv(name);
  return value ? value : "";
}

/// Of REPLAYJIT_ASSEMBLER_SECONDS.
static Status readTimeLimit(std::chrono::milliseconds &limit) {
  const std::string text = environmentValue("REPLAYJIT_ASSEMBLER_SECONDS");
  if (text.empty())
    return Status::ok();
  int seconds = 0;
  constexpr int most = 24 * 60 * 60;
  const char *end = text.data() + text.size();
  if (std::from_chars(text.data(), end, seconds).ptr != end || seconds < 1 ||
      seconds > most)
    return Status::invalid(
        fmt::format("REPLAYJIT_ASSEMBLER_SECONDS: '{}' is not allowed; it must "
                    "be 1 to {}",
                    text, most));
  limit = std::chrono::seconds(seconds);
  return Status::ok();
}

AssembleOptions AssembleOptions::fromEnvironment() {
  AssembleOptions options;
  if (std::string name = environmentValue("REPLAYJIT_ASSEMBLER");
      name == "nvjitlink")
    options.preference = Preference::NvJitLink;
  else if (name == "ptxas")
    options.preference = Preference::Ptxas;
  else if (name == "driver")
    options.preference = Preference::Driver;
  else if (!name.empty())
    options.fault = Status::invalid(
        fmt::format("REPLAYJIT_ASSEMBLER: '{}' is not allowed; allowed are "
                    "nvjitlink, ptxas, driver",
                    name));
  options.ptxasPath = environmentValue("REPLAYJIT_PTXAS");
  if (options.ptxasPath.empty())
    options.ptxasPath = environmentValue("TRITON_PTXAS_PATH");
  options.nvJitLinkPath = environmentValue("REPLAYJIT_NVJITLINK");

  std::vector<std::string> tools, libraries;
  std::string_view path = getenv("PATH") ? getenv("PATH") : "";
  while (!path.empty()) {
    size_t end = path.find(':');
    if (end != 0) // An empty entry would mean the current folder.
      tools.emplace_back(path.substr(0, end));
    path.remove_prefix(end == path.npos ? path.size() : end + 1);
  }
  if (std::string home = environmentValue("CUDA_HOME"); !home.empty()) {
    tools.push_back(home + "/bin");
    libraries.push_back(home + "/lib64");
    libraries.push_back(home + "/lib");
  }
  options.toolFolders.insert(options.toolFolders.begin(), tools.begin(),
                             tools.end());
  options.libraryFolders.insert(options.libraryFolders.begin(),
                                libraries.begin(), libraries.end());
  if (std::string folder = environmentValue("TMPDIR"); !folder.empty())
    options.temporaryFolder = folder;
  options.limitFault = readTimeLimit(options.timeLimit);
  return options;
}

/// `status` with the stage, kernel and target in front of its message.
static Status inContext(Status status, std::string_view kernelName,
                        const Target &target, std::string_view assembler) {
  status.stage = "assemble";
  return std::move(status).within(fmt::format(
      "{}, AssembleCubin for {} by {}", kernelName, target.chip, assembler));
}

static Result<AssembledCubin> assembleByNvJitLink(const NvJitLink &library,
                                                  std::string_view ptx,
                                                  const Target &target,
                                                  std::string_view kernelName) {
  Result<NvJitLink::Output> output =
      library.link(ptx, target.chip, fmt::format("{}.ptx", kernelName));
  if (!output)
    return inContext(output.status(), kernelName, target, library.version());
  AssembledCubin result;
  result.cubin = std::move(output->cubin);
  result.assembler = library.version();
  result.log = std::move(output->log);
  return result;
}

/// "ptxas 13.0.88" out of what `ptxas --version` prints: "..., V13.0.88".
static Result<std::string> ptxasVersion(const std::string &ptxas,
                                        const ScratchFolder &scratch,
                                        std::chrono::milliseconds limit) {
  Result<ToolOutcome> outcome = runTool({ptxas, "--version"}, scratch, limit);
  if (!outcome)
    return outcome.status();
  size_t at = outcome->output.find(", V");
  if (!outcome->succeeded || at == std::string::npos)
    return Status::error(
        StatusCode::NotFound,
        fmt::format("'{}' is not ptxas: --version ended with {} and printed "
                    "'{}'",
                    ptxas, outcome->ending, outcome->output));
  size_t end = outcome->output.find_first_not_of("0123456789.", at + 3);
  return "ptxas " + outcome->output.substr(at + 3, end - (at + 3));
}

static Result<AssembledCubin> assembleByPtxas(const std::string &ptxas,
                                              std::string_view ptx,
                                              const Target &target,
                                              std::string_view kernelName,
                                              const AssembleOptions &options) {
  auto failed = [&](Status status) {
    return inContext(std::move(status), kernelName, target, "ptxas");
  };
  Result<ScratchFolder> scratch =
      ScratchFolder::create(options.temporaryFolder);
  if (!scratch)
    return failed(scratch.status());
  Result<std::string> version =
      ptxasVersion(ptxas, *scratch, options.timeLimit);
  if (!version)
    return failed(version.status());

  std::string input = scratch->file("kernel.ptx");
  std::string cubinPath = scratch->file("kernel.cubin");
  if (Status status = writeFile(input, ptx); !status)
    return failed(status);
  Result<ToolOutcome> outcome =
      runTool({ptxas, "-v", "-arch=" + target.chip, "-o", cubinPath, input},
              *scratch, options.timeLimit);
  if (!outcome)
    return failed(outcome.status());
  if (!outcome->succeeded)
    return inContext(
        Status::error(StatusCode::AssembleFailed,
                      fmt::format("it ended with {}", outcome->ending),
                      "assemble", std::move(outcome->output)),
        kernelName, target, *version);

  Result<std::string> cubin = readFile(cubinPath);
  if (!cubin)
    return failed(cubin.status());
  AssembledCubin result;
  result.cubin.assign(cubin->begin(), cubin->end());
  result.assembler = std::move(*version);
  result.log = std::move(outcome->output);
  return result;
}

/// Chooses the assembler and runs it; resources are not read yet.
static Result<AssembledCubin> assemble(std::string_view ptx,
                                       const Target &target,
                                       std::string_view kernelName,
                                       const AssembleOptions &options) {
  using Preference = AssembleOptions::Preference;
  for (const Status *fault : {&options.fault, &options.limitFault})
    if (!*fault)
      return *fault;
  Preference preference = options.preference;
  if (preference == Preference::Driver)
    return Status::error(
        StatusCode::Unsupported,
        fmt::format("{}, AssembleCubin for {}: the assembler of a driver needs "
                    "its device, and this is no device; use nvjitlink or ptxas",
                    kernelName, target.chip));
  const std::string ptxas = options.ptxasPath.empty()
                                ? findExecutable("ptxas", options.toolFolders)
                                : options.ptxasPath;
  if (preference == Preference::Any) {
    if (!options.nvJitLinkPath.empty())
      preference = Preference::NvJitLink;
    // nvJitLink makes relocatable code, as `ptxas -c` does, which before sm_90
    // takes up to a third more registers.
    else if (!options.ptxasPath.empty() ||
             (target.capability < 90 && !ptxas.empty()))
      preference = Preference::Ptxas;
  }

  std::string missing;
  if (preference != Preference::Ptxas) {
    Result<const NvJitLink *> library =
        NvJitLink::open(options.nvJitLinkPath, options.libraryFolders);
    if (library)
      return assembleByNvJitLink(**library, ptx, target, kernelName);
    missing = library.status().message + "; ";
  }
  if (preference != Preference::NvJitLink) {
    if (!ptxas.empty())
      return assembleByPtxas(ptxas, ptx, target, kernelName, options);
    missing +=
        fmt::format("no ptxas in {}; ", fmt::join(options.toolFolders, ", "));
  }
  return Status::error(
      StatusCode::NotFound,
      fmt::format("{}, AssembleCubin for {}: no assembler was found: {}set "
                  "REPLAYJIT_PTXAS or REPLAYJIT_NVJITLINK to one, or "
                  "REPLAYJIT_ASSEMBLER=driver to let the GPU's driver do it",
                  kernelName, target.chip, missing),
      "assemble");
}

Result<AssembledCubin> assembleCubin(std::string_view ptx, const Target &target,
                                     std::string_view kernelName,
                                     const AssembleOptions &options) {
  Result<AssembledCubin> result = assemble(ptx, target, kernelName, options);
  if (result)
    result->resources = parseResourceReport(result->log, kernelName);
  return result;
}

Result<std::string> disassemble(const std::vector<char> &cubin,
                                const AssembleOptions &options) {
  if (!options.limitFault)
    return options.limitFault;
  std::vector<std::string> command;
  if (std::string tool = findExecutable("nvdisasm", options.toolFolders);
      !tool.empty())
    command = {tool, "-c"}; // Code only, without data sections.
  else if (tool = findExecutable("cuobjdump", options.toolFolders);
           !tool.empty())
    command = {tool, "--dump-sass"};
  else
    return Status::error(
        StatusCode::NotFound,
        fmt::format("disassemble: neither nvdisasm nor cuobjdump is in {}; put "
                    "one of them, from the CUDA toolkit, on the PATH",
                    fmt::join(options.toolFolders, ", ")));

  Result<ScratchFolder> scratch =
      ScratchFolder::create(options.temporaryFolder);
  if (!scratch)
    return scratch.status();
  std::string input = scratch->file("kernel.cubin");
  if (Status status = writeFile(input, {cubin.data(), cubin.size()}); !status)
    return status;
  command.push_back(input);
  Result<ToolOutcome> outcome = runTool(command, *scratch, options.timeLimit);
  if (!outcome)
    return outcome.status();
  if (!outcome->succeeded)
    return Status::error(StatusCode::AssembleFailed,
                         fmt::format("disassemble: '{}' ended with {}",
                                     command[0], outcome->ending),
                         {}, std::move(outcome->output));
  return std::move(outcome->output);
}

} // namespace replayjit::internal
