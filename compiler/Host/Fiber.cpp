//===- Fiber.cpp - Stacks and first frames --------------------------------===//

#include "compiler/Host/Fiber.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

#include <cstdlib>
#include <sys/mman.h>

namespace replayjit::internal::host {

// A thread program compiled without optimization keeps every value on its
// stack. Pages that are never touched cost nothing.
static constexpr size_t stackBytes = 512 * 1024;
static constexpr size_t guardBytes = 4096;
// Stacks that begin at equal page offsets would compete for the same sets of
// the cache; each fiber begins a few lines further down.
static constexpr size_t colorBytes = 1344;
static constexpr size_t colors = 24;

FiberSet::~FiberSet() {
  for (Fiber &fiber : fibers)
    munmap(fiber.stack - guardBytes, stackBytes + guardBytes);
}

bool FiberSet::reserve(uint32_t count) {
  while (fibers.size() < count) {
    void *memory =
        mmap(nullptr, stackBytes + guardBytes, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
      return false;
    // An overflow must stop here instead of in another lane's stack.
    mprotect(memory, guardBytes, PROT_NONE);
    Fiber fiber;
    fiber.stack = static_cast<char *>(memory) + guardBytes;
    fiber.bytes = stackBytes;
    fibers.push_back(fiber);
  }
  return true;
}

void FiberSet::enter(boost::context::detail::transfer_t from) {
  auto *set = static_cast<FiberSet *>(from.data);
  Fiber *self = set->running;
  set->arrive(from.fctx, nullptr);
  self->function(self->argument);
  set->suspend();
  std::abort(); // Entered after its end.
}

void FiberSet::start(uint32_t index, Function function, void *argument) {
  Fiber &fiber = fibers[index];
#if defined(__SANITIZE_ADDRESS__)
  // Frames that were abandoned have left their marks.
  __asan_unpoison_memory_region(fiber.stack, fiber.bytes);
#endif
  size_t bytes = stackBytes - (index % colors * colorBytes & ~size_t(63));
  fiber.function = function;
  fiber.argument = argument;
  fiber.context =
      boost::context::detail::make_fcontext(fiber.stack + bytes, bytes, enter);
}

} // namespace replayjit::internal::host
