//===- Features.h - What an engine must have done ---------------*- C++ -*-===//
//
// Each thing that an engine does around the kernels is counted where it
// happens. A run in which one never happened has shown nothing about it.
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_TESTS_ENGINE_FEATURES_H
#define REPLAYJIT_TESTS_ENGINE_FEATURES_H

#include "runtime/Device.h"

#include <string>

namespace replayjit::internal::engine {

enum class Feature {
#define ENGINE_FEATURE(name, text) name,
#include "tests/engine/Features.def"
#undef ENGINE_FEATURE
  Count
};

class Features {
public:
  void add(Feature feature, int64_t times = 1) {
    counts[int(feature)] += times;
  }
  int64_t of(Feature feature) const { return counts[int(feature)]; }
  /// A line for each, with its count.
  std::string table() const;
  /// The first that never happened, or null. Graphs need a GPU, and launches
  /// that overlap sm_90.
  const char *missing(const Device &device) const;

private:
  int64_t counts[int(Feature::Count)] = {};
};

} // namespace replayjit::internal::engine

#endif
