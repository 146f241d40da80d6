//===- KernelRecord.h - A kernel as JSON ------------------------*- C++ -*-===//
//
// The one writer and the one reader of kernel.json, which is also what
// `replay-compile --emit=json` writes. A record holds no times and no paths, so
// that equal kernels have equal records wherever they were made.
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_RUNTIME_CACHE_KERNELRECORD_H
#define REPLAYJIT_RUNTIME_CACHE_KERNELRECORD_H

#include "base/CompiledKernel.h"
#include "runtime/cache/CacheKey.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace replayjit::internal {

/// What a record says.
struct KernelRecord {
  /// All that is needed to launch it. PTX, cubin, log and times are not here.
  CompiledKernel kernel;
  std::optional<DecodeSpec> spec; ///< None: made from a program by hand.
  std::optional<DecodeTuning> tuning;
  uint64_t ptxBytes = 0, cubinBytes = 0;
};

/// The part of an entry's kernel.json that every version understands: what the
/// folder holds, and under which key.
struct EntryRecord {
  std::string name; ///< The kernel's.
  std::string keyText;
  std::string ptxDigest, cubinDigest;
  uint64_t ptxBytes = 0, cubinBytes = 0;
};

/// The record of a kernel, with what it was made from.
std::string toJson(const CompiledKernel &kernel, const DecodeSpec &spec,
                   const DecodeTuning &tuning);

/// The same for a kernel that was made from a program.
std::string toJson(const CompiledKernel &kernel);

/// kernel.json of a cache entry: the record, the key's text, a digest per file
/// and, last, a checksum over everything before it.
std::string toEntryJson(const CompiledKernel &kernel, const CacheKey &key);

/// Reads what any of the above wrote. Strict: a member that is missing,
/// unknown, of another type or out of range is an error that names it.
Result<KernelRecord> readRecord(std::string_view json);

/// Reads an entry's kernel.json after comparing its checksum. Nothing beyond
/// these members is looked at.
Result<EntryRecord> readEntryRecord(std::string_view json);

} // namespace replayjit::internal

#endif
