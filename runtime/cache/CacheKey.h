//===- CacheKey.h - What one asks a cache for -------------------*- C++ -*-===//
#ifndef REPLAYJIT_RUNTIME_CACHE_CACHEKEY_H
#define REPLAYJIT_RUNTIME_CACHE_CACHEKEY_H

#include "kernels/Decode/DecodeSpec.h"
#include "runtime/cache/GeneratorVersion.h"

#include <string>
#include <string_view>
#include <vector>

namespace replayjit::internal {

/// All that decides which code is generated. The tools that turn it into a
/// cubin are no part of it: a machine with only a driver finds what another
/// has assembled.
struct CacheKey {
  DecodeSpec spec; ///< In its canonical form.
  DecodeTuning tuning;
  Target target;
  std::string text;   ///< One line "name = value" per fact, in a fixed order.
  std::string digest; ///< Of the text: the name of an entry's folder.

  static CacheKey of(const DecodeSpec &spec, const DecodeTuning &tuning,
                     const Target &target, int version = generatorVersion);
};

/// The lines of a key's text.
std::vector<std::string_view> factsOf(std::string_view keyText);

/// One sentence per fact that is not the same: the name, the value in `asked`
/// and the value in `found`.
std::vector<std::string> differences(std::string_view asked,
                                     std::string_view found);

} // namespace replayjit::internal

#endif
