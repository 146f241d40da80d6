//===- DecodeCheck.cpp - A decode kernel against fp64 ---------------------===//

#include "runtime/DecodeCheck.h"

#include "kernels/Decode/DecodeReference.h"
#include "runtime/DecodeCheckTensor.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <random>
#include <set>
#include <span>
#include <utility>

namespace replayjit {
namespace {

/// A run of one problem.
class Session {
public:
  Session(Device &device, const DecodeProblem &problem);
  ~Session() {
    for (TensorMirror *mirror : all())
      if (mirror->device)
        (void)device.free(mirror->device); // nothing to be done about it
  }

  Status allocate();
  void initialize();
  Status runStep(int step, LoadedKernel &kernel, const LaunchConfig &launch);
  CheckReport finish();

private:
  struct Row {
    bool live = false;
    int64_t slot = 0;
    int32_t cursor = 0;
    bool flushes = false; ///< In the current step.
  };

  TensorMirror mirror(const char *name, DataType type,
                      std::vector<int64_t> dims, int padding);
  TensorMirror dense(const char *name, DataType type,
                     std::vector<int64_t> dims);
  std::array<TensorMirror *, 13> all();
  DecodeArgs arguments(bool onDevice);

  double gaussian(double deviation) { return normal(random) * deviation; }
  double gateInput(int ringRow, int channel);
  void setBetaInput(int row, int valueHead);
  void fillRing(const Row &row);
  void fillInputs(int step);
  Status copyToDevice();
  Status copyFromDevice();
  void compareLiveRow(int step, int index, const Row &row);
  void checkPaddingRow(int step, int index);
  void checkIntact(int step);
  void noteValues();
  void problemFound(bool &flag, std::string sentence);

  Device &device;
  const DecodeProblem &problem;
  const DecodeSpec &spec;
  const int H, HV, K, V, L;
  const int G; ///< Gates of a token and value head.
  std::mt19937_64 random;
  std::normal_distribution<double> normal;

