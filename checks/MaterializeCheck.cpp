//===- MaterializeCheck.cpp - A materialize kernel against fp64 -----------===//

#include "checks/MaterializeCheck.h"

#include "checks/DecodeCheckInputs.h"
#include "checks/DecodeCheckMemory.h"
#include "kernels/Materialize/MaterializeReference.h"

#include <algorithm>
#include <deque>
#include <fmt/format.h>
#include <map>
#include <set>

namespace replayjit::internal {

//===----------------------------------------------------------------------===//
// What is legal
//===----------------------------------------------------------------------===//

/// False for rows that are skipped or bad, whatever the null slot is.
static bool mayBeLive(const MaterializeProblem &problem,
                      const MaterializeProblem::Row &row) {
  const DecodeSpec &spec = problem.spec;
  auto isIn = [](int64_t value, int64_t size) {
    return value >= 0 && value < size;
  };
  return !row.masked && isIn(row.src, problem.slots) &&
         isIn(row.dst, problem.slots) && isIn(row.writePos, spec.ringDepth) &&
         (!spec.hasRingIndices || row.writePos == 0 ||
          isIn(row.ringSlot, problem.ringSlotCount())) &&
         (!spec.isCircular || isIn(row.base, spec.ringDepth));
}

Status validateProblem(const MaterializeProblem &problem) {
  const DecodeSpec &spec = problem.spec;
  if (Status status = validate(spec, chooseTuning(spec, 0, Target{}), Target{});
      !status)
    return status;
  if (spec.family != Family::Materialize)
    return Status::invalid("family: it must be materialize here; checkDecode "
                           "serves the others");
  if (Status status = validateLowerBound(spec, problem.lowerBound); !status)
    return status;
  for (auto [field, value, low] :
       {std::tuple{"numLayers", problem.numLayers, 0},
        {"slots", problem.slots, 0},
        {"ringSlots", problem.ringSlots, 0},
        {"firstSlot", problem.firstSlot, 0},
        {"slotPadding", problem.slotPadding, 0}})
    if (value < low)
      return Status::invalid(fmt::format(
          "{}: {} is not allowed; it must be {} or more", field, value, low));
  for (const Status &status :
       {checkSpacing(problem.slotPadding, problem.indexStride),
        checkMemory(spec,
                    {.rows = int64_t(problem.rows.size()),
                    .slots = std::max(problem.slots, problem.ringSlotCount()),
                    .layers = problem.numLayers,
                    .slotPadding = problem.slotPadding,
                    .indexStride = problem.indexStride})})
    if (!status)
      return status;
  if (problem.misaligned && spec.alignment != 0)
    return Status::invalid(
        fmt::format("misaligned: not allowed, since the spec promises "
                    "alignment = {}; it must be 0",
                    spec.alignment));
  std::map<int64_t, const MaterializeProblem::Row *> written;
  std::map<int64_t, RingCursor> cursors; // a ring is filled once
  for (const MaterializeProblem::Row &row : problem.rows) {
    if (row.masked && !spec.hasMask)
      return Status::invalid("rows.masked: not allowed, since the spec has "
                             "hasMask = false");
    if (!mayBeLive(problem, row)) {
      if (spec.trapOnError && !row.masked && row.src >= 0 && row.dst >= 0)
        return Status::invalid("trapOnError: true is not allowed with rows "
                               "that are reported, which end the launch");
      continue;
    }
    if (!written.emplace(row.dst, &row).second)
      return Status::invalid(fmt::format(
          "rows.dst: slot {} appears twice; dst must be distinct", row.dst));
    if (spec.hasRingIndices && row.writePos == 0)
      continue; // It has no ring.
    const RingCursor cursor{row.writePos, spec.isCircular ? row.base : 0};
    const int64_t ring = spec.hasRingIndices ? row.ringSlot : row.src;
    if (cursors.emplace(ring, cursor).first->second != cursor)
      return Status::invalid(fmt::format(
          "rows.writePos: the ring of slot {} has two cursors", ring));
  }
  for (const MaterializeProblem::Row &row : problem.rows) {
    auto writer = written.find(row.src);
    if (mayBeLive(problem, row) && writer != written.end() &&
        writer->second != &row)
      return Status::invalid(fmt::format(
          "rows.src: slot {} is the dst of another row; they must be distinct",
          row.src));
  }
  return Status::ok();
}

//===----------------------------------------------------------------------===//
// The launch
//===----------------------------------------------------------------------===//

namespace {

class MaterializeSession {
public:
  MaterializeSession(Device &device, const MaterializeProblem &problem);

