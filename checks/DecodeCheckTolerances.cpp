//===- DecodeCheckTolerances.cpp - How exact a kernel must be -------------===//

#include "checks/DecodeCheck.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <utility>

namespace replayjit::internal {

/// The relative error, as a norm, that rounding to `type` once can cause: that
/// of values just above a power of two, ulp / sqrt(12). Gaussian values come to
/// three quarters of it (bf16 1.7e-3, fp16 2.1e-4). The rounding of fp32 is
/// part of the arithmetic's own error below.
static double roundingError(DataType type) {
  switch (type) {
  case DataType::BF16:
    return std::ldexp(1, -7) / std::sqrt(12);
  case DataType::F16:
    return std::ldexp(1, -10) / std::sqrt(12);
  default:
    return 0;
  }
}

Tolerances tolerancesFor(const DecodeSpec &spec, const DecodeTuning &tuning) {
  // fp32 arithmetic: an output-only prototype on an H200 came to 1.5e-7 of the
  // state; sums taken strictly in sequence come to 4e-7 of the output at K =
  // 256. Sums of gates up to 80, as prefix and predecayed rings hold them,
  // round to 4e-6, and their exponentials with them.
  const bool hasSums = spec.ringFormat != RingFormat::Raw;
  const double arithmetic = hasSums ? 1e-5 : 5e-7;

  // A checkpoint is rounded once per flush, and the gates of a DecodeProblem
  // forget one rounding before the next adds up. A ring row brings the
  // roundings of its d and its k.
  const double checkpoint = roundingError(spec.stateType);
  const double ring = roundingError(spec.ringType);
  const double stored = std::hypot(checkpoint, ring, ring);

  // The rebuild readout rounds both operands of its dot to readoutType.
  // fp32 is cut off to tf32, twice the error of rounding and always downwards,
  // so that the two add up.
  double operands = 0;
  if (spec.readout == Readout::Rebuild && spec.ringDepth > 1)
    operands = readoutType(spec) == DataType::F32
                   ? 2 * 2 * roundingError(DataType::F16)
                   : std::sqrt(2) * roundingError(spec.outType);

  // The state takes all of it, and half as much again in heads so small that
  // sums cancel. The output mixes the state with the current, exact token, and
  // d sees the state through beta S k, which is small beside v.
  Tolerances bounds;
  bounds.state = arithmetic + std::hypot(1.5 * stored, operands);
  bounds.out = arithmetic + std::hypot(roundingError(spec.outType),
                                       0.75 * stored, 0.75 * operands);
  // Heads as large as real ones average the roundings. Users are promised 2e-3
  // of a bf16 output, where an H200 came to 1.7e-3, and the prototype's 1.5e-7
  // of the state, where it came to 9e-8 and the emulation to 1.0e-7.
  if (spec.headDimK >= 128 && spec.headDimV >= 128 && stored == 0 &&
      operands == 0) {
    if (spec.outType == DataType::BF16)
      bounds.out = 2e-3;
    if (!hasSums)
      bounds.state = 1.5e-7;
  }
  bounds.ring = arithmetic + std::hypot(ring, 0.25 * stored, 0.25 * operands);
  // Never stored in 16 bits: fp32 exp, log1p and product. A sum rounds once a
  // row.
  bounds.gate = hasSums ? 6e-7 : 3e-7;
  bounds.worstFactor = 15; // right fp32 kernels were seen to reach 5.3
  return bounds;
}

Verdict judge(const CheckReport &report, const DecodeSpec &spec,
              const DecodeTuning &tuning, double slack) {
  auto broken = [&](const char *name) {
    return Verdict{
        name, fmt::format("{} does not hold: {}", name, report.firstProblem)};
  };
  const std::pair<const char *, bool> flags[] = {
      {"unusedSlotsIntact", report.unusedSlotsIntact},
      {"outputsAllWritten", report.outputsAllWritten},
      {"paddingRowsZero", report.paddingRowsZero},
      {"unreadRowsUntouched", report.unreadRowsUntouched},
      {"checkpointsIntact", report.checkpointsIntact},
      {"inputsIntact", report.inputsIntact},
      {"errorWordRight", report.errorWordRight},
  };
  for (auto [name, holds] : flags)
    if (!holds)
      return broken(name);

  Tolerances bounds = tolerancesFor(spec, tuning);
  for (double *bound : {&bounds.gate, &bounds.ring, &bounds.state, &bounds.out})
    *bound *= slack;
  struct Measure {
    const char *name;
    double error, worst, bound;
    const std::string &worstAt;
  };
  const Measure measures[] = {
      {"gate", report.gateError, report.gateWorst, bounds.gate,
       report.gateWorstAt},
      {"ring", report.ringError, report.ringWorst, bounds.ring,
       report.ringWorstAt},
      {"state", report.stateError, report.stateWorst, bounds.state,
       report.stateWorstAt},
      {"out", report.outError, report.outWorst, bounds.out, report.outWorstAt},
  };
  for (const Measure &measure : measures) {
    const double worstBound = bounds.worstFactor * measure.bound;
    const bool byNorm = !(measure.error <= measure.bound);
    if (byNorm || !(measure.worst <= worstBound))
      return {
          fmt::format("{}{}", measure.name,
                      std::isfinite(measure.error) ? "" : " not finite"),
          fmt::format(
              "{}{} is {:.2e}, but at most {:.2e} is allowed; the worst is "
              "{}; the first problem is {}",
              measure.name, byNorm ? "Error" : "Worst",
              byNorm ? measure.error : measure.worst,
              byNorm ? measure.bound : worstBound, measure.worstAt,
              report.firstProblem.empty() ? "the same" : report.firstProblem)};
  }
  return report.errorsSteady ? Verdict() : broken("errorsSteady");
}

} // namespace replayjit::internal
