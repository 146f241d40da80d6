//===- DecodeArgs.h - The arguments of one launch ---------------*- C++ -*-===//
//
// The parameter buffers of the decode kernels, the word in which a kernel
// reports bad indices, and how cursors move between launches. Plain C++.
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_KERNELS_DECODE_DECODEARGS_H
#define REPLAYJIT_KERNELS_DECODE_DECODEARGS_H

#include "kernels/Parameters.h"

#include <limits>

namespace replayjit::internal {

/// Tokens that a row has at most: one, unless the family has drafts.
int tokensPerRow(const DecodeSpec &spec);
/// DecodeSpec::tokenRows, of families with drafts; else Full.
TokenRows tokenRowsOf(const DecodeSpec &spec);

/// The arguments of one launch of kernels that have tokens. This struct is the
/// kernel's parameter buffer, byte for byte; decodeArguments() says what each
/// member is. Pointers are device addresses owned by the caller; strides and
/// pitches count elements. Inner dimensions are dense. What a spec does not
/// have is ignored. The order is that of need: each 64 bytes are one line of
/// the constant cache, and a block waits for the first line before it can ask
/// for anything else. Inputs and outputs are lists of the tokens of all rows:
/// those of row r start at r times tokensPerRow, or at tokenOffsets[r].
struct DecodeArgs {
  static constexpr const char *structName = "DecodeArgs";
  static std::vector<ArgumentTable> tables();

  uint64_t stateIndices = 0;
  int64_t stateIndexStride = 1;
  int32_t batch = 0, slots = 0;
  uint64_t writePos = 0;
  uint64_t state = 0;
  int64_t statePitch = 0;
  uint64_t q = 0;
  int64_t qStride = 0;

  uint64_t a = 0;
  int64_t aStride = 0;
  uint64_t b = 0;
  int64_t bStride = 0;
  uint64_t aLog = 0, dtBias = 0;
  uint64_t out = 0;
  int64_t outStride = 0;

  uint64_t dRing = 0;
  int64_t dPitch = 0;
  uint64_t kRing = 0;
  int64_t kPitch = 0;
  uint64_t gRing = 0;
  int64_t gPitch = 0;
  uint64_t forceFlush = 0;
  float scale = 1.0f, lowerBound = -5.0f;

  uint64_t k = 0;
  int64_t kStride = 0;
  uint64_t v = 0;
  int64_t vStride = 0;
  uint64_t ringBase = 0;
  uint64_t ringIndices = 0;
  int64_t ringIndexStride = 1;
  uint64_t dstIndices = 0;
  int64_t dstIndexStride = 1;
  uint64_t trackIndices = 0;
  int64_t trackIndexStride = 1;
  uint64_t errorWord = 0; ///< An ErrorWord, or 0
  int32_t ringSlots = 0, layer = 0;
  uint64_t tokenCounts = 0;
  uint64_t tokenOffsets = 0;

