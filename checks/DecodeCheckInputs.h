//===- DecodeCheckInputs.h - Random inputs of a check -----------*- C++ -*-===//
#ifndef REPLAYJIT_CHECKS_DECODECHECKINPUTS_H
#define REPLAYJIT_CHECKS_DECODECHECKINPUTS_H

#include "kernels/Decode/DecodeReference.h"

#include <cstdint>
#include <random>
#include <vector>

namespace replayjit::internal {

/// Of hasStepLimits: about the middle half of what softplus gives here.
inline constexpr float checkedStepMin = 0.5f, checkedStepMax = 0.875f;

/// Values such as a model has, all from one seed. The harness's own copy of
/// A_log and dt_bias is not rounded to their type.
class RandomInputs {
public:
  RandomInputs(const DecodeSpec &spec, float lowerBound, bool mixedGates,
               bool slowGates, uint64_t seed);

  double gaussian(double deviation) { return normal(random) * deviation; }
  int below(int64_t end) { return int(random() % uint64_t(end)); }

  /// An element of `a` of a token that goes to ring row `ringRow`. With
  /// mixedGates and slowGates see DecodeProblem.
  double gateInput(int ringRow, int channel);

  /// An element of b. With betaRound its beta is no tie of the rounding, which
  /// the last bit of an fp32 sigmoid would decide.
  double betaInput();

  /// Fills a checkpoint.
  void fillState(const HostTensor &state, int64_t slot);

  /// Fills the ring rows that `cursor` counts with a plausible history.
  void fillRing(const ReplayTensors &tensors, int64_t ringSlot,
                RingCursor cursor);

  std::vector<double> aLog;   ///< [HV]
  std::vector<double> dtBias; ///< GDN [HV]; KDA [HV, K]; zeros without one

private:
  const DecodeSpec &spec;
  const double lowerBound;
  const bool mixedGates, slowGates;
  std::mt19937_64 random;
  std::normal_distribution<double> normal;
};

} // namespace replayjit::internal

#endif
