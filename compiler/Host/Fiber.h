//===- Fiber.h - The stacks on which lanes run ------------------*- C++ -*-===//
//
// Boost's `fiber` class unwinds an abandoned fiber with an exception, which
// cannot pass through code compiled at run time. So this uses the switch below
// it, fcontext.
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_COMPILER_HOST_FIBER_H
#define REPLAYJIT_COMPILER_HOST_FIBER_H

#include <boost/context/detail/fcontext.hpp>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

#include <cstddef>
#include <cstdint>
#include <vector>

namespace replayjit::internal::host {

/// A set of fibers and the scheduler that resumes them. A fiber that is
/// suspended may be started anew: what it ran before is abandoned, its frames
/// are never unwound. Stacks are kept for reuse.
class FiberSet {
public:
  using Function = void (*)(void *argument);

  FiberSet() = default;
  ~FiberSet();
  FiberSet(const FiberSet &) = delete;
  FiberSet &operator=(const FiberSet &) = delete;

  /// Makes fibers 0 to count - 1 available; false if memory ran out. Not while
  /// a fiber runs.
  bool reserve(uint32_t count);
  /// Fiber `index` will begin with function(argument) when next entered. It
  /// must not be entered again once that has returned.
  void start(uint32_t index, Function function, void *argument);
  /// From the scheduler: enters fiber `index`; returns once some fiber
  /// suspends or ends.
  void resume(uint32_t index) { jump(scheduler, fibers[index]); }
  /// From a fiber: back to the scheduler.
  void suspend() { jump(*running, scheduler); }
  /// From a fiber: straight into fiber `index`.
  void hop(uint32_t index) { jump(*running, fibers[index]); }

private:
  struct Fiber {
    char *stack = nullptr; ///< Lowest usable address.
    size_t bytes = 0;
    void *context = nullptr; ///< Where it stands, unless it runs.
    Function function = nullptr;
    void *argument = nullptr;
  };

  static void enter(boost::context::detail::transfer_t from);

  // Inline, as each frame that a switch leaves costs a mispredicted return.
  void jump(Fiber &from, Fiber &to) {
    left = &from;
    running = &to;
    [[maybe_unused]] void *fakeStack = nullptr;
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_start_switch_fiber(&fakeStack, to.stack, to.bytes);
#endif
    arrive(boost::context::detail::jump_fcontext(to.context, this).fctx,
           fakeStack);
  }

  // The other end of a jump: notes where the fiber that was left stands.
  void arrive(void *context, [[maybe_unused]] void *fakeStack) {
    left->context = context;
#if defined(__SANITIZE_ADDRESS__)
    const void *stack = nullptr;
    size_t bytes = 0;
    __sanitizer_finish_switch_fiber(fakeStack, &stack, &bytes);
    if (left == &scheduler) {
      scheduler.stack = static_cast<char *>(const_cast<void *>(stack));
      scheduler.bytes = bytes;
    }
#endif
  }

  std::vector<Fiber> fibers;
  Fiber scheduler; ///< Whoever calls `resume`.
  Fiber *running = nullptr;
  Fiber *left = nullptr;
};

} // namespace replayjit::internal::host

#endif