  TensorMirror mixedQkv, a, b, aLog, dtBias, out, state, dRing, kRing, gRing;
  TensorMirror stateIndices, writePos, forceFlush;
  std::vector<Row> rows;
  DecodeRecurrence recurrence;
  ErrorSum outSum, checkpointSum, finalSum, dSum, kSum, gSum;
  CheckReport report;
};

Session::Session(Device &device, const DecodeProblem &problem)
    : device(device), problem(problem), spec(problem.spec), H(spec.numKeyHeads),
      HV(spec.numValueHeads), K(spec.headDimK), V(spec.headDimV),
      L(spec.ringDepth), G(gateWidth(spec)), random(problem.seed),
      rows(problem.batch), recurrence(problem.spec, problem.slots) {
  const int B = problem.batch, slots = problem.slots;
  const int rowPadding = problem.rowPadding, slotPadding = problem.slotPadding;
  mixedQkv =
      mirror("mixed_qkv", spec.actType, {B, 2 * H * K + HV * V}, rowPadding);
  // GDN has no K here.
  auto gates = [&](std::vector<int64_t> dims) {
    if (spec.isKda)
      dims.push_back(K);
    return dims;
  };
  a = mirror("a", spec.gateType, gates({B, HV}), rowPadding);
  b = mirror("b", spec.gateType, {B, HV}, rowPadding);
  aLog = dense("A_log", spec.paramType, {HV});
  dtBias = dense("dt_bias", spec.paramType, gates({HV}));
  out = mirror("out", spec.outType, {B, HV, V}, rowPadding);
  state = mirror("state", spec.stateType, {slots, HV, V, K}, slotPadding);
  dRing = mirror("d_ring", spec.ringType, {slots, HV, L, V}, slotPadding);
  kRing = mirror("k_ring", spec.ringType, {slots, H, L, K}, slotPadding);
  gRing = mirror("g_ring", DataType::F32, gates({slots, HV, L}), slotPadding);
  stateIndices = dense("state_indices", spec.indexType, {B});
  stateIndices.pitch = problem.indexStride;
  writePos = dense("write_pos", DataType::I32, {B});
  forceFlush = dense("force_flush", DataType::I32, {B});
  const Tolerances bounds = tolerancesFor(spec, problem.tuning);
  outSum.limit = bounds.worstFactor * bounds.out;
  checkpointSum.limit = finalSum.limit = bounds.worstFactor * bounds.state;
  dSum.limit = kSum.limit = bounds.worstFactor * bounds.ring;
  gSum.limit = bounds.worstFactor * bounds.gate;
  for (TensorMirror *mirror : all()) {
    mirror->host.resize((mirror->lead + mirror->rows() * mirror->pitch) *
                        byteSize(mirror->type));
    mirror->seen.resize(mirror->host.size());
    mirror->fill(/*output=*/false);
  }
}

TensorMirror Session::mirror(const char *name, DataType type,
                             std::vector<int64_t> dims, int padding) {
  TensorMirror result;
  result.name = name;
  result.type = type;
  result.dims = std::move(dims);
  result.pitch = result.inner() + padding;
  result.lead = problem.misaligned ? 1 : 0;
  if (spec.alignment > 0) {
    int64_t unit = spec.alignment / byteSize(type);
    result.pitch = (result.pitch + unit - 1) / unit * unit;
  }
  return result;
}

/// Nothing between two rows.
TensorMirror Session::dense(const char *name, DataType type,
                            std::vector<int64_t> dims) {
  TensorMirror result = mirror(name, type, std::move(dims), 0);
  result.pitch = result.inner();
  return result;
}

std::array<TensorMirror *, 13> Session::all() {
  return {&mixedQkv,     &a,        &b,         &aLog,  &dtBias,
          &out,          &state,    &dRing,     &kRing, &gRing,
          &stateIndices, &writePos, &forceFlush};
}

DecodeArgs Session::arguments(bool onDevice) {
  auto address = [&](const TensorMirror &mirror) {
    return onDevice ? mirror.device + mirror.leadBytes() : mirror.hostAddress();
  };
  DecodeArgs args;
  args.q = address(mixedQkv);
  args.a = address(a);
  args.b = address(b);
  args.aLog = address(aLog);
  args.dtBias = address(dtBias);
  args.out = address(out);
  args.state = address(state);
  args.dRing = address(dRing);
  args.kRing = address(kRing);
  args.gRing = address(gRing);
  args.stateIndices = address(stateIndices);
  args.writePos = address(writePos);
  args.forceFlush = spec.hasForceFlush ? address(forceFlush) : 0;
  args.qStride = mixedQkv.pitch;
  args.aStride = a.pitch;
  args.bStride = b.pitch;
  args.outStride = out.pitch;
  args.stateIndexStride = stateIndices.pitch;
  args.statePitch = state.pitch;
  args.dPitch = dRing.pitch;
  args.kPitch = kRing.pitch;
  args.gPitch = gRing.pitch;
  args.batch = problem.batch;
  args.slots = problem.slots;
  args.scale = problem.scale != 0 ? problem.scale
                                  : float(1 / std::sqrt(double(spec.headDimK)));
  args.lowerBound = problem.lowerBound;
  return args;
}

Status Session::allocate() {
  for (TensorMirror *mirror : all()) {
    Result<uint64_t> memory =
        device.allocate(mirror->host.size(), mirror->name);
    if (!memory)
      return memory.status();
    mirror->device = *memory;
  }
  return Status::ok();
}

/// An element of the argument a of a token that goes to ring row `ringRow`.
double Session::gateInput(int ringRow, int channel) {
  bool large = problem.mixedGates && channel % 3 < 2 &&
               (ringRow < L / 2) == (channel % 3 == 0);
  // The middle of a bounded gate would forget a token within two steps.
  if (spec.gate == Gate::LowerBound)
    return gaussian(0.5) + (large ? 4 : -2);
  // softplus(69) is 100 times softplus(0).
  return gaussian(0.5) + (large ? 69 : 0);
}

/// An element of b. With betaRound its beta is no tie of the rounding, which
/// the last bit of an fp32 sigmoid would decide.
void Session::setBetaInput(int row, int valueHead) {
  for (int tries = 0; tries < 100; ++tries) {
    b.view().set(row, valueHead, gaussian(1));
    const double beta = 1 / (1 + std::exp(-b.view().get(row, valueHead)));
    if (!spec.betaRound || spec.gateType == DataType::F32 ||
        roundTo(spec.gateType, beta * (1 + 1e-6)) ==
            roundTo(spec.gateType, beta * (1 - 1e-6)))
      return;
  }
}

void Session::initialize() {
  const DecodeArgs args = arguments(/*onDevice=*/false);
  for (int hv = 0; hv < HV; ++hv) {
    aLog.view().set(hv, 0, gaussian(0.3));
    for (int i = 0; i < G; ++i)
      dtBias.view().set(hv, i, gaussian(0.1));
  }
  for (int i = 0; i < problem.batch; ++i) {
    Row &row = rows[i];
    row.slot =
        problem.rowSlots.empty() ? problem.slots - 1 - i : problem.rowSlots[i];
    row.cursor = problem.staggered ? i % L : 0;
    for (const DecodeProblem::BadCursor &bad : problem.badCursors)
      if (bad.row == i)
        row.cursor = bad.writePos;
    stateIndices.view().set(i, 0, double(row.slot));
    writePos.view().set(i, 0, row.cursor);
    row.live = isLive(spec, args, i);
    if (!row.live)
      continue;
    for (int64_t e = 0; e < state.inner(); ++e)
      state.view().set(row.slot, e, gaussian(0.3));
    fillRing(row);
    std::vector<double> &truth = recurrence.state(row.slot);
    for (int hv = 0; hv < HV; ++hv) {
      std::vector<double> S = materialize(spec, args, row.slot, hv, row.cursor);
      std::copy(S.begin(), S.end(), truth.begin() + int64_t(hv) * V * K);
    }
  }
}

/// Fills the first row.cursor ring rows with a plausible history.
void Session::fillRing(const Row &row) {
  for (int j = 0; j < row.cursor; ++j) {
    for (int hv = 0; hv < HV; ++hv) {
      for (int v = 0; v < V; ++v)
        dRing.view().set(row.slot, (int64_t(hv) * L + j) * V + v,
                         gaussian(0.5));
      for (int i = 0; i < G; ++i)
        gRing.view().set(row.slot, (int64_t(hv) * L + j) * G + i,
                         gateOf(spec, problem.lowerBound,
                                aLog.view().get(hv, 0),
                                gateInput(j, i) + dtBias.view().get(hv, i)));
    }
    for (int64_t h = 0; h < H; ++h)
      for (int k = 0; k < K; ++k)
        kRing.view().set(row.slot, (h * L + j) * K + k,
                         gaussian(1 / std::sqrt(double(K))));
  }
}

/// Fresh inputs of a step. Padding rows keep their poison.
void Session::fillInputs(int step) {
  // Without normalization k must come with a norm near 1 by itself: the delta
  // rule diverges where beta * |k|^2 > 2.
  double qkDeviation = spec.qkL2Norm ? 1 : 1 / std::sqrt(double(K));
  for (int i = 0; i < problem.batch; ++i) {
    writePos.view().set(i, 0, rows[i].cursor);
    forceFlush.view().set(i, 0, 0);
    if (!rows[i].live)
      continue;
    for (int e = 0; e < 2 * H * K; ++e)
      mixedQkv.view().set(i, e, gaussian(qkDeviation));
    for (int e = 0; e < HV * V; ++e)
      mixedQkv.view().set(i, 2 * H * K + e, gaussian(1));
    for (int hv = 0; hv < HV; ++hv) {
      for (int c = 0; c < G; ++c)
        a.view().set(i, hv * G + c, gateInput(rows[i].cursor, c));
      setBetaInput(i, hv);
    }
  }
  for (const DecodeProblem::ForcedFlush &forced : problem.forcedFlushes)
    if (forced.step == step) // any value but 0 means yes
      forceFlush.view().set(forced.row, 0, forced.row % 2 ? -1 : 1);
  const DecodeArgs args = arguments(/*onDevice=*/false);
  for (int i = 0; i < problem.batch; ++i)
    rows[i].flushes = rows[i].live && flushes(spec, args, i);
  for (TensorMirror *mirror : {&mixedQkv, &a, &b, &writePos, &forceFlush})
    mirror->dirty = true;
  out.fill(/*output=*/true);
}

Status Session::copyToDevice() {
  for (TensorMirror *mirror : all()) {
    if (!mirror->dirty || mirror->host.empty())
      continue;
    if (Status status = device.copyToDevice(mirror->device, mirror->host.data(),
                                            mirror->host.size());
        !status)
      return status;
    mirror->dirty = false;
  }
  return Status::ok();
}

Status Session::copyFromDevice() {
  for (TensorMirror *mirror : all()) {
    if (mirror->seen.empty())
      continue;
    if (Status status = device.copyFromDevice(
            mirror->seen.data(), mirror->device, mirror->seen.size());
        !status)
      return status;
  }
  return Status::ok();
}

void Session::problemFound(bool &flag, std::string sentence) {
  flag = false;
  if (report.firstProblem.empty())
    report.firstProblem = std::move(sentence);
}

/// Makes the first wrong value the first problem. Called once per row, so the
/// order below matters only within one: causes come before what they cause.
void Session::noteValues() {
  for (const ErrorSum *sum :
       {&gSum, &kSum, &dSum, &outSum, &checkpointSum, &finalSum})
    if (report.firstProblem.empty() && !sum->firstBeyond.empty())
      report.firstProblem = "wrong value: " + sum->firstBeyond;
}

void Session::compareLiveRow(int step, int index, const Row &row) {
  const DecodeArgs args = arguments(/*onDevice=*/false);
  const DecodeToken token = readToken(spec, args, index);
  const DecodeRecurrence::Step truth = recurrence.step(row.slot, token);
  ++report.liveRowSteps;

  out.accept(index, 0, out.inner());
  for (int64_t e = 0; e < out.inner(); ++e)
    if (out.isOutputPoison(index, e)) {
      problemFound(report.outputsAllWritten,
                   fmt::format("{} was not written at step {}",
                               out.place(index, e), step));
      break;
    }
  outSum.add(out, index, 0, truth.out, step);

  if (row.flushes) {
    ++report.flushes;
    const std::vector<double> &S = recurrence.state(row.slot);
    state.accept(row.slot, 0, state.inner());
    checkpointSum.add(state, row.slot, 0, S, step);
    return;
  }
  const int m = row.cursor;
  for (int64_t hv = 0; hv < HV; ++hv) {
    dRing.accept(row.slot, (hv * L + m) * V, V);
    gRing.accept(row.slot, (hv * L + m) * G, G);
    dSum.add(dRing, row.slot, (hv * L + m) * V,
             std::span(truth.d).subspan(hv * V, V), step);
    gSum.add(gRing, row.slot, (hv * L + m) * G,
             std::span(token.g).subspan(hv * G, G), step);
  }
  for (int64_t h = 0; h < H; ++h) {
    kRing.accept(row.slot, (h * L + m) * K, K);
    kSum.add(kRing, row.slot, (h * L + m) * K,
             std::span(token.k).subspan(h * K, K), step);
  }
}

void Session::checkPaddingRow(int step, int index) {
  out.accept(index, 0, out.inner());
  for (int64_t e = 0; e < out.inner(); ++e)
    if (out.view().get(index, e) != 0) {
      problemFound(report.paddingRowsZero,
                   fmt::format("{} of a padding row is {} instead of 0 at step "
                               "{}",
                               out.place(index, e), out.view().get(index, e),
                               step));
      return;
    }
}

/// All that may change has been accepted: what still differs was not to be
/// written.
void Session::checkIntact(int step) {
  std::set<int64_t> liveSlots;
  for (const Row &row : rows)
    if (row.live)
      liveSlots.insert(row.slot);
  for (TensorMirror *mirror : all()) {
    if (mirror->host == mirror->seen)
      continue;
    auto found = std::mismatch(mirror->host.begin(), mirror->host.end(),
                               mirror->seen.begin());
    int64_t element =
        (found.first - mirror->host.begin()) / byteSize(mirror->type) -
        mirror->lead;
    int64_t row = element < 0 ? -1 : element / mirror->pitch;
    int64_t index = element < 0 ? 0 : element % mirror->pitch;
    bool isRing = mirror == &dRing || mirror == &kRing || mirror == &gRing;
    bool perSlot = isRing || mirror == &state;
    bool padding = row < 0 || index >= mirror->inner();
    bool *flag = &report.inputsIntact;
    if (padding)
      flag = &report.unreadRowsUntouched;
    else if (perSlot && !liveSlots.contains(row))
      flag = &report.unusedSlotsIntact;
    else if (isRing)
      flag = &report.unreadRowsUntouched;
    else if (perSlot)
      flag = &report.checkpointsIntact;
    problemFound(*flag, fmt::format("{} was changed at step {}, where it must "
                                    "not be written",
                                    mirror->place(row, index), step));
    mirror->host = mirror->seen; // go on with what the device holds
  }
}

Status Session::runStep(int step, LoadedKernel &kernel,
                        const LaunchConfig &launch) {
  fillInputs(step);
  if (Status status = copyToDevice(); !status)
    return status;
  const DecodeArgs args = arguments(/*onDevice=*/true);
  if (Status status =
          device.launch(kernel, uint32_t(problem.batch) * launch.blocksPerRow,
                        &args, sizeof(args));
      !status)
    return status;
  if (Status status = device.synchronize(); !status)
    return status;
  if (Status status = copyFromDevice(); !status)
    return status;

  for (int i = 0; i < problem.batch; ++i) {
    if (rows[i].live)
      compareLiveRow(step, i, rows[i]);
    else
      checkPaddingRow(step, i);
    noteValues();
  }
  checkIntact(step);
  for (int i = 0; i < problem.batch; ++i) {
    Row &row = rows[i];
    if (!row.live)
      continue;
    if (!row.flushes) {
      ++row.cursor;
      continue;
    }
    row.cursor = 0; // from now on no ring row may be read
    for (TensorMirror *ring : {&dRing, &kRing, &gRing})
      ring->poison(row.slot, 0, ring->inner());
  }
  return Status::ok();
}

CheckReport Session::finish() {
  const DecodeArgs args = arguments(/*onDevice=*/false);
  for (const Row &row : rows) {
    if (!row.live)
      continue;
    const std::vector<double> &S = recurrence.state(row.slot);
    for (int hv = 0; hv < HV; ++hv) {
      std::vector<double> sum =
          materialize(spec, args, row.slot, hv, row.cursor);
      finalSum.addValues(
          [&](int64_t i) { return sum[i]; },
          std::span(S).subspan(size_t(hv) * V * K, size_t(V) * K),
          [&](int64_t i) {
            return fmt::format("{} with its ring at the end",
                               state.place(row.slot, int64_t(hv) * V * K + i));
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
  return report;
}

} // namespace

Result<CheckReport> checkDecode(Device &device, LoadedKernel &kernel,
                                const LaunchConfig &launch,
                                const DecodeProblem &problem,
                                const ProgressFn &progress) {
  if (Status status = validateProblem(problem); !status)
    return status;
  Session session(device, problem);
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

} // namespace replayjit
