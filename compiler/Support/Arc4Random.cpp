//===- Arc4Random.cpp - A function that glibc has from 2.36 on ------------===//
//
// LLVM's archives were compiled where <stdlib.h> has arc4random, and take names
// of temporary files from it, which they open exclusively. With a definition of
// our own, what we ship runs with glibc 2.35 as well (Ubuntu 22.04).
//
//===----------------------------------------------------------------------===//

#include <sys/random.h>
#include <unistd.h>

#include <cstdint>
#include <ctime>

extern "C" [[gnu::visibility("hidden")]] uint32_t arc4random() noexcept {
  uint32_t number;
  if (getrandom(&number, sizeof(number), GRND_NONBLOCK) == sizeof(number))
    return number;
  timespec now{}; // The kernel refuses: other names than those of a moment ago.
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint32_t>(now.tv_nsec) * 2654435761u ^
         static_cast<uint32_t>(getpid());
}