  uint64_t skip = 0;
  uint64_t outGate = 0;
  int64_t outGateStride = 0;
  float stepMin = 0, stepMax = std::numeric_limits<float>::infinity();
  int32_t tokens = 0;
};

/// One layer of a launch over several, in device memory. Members are those of
/// DecodeArgs.
struct ReplayLayer {
  uint64_t state = 0, dRing = 0, kRing = 0, gRing = 0;
  int64_t statePitch = 0, dPitch = 0, kPitch = 0, gPitch = 0;
};

/// What each member is; see Arguments.h.
ArgumentTable decodeArguments();
inline std::vector<ArgumentTable> DecodeArgs::tables() {
  return {decodeArguments()};
}
ArgumentTable layerArguments();

/// The pool among the arguments of a decode step.
ReplayLayer layerOf(const DecodeArgs &args);
void setLayer(DecodeArgs &args, const ReplayLayer &layer);

/// What a kernel found wrong with a row, which it then treated as padding if
/// nothing else is said.
enum class ErrorKind : uint32_t {
  None = 0,
  StateSlot = 1, ///< state_indices >= slots (src_indices of materialize)
  WritePos = 2,  ///< write_pos outside 0..L-1; of drafts, 0..L-T
  RingSlot = 3,  ///< ring_indices negative or >= ringSlots, of a ring in use
  DstSlot = 4,   ///< dst_indices null or >= slots
  TrackSlot = 5, ///< track_indices >= slots
  RingBase = 6,  ///< ring_base outside 0..L-1
  // Of a step's plan (kernels/Plan):
  CursorKey = 7,     ///< a row's key >= the number of cursors
  NotFlushed = 8,    ///< a cursor other than 0 where a ring must be empty
  FlushedTooFar = 9, ///< tokens to leave out that are folded already
  AdvanceBy = 10,    ///< advance_by beyond the ring, or of a row that flushed
  StepMismatch = 11, ///< a step that began and is not the one to commit
  // Of a row that is no padding:
  Overflow = 12, ///< a number beyond fp16 was stored as its largest
  // Of rows with drafts, padding again:
  TokenOffset = 13, ///< tokens that are not within the list of all
  TokenCount = 14,  ///< more tokens than T, or fewer than none
};

/// Memory that the device writes (system scope) and the host may read at any
/// time, such as host-mapped memory. Zero it before use. `count` grows by one
/// for each bad row of each launch, and of each layer of a materialize launch;
/// the first one fills in the rest, `kind` last. Indices are checked whether or
/// not the row flushes, so a bad one makes a live row padding. A row with an
/// Overflow may count more than once.
struct ErrorWord {
  uint32_t count = 0;
  uint32_t kind = 0; ///< ErrorKind
  int32_t row = 0, layer = 0;
  int64_t value = 0; ///< The index or cursor that is not allowed; of Overflow
                     ///< the number's magnitude, rounded down.
};

/// Where a slot's ring stands between two launches. A tracking slot is another
/// slot than the row's own unless the row is forced to flush: its ring would
/// count twice.
struct RingCursor {
  int32_t writePos = 0; ///< Rows that the ring holds.
  int32_t base = 0;     ///< Physical place of the oldest; 0 unless circular.
  bool operator==(const RingCursor &) const = default;
};

/// One more than the ring rows that a launch may find in use.
inline int cursorEnd(const DecodeSpec &spec) {
  return spec.ringDepth - tokensPerRow(spec) + 1;
}

/// True if a launch writes the state of a row that stands at `cursor`. With
/// drafts it folds the ring's rows, if there are any, as soon as the drafts of
/// the next launch might not fit.
bool flushes(const DecodeSpec &spec, RingCursor cursor, bool forced);

/// The cursor after a launch of drafts of which `accepted` hold, at most as
/// many as the row had.
RingCursor acceptedCursor(const DecodeSpec &spec, RingCursor cursor,
                          bool forced, int accepted);

/// The cursor after a launch of one token at a legal cursor. The kernels never
/// write it.
constexpr RingCursor nextCursor(const DecodeSpec &spec, RingCursor cursor,
                                bool forced) {
  if (forced || spec.ringDepth == 1)
    return {0, 0};
  if (cursor.writePos < spec.ringDepth - 1)
    return {cursor.writePos + 1, cursor.base};
  if (spec.isCircular) // the current token stays in the ring
    return {1, (cursor.base + cursor.writePos) % spec.ringDepth};
  return {0, 0};
}

/// Says in one sentence what is wrong with arguments that the host can see:
/// null pointers, counts, strides, alignment, bounds. Expects a valid
/// spec. A stride or pitch of more than 2^32 bytes either way is refused, so
/// that no offset of a row or slot passes 63 bits.
Status validateArgs(const LaunchRules &rules, const DecodeArgs &args);

/// The same for a layer before it goes to device memory.
Status validateLayer(const DecodeSpec &spec, const ReplayLayer &layer);

/// The pointers that a launch follows, of arguments that validateArgs finds
/// right: none without a row.
std::vector<NamedAddress> addressesOf(const LaunchRules &rules,
                                      const DecodeArgs &args);
inline int64_t rowsOf(const DecodeArgs &args) { return args.batch; }

/// What a family that takes them has as FamilyDescriptor::parameters.
std::vector<Parameter> decodeParameters(const DecodeSpec &spec);

/// Refuses a stride of 0, by name, of indices of which each of `rows` rows needs
/// one of its own.
Status
checkOwnSlots(int32_t rows,
              std::initializer_list<std::pair<const char *, int64_t>> strides);

/// Gate::LowerBound: lower_bound must be finite and negative. Predecayed rings
/// grow as exp(-P): (L-1) |lower_bound| may be at most 80. With prefix rings
/// L |lower_bound| must be finite in fp32.
Status validateLowerBound(const DecodeSpec &spec, float lowerBound);

/// hasStepLimits: 0 <= step_min <= step_max, which may be infinite.
Status validateStepLimits(const DecodeSpec &spec, float stepMin, float stepMax);

} // namespace replayjit::internal

#endif
