//===- Json.h - A kernel's record as JSON -----------------------*- C++ -*-===//
#ifndef REPLAYJIT_TOOLS_JSON_H
#define REPLAYJIT_TOOLS_JSON_H

#include "compiler/CompiledKernel.h"
#include "kernels/Decode/DecodeSpec.h"

#include <string>

namespace replayjit {

/// All that is needed to launch `kernel`, and what it was made from: the format
/// that tests/perf/decode_bench.py reads. It holds no times, so that equal
/// kernels have equal records.
std::string toJson(const CompiledKernel &kernel, const DecodeSpec &spec,
                   const DecodeTuning &tuning);

/// The same for a kernel that was made from a program.
std::string toJson(const CompiledKernel &kernel);

} // namespace replayjit

#endif
