//===- Rank.h - One tensor-parallel rank of an engine -----------*- C++ -*-===//
//
// A pool with this rank's heads of all layers, a plan and input buffers for
// each padded batch size, and the launches of a step. Rows and slots are the
// engine's, the same on all of its ranks. Where there is one rank the pool
// allocates its memory, else it adopts the engine's.
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_TESTS_ENGINE_RANK_H
#define REPLAYJIT_TESTS_ENGINE_RANK_H

#include "tests/engine/Graph.h"
#include "tests/engine/HostPlan.h"
#include "tests/engine/Pages.h"

#include <map>

namespace replayjit::internal::engine {

/// The inputs of a row, of each layer.
using RowInputs = std::vector<TokenBytes>;

class Rank {
public:
  Rank(Jit &jit, const Model &model, int rank, int ranks, const Sizes &sizes);

  StatePool &pool() { return *statePool; }
  StepPlan &plan(int batch) { return *sizes.at(batch).plan; }
  /// The plan for operations on slots.
  StepPlan &plan() { return *sizes.rbegin()->second.plan; }

  /// Puts the inputs of rows where the launches of `batch` rows find them, and
  /// not-a-number into all of their outputs.
  void setInputs(int batch, const std::vector<RowInputs> &rows);
  /// Launches all layers for rows first to first + count - 1 of `batch`.
  void launch(int batch, int first, int count);
  /// The graph of a whole step of `batch` rows, captured at the first call.
  /// The row arrays are those of this batch size from then on.
  Graph &graph(int batch, const RowArrays &rows);
  /// Packed decode of `count` rows of `batch`, in the slots of the row arrays.
  void extend(int batch, const RowArrays &rows, int count);

  /// Whether kernels may be launched before the one before them has ended.
  bool overlaps() const { return device.target().capability >= 90; }

  /// The outputs [HV, V] of a row, this rank's heads.
  std::vector<double> output(int batch, int layer, int row) const;
  /// The states [HV, V, K] of a slot as they are stored.
  std::vector<double> readState(int layer, int slot) const;
  void writeState(int layer, int slot, const double *values);
  /// Checkpoint and ring of a slot, folded on the host.
  std::vector<double> foldedState(int layer, int slot, int ring,
                                  RingCursor cursor) const;

private:
  struct Layer {
    Memory aLog, dtBias;
  };
  /// Inputs and outputs of a layer at one batch size.
  struct Buffers {
    Memory qkv, a, b, out;
    DecodeArgs args; ///< These addresses, strides and the parameters.
  };
  struct Batch {
    std::unique_ptr<StepPlan> plan;
    std::vector<Buffers> layers;
    std::vector<KernelHandle> decode, packed; ///< Of each group.
    std::unique_ptr<Graph> graph;
  };
  LaunchOrder orderOf(int layer) const;
  Buffers makeBuffers(int layer, int rows) const;
  /// The rows from `first` on of what the model adds to a launch.
  void addInputs(const Buffers &buffers, int layer, int first,
                 DecodeArgs &args) const;
  const DecodeSpec &specOf(int layer) const {
    return statePool->groups()[model.groupOf(layer)].spec;
  }

  const Model &model;
  const int rank, ranks;
  Device &device;
  std::unique_ptr<Pages> pages; ///< What the pool adopted; null if nothing.
  std::unique_ptr<StatePool> statePool;
  std::vector<Layer> layers;
  std::map<int, Batch> sizes; ///< Gone before the pool.
};

} // namespace replayjit::internal::engine

#endif
