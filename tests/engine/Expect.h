//===- Expect.h - How the engine stops ---------------------------*- C++
//-*-===//
#ifndef REPLAYJIT_TESTS_ENGINE_EXPECT_H
#define REPLAYJIT_TESTS_ENGINE_EXPECT_H

#include "base/Status.h"

#include <string>

namespace replayjit::internal::engine {

/// Prints the sentence and ends the program with a failure.
[[noreturn]] void stop(const std::string &why);

inline void expect(bool holds, const std::string &what) {
  if (!holds)
    stop(what);
}

inline void orStop(const Status &status) {
  if (!status)
    stop(status.text());
}

template <typename T> T orStop(Result<T> result) {
  if (!result)
    stop(result.status().text());
  return std::move(*result);
}

} // namespace replayjit::internal::engine

#endif
