//===- publish.cpp - One kernel for a cache -------------------------------===//
//
// Usage: publish FOLDER. The cubin is made up: what loads it is too.
//
//===----------------------------------------------------------------------===//

#include "kernels/Decode/DecodeArgs.h"
#include "runtime/cache/DiskCache.h"

#include <cstdio>

using namespace replayjit::internal;

int main(int argc, char **argv) {
  if (argc != 2)
    return 2;
  const DecodeSpec spec;
  const Target target;
  const CacheKey key =
      CacheKey::of(spec, chooseTuning(spec, /*rows=*/0, target), target);
  CompiledKernel kernel;
  kernel.name = kernelName(key.spec, key.tuning);
  kernel.target = target;
  kernel.signature.bytes = sizeof(DecodeArgs);
  kernel.signature.params = {{"first", KernelParam::Kind::Pointer, 0},
                             {"last", KernelParam::Kind::I64, 8}};
  kernel.launch = {64, 128, 1024};
  kernel.assembler = "ptxas 13.0.88";
  for (char byte : "made-up cubin")
    kernel.cubin.push_back(byte);

  DiskCacheOptions options;
  options.roots = {argv[1]};
  Result<DiskCache> cache = DiskCache::open(options);
  if (!cache || !cache->publish(key, kernel, DiskCache::Replace::Always)) {
    std::fprintf(stderr, "publish: %s\n", cache.status().message.c_str());
    return 1;
  }
}
