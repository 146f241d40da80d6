//===- GeneratorVersion.h - When cached kernels go stale --------*- C++ -*-===//
#ifndef REPLAYJIT_RUNTIME_CACHE_GENERATORVERSION_H
#define REPLAYJIT_RUNTIME_CACHE_GENERATORVERSION_H

namespace replayjit::internal {

/// Part of every cache key. Add one in the patch that changes the code
/// generated for any spec; an entry of another version is never loaded.
inline constexpr int generatorVersion = 8;

} // namespace replayjit::internal

#endif
