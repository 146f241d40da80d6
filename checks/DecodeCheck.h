//===- DecodeCheck.h - A decode kernel against fp64 -------------*- C++ -*-===//
//
// Steps a loaded kernel on random inputs on any Device and compares all that
// it wrote, and all that it must not touch, with the fp64 recurrence. The same
// harness serves the replay-run tool, the emulation tests and the GPU.
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_CHECKS_DECODECHECK_H
#define REPLAYJIT_CHECKS_DECODECHECK_H

#include "kernels/Decode/DecodeSpec.h"
#include "runtime/Device.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace replayjit::internal {

/// What memory holds that a kernel must not read. NaN shows itself wherever it
/// is used, unless by a maximum; infinity and numbers of 1e30 (fp16: 65504)
/// show there, and where a comparison guards.
enum class Poison : uint8_t { NaN, Infinity, Large };

/// The run to make. Everything random follows from `seed`.
struct DecodeProblem {
  DecodeSpec spec;
  DecodeTuning tuning; ///< Of the kernel; it decides how exact that must be.
  int batch = 4;
  int slots = 8;
  int steps = 40; ///< Launches. Of drafts a random number holds.
  uint64_t seed = 1;
  float scale = 0;       ///< Of q; 0 asks for headDimK^-0.5.
  float lowerBound = -5; ///< Of Gate::LowerBound: finite, negative.

  /// Slots below are counted from firstSlot on: what the index arrays hold is
  /// so much more, unless it is negative, and pools are addressed as if all
  /// slots before were there. A large number needs 64-bit offsets.
  int firstSlot = 0;
  Poison poison = Poison::NaN;
  int layer = 0;            ///< What the error word is to call the launch.
  bool hasErrorWord = true; ///< Else the address is 0.

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

  struct BadBase { ///< The same of ring_base; needs spec.isCircular.
    int row;
    int32_t base; ///< Outside 0..L-1.
  };
  std::vector<BadBase> badBases;

  /// The same of the number of a row's tokens, which else is drawn for each
  /// step; needs spec.tokenRows.
  struct BadCount {
    int row;
    int32_t count; ///< Outside 0..T; where rows are ragged above T.
  };
  std::vector<BadCount> badCounts;

  /// With spec.hasRingIndices, the ring slot of each row; empty: row + 1, in a
  /// circle. Negative and too large ones make padding rows.
  std::vector<int64_t> rowRingSlots;
  int ringSlots = 0; ///< 0: as many as slots.

  /// With spec.hasDstIndices, the slot that each row's next flush writes; from
  /// then on it is the row's slot, and the old one the next to be written. A
  /// row's own slot, or an empty list: flush in place. Null slots and slots >=
  /// `slots` make padding rows.
  std::vector<int64_t> rowDstSlots;

  /// With spec.hasTrackIndices: where a row's S' goes too in one step. A slot
  /// >= `slots` makes the row padding in that step.
  struct Track {
    int step, row;
    int64_t slot;
  };
  std::vector<Track> tracks;

  /// Rows may share a slot. Such rows are run and not compared: they must only
  /// not disturb the others.
  bool sharedSlots = false;

  /// Rows start at different ring phases, their rings filled up to there.
  bool staggered = false;
  /// Gates of the first half of the ring are 100 times those of the rest. KDA:
  /// so in every third channel; in the next one those of the second half, in
  /// the third none. A bounded gate comes near its bound instead.
  bool mixedGates = false;
  /// Gates near zero (alpha about 0.999): nothing but the delta rule forgets,
  /// so that errors would add up.
  bool slowGates = false;

  /// Extra elements after each batch row and after each slot. With
  /// spec.alignment = 16 strides are rounded up to what it promises.
  int rowPadding = 0;
  int slotPadding = 0;
  int indexStride = 1; ///< Of state_indices; the others' are 1 to 3 more.
  /// Every base pointer one element off its allocation; alignment 0 only.
  bool misaligned = false;

  /// What an index array holds for `slot`.
  int64_t slotNumber(int64_t slot) const {
    return slot < 0 ? slot : slot + firstSlot;
  }
  int ringSlotCount() const {
    return spec.hasRingIndices && ringSlots > 0 ? ringSlots : slots;
  }
  /// Entries of the lists of tokens: of ragged rows some that no row has.
  int64_t tokenCount() const;
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
  double gateError = 0;  ///< Appended g, or sums of g.
  double outWorst = 0, stateWorst = 0, ringWorst = 0, gateWorst = 0;
  std::string outWorstAt, stateWorstAt, ringWorstAt, gateWorstAt;

  bool unusedSlotsIntact = true;   ///< Bit for bit, state and rings.
  bool outputsAllWritten = true;   ///< They held poison before each step.
  bool paddingRowsZero = true;     ///< Outputs of padding rows.
  bool unreadRowsUntouched = true; ///< Rings: rows but m, and the padding.
  bool checkpointsIntact = true;   ///< States of rows that do not flush.
  bool inputsIntact = true;        ///< All read-only arguments, cursor too.
  bool errorWordRight = true;      ///< Count and record, after each step.
  /// Errors of the last quarter of a run of `steadySteps` or more are not
  /// larger than twice those of the first.
  bool errorsSteady = true;
  static constexpr int steadySteps = 400;

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
/// rows that must not be read, unused slots and all padding hold the poison.
/// An error means that the problem is not legal or the device failed; a kernel
/// that computes wrongly is a report (see judge). Device memory is
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

/// Whether a kernel was right; if not, the first check that says so.
struct Verdict {
  /// The name of a flag of CheckReport, or which values are beyond their bound:
  /// "gate", "ring", "state" or "out", with " not finite" where they have no
  /// error at all. Empty if all is right.
  std::string failed;
  std::string why; ///< One sentence on it.

  explicit operator bool() const { return failed.empty(); }
};

/// Right means that every flag holds and every error is within `slack` times
/// tolerancesFor the kernel. The bounds are those of many values; norms of a
/// few dozen, with 16-bit states, were seen 1.3 times as large.
Verdict judge(const CheckReport &report, const DecodeSpec &spec,
              const DecodeTuning &tuning, double slack = 1);

} // namespace replayjit::internal

#endif
