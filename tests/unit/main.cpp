//===- main.cpp - Catch's session, and what it could not run --------------===//

#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>

#include "tests/unit/Skip.h"

#include <cstdio>

static bool hasSkipped = false;

void replayjit::internal::test::skip(const std::string &reason) {
  std::printf("SKIPPED: %s\n", reason.c_str());
  std::fflush(stdout);
  hasSkipped = true;
}

int main(int argc, char **argv) {
  const int result = Catch::Session().run(argc, argv);
  return result == 0 && hasSkipped ? replayjit::internal::test::exitSkipped
                                   : result;
}
