//===- newer_header.cpp - replayjit.hpp beside a library too old ----------===//

#include <replayjit/replayjit.h>

// As the header of the next minor has it.
static constexpr uint32_t thisVersion = REPLAYJIT_API_VERSION;
#undef REPLAYJIT_API_VERSION
#define REPLAYJIT_API_VERSION (thisVersion + 1)

#include <replayjit/replayjit_state.hpp>

#include <cstdio>

using namespace replayjit;

static constexpr uint32_t version(uint32_t major, uint32_t minor) {
  return (major << 16) | minor;
}
static_assert(serves(version(0, 2), version(0, 2)));
static_assert(!serves(version(0, 3), version(0, 2)));
static_assert(!serves(version(0, 2), version(0, 3)));
static_assert(serves(version(1, 3), version(1, 2)));
static_assert(!serves(version(1, 2), version(1, 3)));
static_assert(!serves(version(2, 3), version(1, 2)));

static int failures = 0;
static void check(bool condition, const char *what) {
  if (!condition)
    std::fprintf(stderr, "failed: %s\n", what), ++failures;
}

template <typename T> static void checkRefused(const Result<T> &created) {
  check(!created, "created all the same");
  check(created.status().code == REPLAYJIT_UNSUPPORTED, "not Unsupported");
  const auto text = [](uint32_t of) {
    return std::to_string(of >> 16) + "." + std::to_string(of & 0xffff);
  };
  check(created.status().message ==
            "libreplayjit has API version " + text(thisVersion) +
                "; this program was built for " + text(thisVersion + 1),
        created.status().message.c_str());
}

int main() {
  checkRefused(Device::emulation());
  checkRefused(Device::cuda());
  checkRefused(Device::cudaCurrent());
  checkRefused(Jit::create(Device()));

  check(shouldFlush(10, 5) && !shouldFlush(11, 5), "shouldFlush");
  check(tokensToDrop(15, 17) == 2, "tokensToDrop");
  return failures;
}
