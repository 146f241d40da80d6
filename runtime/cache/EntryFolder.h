//===- EntryFolder.h - One kernel on disk -----------------------*- C++ -*-===//
//
// Private to runtime/cache: a folder of kernel.json, kernel.ptx and
// kernel.cubin, named by its key's digest. A folder is complete before it gets
// that name and is never written to again.
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_RUNTIME_CACHE_ENTRYFOLDER_H
#define REPLAYJIT_RUNTIME_CACHE_ENTRYFOLDER_H

#include "base/CompiledKernel.h"
#include "runtime/cache/CacheKey.h"
#include "runtime/cache/KernelRecord.h"

#include <string>

namespace replayjit::internal {

/// The kernel of the entry at `path`, if it is whole, private and has this key.
/// NotFound if there is no entry; any other error is one sentence on what is
/// wrong with it. `marksUse` sets the time that pruning goes by.
Result<CompiledKernel> loadEntry(const std::string &path, const CacheKey &key,
                                 bool marksUse);

/// What the entry's kernel.json says of it; the other files are not read.
Result<EntryRecord> peekEntry(const std::string &path);

/// Reads all of an entry and compares checksums and name; what this version
/// wrote is also read strictly.
Status verifyEntry(const std::string &path);

/// Fills an empty folder and brings it to disk. `json` is of toEntryJson.
Status writeEntry(const std::string &path, const CompiledKernel &kernel,
                  const std::string &json);

/// Bytes of the files of an entry, and when it was last used (nanoseconds
/// since 1970); zeros where it cannot be told.
struct EntryUse {
  uint64_t bytes = 0;
  int64_t lastUsed = 0;
};
EntryUse entryUse(const std::string &path);

} // namespace replayjit::internal

#endif
