//===- RowRules.h - Which row is live, in references ------------*- C++ -*-===//
#ifndef REPLAYJIT_KERNELS_DECODE_ROWRULES_H
#define REPLAYJIT_KERNELS_DECODE_ROWRULES_H

#include "kernels/Decode/DecodeArgs.h"

namespace replayjit::internal {

inline int64_t firstLegalSlot(const DecodeSpec &spec) {
  return spec.nullSlot == NullSlot::NonPositive ? 1 : 0;
}

/// An index or cursor of a row and what ErrorKind it is if not in low..high-1.
struct RowRule {
  ErrorKind kind;
  int64_t value, low, high;
  bool counts = true; ///< Else any value will do.
};

/// R2: fills in the first error of `row`, or makes it live.
template <typename Row, size_t n>
void judge(Row &row, const RowRule (&rules)[n]) {
  for (const RowRule &rule : rules)
    if (rule.counts && (rule.value < rule.low || rule.value >= rule.high)) {
      row.error = rule.kind;
      row.badValue = rule.value;
      return;
    }
  row.isLive = true;
}

} // namespace replayjit::internal

#endif
