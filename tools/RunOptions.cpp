//===- RunOptions.cpp - Flags that say what to run ------------------------===//

#include "tools/RunOptions.h"

#include "kernels/Families.h"

#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <cstdio>
#include <ctime>

using namespace replayjit::internal;

void RunOptions::addTo(CLI::App &app) {
  const char *where = "Device";
  app.add_option("--device", device,
                 "gpu, or cpu for the host emulation; default: gpu if there is "
                 "one")
      ->check(oneOf({"gpu", "cpu"}))
      ->group(where);
  app.add_option("--gpu", ordinal, "Which GPU")->group(where);
  app.add_option(
         "--lane-order", laneOrder,
         "In which order the emulation runs lanes, warps and blocks: "
         "forward, reverse, shuffled or shuffled:SEED; default: forward, "
         "or what --random draws for each problem")
      ->group(where);
  app.add_flag("--no-timing", noTiming, "Do not time launches on a GPU")
      ->group(where);
  app.add_flag("--assemble", assemble,
               "Make the cubin with nvJitLink or ptxas, not with the driver")
      ->group(where);

  const char *many = "Suites";
  CLI::Option *chosen =
      app.add_option(
             "--suite", suite,
             "A list of kernels instead of one: small, emulation, real, "
             "gpu (emulation and real), kda, kda-real, packed, formats, "
             "indices, materialize, verify, triton, rules, rules-real or long")
          ->group(many);
  app.add_option("--filter", filter, "Only those whose name contains this")
      ->needs(chosen)
      ->group(many);
  app.add_option("--shard", shard,
                 "I/N: every N-th of the list, from the I-th (1 to N) on")
      ->group(many);
  app.add_option("--random", random,
                 "So many problems drawn at random, from --seed on; one that "
                 "fails is made small")
      ->excludes(chosen)
      ->check(within(1, INT_MAX))
      ->group(many);
  app.add_flag("--list", list, "Print the names and stop")->group(many);

  const char *run = "Run";
  app.add_option("--batch", problem.batch, "Rows of a launch")
      ->check(within(0, 65536))
      ->group(run);
  app.add_option("--slots", slots, "State slots; default: twice the rows")
      ->check(within(0, 1 << 20))
      ->group(run);
  CLI::Option *steps =
      app.add_option("--steps", problem.steps,
                     "Tokens of each row; with drafts launches")
          ->check(within(1, 1 << 24))
          ->group(run);
  ofMaterialize =
      app.add_option("--layers", layers, "materialize: layers of the launch")
          ->check(within(0, 1024))
          ->group(run);
  seedOption =
      app.add_option("--seed", problem.seed,
                     "Of all that is random; --random takes the clock's "
                     "if it is not given")
          ->group(run);
  app.add_option("--null-rows", paddingRows,
                 "How many of the rows have no slot, in turn a null slot and "
                 "one past the end")
      ->check(within(0, INT_MAX))
      ->group(run);
  CLI::Option *force =
      app.add_option(
             "--force-every", forceEvery,
             "Force a flush of row r at every Nth step, the (N-1-r)th first")
          ->check(within(0, INT_MAX))
          ->group(run);
  app.add_option("--lower-bound", problem.lowerBound,
                 "Of the gate lower-bound: a negative number")
      ->group(run);
  CLI::Option *staggered = app.add_flag("--staggered", problem.staggered,
                                        "Start rows at different ring phases")
                               ->group(run);
  CLI::Option *mixed =
      app.add_flag("--mixed-gates", problem.mixedGates,
                   "Early gates of a ring are 100 times the late ones")
          ->group(run);
  CLI::Option *padding = app.add_option("--row-padding", problem.rowPadding,
                                        "Elements between two batch rows")
                             ->group(run);
  ofTokens = {steps, force, staggered, mixed, padding};
  app.add_option("--slot-padding", problem.slotPadding,
                 "Elements between two slots")
      ->group(run);
  app.add_option("--index-stride", problem.indexStride, "Of state_indices")
      ->group(run);
  app.add_flag("--misaligned", problem.misaligned,
               "Move every pointer by one element; needs --alignment 0")
      ->group(run);
  kernel.addTo(app, has<&FamilyTraits::states>);
}

uint64_t RunOptions::firstSeed() const {
  if (seedOption->count() > 0)
    return problem.seed;
  // No two runs of a second share a problem, and a seed stays readable.
  return uint64_t(std::time(nullptr)) * 1000;
}

DecodeProblem RunOptions::problemFor(const DecodeSpec &spec) const {
  DecodeProblem result = problem;
  result.spec = spec;
  result.slots = slots ? slots : std::max(8, 2 * problem.batch);
  // Padding rows lie between live ones, which keep the slots from the end down.
  const bool zeroIsNull = spec.nullSlot == NullSlot::NonPositive;
  for (int row = 0, padding = 0; paddingRows && row < result.batch; ++row) {
    bool isPadding =
        padding < paddingRows &&
        (row % 2 == 1 || result.batch - row <= paddingRows - padding);
    int64_t nullSlot = padding % 2 ? result.slots : zeroIsNull ? 0 : -1;
    result.rowSlots.push_back(isPadding ? nullSlot : result.slots - 1 - row);
    padding += isPadding;
  }
  for (int step = 0; forceEvery && step < result.steps; ++step)
    for (int row = 0; row < result.batch; ++row)
      if ((step + row) % forceEvery == forceEvery - 1)
        result.forcedFlushes.push_back({step, row});
  return result;
}

