//===- VerifyReference.cpp - Several tokens of a row in fp64 --------------===//

#include "kernels/Verify/VerifyReference.h"

#include <algorithm>

namespace replayjit::internal {

/// R23, from the `first` of the row's places on.
static void storeZeros(const DecodeSpec &spec, const DecodeArgs &args,
                       const DecodeRow &row, int64_t first) {
  const DecodeTensors tensors(spec, args);
  for (int64_t t = first; t < row.numPlaces; ++t)
    for (int i = 0; i < spec.numValueHeads * spec.headDimV; ++i)
      tensors.out.set(row.firstToken + t, i, 0);
}

static void verifyRow(const DecodeSpec &spec, const DecodeArgs &args, int index,
                      const DecodeRow &row) {
  const DecodeTensors tensors(spec, args);
  const ReplayTensors places(spec, args);
  const int HV = spec.numValueHeads, K = spec.headDimK, V = spec.headDimV;
  const int G = gateWidth(spec);
  // R20 steps a state of its own, whose numbers are not rounded.
  DecodeRecurrence recurrence(spec, 1);
  std::vector<double> &states = recurrence.state(0);
  double overflow = 0; // R18
  for (int hv = 0; hv < HV; ++hv) {
    const std::vector<double> S =
        materialize(spec, places, row.slot, row.ringSlot, hv, row.cursor);
    const int64_t first = int64_t(hv) * V * K;
    std::copy(S.begin(), S.end(), states.begin() + first);
    for (size_t i = 0; i < S.size() && row.flushes; ++i) // R22
      tensors.state.store(row.dstSlot, first + i, S[i], overflow);
  }
  RingCursor cursor = row.end(spec);
  for (int t = 0; t < row.numTokens; ++t, ++cursor.writePos) {
    const DecodeToken token = readToken(spec, args, row.firstToken + t);
    const DecodeRecurrence::Step step = recurrence.step(0, token);
    for (int i = 0; i < HV * V; ++i)
      tensors.out.store(row.firstToken + t, i, step.out[i], overflow);
    for (int hv = 0; hv < HV; ++hv) // R21
      appendRecord(spec, tensors, row.ringSlot, cursor,
                   {hv, &step.d[hv * V],
                    &token.k[hv / (HV / spec.numKeyHeads) * K],
                    &token.g[hv * G]},
                   overflow);
  }
  storeZeros(spec, args, row, row.numTokens);
  reportOverflow(args.errorWord, index, args.layer, overflow);
}

void verifyLaunch(const DecodeSpec &spec, const DecodeArgs &args) {
  for (int index = 0; index < args.batch; ++index) {
    const DecodeRow row = readRow(spec, args, index);
    if (row.isLive) {
      verifyRow(spec, args, index, row);
      continue;
    }
    storeZeros(spec, args, row, 0);
    reportError(args.errorWord, row.error, index, args.layer, row.badValue);
  }
}

} // namespace replayjit::internal
