//===- FillCache.cpp - A cache of made-up kernels -------------------------===//
//
// Usage: fill-cache DIR. For tests of replay-cache on machines without an
// assembler: two entries, of ring depths 2 and 3.
//
//===----------------------------------------------------------------------===//

#include "tests/unit/CacheTestSupport.h"

using namespace replayjit::internal;

int main(int argc, char **argv) {
  if (argc != 2)
    return 2;
  const DiskCache cache = test::openAt(argv[1]);
  for (int n : {0, 1})
    if (!cache.publish(test::keyOf(n), test::kernelOf(test::keyOf(n))))
      return 1;
  return 0;
}
