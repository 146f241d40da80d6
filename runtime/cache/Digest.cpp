//===- Digest.cpp - Checksums of bytes ------------------------------------===//

#include "runtime/cache/Digest.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <fmt/format.h>

namespace replayjit::internal {

std::string digestOf(std::string_view bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

bool isDigest(std::string_view text) {
  return text.size() == digestDigits &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

} // namespace replayjit::internal