  Result<CheckReport> run(LoadedKernel &kernel, const LaunchConfig &launch);

private:
  MaterializeArgs arguments(bool onDevice);
  void writeRows();
  void fillPools();
  void writeTable();
  Status launch(LoadedKernel &kernel, const LaunchConfig &config);
  void compare();
  void checkIntact();

  Device &device;
  const MaterializeProblem &problem;
  const DecodeSpec &spec;
  RandomInputs random;
  std::deque<PoolMirrors> layers;
  ArgumentMirrors tensors;
  TensorMirror &table; ///< The ReplayLayers.
  TensorMirror &errorWord;
  MirrorSet mirrors;
  std::vector<MaterializeRow> rows;
  /// S of each layer, live row and value head, taken before the launch.
  std::vector<std::vector<double>> truth;
  ErrorSum sum;
  ExpectedErrors errors;
  CheckReport report;
};

} // namespace

MaterializeSession::MaterializeSession(Device &device,
                                       const MaterializeProblem &problem)
    : device(device), problem(problem), spec(problem.spec),
      random(spec, problem.lowerBound, /*mixedGates=*/false,
             /*slowGates=*/false, problem.seed),
      tensors({spec, problem.poison, problem.misaligned},
              materializeArguments(), int64_t(problem.rows.size()),
              /*tokens=*/0, /*rowPadding=*/0, problem.indexStride,
              problem.hasErrorWord),
      table(tensors["layers"]), errorWord(tensors["errorWord"]),
      mirrors(device) {
  const MirrorLayout layout{spec, problem.poison, problem.misaligned};
  // Pitches differ from layer to layer, and from pool to pool.
  for (int layer = 0; layer < problem.numLayers; ++layer) {
    PoolMirrors &pools = layers.emplace_back(
        layout.pools(problem.slots, problem.ringSlotCount(), problem.firstSlot,
                     problem.slotPadding + 8 * layer, 8));
    mirrors.create({&pools.state, &pools.dRing, &pools.kRing, &pools.gRing});
  }
  table.dims[0] = problem.numLayers;
  mirrors.create(tensors.list());
  errorWord.fill(0);
  const Tolerances bounds = tolerancesFor(spec, problem.tuning);
  sum.limit = bounds.worstFactor * bounds.state;
}

MaterializeArgs MaterializeSession::arguments(bool onDevice) {
  MaterializeArgs args;
  tensors.place(&args, onDevice);
  args.batch = int32_t(problem.rows.size());
  args.numLayers = problem.numLayers;
  args.slots = problem.firstSlot + problem.slots;
  if (spec.hasRingIndices)
    args.ringSlots = problem.firstSlot + problem.ringSlotCount();
  return args;
}

void MaterializeSession::writeRows() {
  for (int i = 0; i < int(problem.rows.size()); ++i) {
    const MaterializeProblem::Row &row = problem.rows[i];
    tensors["srcIndices"].set(i, problem.slotNumber(row.src));
    tensors["dstIndices"].set(i, problem.slotNumber(row.dst));
    tensors["ringIndices"].set(i, problem.slotNumber(row.ringSlot));
    tensors["writePos"].set(i, row.writePos);
    tensors["ringBase"].set(i, row.base);
    tensors["mask"].set(i, row.masked ? 0 : i % 2 ? -1 : 1);
  }
  const MaterializeArgs args = arguments(/*onDevice=*/false);
  for (int i = 0; i < args.batch; ++i) {
    rows.push_back(readRow(spec, args, i));
    for (int layer = 0; layer < args.numLayers; ++layer)
      errors.add(rows[i].error, i, layer, rows[i].badValue);
  }
}

/// Checkpoints and rings of the sources, and what they come to.
void MaterializeSession::fillPools() {
  for (const PoolMirrors &layer : layers) {
    const ReplayTensors pools(spec, layer.place(/*onDevice=*/false));
    std::set<int64_t> filled, filledRings;
    for (const MaterializeRow &row : rows) {
      if (!row.isLive)
        continue;
      if (filled.insert(row.src).second)
        random.fillState(pools.state, row.src);
      if (row.cursor.writePos > 0 && filledRings.insert(row.ringSlot).second)
        random.fillRing(pools, row.ringSlot, row.cursor);
    }
    for (const MaterializeRow &row : rows)
      for (int hv = 0; hv < spec.numValueHeads && row.isLive; ++hv)
        truth.push_back(
            materialize(spec, pools, row.src, row.ringSlot, hv, row.cursor));
  }
}

/// Device addresses; the table is not read on the host.
void MaterializeSession::writeTable() {
  for (size_t i = 0; i < layers.size(); ++i) {
    const ReplayLayer place = layers[i].place(/*onDevice=*/true);
    std::memcpy(table.at(table.host, int64_t(i), 0), &place, sizeof(place));
  }
}

Status MaterializeSession::launch(LoadedKernel &kernel,
                                  const LaunchConfig &config) {
  if (Status status = mirrors.allocate(); !status)
    return status;
  writeTable();
  const MaterializeArgs args = arguments(/*onDevice=*/true);
  for (Status status : {validateArgs(spec, args), mirrors.copyToDevice()})
    if (!status)
      return status;
  const uint32_t blocks =
      uint32_t(args.batch) * args.numLayers * config.blocksPerRow;
  if (Status status = device.launch(kernel, blocks, &args, sizeof(args));
      !status)
    return status;
  if (Status status = device.synchronize(); !status)
    return status;
  return mirrors.copyFromDevice();
}

void MaterializeSession::compare() {
  size_t next = 0;
  for (size_t index = 0; index < layers.size(); ++index) {
    TensorMirror &state = layers[index].state;
    for (const MaterializeRow &row : rows) {
      if (!row.isLive)
        continue;
      ++report.liveRowSteps;
      ++report.flushes;
      state.accept(row.dst, 0, state.inner());
      for (int hv = 0; hv < spec.numValueHeads; ++hv) {
        const std::vector<double> &S = truth[next++];
        const int64_t first = int64_t(hv) * int64_t(S.size());
        sum.addValues(
            [&](int64_t i) { return state.view().get(row.dst, first + i); }, S,
            [&](int64_t i) {
              return fmt::format("{} of layer {}",
                                 state.place(row.dst, first + i), index);
            });
      }
    }
  }
  report.stateError = sum.error();
  report.stateWorst = sum.worst;
  report.stateWorstAt = sum.worstAt;
  if (!sum.firstBeyond.empty())
    report.firstProblem = "wrong value: " + sum.firstBeyond;
}

void MaterializeSession::checkIntact() {
  if (std::string wrong = errors.check(errorWord); !wrong.empty())
    breakFlag(report, report.errorWordRight, wrong);
  auto check = [&](TensorMirror &mirror, const std::string &where, bool &flag,
                   bool &ofUnused, auto isUsed) {
    if (mirror.host == mirror.seen)
      return;
    auto [row, index] = mirror.firstDifference();
    bool *broken = &flag;
    if (mirror.isPadding(row, index))
      broken = &report.unreadRowsUntouched;
    else if (!isUsed(row))
      broken = &ofUnused;
    breakFlag(report, *broken,
              fmt::format("{}{} was changed, where it must not be written",
                          mirror.place(row, index), where));
  };
  auto always = [](int64_t) { return true; };
  for (TensorMirror *mirror : tensors.list())
    if (mirror != &errorWord)
      check(*mirror, "", report.inputsIntact, report.inputsIntact, always);
  std::set<int64_t> slots, ringSlots;
  for (const MaterializeRow &row : rows)
    if (row.isLive) {
      slots.insert({row.src, row.dst});
      if (row.cursor.writePos > 0)
        ringSlots.insert(row.ringSlot);
    }
  for (size_t i = 0; i < layers.size(); ++i) {
    const std::string where = fmt::format(" of layer {}", i);
    check(layers[i].state, where, report.checkpointsIntact,
          report.unusedSlotsIntact,
          [&](int64_t slot) { return slots.contains(slot); });
    for (TensorMirror *ring : layers[i].rings())
      check(*ring, where, report.unreadRowsUntouched, report.unusedSlotsIntact,
            [&](int64_t slot) { return ringSlots.contains(slot); });
  }
}

Result<CheckReport> MaterializeSession::run(LoadedKernel &kernel,
                                            const LaunchConfig &config) {
  writeRows();
  fillPools();
  if (Status status = launch(kernel, config); !status)
    return status;
  compare();
  checkIntact();
  return report;
}

Result<CheckReport> checkMaterialize(Device &device, LoadedKernel &kernel,
                                     const LaunchConfig &launch,
                                     const MaterializeProblem &problem) {
  if (Status status = validateProblem(problem); !status)
    return status;
  return MaterializeSession(device, problem).run(kernel, launch);
}

} // namespace replayjit::internal
