//===- Digest.h - Checksums of bytes ----------------------------*- C++ -*-===//
#ifndef REPLAYJIT_RUNTIME_CACHE_DIGEST_H
#define REPLAYJIT_RUNTIME_CACHE_DIGEST_H

#include <string>
#include <string_view>

namespace replayjit::internal {

/// Hexadecimal digits of a digest.
inline constexpr size_t digestDigits = 32;

/// XXH3 of 128 bits as lower-case hexadecimal. It finds damage; it is no
/// defence against an attacker, which file permissions are.
std::string digestOf(std::string_view bytes);

/// True for what digestOf can return.
bool isDigest(std::string_view text);

} // namespace replayjit::internal

#endif
