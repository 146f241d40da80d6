//===- Fiber.h - The stacks on which lanes run ------------------*- C++ -*-===//
#ifndef REPLAYJIT_COMPILER_HOST_FIBER_H
#define REPLAYJIT_COMPILER_HOST_FIBER_H

#include <cstddef>
#include <cstdint>
#include <vector>

namespace replayjit::host {

/// A set of fibers that one scheduler resumes. A fiber that is suspended may
/// be started anew: what it ran before is abandoned, its frames are never
/// unwound (compiled code has no unwind tables). Stacks are kept for reuse.
class FiberSet {
public:
  using Function = void (*)(void *argument);

  FiberSet() = default;
  ~FiberSet();
  FiberSet(const FiberSet &) = delete;
  FiberSet &operator=(const FiberSet &) = delete;

  /// Makes fibers 0 to count - 1 available; false if memory ran out.
  bool reserve(uint32_t count);
  /// Fiber `index` will begin with function(argument) when next resumed.
  void start(uint32_t index, Function function, void *argument);
  /// From outside: runs fiber `index` until it suspends. It must not be
  /// resumed once its function has returned.
  void resume(uint32_t index);
  /// From inside a fiber: goes back to `resume`.
  void suspend();

private:
  struct Fiber {
    char *stack = nullptr; ///< Lowest usable address.
    void *context = nullptr;
    Function function = nullptr;
    void *argument = nullptr;
  };

  std::vector<Fiber> fibers;
  void *scheduler = nullptr; ///< Where `resume` was called.
  Fiber *running = nullptr;
  const void *schedulerStack = nullptr; ///< For the address sanitizer.
  size_t schedulerStackBytes = 0;

  friend struct FiberEntry;
};

} // namespace replayjit::host

#endif
