//===- DecodeCheck.cpp - A decode kernel against fp64 ---------------------===//

#include "checks/DecodeCheck.h"

#include "checks/DecodeCheckSession.h"
#include "runtime/DecodeLaunch.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <set>
#include <span>
#include <utility>

namespace replayjit::internal {

//===----------------------------------------------------------------------===//
// A step
//===----------------------------------------------------------------------===//

/// Makes the first wrong value the first problem. Called once per row, so the
/// order below matters only within one: causes come before what they cause.
void DecodeSession::noteValues() {
  for (const ErrorSum *sum :
       {&gSum, &kSum, &dSum, &outSum, &checkpointSum, &finalSum})
    if (report.firstProblem.empty() && !sum->firstBeyond.empty())
      report.firstProblem = "wrong value: " + sum->firstBeyond;
}

/// 0 or 1 in the first or last quarter of a long run, else -1.
static int quarterOf(int step, int steps) {
  if (steps < CheckReport::steadySteps)
    return -1;
  return step < steps / 4 ? 0 : step >= steps - steps / 4 ? 1 : -1;
}

void DecodeSession::compareState(int step, int64_t slot,
                                 const std::vector<double> &S) {
  pools.state.accept(slot, 0, pools.state.inner());
  checkpointSum.add(pools.state, slot, 0, S, step);
  if (int quarter = quarterOf(step, problem.steps); quarter >= 0)
    checkpointQuarters[quarter].add(pools.state, slot, 0, S, step);
}

/// Compares token `t` of a live row, and steps the recurrence.
void DecodeSession::compareToken(int step, int index, Row &row, int64_t t) {
  const int64_t place = row.now.firstToken + t;
  const DecodeToken token =
      readToken(spec, arguments(/*onDevice=*/false), place);
  const DecodeRecurrence::Step truth = recurrence.step(index, token);
  ++report.liveRowSteps;

  out.accept(place, 0, out.inner());
  for (int64_t e = 0; e < out.inner(); ++e)
    if (out.isOutputPoison(place, e)) {
      breakFlag(report, report.outputsAllWritten,
                fmt::format("{} was not written at step {}",
                            out.place(place, e), step));
      break;
    }
  outSum.add(out, place, 0, truth.out, step);
  if (int quarter = quarterOf(step, problem.steps); quarter >= 0)
    outQuarters[quarter].add(out, place, 0, truth.out, step);

  if (row.now.flushes && !row.now.keepsToken(spec))
    return;
  RingCursor end = row.now.end(spec);
  end.writePos += int32_t(t);
  compareAppended(step, row, end, token, truth.d);
}

/// Leaves the recurrence after those of the tokens that hold.
void DecodeSession::compareLiveRow(int step, int index, Row &row) {
  std::vector<double> &S = recurrence.state(index);
  std::vector<double> history; // S before the tokens
  if (row.now.keepsToken(spec))
    history = S;
  std::vector<double> heldState, heldSums;
  for (int64_t t = 0; t < row.now.numTokens; ++t) {
    if (t == row.accepted) {
      heldState = S;
      heldSums = row.sums;
    }
    compareToken(step, index, row, t);
  }
  checkZeros(step, row.now, row.now.numTokens);
  if (row.now.trackSlot >= 0)
    compareState(step, row.now.trackSlot, S);
  if (row.now.flushes) {
    ++report.flushes;
    compareState(step, row.now.dstSlot, history.empty() ? S : history);
  }
  if (row.accepted < row.now.numTokens) {
    S = heldState;
    row.sums = heldSums;
  }
}

/// A token in the ring row after those that `cursor` counts.
void DecodeSession::compareAppended(int step, Row &row, RingCursor cursor,
                                    const DecodeToken &token,
                                    const std::vector<double> &d) {
  const int64_t slot = row.now.ringSlot;
  const int64_t place = ringRow(spec, cursor, cursor.writePos);
  acceptRing(slot, place);

  const bool hasSums = spec.ringFormat != RingFormat::Raw;
  const bool startsRing = cursor.writePos == 0;
  for (int i = 0; i < HV * G; ++i)
    row.sums[i] = token.g[i] + (hasSums && !startsRing ? row.sums[i] : 0);
  for (int64_t hv = 0; hv < HV; ++hv) {
    dSum.add(pools.dRing, slot, (hv * L + place) * V,
             std::span(d).subspan(hv * V, V), step);
    gSum.add(pools.gRing, slot, (hv * L + place) * G,
             std::span<const double>(row.sums).subspan(hv * G, G), step);
  }
  // A predecayed k is compared as what it stands for, so that small and large
  // decays count alike.
  const HostTensor view = pools.kRing.view();
  for (int64_t h = 0; h < H; ++h)
    kSum.addValues(
        [&](int64_t i) {
          const double x = view.get(slot, (h * L + place) * K + i);
          return spec.ringFormat == RingFormat::Predecayed
                     ? x * std::exp(row.sums[h * G + i])
                     : x;
        },
        std::span(token.k).subspan(h * K, K),
        [&](int64_t i) {
          return fmt::format("{} at step {}",
                             pools.kRing.place(slot, (h * L + place) * K + i),
                             step);
        });
}

/// Whatever a row wrote that shares its slot.
void DecodeSession::acceptSharedRow(const Row &row) {
  for (int64_t t = 0; t < row.now.numPlaces; ++t)
    out.accept(row.now.firstToken + t, 0, out.inner());
  pools.state.accept(row.now.dstSlot, 0, pools.state.inner());
  if (row.now.trackSlot >= 0)
    pools.state.accept(row.now.trackSlot, 0, pools.state.inner());
  if (traitsOf(spec).rings)
    for (int place = 0; place < L; ++place)
      acceptRing(row.now.ringSlot, place);
}

/// The outputs of a row from its place `first` on, which no token has.
void DecodeSession::checkZeros(int step, const DecodeRow &row, int64_t first) {
  for (int64_t t = first; t < row.numPlaces; ++t) {
    const int64_t place = row.firstToken + t;
    out.accept(place, 0, out.inner());
    for (int64_t e = 0; e < out.inner(); ++e)
      if (const double value = out.view().get(place, e); value != 0) {
        breakFlag(
            report, report.paddingRowsZero,
            fmt::format("{} of a {} is {} instead of 0 at step {}",
                        out.place(place, e),
                        row.isLive ? "place without a token" : "padding row",
                        value, step));
        return;
      }
  }
}

void DecodeSession::checkErrorWord(int step) {
  if (std::string wrong = errors.check(errorWord); !wrong.empty())
    breakFlag(report, report.errorWordRight,
              fmt::format("{}, after step {}", wrong, step));
}

/// All that may change has been accepted: what still differs was not to be
/// written.
void DecodeSession::checkIntact(int step) {
  std::set<int64_t> liveSlots, liveRings;
  for (const Row &row : rows)
    if (row.now.isLive) {
      liveSlots.insert(row.now.slot);
      liveRings.insert(row.now.ringSlot);
    }
  for (TensorMirror *mirror : mirrors) {
    if (mirror->host == mirror->seen)
      continue;
    auto [row, index] = mirror->firstDifference();
    bool isRing = std::ranges::count(pools.rings(), mirror) > 0;
    bool *flag = &report.inputsIntact;
    if (mirror->isPadding(row, index))
      flag = &report.unreadRowsUntouched;
    else if (isRing)
      flag = liveRings.contains(row) ? &report.unreadRowsUntouched
                                     : &report.unusedSlotsIntact;
    else if (mirror == &pools.state)
      flag = liveSlots.contains(row) ? &report.checkpointsIntact
                                     : &report.unusedSlotsIntact;
    breakFlag(report, *flag,
              fmt::format("{} was changed at step {}, where it must "
                          "not be written",
                          mirror->place(row, index), step));
    mirror->host = mirror->seen; // go on with what the device holds
  }
}

/// Moves a live row on as an engine would, and takes away what must not be read
/// any more.
void DecodeSession::advance(Row &row) {
  const DecodeRow &now = row.now;
  row.cursor =
      traitsOf(spec).drafts
          ? acceptedCursor(spec, now.cursor, now.forced, int(row.accepted))
          : nextCursor(spec, now.cursor, now.forced);
  if (now.flushes && now.dstSlot != now.slot) {
    pools.state.poison(now.slot, 0, pools.state.inner());
    std::swap(row.slot, row.dstSlot);
    if (!spec.hasRingIndices)
      row.ringSlot = row.slot;
  }
  if (!traitsOf(spec).rings || (!now.flushes && row.accepted == now.numTokens))
    return;
  for (int j = row.cursor.writePos; j < L; ++j)
    poisonRing(now.ringSlot, ringRow(spec, row.cursor, j));
}

Status DecodeSession::runStep(int step, LoadedKernel &kernel,
                              const LaunchConfig &launch) {
  fillInputs(step);
  const DecodeArgs args = arguments(/*onDevice=*/true);
  for (Status status : {validateArgs(spec, args), mirrors.copyToDevice()})
    if (!status)
      return status;
  const Grid grid = gridOf(spec, launch, problem.batch);
  if (Status status = withParams(spec, args,
                                 [&](const void *params, size_t bytes) {
                                   return device.launch(kernel, grid, params,
                                                        bytes);
                                 });
      !status)
    return status;
  for (Status status : {device.synchronize(), mirrors.copyFromDevice()})
    if (!status)
      return status;

  for (int i = 0; i < problem.batch; ++i) {
    if (!rows[i].now.isLive)
      checkZeros(step, rows[i].now, 0);
    else if (rows[i].isShared)
      acceptSharedRow(rows[i]);
    else
      compareLiveRow(step, i, rows[i]);
    noteValues();
  }
  checkErrorWord(step);
  checkIntact(step);
  for (Row &row : rows)
    if (row.now.isLive)
      advance(row);
  return Status::ok();
}

//===----------------------------------------------------------------------===//
// The report
//===----------------------------------------------------------------------===//

/// Roundings must not add up from flush to flush.
void DecodeSession::checkSteady() {
  if (problem.steps < CheckReport::steadySteps)
    return;
  auto compare = [&](const char *what, const std::array<ErrorSum, 2> &sums) {
    const double early = sums[0].error(), late = sums[1].error();
    if (sums[0].count == 0 || late <= 2 * early + 1e-7)
      return;
    breakFlag(report, report.errorsSteady,
              fmt::format("the error of the {} grows from {:.2e} in the "
                          "first quarter of the steps to {:.2e} in the last",
                          what, early, late));
  };
  compare("output", outQuarters);
  compare("state", checkpointQuarters);
}

CheckReport DecodeSession::finish() {
  const ReplayTensors views(spec, arguments(/*onDevice=*/false));
  for (int i = 0; i < problem.batch; ++i) {
    const Row &row = rows[i];
    if (!row.now.isLive || row.isShared)
      continue;
    const std::vector<double> &S = recurrence.state(i);
    for (int hv = 0; hv < HV; ++hv) {
      std::vector<double> sum =
          materialize(spec, views, row.slot, row.ringSlot, hv, row.cursor);
      finalSum.addValues(
          [&](int64_t e) { return sum[e]; },
          std::span(S).subspan(size_t(hv) * V * K, size_t(V) * K),
          [&](int64_t e) {
            return fmt::format(
                "{} with its ring at the end",
                pools.state.place(row.slot, int64_t(hv) * V * K + e));
          });
    }
  }
  auto larger = [](const ErrorSum &x, const ErrorSum &y, double &error,
                   double &worst, std::string &worstAt) {
    error = std::max(x.error(), y.error());
    worst = std::max(x.worst, y.worst);
    worstAt = x.worst >= y.worst ? x.worstAt : y.worstAt;
  };
  larger(gSum, gSum, report.gateError, report.gateWorst, report.gateWorstAt);
  larger(dSum, kSum, report.ringError, report.ringWorst, report.ringWorstAt);
  larger(checkpointSum, finalSum, report.stateError, report.stateWorst,
         report.stateWorstAt);
  larger(outSum, outSum, report.outError, report.outWorst, report.outWorstAt);
  noteValues();
  checkSteady();
  return report;
}

Result<CheckReport> checkDecode(Device &device, LoadedKernel &kernel,
                                const LaunchConfig &launch,
                                const DecodeProblem &problem,
                                const ProgressFn &progress) {
  if (Status status = validateProblem(problem); !status)
    return status;
  DecodeSession session(device, problem);
  if (Status status = session.allocate(); !status)
    return status;
  session.initialize();
  for (int step = 0; step < problem.steps; ++step) {
    if (Status status = session.runStep(step, kernel, launch); !status)
      return status;
    if (progress)
      progress(step + 1, problem.steps);
  }
  return session.finish();
}

} // namespace replayjit::internal
