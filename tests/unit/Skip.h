//===- Skip.h - Checks that cannot run here ---------------------*- C++ -*-===//
#ifndef REPLAYJIT_TESTS_UNIT_SKIP_H
#define REPLAYJIT_TESTS_UNIT_SKIP_H

#include <string>

namespace replayjit::internal::test {

/// What ctest shows as skipped: nothing failed, but not all could run.
inline constexpr int exitSkipped = 77;

/// Says why a check cannot run here, and makes a run without failures end in
/// exitSkipped. The test case then returns.
void skip(const std::string &reason);

} // namespace replayjit::internal::test

#endif
