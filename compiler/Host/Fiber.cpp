//===- Fiber.cpp - Context switches by Boost.Context ----------------------===//
//
// Boost's `fiber` class unwinds an abandoned fiber with an exception, which
// cannot pass through code compiled at run time. So this uses the switch below
// it, fcontext.
//
//===----------------------------------------------------------------------===//

#include "compiler/Host/Fiber.h"

#include <boost/context/detail/fcontext.hpp>

#include <cstdlib>
#include <sys/mman.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

namespace replayjit::host {

using boost::context::detail::jump_fcontext;
using boost::context::detail::make_fcontext;
using boost::context::detail::transfer_t;

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
    void *memory = mmap(nullptr, stackBytes + guardBytes,
                        PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
      return false;
    // An overflow must stop here instead of in another lane's stack.
    mprotect(memory, guardBytes, PROT_NONE);
    Fiber fiber;
    fiber.stack = static_cast<char *>(memory) + guardBytes;
    fibers.push_back(fiber);
  }
  return true;
}

#if defined(__SANITIZE_ADDRESS__)
#define STARTING_SWITCH(save, stack, bytes)                                    \
  __sanitizer_start_switch_fiber(save, stack, bytes)
#define FINISHED_SWITCH(save, stack, bytes)                                    \
  __sanitizer_finish_switch_fiber(save, stack, bytes)
#else
#define STARTING_SWITCH(save, stack, bytes) (void)0
#define FINISHED_SWITCH(save, stack, bytes) (void)0
#endif

/// The first frame of every fiber.
struct FiberEntry {
  static void run(transfer_t from) {
    auto *set = static_cast<FiberSet *>(from.data);
    FINISHED_SWITCH(nullptr, &set->schedulerStack, &set->schedulerStackBytes);
    set->scheduler = from.fctx;
    FiberSet::Fiber *self = set->running;
    self->function(self->argument);
    set->suspend();
    std::abort(); // Resumed after its end.
  }
};

void FiberSet::start(uint32_t index, Function function, void *argument) {
  Fiber &fiber = fibers[index];
  size_t shift = (index % colors) * colorBytes & ~size_t(63);
  fiber.function = function;
  fiber.argument = argument;
  fiber.context = make_fcontext(fiber.stack + stackBytes - shift,
                                stackBytes - shift, FiberEntry::run);
}

void FiberSet::resume(uint32_t index) {
  running = &fibers[index];
  [[maybe_unused]] void *fake = nullptr;
  STARTING_SWITCH(&fake, running->stack, stackBytes);
  running->context = jump_fcontext(running->context, this).fctx;
  FINISHED_SWITCH(fake, nullptr, nullptr);
}

void FiberSet::suspend() {
  [[maybe_unused]] void *fake = nullptr;
  STARTING_SWITCH(&fake, schedulerStack, schedulerStackBytes);
  scheduler = jump_fcontext(scheduler, nullptr).fctx;
  FINISHED_SWITCH(fake, &schedulerStack, &schedulerStackBytes);
}

} // namespace replayjit::host