Result<MaterializeProblem>
RunOptions::materializeFor(const DecodeSpec &spec) const {
  for (const CLI::Option *option : ofTokens)
    if (option->count() > 0)
      return Status::invalid(fmt::format(
          "{}: not allowed with --family materialize, which feeds no tokens",
          option->get_name()));
  const DecodeProblem common = problemFor(spec);
  // The depth is not validated yet.
  const int batch = common.batch, L = std::max(1, spec.ringDepth);
  if (batch > common.slots)
    return Status::invalid(
        fmt::format("batch: {} is not allowed; it must be at most slots = {}",
                    batch, common.slots));
  MaterializeProblem result;
  result.spec = spec;
  if (spec.ringFormat != RingFormat::Raw)
    result.spec.gate = Gate::LowerBound; // such rings have no other
  result.numLayers = layers;
  result.slots = common.slots;
  result.seed = common.seed;
  result.lowerBound = common.lowerBound;
  result.slotPadding = common.slotPadding;
  result.indexStride = common.indexStride;
  result.misaligned = common.misaligned;
  // Sources are the last slots; the first ones, as far as they go, are free.
  const int firstFree = spec.nullSlot == NullSlot::NonPositive ? 1 : 0;
  for (int i = 0; i < batch; ++i) {
    MaterializeProblem::Row row{.src = common.slots - 1 - i, .dst = 0};
    if (!common.rowSlots.empty())
      row.src = common.rowSlots[i];
    const int free = firstFree + i / 2;
    row.dst = i % 2 && free < common.slots - batch ? free : row.src;
    row.writePos = L - 1 - i % L;
    row.base = spec.isCircular ? i % L : 0;
    if (spec.hasRingIndices)
      row.ringSlot = row.writePos ? i : -1;
    result.rows.push_back(row);
  }
  return result;
}

/// What the table calls the kernel of the flags.
static std::string nameOf(const DecodeSpec &spec) {
  std::string name;
  if (spec.family != DecodeSpec().family)
    name = fmt::format("{}-", wordOf(spec.family));
  name += spec.readout == Readout::Rebuild ? "rebuild"
          : spec.isKda                     ? "kda"
                                           : "outonly";
  if (spec.ringFormat != RingFormat::Raw)
    name += fmt::format("-{}", wordOf(spec.ringFormat));
  if (spec.isCircular)
    name += "-circular";
  if (traitsOf(spec).drafts)
    name += fmt::format("-t{}", spec.numTokens);
  return name + fmt::format("-h{}-hv{}-k{}-v{}-l{}", spec.numKeyHeads,
                            spec.numValueHeads, spec.headDimK, spec.headDimV,
                            spec.ringDepth);
}

Result<std::vector<DecodeCase>> RunOptions::cases(const Target &target,
                                                  int multiprocessors) const {
  if (suite.empty()) {
    Result<DecodeSpec> spec = kernel.spec();
    if (!spec)
      return spec.status();
    const Result<DecodeTuning> tuning =
        kernel.tuning(*spec, problem.batch, target, multiprocessors);
    if (!tuning)
      return tuning.status();
    if (traitsOf(*spec).states && !traitsOf(*spec).tokens) {
      Result<MaterializeProblem> fold = materializeFor(*spec);
      if (!fold)
        return fold.status();
      fold->tuning = *tuning;
      return std::vector{materializeCase(nameOf(*spec), std::move(*fold))};
    }
    if (ofMaterialize->count() > 0)
      return Status::invalid(
          fmt::format("{}: not allowed without --family materialize",
                      ofMaterialize->get_name()));
    constexpr int64_t mostForced = 1 << 24;
    if (const int64_t all = int64_t(problem.steps) * problem.batch;
        forceEvery && all / forceEvery > mostForced)
      return Status::invalid(
          fmt::format("--force-every: {} is not allowed; it must force at most "
                      "{} flushes of {} rows in {} steps",
                      forceEvery, mostForced, problem.batch, problem.steps));
    DecodeCase one;
    one.problem = problemFor(*spec);
    one.problem.tuning = *tuning;
    one.name = nameOf(*spec);
    return std::vector<DecodeCase>{one};
  }
  Result<std::vector<DecodeCase>> all = decodeSuite(suite, target);
  if (!all)
    return all;
  std::erase_if(*all, [&](const DecodeCase &entry) {
    return entry.name.find(filter) == std::string::npos;
  });
  if (all->empty())
    return Status::invalid(
        fmt::format("filter: no name of suite '{}' contains '{}'; see --list",
                    suite, filter));
  if (shard.empty())
    return all;
  size_t index = 0, count = 0;
  char rest = 0;
  if (std::sscanf(shard.c_str(), "%zu/%zu%c", &index, &count, &rest) != 2 ||
      index < 1 || index > count || count > all->size())
    return Status::invalid(fmt::format(
        "shard: '{}' is not allowed; it must be I/N with 1 <= I <= N <= {}",
        shard, all->size()));
  std::vector<DecodeCase> chosen;
  for (size_t i = index - 1; i < all->size(); i += count)
    chosen.push_back(std::move((*all)[i]));
  return chosen;
}
