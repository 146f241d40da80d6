//===- DecodeCheckSession.h - A run of one problem --------------*- C++ -*-===//
//
// What DecodeCheckSetup.cpp, which makes the tensors and the inputs of a step,
// shares with DecodeCheck.cpp, which launches and compares.
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_CHECKS_DECODECHECKSESSION_H
#define REPLAYJIT_CHECKS_DECODECHECKSESSION_H

#include "checks/DecodeCheck.h"
#include "checks/DecodeCheckInputs.h"
#include "checks/DecodeCheckMemory.h"

#include <array>
#include <vector>

namespace replayjit::internal {

class DecodeSession {
public:
  DecodeSession(Device &device, const DecodeProblem &problem);

  Status allocate() { return mirrors.allocate(); }
  void initialize();
  Status runStep(int step, LoadedKernel &kernel, const LaunchConfig &launch);
  CheckReport finish();

private:
  struct Row {
    int64_t slot = 0, ringSlot = 0, dstSlot = 0; ///< As the arrays hold them.
    RingCursor cursor;
    bool isShared = false;
    DecodeRow now;            ///< What the current step does.
    int64_t accepted = 1;     ///< Of its tokens, those that hold.
    std::vector<double> sums; ///< P of the newest ring row, in fp64.
  };

  DecodeArgs arguments(bool onDevice);
  void placeRows();
  void writeIndices(int step);
  void fillInputs(int step);
  void fillToken(int64_t place, int ringRow);
  int tokensOf(int step, int row);
  void poisonRing(int64_t ringSlot, int64_t place);
  void acceptRing(int64_t ringSlot, int64_t place);

  void compareLiveRow(int step, int index, Row &row);
  void compareToken(int step, int index, Row &row, int64_t t);
  void compareAppended(int step, Row &row, RingCursor cursor,
                       const DecodeToken &token, const std::vector<double> &d);
  void compareState(int step, int64_t slot, const std::vector<double> &S);
  void acceptSharedRow(const Row &row);
  void checkZeros(int step, const DecodeRow &row, int64_t first);
  void checkErrorWord(int step);
  void checkIntact(int step);
  void checkSteady();
  void advance(Row &row);
  void noteValues();

  Device &device;
  const DecodeProblem &problem;
  const DecodeSpec &spec;
  const int H, HV, K, V, L;
  const int G; ///< Gates of a token and value head.
  RandomInputs random;

  ArgumentMirrors tensors;
  PoolMirrors pools;
  TensorMirror &out, &errorWord;
  /// What a token brings; q alone holds q, k and v unless hasSeparateQkv.
  std::array<TensorMirror *, 6> inputs;
  MirrorSet mirrors;
  std::vector<Row> rows;
  DecodeRecurrence recurrence; ///< A row's state is that of its batch index.
  ErrorSum outSum, checkpointSum, finalSum, dSum, kSum, gSum;
  /// The same sums of the first and the last quarter of a long run.
  std::array<ErrorSum, 2> outQuarters, checkpointQuarters;
  ExpectedErrors errors;
  CheckReport report;
};

} // namespace replayjit::internal

#endif
