//===- Features.cpp - What an engine must have done -----------------------===//

#include "tests/engine/Features.h"

#include <fmt/format.h>

namespace replayjit::internal::engine {

static const char *const texts[] = {
#define ENGINE_FEATURE(name, text) text,
#include "tests/engine/Features.def"
#undef ENGINE_FEATURE
};

std::string Features::table() const {
  std::string lines;
  for (int i = 0; i < int(Feature::Count); ++i)
    lines += fmt::format("{:8}  {}\n", counts[i], texts[i]);
  return lines;
}

const char *Features::missing(const Device &device) const {
  for (int i = 0; i < int(Feature::Count); ++i) {
    const bool isPossible = i == int(Feature::Graphs) ? !device.isEmulation()
                            : i == int(Feature::Overlapped)
                                ? device.target().capability >= 90
                                : true;
    if (counts[i] == 0 && isPossible)
      return texts[i];
  }
  return nullptr;
}

} // namespace replayjit::internal::engine
