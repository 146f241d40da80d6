//===- Model.h - The layers that an engine serves ---------------*- C++ -*-===//
//
// Groups of layers of different shapes, their parameters, and the inputs of
// each token. An input is a function of layer, token and position alone: what
// the true output of a request is does not depend on any batch.
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_TESTS_ENGINE_MODEL_H
#define REPLAYJIT_TESTS_ENGINE_MODEL_H

#include "kernels/Decode/DecodeReference.h"

#include <string>
#include <vector>

namespace replayjit::internal::engine {

using Tokens = std::vector<int>;

struct Model {
  struct Group {
    DecodeSpec spec; ///< Of decode, all heads.
    int layers = 0;
    /// Bounds of ||x - true|| / ||true|| (operator contract, section 7): what
    /// storing states in their type and outputs in theirs costs.
    double stateBound = 0, outBound = 0;
  };
  std::string name;
  std::vector<Group> groups;
  float scale = 0.5f, lowerBound = -5.0f;
  int vocabulary = 32;

  int numGroups() const { return int(groups.size()); }
  int numLayers() const;
  /// The group of a layer, layers being numbered through all groups.
  int groupOf(int layer) const;
  /// A layer's number within its group.
  int within(int layer) const;
  const DecodeSpec &specOf(int layer) const {
    return groups[groupOf(layer)].spec;
  }
  /// The decode spec of one of `ranks` tensor-parallel ranks.
  DecodeSpec rankSpec(int group, int ranks) const;
};

/// With few small heads, for the emulation, or real head sizes.
std::vector<Model> models(bool isSmall);

/// The bytes of some tensors, each with its heads outermost.
struct TokenBytes {
  std::string q, k, v, a, b;
};
struct ParamBytes {
  std::string aLog, dtBias;
};
TokenBytes tokenBytes(const Model &model, int layer, int token, int position);
ParamBytes paramBytes(const Model &model, int layer);

/// What rank `rank` of `ranks` holds of a tensor.
inline std::string shardOf(const std::string &bytes, int rank, int ranks) {
  const size_t size = bytes.size() / ranks;
  return bytes.substr(rank * size, size);
}

/// The truth about one request: a plain recurrence in fp64 over its tokens.
class Oracle {
public:
  explicit Oracle(const Model &model);
  /// Over `tokens` from nothing.
  Oracle(const Model &model, const Tokens &tokens);

  /// Feeds the next token; the outputs [HV, V] of each layer.
  std::vector<std::vector<double>> feed(int token);
  /// The states [HV, V, K] of a layer.
  const std::vector<double> &state(int layer) const { return states[layer]; }
  int fed() const { return position; }

private:
  const Model *model;
  std::vector<std::vector<double>> states;
  int position = 0;
};

/// One step of the recurrence of one layer, in place.
std::vector<double> stepLayer(const Model &model, int layer, int token,
                              int position, std::vector<double> &state);

} // namespace replayjit::internal::engine

#endif
