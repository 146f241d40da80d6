//===- TimePerCall.h - Time per call, and how it spreads --------*- C++ -*-===//
#ifndef REPLAYJIT_TOOLS_TIMEPERCALL_H
#define REPLAYJIT_TOOLS_TIMEPERCALL_H

#include "tools/HostOverhead.h"

#include <functional>
#include <vector>

namespace replayjit::internal {

/// Something to be timed; its first failure ends the measurement.
struct TimedBody {
  int calls = 1;                             ///< Of what is timed, in one run.
  std::function<Status(int calls)> run = {}; ///< Timed.
  std::function<Status()> before = {}, after = {}; ///< Untimed; or null.
};

/// Times the bodies in turns, so that what disturbs the machine for a while
/// disturbs them alike. One untimed turn comes first.
Result<std::vector<Spread>> timeInTurns(const std::vector<TimedBody> &bodies,
                                        int repeats);

/// Times `prepare` of a kernel that is in a disk cache and not in memory, up to
/// its handle. Each call has a Jit of its own, made and ended untimed.
Result<Spread> timeDiskHit(Device &device, const CompileFn &compile,
                           const DecodeSpec &spec, int repeats);

} // namespace replayjit::internal

#endif
