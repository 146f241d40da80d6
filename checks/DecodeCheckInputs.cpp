//===- DecodeCheckInputs.cpp - Random inputs of a check -------------------===//

#include "checks/DecodeCheckInputs.h"

#include <cmath>

namespace replayjit::internal {

RandomInputs::RandomInputs(const DecodeSpec &spec, float lowerBound,
                           bool mixedGates, bool slowGates, uint64_t seed)
    : spec(spec), lowerBound(lowerBound), mixedGates(mixedGates),
      slowGates(slowGates), random(seed) {
  for (int hv = 0; hv < spec.numValueHeads; ++hv) {
    aLog.push_back(gaussian(0.3));
    if (spec.gate == Gate::Rate || spec.gate == Gate::Fixed)
      aLog.back() = -std::exp(aLog.back());
    if (spec.gate == Gate::Fixed && slowGates)
      aLog.back() *= 1e-3;
    for (int i = 0; i < gateWidth(spec); ++i)
      dtBias.push_back(hasBias(spec) ? gaussian(0.1) : 0);
  }
}

double RandomInputs::gateInput(int ringRow, int channel) {
  bool large = mixedGates && channel % 3 < 2 &&
               (ringRow < spec.ringDepth / 2) == (channel % 3 == 0);
  if (spec.gate == Gate::LogDecay) { // what softplus makes of the numbers below
    const double x = gaussian(0.5) + (slowGates ? -8 : large ? 69 : 0);
    return -std::log1p(std::exp(x));
  }
  if (slowGates) // softplus and 5 sigmoid come to about 1e-3
    return gaussian(0.5) - 8;
  // The middle of a bounded gate would forget a token within two steps.
  if (spec.gate == Gate::LowerBound)
    return gaussian(0.5) + (large ? 4 : -2);
  // softplus(69) is 100 times softplus(0).
  return gaussian(0.5) + (large ? 69 : 0);
}

double RandomInputs::betaInput() {
  if (spec.beta == Beta::Given)
    return 1 / (1 + std::exp(-gaussian(1)));
  double input = 0;
  for (int tries = 0; tries < 100; ++tries) {
    input = roundTo(spec.betaType, gaussian(1));
    const double beta = 1 / (1 + std::exp(-input));
    if (!spec.betaRound || spec.betaType == DataType::F32 ||
        roundTo(spec.betaType, beta * (1 + 1e-6)) ==
            roundTo(spec.betaType, beta * (1 - 1e-6)))
      break;
  }
  return input;
}

void RandomInputs::fillState(const HostTensor &state, int64_t slot) {
  const int64_t count =
      int64_t(spec.numValueHeads) * spec.headDimV * spec.headDimK;
  for (int64_t i = 0; i < count; ++i)
    state.set(slot, i, gaussian(0.3));
}

void RandomInputs::fillRing(const ReplayTensors &tensors, int64_t ringSlot,
                            RingCursor cursor) {
  const int H = spec.numKeyHeads, HV = spec.numValueHeads;
  const int K = spec.headDimK, V = spec.headDimV, G = gateWidth(spec);
  const int64_t L = spec.ringDepth;
  std::vector<double> sums(HV * G); // P of the row
  DecodeArgs args;
  args.lowerBound = float(lowerBound);
  args.stepMin = checkedStepMin;
  args.stepMax = checkedStepMax;
  for (int j = 0; j < cursor.writePos; ++j) {
    const int place = ringRow(spec, cursor, j);
    for (int hv = 0; hv < HV; ++hv) {
      for (int v = 0; v < V; ++v)
        tensors.dRing.set(ringSlot, (hv * L + place) * V + v, gaussian(0.5));
      for (int i = 0; i < G; ++i) {
        const int at = hv * G + i;
        const double g =
            gateOf(spec, args, aLog[hv], gateInput(j, i) + dtBias[at]);
        sums[at] += g;
        tensors.gRing.set(ringSlot, (hv * L + place) * G + i,
                          spec.ringFormat == RingFormat::Raw ? g : sums[at]);
      }
    }
    for (int h = 0; h < H; ++h)
      for (int k = 0; k < K; ++k) {
        double value = gaussian(1 / std::sqrt(double(K)));
        if (spec.ringFormat == RingFormat::Predecayed) // H = HV
          value *= std::exp(-sums[h * G + k]);
        tensors.kRing.set(ringSlot, (h * L + place) * K + k, value);
      }
  }
}

} // namespace replayjit::internal
