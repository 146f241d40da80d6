//===- DecodeCheck.h - A decode kernel against fp64 -------------*- C++ -*-===//
//
// Steps a loaded kernel on random inputs on any Device and compares all that
// it wrote, and all that it must not touch, with the fp64 recurrence. The same
// harness serves the replay-run tool, the emulation tests and the GPU.
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_RUNTIME_DECODECHECK_H
#define REPLAYJIT_RUNTIME_DECODECHECK_H

#include "kernels/Decode/DecodeSpec.h"
#include "runtime/Device.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace replayjit {

/// The run to make. Everything random follows from `seed`.
struct DecodeProblem {
  DecodeSpec spec;
  DecodeTuning tuning; ///< Of the kernel; it decides how exact that must be.
  int batch = 4;
  int slots = 8;
  int steps = 40;
  uint64_t seed = 1;
  float scale = 0;       ///< Of q; 0 asks for headDimK^-0.5.
  float lowerBound = -5; ///< Of Gate::LowerBound: finite, negative.

  /// The slot of each row; empty: distinct slots, from the last one down. Null
  /// slots and slots >= `slots` make padding rows. Live rows must be distinct.
  std::vector<int64_t> rowSlots;

  struct ForcedFlush {
    int step, row;
  };
  std::vector<ForcedFlush> forcedFlushes; ///< Needs spec.hasForceFlush.

  /// Rows that stand at an illegal write_pos in every step: padding rows.
  struct BadCursor {
    int row;
    int32_t writePos; ///< Outside 0..L-1.
  };
  std::vector<BadCursor> badCursors;

  /// Rows start at different ring phases, their rings filled up to there.
  bool staggered = false;
  /// Gates of the first half of the ring are 100 times those of the rest. KDA:
  /// so in every third channel; in the next one those of the second half, in
  /// the third none. A bounded gate comes near its bound instead.
  bool mixedGates = false;

  /// Extra elements after each batch row and after each slot. With
  /// spec.alignment = 16 strides are rounded up to what it promises.
  int rowPadding = 0;
  int slotPadding = 0;
  int indexStride = 1; ///< Of state_indices.
  /// Every base pointer one element off its allocation; alignment 0 only.
  bool misaligned = false;
};

/// Says in one sentence (field, value, what is allowed) what is wrong.
Status validateProblem(const DecodeProblem &problem);

/// What was found. An error is ||x - ref|| / ||ref|| over the whole run against
/// the fp64 recurrence, infinite if a value is not a number. A "worst" is the
/// largest |x - ref| / (|ref| + rms(ref)) of one element, rms being that of all
/// values so far: it sees the single wrong element that a norm hides.
struct CheckReport {
  double outError = 0;
  double stateError = 0; ///< The larger of: checkpoints right after a flush;
                         ///< checkpoint plus ring at the end, added in fp64.
  double ringError = 0;  ///< The larger one of the appended d and k.
  double gateError = 0;  ///< Appended g.
  double outWorst = 0, stateWorst = 0, ringWorst = 0, gateWorst = 0;
  std::string outWorstAt, stateWorstAt, ringWorstAt, gateWorstAt;

  bool unusedSlotsIntact = true;   ///< Bit for bit, state and rings.
  bool outputsAllWritten = true;   ///< They held poison before each step.
  bool paddingRowsZero = true;     ///< Outputs of padding rows.
  bool unreadRowsUntouched = true; ///< Rings: rows but m, and the padding.
  bool checkpointsIntact = true;   ///< States of rows that do not flush.
  bool inputsIntact = true;        ///< All read-only arguments, cursor too.

  int64_t liveRowSteps = 0; ///< How much was compared: tokens of live rows.
  int64_t flushes = 0;
  /// The first broken flag or value beyond its tolerance, with its place, its
  /// step and what it should be. Empty if there is none.
  std::string firstProblem;
};

/// Called after each step.
using ProgressFn = std::function<void(int stepsDone, int steps)>;

/// Runs `problem` with `kernel`, made for its spec and tuning. Cursors move on
/// the host as an engine would move them. Before a step the outputs, the ring
/// rows that must not be read, unused slots and all padding hold a NaN pattern.
/// An error means that the problem is not legal or the device failed; a kernel
/// that computes wrongly is a report (see withinTolerance). Device memory is
/// freed on return. `progress` may be empty.
Result<CheckReport> checkDecode(Device &device, LoadedKernel &kernel,
                                const LaunchConfig &launch,
                                const DecodeProblem &problem,
                                const ProgressFn &progress = {});

/// Upper bounds for the fields of CheckReport of the same names. A "worst" may
/// be `worstFactor` times its error's bound.
struct Tolerances {
  double out, state, ring, gate;
  double worstFactor;
};

/// The bounds for a kernel; the source says where each number comes from.
Tolerances tolerancesFor(const DecodeSpec &spec, const DecodeTuning &tuning);

/// True if every flag holds and every error is within tolerancesFor the kernel.
/// Otherwise `why` (may be null) gets one sentence on the first that is not.
bool withinTolerance(const CheckReport &report, const DecodeSpec &spec,
                     const DecodeTuning &tuning, std::string *why = nullptr);

} // namespace replayjit

#endif
